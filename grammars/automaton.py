"""Languages over characters that a tree of a pattern cannot say: intersections and complements.

Each constraint is a machine that reads one character at a time; their product is explored into
one deterministic automaton.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from sglite.errors import GrammarError
from sglite.grammars import characters
from sglite.grammars.characters import Ranges
from sglite.grammars.regex_syntax import ANYTHING, Anchor, Chars, Concat, Either, Regex, Repeat

MAX_STATES = 20_000

S = TypeVar("S", bound=Hashable)


class Machine(Protocol):
    """A deterministic reader. States are hashable; None is the dead one."""

    def sets(self) -> Iterable[Ranges]:
        """Sets of characters; those of one part of their partition are read alike."""

    def start(self) -> Hashable: ...

    def step(self, state: Any, code: int) -> Hashable | None: ...

    def accepts(self, state: Any) -> bool: ...


@dataclass(frozen=True, slots=True)
class Automaton:
    """An explored product: states are numbers, edges go by sets of characters."""

    states: int
    start: int
    accepting: tuple[int, ...]
    edges: tuple[tuple[int, int, Ranges], ...]


class Pattern:
    """The texts that a tree matches in full, or with `search` somewhere inside of them."""

    def __init__(self, tree: Regex, *, search: bool = False) -> None:
        self._moves: list[list[tuple[Ranges, int]]] = []
        self._empty: list[list[int]] = []
        self._anchored: list[list[tuple[bool, int]]] = []
        whole = Concat((ANYTHING, tree, ANYTHING)) if search else tree
        self._first = self._state()
        self._last = self._state()
        self._lay(whole, self._first, self._last)
        self._known: dict[tuple[frozenset[int], int], frozenset[int]] = {}

    def sets(self) -> Iterable[Ranges]:
        return [ranges for moves in self._moves for ranges, _ in moves]

    def start(self) -> Hashable:
        return self._close({self._first}, at_start=True), True

    def step(self, state: tuple[frozenset[int], bool], code: int) -> Hashable | None:
        key = (state[0], code)
        after = self._known.get(key)
        if after is None:
            moved = {to for s in state[0] for ranges, to in self._moves[s] if _holds(ranges, code)}
            after = self._known[key] = self._close(moved, at_start=False)
        return (after, False) if after else None

    def accepts(self, state: tuple[frozenset[int], bool]) -> bool:
        return self._last in self._close(set(state[0]), at_start=state[1], at_end=True)

    def _state(self) -> int:
        self._moves.append([])
        self._empty.append([])
        self._anchored.append([])
        if len(self._moves) > 50 * MAX_STATES:
            raise GrammarError("the pattern is too large to combine with other constraints")
        return len(self._moves) - 1

    def _lay(self, tree: Regex, begin: int, end: int) -> None:
        match tree:
            case Chars(ranges):
                self._moves[begin].append((ranges, end))
            case Anchor(at_end):
                self._anchored[begin].append((at_end, end))
            case Either(parts):
                for part in parts:
                    self._lay(part, begin, end)
            case Concat(parts):
                for part in parts:
                    between = self._state()
                    self._lay(part, begin, between)
                    begin = between
                self._empty[begin].append(end)
            case Repeat(part, low, high):
                for _ in range(low):
                    between = self._state()
                    self._lay(part, begin, between)
                    begin = between
                loop = self._state()
                self._empty[begin].append(loop)
                for _ in range(high - low if high is not None else 1):
                    self._empty[loop].append(end)
                    after = loop if high is None else self._state()
                    self._lay(part, loop, after)
                    loop = after
                self._empty[loop].append(end)

    def _close(self, states: set[int], *, at_start: bool, at_end: bool = False) -> frozenset[int]:
        todo = list(states)
        while todo:
            state = todo.pop()
            passed = [to for end, to in self._anchored[state] if (at_end if end else at_start)]
            for to in [*self._empty[state], *passed]:
                if to not in states:
                    states.add(to)
                    todo.append(to)
        return frozenset(states)


class Length:
    """Texts of `low` to `high` characters; None: without end."""

    def __init__(self, low: int, high: int | None) -> None:
        self._low, self._high = low, high

    def sets(self) -> Iterable[Ranges]:
        return [characters.ANY]

    def start(self) -> Hashable:
        return 0

    def step(self, state: int, code: int) -> Hashable | None:
        if self._high is None:
            return min(state + 1, self._low)
        return state + 1 if state < self._high else None

    def accepts(self, state: int) -> bool:
        return state >= self._low


class Not:
    """The texts that another machine does not accept."""

    def __init__(self, inner: Machine) -> None:
        self._inner = inner

    def sets(self) -> Iterable[Ranges]:
        return self._inner.sets()

    def start(self) -> Hashable:
        return self._inner.start()

    def step(self, state: object, code: int) -> Hashable | None:
        if state is _LOST:
            return _LOST
        after = self._inner.step(state, code)
        return _LOST if after is None else after

    def accepts(self, state: object) -> bool:
        return state is _LOST or not self._inner.accepts(state)


class Both:
    """The texts that all of several machines accept, as one machine."""

    def __init__(self, machines: Sequence[Machine]) -> None:
        self._machines = machines

    def sets(self) -> Iterable[Ranges]:
        return [ranges for machine in self._machines for ranges in machine.sets()]

    def start(self) -> Hashable:
        return tuple(machine.start() for machine in self._machines)

    def step(self, state: tuple[Any, ...], code: int) -> Hashable | None:
        after = tuple(m.step(s, code) for m, s in zip(self._machines, state, strict=True))
        return None if None in after else after

    def accepts(self, state: tuple[Any, ...]) -> bool:
        return all(m.accepts(s) for m, s in zip(self._machines, state, strict=True))


class _Words:
    """The beginnings of a set of texts, read along a text."""

    def __init__(self, words: Collection[str]) -> None:
        self._words = frozenset(words)
        self._starts = {word[:i] for word in self._words for i in range(len(word) + 1)}

    def sets(self) -> Iterable[Ranges]:
        return [((ord(c), ord(c)),) for c in {c for word in self._words for c in word}]

    def start(self) -> Hashable:
        return ""


class OtherThan(_Words):
    """Every text but the given ones."""

    def step(self, state: str | None, code: int) -> Hashable | None:
        if state == _AWAY:
            return _AWAY
        longer = f"{state}{chr(code)}"
        return longer if longer in self._starts else _AWAY

    def accepts(self, state: str) -> bool:
        return state not in self._words


class OneOf(_Words):
    """One of the given texts."""

    def step(self, state: str, code: int) -> Hashable | None:
        longer = state + chr(code)
        return longer if longer in self._starts else None

    def accepts(self, state: str) -> bool:
        return state in self._words


_LOST: Hashable = object()
_AWAY = "\ud800"  # no text holds a lone surrogate


def _holds(ranges: Ranges, code: int) -> bool:
    place = bisect_right(ranges, (code, characters.LAST + 1)) - 1
    return place >= 0 and ranges[place][0] <= code <= ranges[place][1]


def explore(machines: Sequence[Machine]) -> Automaton:
    """The texts that every machine accepts. Raises GrammarError for more than 20,000 states."""
    parts = [p for p in characters.atoms(s for m in machines for s in m.sets()) if p]

    def moves(state: tuple[Any, ...]) -> Iterator[tuple[Ranges, tuple[Any, ...]]]:
        for part in parts:
            code = part[0][0]
            after = tuple(m.step(s, code) for m, s in zip(machines, state, strict=True))
            if None not in after:
                yield part, after

    return reachable(
        tuple(m.start() for m in machines),
        moves,
        lambda state: all(m.accepts(s) for m, s in zip(machines, state, strict=True)),
        f"the combination of patterns and lengths needs more than {MAX_STATES} states; "
        "simplify one of them",
    )


def reachable(
    first: S,
    moves: Callable[[S], Iterable[tuple[Ranges, S]]],
    accepts: Callable[[S], bool],
    refusal: str,
) -> Automaton:
    """Every state that `moves` leads to from `first`. Raises GrammarError with `refusal` for more
    than 20,000 of them."""
    numbers = {first: 0}
    todo = [first]
    accepting: list[int] = []
    edges: list[tuple[int, int, Ranges]] = []
    for state in todo:
        number = numbers[state]
        if accepts(state):
            accepting.append(number)
        targets: dict[int, list[Ranges]] = {}
        for ranges, after in moves(state):
            if after not in numbers:
                numbers[after] = len(numbers)
                todo.append(after)
                if len(numbers) > MAX_STATES:
                    raise GrammarError(refusal)
            targets.setdefault(numbers[after], []).append(ranges)
        for to, sets in targets.items():
            edges.append((number, to, sets[0] if len(sets) == 1 else characters.union(*sets)))
    return Automaton(len(numbers), 0, tuple(accepting), tuple(edges))


def accepted(machine: Machine, text: str) -> bool:
    """Whether one machine accepts `text`."""
    state: Hashable | None = machine.start()
    for char in text:
        state = machine.step(state, ord(char))
        if state is None:
            return False
    return machine.accepts(state)
