"""Does a value satisfy the plain assertions of one schema? For listed values and names."""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest
from typing import Any

from sglite.grammars.automaton import accepted
from sglite.grammars.schema import keywords
from sglite.grammars.schema.document import NOT_MULTIPLE, Place
from sglite.grammars.schema.keywords import count, identity
from sglite.grammars.schema.numbers import Divisor
from sglite.grammars.schema.texts import text_machines

Admits = Callable[[Place, Any], bool]
Properties = Callable[[Place, str], tuple[Place, ...]]


def holds(place: Place, value: Any, admits: Admits, properties: Properties) -> bool:
    """Whether the assertions of `place` hold for `value`; `enum`, `const` and combining ones aside.

    admits: the same question for a whole schema; properties: what holds at a name.
    """
    if keywords.type_of(value) not in keywords.types(place):
        return False
    if isinstance(value, str):
        return _counted(place, len(value), "minLength", "maxLength") and all(
            accepted(machine, value) for machine in text_machines(place)
        )
    if isinstance(value, list):
        return _holds_items(place, value, admits)
    if isinstance(value, dict):
        return _holds_members(place, value, admits, properties)
    return not keywords.is_number(value) or _holds_number(place, value)


def _counted(place: Place, size: int, least: str, most: str) -> bool:
    high = count(place, most)
    return (count(place, least) or 0) <= size and (high is None or size <= high)


def _holds_number(place: Place, value: float) -> bool:
    low, high = keywords.bounds(place)
    exact = keywords.exact(value)
    if low is not None and (exact < low[0] or (exact == low[0] and low[1])):
        return False
    if high is not None and (exact > high[0] or (exact == high[0] and high[1])):
        return False
    return all(divisor.divides(exact) for divisor in divisors(place))


def divisors(place: Place) -> list[Divisor]:
    """What `multipleOf` and its negation demand."""
    found = []
    for keyword in ("multipleOf", NOT_MULTIPLE):
        unit = keywords.multiple(place, keyword)
        if unit is not None:
            found.append(Divisor(unit, negated=keyword == NOT_MULTIPLE))
    return found


def _holds_items(place: Place, value: list[Any], admits: Admits) -> bool:
    if not _counted(place, len(value), "minItems", "maxItems"):
        return False
    if keywords.flag(place, "uniqueItems") and len({*map(identity, value)}) < len(value):
        return False
    first, rest = keywords.items(place)
    for part, item in zip_longest(first[: len(value)], value, fillvalue=rest):
        if isinstance(part, Place) and not admits(part, item):
            return False
    for some in keywords.contained(place):
        found = sum(admits(some.schema, item) for item in value[some.begin :])
        if found < some.low or (some.high is not None and found > some.high):
            return False
    return True


def _holds_members(
    place: Place, value: dict[str, Any], admits: Admits, properties: Properties
) -> bool:
    if not _counted(place, len(value), "minProperties", "maxProperties"):
        return False
    names = keywords.schema(place, "propertyNames")
    if names is not None and not all(admits(names, name) for name in value):
        return False
    wanted = keywords.some_key(place)
    if wanted and not any(all(accepted(m, name) for m in wanted) for name in value):
        return False
    return all(name in value for name in keywords.names(place, "required")) and all(
        admits(p, item) for name, item in value.items() for p in properties(place, name)
    )
