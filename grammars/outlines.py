"""Patterns compiled by the outlines-core package: an automaton over whole tokens, built ahead.

Slow to build and fast to read. It follows that package's reading of patterns, without our
promises: a token that ends one byte behind a match can be missing, `{}` is not always a group.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sglite.errors import GrammarError
from sglite.grammars.matcher import Grammar, Matcher, check_mask
from sglite.grammars.vocabulary import Vocabulary

_Position = tuple[bytes, int]
"""Bytes of a prefix that are still to come, and the state of the automaton."""


def compile_with_outlines(pattern: str, vocab: Vocabulary) -> Grammar:
    """The grammar that outlines-core makes of `pattern`. Raises GrammarError where the package is
    missing or refuses."""
    try:
        from outlines_core import Index
        from outlines_core import Vocabulary as Tokens
    except ImportError:
        raise GrammarError(
            "the engine 'outlines' needs the package outlines-core: pip install sglite[outlines]"
        ) from None
    bits = np.unpackbits(vocab.text_mask.view(np.uint8), bitorder="little")
    ids: dict[bytes, list[int]] = {}
    for token_id in np.flatnonzero(bits):
        ids.setdefault(vocab.token(int(token_id)), []).append(int(token_id))
    no_id = vocab.size  # the index wants an end id; ours are set by the matcher
    try:
        index = Index(pattern, Tokens(no_id, ids))
    except ValueError as error:
        raise GrammarError(f"outlines-core refuses pattern {pattern!r}: {error}") from None
    return OutlinesGrammar(index, vocab)


class OutlinesGrammar(Grammar):
    """An index of outlines-core."""

    def __init__(self, index: Any, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.start: int = index.get_initial_state()
        self.finals = frozenset(index.get_final_states())
        self.moves: dict[int, dict[int, int]] = {
            state: {t: to for t, to in row.items() if t < vocabulary.size}
            for state, row in index.get_transitions().items()
        }
        self.cost = self._costs()

    def _costs(self) -> dict[int, int]:
        """Fewest tokens to a final state, for the states that have a way there."""
        before: dict[int, set[int]] = {}
        for state, row in self.moves.items():
            for to in row.values():
                before.setdefault(to, set()).add(state)
        cost = dict.fromkeys(self.finals, 0)
        todo = deque(self.finals)
        while todo:
            state = todo.popleft()
            for source in before.get(state, ()):
                if source not in cost:
                    cost[source] = cost[state] + 1
                    todo.append(source)
        return cost

    def matcher(self, prefix: bytes = b"") -> Matcher:
        return OutlinesMatcher(self, prefix)

    def next(self, position: _Position) -> dict[int, _Position]:
        """The ids that may follow, each with where it leads; dead ends left out."""
        prefix, state = position
        row = self.moves.get(state, {})
        if not prefix:
            return {t: (b"", to) for t, to in row.items() if to in self.cost}
        token = self.vocabulary.token
        starts = {token(t): to for t, to in row.items() if to in self.cost}
        found: dict[int, _Position] = {}
        for token_id in map(int, self.vocabulary.tokens_beginning(prefix)):
            text = token(token_id)
            if prefix.startswith(text):
                found[token_id] = (prefix[len(text) :], state)
            elif (to := starts.get(text[len(prefix) :])) is not None:
                found[token_id] = (b"", to)
        return found

    def bound(self, position: _Position) -> int:
        """Tokens to a final state, a prefix counted byte by byte."""
        return len(position[0]) + self.cost[position[1]]


class OutlinesMatcher(Matcher):
    """A position in an index. It forces nothing."""

    __slots__ = ("_ended", "_history", "_position", "_rules", "grammar")

    def __init__(self, grammar: OutlinesGrammar, prefix: bytes) -> None:
        self.grammar = grammar
        self._rules = grammar
        self._position: _Position = (prefix, grammar.start)
        self._ended = False
        self._history: list[tuple[_Position, bool]] = []

    def fill_mask(self, mask: NDArray[np.uint32], budget: int | None = None) -> None:
        check_mask(mask, 1)
        vocabulary = self._rules.vocabulary
        if len(mask) != vocabulary.mask_words:
            raise ValueError(f"the mask has {len(mask)} words, not {vocabulary.mask_words}")
        if budget is not None and budget < 0:
            raise ValueError(f"the budget must be >= 0 tokens, got {budget}")
        mask[:] = 0
        if self._ended:
            return
        allowed = [
            token_id
            for token_id, to in self._rules.next(self._position).items()
            if budget is None or self._rules.bound(to) <= budget - 1
        ]
        ids = np.array([*allowed, *(vocabulary.eos_ids if self.is_complete else ())], np.int64)
        np.bitwise_or.at(mask, ids >> 5, np.uint32(1) << (ids & 31).astype(np.uint32))

    def accept(self, token_id: int) -> bool:
        if self._ended:
            return False
        ends = token_id in self._rules.vocabulary.eos_ids
        to = self._position if ends else self._rules.next(self._position).get(token_id)
        if to is None or (ends and not self.is_complete):
            return False
        self._history.append((self._position, self._ended))
        self._position, self._ended = to, ends
        return True

    def accept_tokens(self, token_ids: Any) -> bool:
        for done, token_id in enumerate(token_ids):
            if not self.accept(int(token_id)):
                self.rollback(done)
                return False
        return True

    @property
    def is_complete(self) -> bool:
        prefix, state = self._position
        return not prefix and state in self._rules.finals

    @property
    def is_finished(self) -> bool:
        return self._ended or (self.is_complete and not self._rules.next(self._position))

    def allowed_count(self) -> int:
        if self._ended:
            return 0
        ends = len(self._rules.vocabulary.eos_ids) if self.is_complete else 0
        return len(self._rules.next(self._position)) + ends

    def tokens_to_finish(self) -> int:
        return self._rules.bound(self._position)

    def rollback(self, count: int) -> None:
        if not 0 <= count <= len(self._history):
            raise ValueError(
                f"cannot roll back {count} ids, only {len(self._history)} were accepted"
            )
        if count:
            self._position, self._ended = self._history[-count]
            del self._history[-count:]

    def fork(self) -> Matcher:
        fork = OutlinesMatcher(self._rules, b"")
        fork._position, fork._ended = self._position, self._ended
        fork._history = list(self._history)
        return fork

    def forced_bytes(self) -> bytes:
        return b""

    def forced_tokens(self) -> list[int]:
        return []
