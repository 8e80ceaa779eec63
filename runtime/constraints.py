"""The door to the grammars: constraints of holes compiled over the model's vocabulary, and masks.

Compiling happens on the thread of the caller that submits; the engine's thread only runs matchers.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from sglite import grammars
from sglite.grammars.compose import compile_parts
from sglite.runtime.segment import Constraint

if TYPE_CHECKING:
    from sglite.grammars import Grammar, Matcher, Vocabulary


def reading_specials(vocabulary: Vocabulary, texts: tuple[str, ...]) -> Vocabulary:
    """`vocabulary` itself where no special token has one of these texts, else one where they are
    tokens like others. Ids that end a turn never are."""
    by_text = {vocabulary.token(i): i for i in vocabulary.special_ids - {*vocabulary.eos_ids}}
    ids = {data: by_text[data] for text in texts if (data := text.encode()) in by_text}
    if not ids:
        return vocabulary
    encode = vocabulary.encode
    mark = re.compile(b"(" + b"|".join(map(re.escape, ids)) + b")")

    def encode_with_specials(data: bytes) -> list[int]:
        assert encode is not None
        found: list[int] = []
        for part in mark.split(data):
            found += [ids[part]] if part in ids else encode(part)
        return found

    return grammars.Vocabulary.from_tokens(
        vocabulary.tokens,
        vocabulary.eos_ids,
        vocabulary.special_ids.difference(ids.values()),
        encode_with_specials if encode is not None else None,
    )


class Constraints:
    """The grammars of one vocabulary, which keeps those used last."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self._with_specials: dict[tuple[str, ...], Vocabulary] = {}
        self._lock = threading.Lock()

    def compile(self, constraint: Constraint) -> Grammar:
        """The grammar of `constraint`. Raises GrammarError for one that cannot be compiled."""
        compilers: dict[str, Callable[..., Grammar]] = {
            "json_schema": grammars.compile_json_schema,
            "regex": grammars.compile_regex,
            "grammar": grammars.compile_grammar,
            "parts": compile_parts,
        }
        options = dict(constraint.options)
        vocabulary = self._reading(options.pop("special_texts", ()))
        return compilers[constraint.kind](constraint.source, vocabulary, **options)

    def _reading(self, texts: tuple[str, ...]) -> Vocabulary:
        """The vocabulary in which the special tokens with these texts stand for them."""
        with self._lock:
            found = self._with_specials.get(texts)
            if found is None:
                found = self._with_specials[texts] = reading_specials(self.vocabulary, texts)
            return found

    def free_text(self) -> Grammar:
        """Any text."""
        return grammars.free_text(self.vocabulary)

    def tokens_beginning(self, pattern: str) -> list[int]:
        """Ids of text that begin a match of `pattern` or begin with one."""
        mask = self.vocabulary.empty_mask()
        # Brackets of a class, not a dot: a line may end behind the match.
        grammars.compile_regex(f"(?:{pattern})[\\s\\S]*", self.vocabulary).matcher().fill_mask(mask)
        bits = np.unpackbits(mask.view(np.uint8), bitorder="little")
        return [int(token) for token in np.flatnonzero(bits)]

    def fill_masks(
        self,
        matchers: Sequence[Matcher],
        masks: npt.NDArray[np.uint32],
        budgets: npt.NDArray[np.int32],
    ) -> None:
        """Masks uint32 [N, W] of N matchers, with the tokens that each may still use."""
        grammars.fill_masks(matchers, masks, budgets)
