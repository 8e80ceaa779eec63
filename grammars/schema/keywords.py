"""Readers of keyword values: the value in its type, or an error with the pointer."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sglite.errors import GrammarError
from sglite.grammars.automaton import Machine
from sglite.grammars.schema.document import CONTAINS, SOME_KEY, Place

ALL_TYPES = frozenset({"null", "boolean", "integer", "fraction", "string", "array", "object"})
"""Types that exclude each other: a "number" is an "integer" or a "fraction"."""

MAX_COUNT = 100_000
"""The most characters or items that a schema can count; each costs states of the automaton."""


def _get(place: Place, keyword: str) -> Any:
    return place.schema.get(keyword) if isinstance(place.schema, dict) else None


def types(place: Place) -> frozenset[str]:
    """The types that a value may have, as in `ALL_TYPES`."""
    value = _get(place, "type")
    if value is None:
        return ALL_TYPES
    allowed: set[str] = set()
    for name in value if isinstance(value, list) else [value]:
        if name == "number":
            allowed |= {"integer", "fraction"}
        elif isinstance(name, str) and name in ALL_TYPES and (name != "fraction" or place.mark):
            allowed.add(name)
        else:
            raise GrammarError(f"unknown type {name!r}", place.at("type"))
    return frozenset(allowed)


def type_of(value: Any) -> str:
    """The type of a JSON value, as in `ALL_TYPES`."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "integer" if isinstance(value, int) or value.is_integer() else "fraction"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def is_number(value: Any) -> bool:
    """Whether a JSON value is a number; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def values(place: Place) -> list[Any] | None:
    """What `enum` and `const` list, or None without them."""
    listed = _get(place, "enum")
    if listed is not None and not isinstance(listed, list):
        raise GrammarError("'enum' must be a list", place.at("enum"))
    if isinstance(place.schema, dict) and "const" in place.schema:
        const = place.schema["const"]
        return [const] if listed is None or any(equal(const, v) for v in listed) else []
    return listed


def equal(a: Any, b: Any) -> bool:
    """Equality of JSON values: 1 equals 1.0, true does not equal 1."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(equal(a[k], b[k]) for k in a)
    return (type(a) is type(b) or (is_number(a) and is_number(b))) and bool(a == b)


def identity(value: Any) -> Hashable:
    """A key that two JSON values share exactly if they are `equal`."""
    if isinstance(value, list):
        return ("array", tuple(map(identity, value)))
    if isinstance(value, dict):
        return ("object", frozenset((k, identity(v)) for k, v in value.items()))
    # Python itself hashes 1 and 1.0 alike, but takes True for 1 as well.
    return ("boolean", value) if isinstance(value, bool) else value


def count(place: Place, keyword: str) -> int | None:
    """A length or number of items: a whole number >= 0 (2.0 is one)."""
    value = _get(place, keyword)
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise GrammarError(f"{keyword!r} must be a whole number >= 0", place.at(keyword))
    if value > MAX_COUNT:
        raise GrammarError(
            f"{keyword!r} of {value} is more than {MAX_COUNT}; lower it or leave it out",
            place.at(keyword),
        )
    return value


def number(place: Place, keyword: str) -> Decimal | None:
    """A numeric bound, exactly as its shortest decimal spelling says."""
    value = _get(place, keyword)
    if value is None:
        return None
    if isinstance(value, Decimal):  # only in derived schemas
        return value
    finite = isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
    if isinstance(value, bool) or not finite:
        raise GrammarError(f"{keyword!r} must be a number", place.at(keyword))
    return exact(value)


def multiple(place: Place, keyword: str = "multipleOf") -> Decimal | None:
    """A number above 0, exactly."""
    value = number(place, keyword)
    if value is not None and value <= 0:
        raise GrammarError(f"{keyword!r} must be above 0", place.at(keyword))
    return value


def flag(place: Place, keyword: str) -> bool:
    """A boolean; False without the keyword."""
    value = _get(place, keyword)
    if value is not None and not isinstance(value, bool):
        raise GrammarError(f"{keyword!r} must be true or false", place.at(keyword))
    return bool(value)


@dataclass(frozen=True, slots=True)
class Contained:
    """From `begin` on, `low` to `high` items (None: any number) satisfy the schema."""

    begin: int
    schema: Place
    low: int
    high: int | None


def contained(place: Place) -> list[Contained]:
    """What `contains` with its counts, or a derived schema, demands of the items."""
    found: list[Contained] = list(_get(place, CONTAINS) or ())
    inner = schema(place, "contains")
    if inner is not None:
        low = count(place, "minContains")
        found.append(Contained(0, inner, 1 if low is None else low, count(place, "maxContains")))
    return found


def exact(value: float) -> Decimal:
    """A JSON number exactly as its shortest decimal spelling says."""
    return Decimal(repr(value))


def text(place: Place, keyword: str) -> str | None:
    """A string."""
    value = _get(place, keyword)
    if value is not None and not isinstance(value, str):
        raise GrammarError(f"{keyword!r} must be a string", place.at(keyword))
    return value


def names(place: Place, keyword: str) -> list[str]:
    """A list of strings; empty without the keyword."""
    value = _get(place, keyword)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
        raise GrammarError(f"{keyword!r} must be a list of strings", place.at(keyword))
    return value


def branches(place: Place, keyword: str) -> list[Place]:
    """The schemas in a list such as `anyOf`; empty without the keyword."""
    value = _get(place, keyword)
    if value is None:
        return []
    if not isinstance(value, list) or not value:
        raise GrammarError(f"{keyword!r} must be a list of schemas, not empty", place.at(keyword))
    return [place.inside(keyword, i) for i in range(len(value))]


def members(place: Place, keyword: str) -> list[str]:
    """The names in an object such as `dependentRequired`; empty without the keyword."""
    value = _get(place, keyword)
    if value is not None and not isinstance(value, dict):
        raise GrammarError(f"{keyword!r} must be an object", place.at(keyword))
    return list(value or ())


def properties(place: Place, keyword: str = "properties") -> dict[str, Place]:
    """The declared properties, in their order; with "patternProperties", those by pattern."""
    value = _get(place, keyword)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise GrammarError(f"{keyword!r} must be an object", place.at(keyword))
    return {name: place.inside(keyword, name) for name in value}


def schema(place: Place, keyword: str) -> Place | None:
    """A schema under a keyword, or None without it."""
    if not isinstance(place.schema, dict) or keyword not in place.schema:
        return None
    return place.inside(keyword)


def items(place: Place) -> tuple[list[Place], Place | None]:
    """Schemas of the first items, and of all that follow (None: anything).

    Reads `prefixItems` with `items`, and the older `items` list with `additionalItems`.
    """
    listed = _get(place, "items")
    if isinstance(listed, list):
        first = [place.inside("items", i) for i in range(len(listed))]
        return first, schema(place, "additionalItems")
    return branches(place, "prefixItems"), schema(place, "items")


def some_key(place: Place) -> list[Machine]:
    """Machines all of which some key must suit, in a derived schema; else empty."""
    return list(_get(place, SOME_KEY) or ())


def bounds(place: Place) -> tuple[Bound | None, Bound | None]:
    """The lower and the upper bound of numbers; a bound is (value, whether it is excluded)."""
    return _bound(place, "minimum", max), _bound(place, "maximum", min)


Bound = tuple[Decimal, bool]


def _bound(place: Place, keyword: str, tighter: Any) -> Bound | None:
    exclusive = "exclusive" + keyword.capitalize()
    value = number(place, keyword)
    flag = _get(place, exclusive)
    if isinstance(flag, bool):  # the form of draft 4
        return None if value is None else (value, flag)
    other = number(place, exclusive)
    if value is None or other is None:
        return (value, False) if value is not None else None if other is None else (other, True)
    return (other, True) if tighter(value, other) == other else (value, False)
