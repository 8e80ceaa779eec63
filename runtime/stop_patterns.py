"""Patterns that end free text, found in bytes as they come.

A pattern is compiled to an automaton over single bytes. Every place where a match could have begun
is followed by a matcher of its own; of those that stand at one position of the automaton only the
first is kept, so there are never more than the pattern has positions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from sglite.errors import GrammarError
from sglite.grammars import Vocabulary, compile_regex

if TYPE_CHECKING:
    from sglite.grammars import Grammar, Matcher

MOST_BEGINNINGS = 1024
"""Matches of one pattern that may be under way at a time; a pattern that has more is refused."""


@dataclass(frozen=True, slots=True)
class StopPattern:
    """A pattern over single bytes; `firsts` are the bytes that a match can begin with."""

    source: str
    grammar: Grammar
    firsts: frozenset[int]


@lru_cache(maxsize=256)
def stop_pattern(source: str) -> StopPattern:
    """Compile a pattern. Raises GrammarError, also for one that matches the empty text."""
    grammar = compile_regex(source, _bytes())
    if grammar.matcher().is_complete:
        raise GrammarError(
            f"the stop_regex {source!r} matches the empty text and would end every value at once"
        )
    firsts = frozenset(byte for byte in range(256) if grammar.matcher().accept(byte))
    return StopPattern(source, grammar, firsts)


@cache
def _bytes() -> Vocabulary:
    return Vocabulary.from_tokens([bytes([byte]) for byte in range(256)])


class PatternSearch:
    """Looks for the match of one pattern that ends first; of several that end there, the one that
    begins first."""

    __slots__ = ("_under_way", "pattern")

    def __init__(self, pattern: StopPattern) -> None:
        self.pattern = pattern
        self._under_way: list[tuple[int, Matcher]] = []

    @property
    def begun(self) -> int | None:
        """Where the first match begins that is under way."""
        return self._under_way[0][0] if self._under_way else None

    def forget(self) -> None:
        """No match is under way any more."""
        self._under_way.clear()

    def feed(self, data: bytearray, begin: int) -> tuple[int, int] | None:
        """Go on with `data[begin:]`; start and end of the match, if one ends there."""
        for at in range(begin, len(data)):
            start = self._step(data[at], at)
            if start is not None:
                return start, at + 1
        return None

    def _step(self, byte: int, at: int) -> int | None:
        """Where the match begins that ends with this byte."""
        if byte in self.pattern.firsts:
            self._under_way.append((at, self.pattern.grammar.matcher()))
        if not self._under_way:
            return None
        alive: list[tuple[int, Matcher]] = []
        known: set[tuple[int, int]] = set()
        for start, matcher in self._under_way:
            if not matcher.accept(byte):
                continue
            if matcher.is_complete:
                return start
            position = matcher.key()
            if position not in known:
                known.add(position)
                alive.append((start, matcher))
        if len(alive) > MOST_BEGINNINGS:
            raise ValueError(
                f"the stop_regex {self.pattern.source!r} has more than {MOST_BEGINNINGS} matches "
                "under way at a time; bound its repetitions"
            )
        self._under_way = alive
        return None
