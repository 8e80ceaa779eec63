"""A compiled grammar and the position of one sequence in it: masks, bounds, forced tokens.

Knows nothing of where a grammar came from (schema, pattern, text), nor of models.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sglite.errors import GrammarError
from sglite.grammars import _native
from sglite.grammars.vocabulary import Vocabulary

_FORCED_KEPT = 4096


class Grammar:
    """A constraint compiled for one vocabulary. Immutable, shared by any number of matchers."""

    def __init__(self, native: _native.Grammar, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self._native = native
        self._forced: dict[tuple[int, int], tuple[int, ...]] = {}

    @property
    def memory(self) -> int:
        """Rough size in bytes of what was found so far; it grows with use, up to a limit."""
        return self._native.memory

    def matcher(self, prefix: bytes = b"") -> Matcher:
        """A matcher at the beginning. With `prefix`, these bytes must come before the grammar's
        own language: how a healed hole begins. Raises GrammarError for a prefix that the
        vocabulary cannot spell byte by byte."""
        try:
            return _NativeMatcher(self, self._native, prefix)
        except _native.Refused as error:
            raise GrammarError(error.reason, error.pointer) from None


class Matcher:
    """One sequence's position in a grammar.

    When it is complete the mask sets the eos ids, and only then; accepting one of them finishes
    it. One that is complete and cannot go on is finished by itself. Not thread-safe; different
    matchers of one grammar may be used by different threads.
    """

    __slots__ = ()

    grammar: Grammar

    def fill_mask(self, mask: NDArray[np.uint32], budget: int | None = None) -> None:
        """Write the ids that may come next into `mask`: uint32 `[ceil(V / 32)]`, set = allowed.

        `budget`: tokens that are left, eos not counted; every token after which the grammar could
        not be finished within the rest, by its bound, is forbidden. Raises TypeError for an array
        of another type or layout, ValueError for another length or a negative budget.
        """
        raise NotImplementedError

    def accept(self, token_id: int) -> bool:
        """Go on by one id. False, and nothing changed, for a refused one."""
        raise NotImplementedError

    def accept_tokens(self, token_ids: Sequence[int]) -> bool:
        """Go on by all of the ids, or by none and return False."""
        raise NotImplementedError

    @property
    def is_complete(self) -> bool:
        """Whether the text so far is a match."""
        raise NotImplementedError

    @property
    def is_finished(self) -> bool:
        """Whether nothing more can come: an eos id was accepted, or the match cannot go on."""
        raise NotImplementedError

    def allowed_count(self) -> int:
        """How many ids the mask without a budget allows, eos ids included."""
        raise NotImplementedError

    def tokens_to_finish(self) -> int:
        """An upper bound on the tokens to a complete match, eos not counted.

        From a bound b >= 1 some allowed token leads to a bound of at most b - 1.
        """
        raise NotImplementedError

    def rollback(self, count: int) -> None:
        """Take back the last `count` accepted ids. Raises ValueError for more than there are."""
        raise NotImplementedError

    def fork(self) -> Matcher:
        """An independent matcher at the same position, with the same history."""
        raise NotImplementedError

    def key(self) -> tuple[int, int]:
        """A pair that is the same for matchers at the same position of one grammar."""
        raise NotImplementedError

    def forced_bytes(self) -> bytes:
        """The bytes that must come next, up to the first choice (ending is one) or 4096."""
        raise NotImplementedError

    def forced_tokens(self) -> list[int]:
        """The ids that the forced bytes settle, in the tokeniser's own spelling; never an eos id.

        Held back from the first id on that a longer legal token could span. A pure function of
        the position; empty without `encode`.
        """
        raise NotImplementedError


class _NativeMatcher(_native.Matcher, Matcher):
    """The native matcher itself, so that a call goes through no Python; what knows the tokeniser
    is added here."""

    __slots__ = ("grammar",)

    def __init__(self, grammar: Grammar, *source: Any) -> None:
        super().__init__(*source)
        self.grammar = grammar

    def fork(self) -> Matcher:
        return _NativeMatcher(self.grammar, self)

    def forced_tokens(self) -> list[int]:
        encode = self.grammar.vocabulary.encode
        if encode is None:
            return []
        key = self.key()
        known = self.grammar._forced.get(key)
        if known is None:
            known = tuple(self._settled_ids(encode(_whole_characters(self.forced_bytes()))))
            if len(self.grammar._forced) >= _FORCED_KEPT:
                self.grammar._forced.clear()
            self.grammar._forced[key] = known
        return list(known)

    def _settled_ids(self, ids: Sequence[int]) -> list[int]:
        vocabulary = self.grammar.vocabulary
        text = b"".join(vocabulary.token(i) for i in ids)
        if not self.forced_bytes().startswith(text):
            return []  # the tokeniser rewrites this text (normalises it): nothing is settled
        settled: list[int] = []
        begin = 0
        for token_id in ids:
            length = len(vocabulary.token(token_id))
            if (
                length == 0
                or token_id in vocabulary.special_ids
                or token_id in vocabulary.eos_ids
                or self.unsettled(text, begin)
            ):
                break
            settled.append(int(token_id))
            begin += length
        return settled


def _whole_characters(text: bytes) -> bytes:
    """`text` without a last character that is cut; nothing if the rest is no UTF-8."""
    for cut in range(min(3, len(text)) + 1):
        head = text[: len(text) - cut]
        try:
            head.decode("utf-8")
        except UnicodeDecodeError:
            continue
        return head
    return b""


def check_mask(mask: object, dimensions: int) -> None:
    """Raises TypeError unless `mask` is a writeable, C-contiguous uint32 array."""
    if not isinstance(mask, np.ndarray) or mask.dtype != np.uint32:
        kind = mask.dtype if isinstance(mask, np.ndarray) else type(mask).__name__
        raise TypeError(f"a mask is a numpy array of uint32, got {kind}")
    if mask.ndim != dimensions or not mask.flags.c_contiguous or not mask.flags.writeable:
        raise TypeError(
            f"masks must be {dimensions}-dimensional, C-contiguous and writeable, got shape "
            f"{mask.shape} with strides {mask.strides}"
        )


def fill_masks(
    matchers: Sequence[Matcher], masks: NDArray[np.uint32], budgets: NDArray[np.int32]
) -> None:
    """`fill_mask` for a batch in one call without the GIL.

    masks: uint32 `[B, ceil(V / 32)]`; budgets: int32 `[B]`, -1 for none. All matchers have
    vocabularies of one size. Raises TypeError and ValueError as `fill_mask` does.
    """
    check_mask(masks, 2)
    budgets = np.ascontiguousarray(budgets, dtype=np.int32)
    native = [m for m in matchers if isinstance(m, _NativeMatcher)]
    if len(native) == len(matchers):
        _native.fill_masks(native, masks, budgets)
        return
    if not len(matchers) == len(masks) == len(budgets):
        raise ValueError("fill_masks needs a row of masks and a budget per matcher")
    for matcher, mask, budget in zip(matchers, masks, budgets, strict=True):
        matcher.fill_mask(mask, None if budget < 0 else int(budget))


def build(
    builder: _native.Builder, root: int, vocabulary: Vocabulary, most_edges: int = 20_000_000
) -> Grammar:
    """The grammar of expression `root`. Raises GrammarError where the native part refuses, also
    for more edges than that."""
    try:
        return Grammar(builder.build(root, True, most_edges), vocabulary)
    except _native.Refused as error:
        raise GrammarError(error.reason, error.pointer) from None


def free_text(vocabulary: Vocabulary) -> Grammar:
    """Any text: every text id is allowed and it is always complete. For healing free holes."""

    def compile_now() -> Grammar:
        builder = _native.Builder(vocabulary.native)
        root = builder.repeat(builder.any_bytes(), 0, -1)
        return Grammar(builder.build(root, False), vocabulary)

    return vocabulary.compiled("free_text", compile_now)
