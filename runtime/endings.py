"""What ends a generating hole, found once when it is submitted: ids, texts and patterns."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from sglite.runtime.constraints import Constraints
from sglite.runtime.output import StopText
from sglite.runtime.prompt import Tokenizer
from sglite.runtime.segment import Gen
from sglite.runtime.stop_patterns import StopPattern, stop_pattern

if TYPE_CHECKING:
    from sglite.grammars import Grammar


@dataclass(frozen=True, slots=True)
class Endings:
    """`ids`: their total probability is the end outcome. In free text alone: `marks` are those of
    them that are special tokens which a stop or until text names; `texts` and `patterns` are looked
    for. `others`: where there is a least length, a mask of all ids but those that only end."""

    ids: array[int]
    marks: Mapping[int, StopText]
    texts: tuple[StopText, ...]
    patterns: tuple[StopPattern, ...]
    others: npt.NDArray[np.uint32] | None


@dataclass(frozen=True, slots=True)
class PreparedGen:
    """What the caller's thread has found out about a Gen; `grammar` None is free text."""

    grammar: Grammar | None
    endings: Endings


def prepare_gen(gen: Gen, tokenizer: Tokenizer, constraints: Constraints) -> PreparedGen:
    """Compile what the hole names. Raises GrammarError, and ValueError for arguments out of
    range."""
    check_gen(gen, tokenizer.vocab_size)
    vocabulary = constraints.vocabulary
    constrained = gen.constraint is not None
    grammar = constraints.compile(gen.constraint) if gen.constraint is not None else None
    texts = [StopText(text.encode(), text, False) for text in gen.stop]
    texts += [StopText(text.encode(), text, True) for text in gen.until]
    marks: dict[int, StopText] = {}
    for text in texts:
        mark = tokenizer.special_id(text.text)
        if mark is not None:
            marks.setdefault(mark, text)
    ends = {*gen.stop_ids, *marks}
    if constrained or not gen.ignore_eos:
        ends.update(vocabulary.eos_ids)
    # An end-of-turn id is no text, also where it ends nothing.
    barred = {*ends, *vocabulary.eos_ids}
    if constrained:
        # What begins such a text may be part of the value as well, so it is not barred.
        for text in texts:
            ends.update(map(int, vocabulary.tokens_beginning(text.data)))
        for pattern in gen.stop_regex:
            stop_pattern(pattern)
            ends.update(constraints.tokens_beginning(pattern))
    return PreparedGen(
        grammar,
        Endings(
            array("i", sorted(ends)),
            {} if constrained else marks,
            () if constrained else tuple(texts),
            () if constrained else tuple(map(stop_pattern, gen.stop_regex)),
            _all_but(barred, vocabulary.mask_words) if gen.min_tokens else None,
        ),
    )


def _all_but(ids: set[int], words: int) -> npt.NDArray[np.uint32]:
    bits = np.ones(words * 32, np.uint8)
    bits[list(ids)] = 0
    return np.packbits(bits, bitorder="little").view(np.uint32)


def check_gen(gen: Gen, vocab_size: int) -> None:
    """Raise ValueError for arguments that no hole can have."""
    if gen.max_tokens < 1:
        raise _refused(gen, f"max_tokens must be at least 1, got {gen.max_tokens}")
    if not 0 <= gen.min_tokens <= gen.max_tokens:
        allowed = f"from 0 to max_tokens={gen.max_tokens}"
        raise _refused(gen, f"min_tokens must be {allowed}, got {gen.min_tokens}")
    if "" in gen.stop or "" in gen.until:
        raise _refused(gen, "a stop or until text must not be empty")
    if gen.top_logprobs < 0:
        raise _refused(gen, f"the number of logprobs must be at least 0, got {gen.top_logprobs}")
    if gen.stop_ids or gen.logit_bias:
        _check_ids(gen, vocab_size)


def _check_ids(gen: Gen, vocab_size: int) -> None:
    biased = [token for token, _ in gen.logit_bias]
    for token in (*gen.stop_ids, *biased):
        if not 0 <= token < vocab_size:
            raise _refused(gen, f"id {token} is not in the vocabulary (0 to {vocab_size - 1})")
    if len(set(biased)) < len(biased):
        raise _refused(gen, "logit_bias names an id twice")
    for token, bias in gen.logit_bias:
        if not bias < float("inf"):  # refuses NaN too
            raise _refused(gen, f"the bias of id {token} must be a number or -inf, got {bias!r}")


def _refused(gen: Gen, what: str) -> ValueError:
    return ValueError(f"hole {gen.name!r}: {what}")
