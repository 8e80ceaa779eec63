"""Arrays: items by position, their number, `contains` and `uniqueItems`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from sglite.errors import GrammarError
from sglite.grammars._native import Builder
from sglite.grammars.schema import keywords
from sglite.grammars.schema.branches import Branches, Conjunction, conjunction_of
from sglite.grammars.schema.keywords import Contained
from sglite.grammars.schema.negation import negation
from sglite.grammars.schema.style import Style

MAX_POSITIONS = 4096


class Arrays:
    """Lays arrays out. `value`: the expression of a value; `listed`: that of one known value."""

    def __init__(
        self,
        branches: Branches,
        builder: Builder,
        style: Style,
        value: Callable[[Conjunction], int],
        listed: Callable[[Any], int],
    ) -> None:
        self._branches = branches
        self._builder = builder
        self._style = style
        self._value = value
        self._listed = listed

    def lay(self, plain: Conjunction) -> int:
        """The arrays for which a plain conjunction holds. Raises GrammarError."""
        low = max((keywords.count(p, "minItems") or 0 for p in plain), default=0)
        highs = [h for p in plain if (h := keywords.count(p, "maxItems")) is not None]
        high = min(highs, default=None)
        if high is not None and high < low:
            return self._builder.choice([])
        positions = self.positions(plain)
        contained = [c for p in plain for c in keywords.contained(p)]
        unique = [p for p in plain if keywords.flag(p, "uniqueItems")]
        if unique and (high is None or high > 1):
            values = self._finite(positions[0]) if len(positions) == 1 else None
            if values is None or contained:
                raise GrammarError(
                    "'uniqueItems' is supported where the items are of a finite list of values",
                    unique[0].at("uniqueItems"),
                )
            return self._distinct(values, low, high, unique[0].at("uniqueItems"))
        if contained:
            return self._containing(positions, contained, low, high, plain[0].pointer)
        first = [self._value(c) for c in positions[:-1]]
        return self.write(first, self._value(positions[-1]), low, high)

    def positions(self, plain: Conjunction) -> list[Conjunction]:
        """What holds at each item; the last one stands for all that follow."""
        split = [keywords.items(place) for place in plain]
        longest = max((len(first) for first, _ in split), default=0)
        return [
            conjunction_of(first[i] if i < len(first) else rest for first, rest in split)
            for i in range(longest + 1)
        ]

    def write(self, first: Sequence[int], rest: int | None, low: int, high: int | None) -> int:
        """An array of the `first` items, then any number of `rest` (None: no more)."""
        builder, comma = self._builder, self._style.comma
        if rest is None:
            high = len(first) if high is None else min(high, len(first))
        if high is not None and high < low:
            return builder.choice([])
        nothing = builder.literal(b"")
        count = len(first) + 1 if rest is not None else len(first)
        items = [*first, rest] if rest is not None else list(first)
        tail = nothing
        if rest is not None:
            most = -1 if high is None else max(high - count, 0)
            least = max(low - count, 0)
            if most < 0 or most >= least:
                tail = builder.repeat(builder.sequence([comma, rest]), least, most)
        for i in reversed(range(count)):
            if high is not None and i >= high:
                tail = nothing
                continue
            step = [items[i], tail] if i == 0 else [comma, items[i], tail]
            tail = builder.sequence(step)
            if i >= low:
                tail = builder.choice([nothing, tail])
        return builder.sequence([self._style.open_array, tail, self._style.close_array])

    # contains

    def _containing(
        self,
        positions: list[Conjunction],
        contained: list[Contained],
        low: int,
        high: int | None,
        pointer: str,
    ) -> int:
        """Arrays some of whose items satisfy further schemas, in counted numbers.

        A rule for the rest of the array behind each number of items and of those that were counted.
        An item may be counted for a schema that it satisfies; where there is a maximum, one that
        is not counted must not satisfy it.
        """
        builder, style = self._builder, self._style
        nothing = builder.literal(b"")
        last = max([1, len(positions) - 1, low, high or 0, *(c.begin for c in contained)])
        caps = [c.low if c.high is None else c.high for c in contained]
        rules: dict[tuple[int, ...], int] = {}
        todo: list[tuple[int, ...]] = []

        def rest(state: tuple[int, ...]) -> int:
            if state not in rules:
                if len(rules) == MAX_POSITIONS:
                    raise GrammarError("the counts of 'contains' are too large", pointer)
                rules[state] = builder.rule(f"items after {state[0]} at {pointer or '#'}")
                todo.append(state)
            return builder.call(rules[state])

        root = rest((0,) * (len(contained) + 1))
        for at, *counts in todo:
            ways = []
            if at >= low and all(n >= c.low for n, c in zip(counts, contained, strict=True)):
                ways.append(nothing)
            if high is None or at < high:
                for chosen in itertools.product((False, True), repeat=len(contained)):
                    held = list(positions[min(at, len(positions) - 1)])
                    after = list(counts)
                    for i, (some, yes) in enumerate(zip(contained, chosen, strict=True)):
                        if yes:
                            held.append(some.schema)
                            after[i] += 1
                        elif some.high is not None and at >= some.begin:
                            held.append(negation(some.schema))
                    if self._may_count(chosen, after, contained, at):
                        capped = [min(n, cap) for n, cap in zip(after, caps, strict=True)]
                        behind = at + 1 if high is not None else min(at + 1, last)
                        item = [] if at == 0 else [style.comma]
                        item += [self._value(conjunction_of(held)), rest((behind, *capped))]
                        ways.append(builder.sequence(item))
            builder.define(rules[at, *counts], builder.choice(ways))
        return builder.sequence([style.open_array, root, style.close_array])

    @staticmethod
    def _may_count(
        chosen: Sequence[bool], after: list[int], contained: list[Contained], at: int
    ) -> bool:
        return all(
            at >= some.begin and (some.high is None or n <= some.high)
            for yes, n, some in zip(chosen, after, contained, strict=True)
            if yes
        )

    # uniqueItems

    def _finite(self, conjunction: Conjunction) -> list[Any] | None:
        """All values of a conjunction, each once, or None where they are not listed."""
        distinct: dict[Hashable, Any] = {}
        for plain in self._branches.plain(conjunction):
            values = self._branches.values(plain)
            if values is None:
                allowed = self._branches.types(plain)
                if not allowed <= {"null", "boolean"}:
                    return None
                values = [None] if "null" in allowed else []
                values += [True, False] if "boolean" in allowed else []
            for value in values:
                distinct.setdefault(keywords.identity(value), value)
        return list(distinct.values())

    def _distinct(self, values: list[Any], low: int, high: int | None, pointer: str) -> int:
        """Arrays of some of the values, in any order, none twice."""
        builder, style = self._builder, self._style
        if low > len(values):
            return builder.choice([])
        items = [self._listed(value) for value in values]

        def some_of(required: Sequence[bool]) -> int:
            body = builder.free_order(
                list(zip(items, required, strict=True)), -1, style.comma, style.close_array
            )
            return builder.sequence([style.open_array, body])

        if high is not None and high < len(values):
            raise GrammarError(
                f"'uniqueItems' with 'maxItems' below the {len(values)} values is not supported",
                pointer,
            )
        if 1 < low < len(values):
            raise GrammarError(
                f"'uniqueItems' of {len(values)} values with 'minItems' from 2 on is not supported",
                pointer,
            )
        if low in (0, len(values)):
            return some_of([low > 0] * len(values))
        return builder.choice(
            [some_of([i == j for i in range(len(values))]) for j in range(len(values))]
        )
