"""Patterns: what a hole may write, put together from texts, types and expressions.

    vote = sgl.one_of("yes", "no", name="vote") + sgl.optional(" because" + sgl.regex(" [a-z ]+"))
    s += "Shall we? " + sgl.gen("answer", grammar=vote)       # s["answer"], s["vote"]

A pattern that is added to a state is a hole of its own. Texts and patterns put together by `+` are
one pattern where a pattern is taken. A `name` makes a variable of a part.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from sglite.grammars import Grammar, compose
from sglite.language import ir
from sglite.language.types import value_type
from sglite.runtime.segment import Constraint


@dataclass(frozen=True, slots=True)
class Pattern(ir.Expression):
    """A part of a grammar, and the variables in it."""

    part: compose.Part
    captures: tuple[ir.Captured, ...] = ()

    def hole(self) -> ir.Gen:
        """The hole that writes this pattern and nothing else."""
        return ir.Gen(None, self.constraint, captures=self.captures)

    @property
    def constraint(self) -> Constraint:
        """What a hole must match."""
        return Constraint("parts", self.part)

    def __repr__(self) -> str:
        return f"<pattern {self.part!r}>"


def one_of(*parts: Any, name: str | None = None) -> Pattern:
    """One of the parts. Raises ValueError for none."""
    patterns = [pattern(part) for part in parts]
    found = compose.choice(*(each.part for each in patterns))
    return named(name, Pattern(found, _merged(patterns, together=False)))


def many(
    part: Any,
    low: int = 0,
    high: int | None = None,
    *,
    separator: Any = None,
    name: str | None = None,
) -> Pattern:
    """A part `low` to `high` times, None: as often as the model wants; its variables are lists.

    `separator` stands between two of them. Raises ValueError for other counts.
    """
    one = pattern(part)
    again = replace(one, captures=tuple(replace(c, many=True) for c in one.captures))
    if separator is None or high == 0:
        return named(name, Pattern(compose.repeat(one.part, low, high), again.captures))
    between = pattern(separator)
    if between.captures:
        raise ValueError("a separator holds no variables")
    most = None if high is None else high - 1
    rest = compose.repeat(compose.sequence(between.part, one.part), max(0, low - 1), most)
    found = compose.sequence(one.part, rest)
    if low == 0:
        found = compose.repeat(found, 0, 1)
    return named(name, Pattern(found, again.captures))


def optional(part: Any, *, name: str | None = None) -> Pattern:
    """A part or nothing; a variable in it is None where there is nothing."""
    one = pattern(part)
    return named(name, Pattern(compose.repeat(one.part, 0, 1), one.captures))


def regex(expression: str, *, name: str | None = None) -> Pattern:
    """The texts that a regular expression matches as a whole."""
    if not isinstance(expression, str):
        raise TypeError(f"regex() takes the text of a pattern, got {type(expression).__name__}")
    return named(name, Pattern(compose.regex(expression)))


def typed(type: Any, *, name: str | None = None) -> Pattern:
    """A value of a type as `gen(name, type)` writes it; a variable in it has an object of it.

    Raises TypeError for what is no type.
    """
    value = value_type(type)
    if value.constraint is None or not isinstance(value.constraint.source, str):
        raise TypeError("typed() takes a type with an end; for free text write regex()")
    source = value.constraint.source
    as_json = value.constraint.kind == "json_schema"
    part = compose.json_schema(source) if as_json else compose.regex(source)
    return named(name, Pattern(part), value.parse, value.origin)


def capture(name: str, *parts: Any) -> Pattern:
    """Parts, one after another, whose text is the variable `name`."""
    return named(name, _sequence(parts))


def pattern(content: Any) -> Pattern:
    """What can be part of a pattern, as one. Raises TypeError."""
    if isinstance(content, Pattern):
        return content
    if isinstance(content, ir.Concat):
        return _sequence(content.parts)
    if isinstance(content, ir.Expression):
        what = content.describe() if isinstance(content, ir.Node) else type(content).__name__
        raise TypeError(f"{what} cannot be part of a pattern; take sgl.typed() or sgl.regex()")
    if isinstance(content, compose.Part):
        if isinstance(content, str):
            ir.check_text("a part of a pattern", content)
        names = [] if isinstance(content, str | Grammar) else compose.capture_names(content)
        repeated = {name: names.count(name) > 1 for name in names}
        return Pattern(content, tuple(ir.Captured(n, None, m) for n, m in repeated.items()))
    raise TypeError(
        f"{type(content).__name__} cannot be part of a pattern; take texts, sgl.one_of(), many(), "
        "optional(), regex(), typed() and parts of sglite.grammars.compose"
    )


def _sequence(parts: Iterable[Any]) -> Pattern:
    patterns = [pattern(part) for part in parts]
    found = compose.sequence(*(each.part for each in patterns))
    return Pattern(found, _merged(patterns, together=True))


def _merged(patterns: Iterable[Pattern], *, together: bool) -> tuple[ir.Captured, ...]:
    """The variables of several patterns; `together`: one that two of them have is a list."""
    found: dict[str, ir.Captured] = {}
    for each in (captured for one in patterns for captured in one.captures):
        known = found.get(each.name)
        if known is None:
            found[each.name] = each
        elif known.parse != each.parse:
            raise ValueError(f"two parts called {each.name!r} are of different types")
        else:
            found[each.name] = replace(known, many=known.many or each.many or together)
    return tuple(found.values())


def named(name: str | None, one: Pattern, parse: Any = None, origin: str | None = None) -> Pattern:
    """A pattern as the variable `name`, if there is one."""
    if name is None:
        return one
    if not isinstance(name, str) or not name:
        raise TypeError(f"name= takes the name of a variable, got {name!r}")
    if any(captured.name == name for captured in one.captures):
        raise ValueError(f"{name!r} is a variable inside of the part that is to be called so")
    captured = ir.Captured(name, parse, origin=origin)
    return Pattern(compose.capture(name, one.part), (captured, *one.captures))
