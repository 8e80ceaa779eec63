"""Schemas taken apart: what holds at a value is a conjunction of schemas; combining keywords
(`$ref`, `allOf`, `anyOf`, `oneOf`) are resolved into alternatives of plain conjunctions.

Since a conjunction is a set of places in one document, there are finitely many of them, and
recursion ends by itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable
from typing import Any

from sglite.errors import GrammarError
from sglite.grammars.automaton import Machine, Not, Pattern, accepted
from sglite.grammars.regex_syntax import Regex, parse
from sglite.grammars.schema import formats, keywords
from sglite.grammars.schema.document import ASSERTIONS, COMBINING, Document, Place

MAX_BRANCHES = 4096
MAX_PATTERNS = 6

Conjunction = tuple[Place, ...]
"""Schemas that hold together, each place once, in the order in which they were met."""


class Branches:
    """Takes the schemas of one document apart."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self._identities: dict[Place, frozenset[Hashable] | None] = {}

    def plain(self, conjunction: Conjunction) -> list[Conjunction]:
        """Alternatives without combining keywords whose union is the conjunction; none: false."""
        return self._expand(conjunction, frozenset())

    def _expand(self, conjunction: Conjunction, open_places: frozenset[Place]) -> list[Conjunction]:
        alternatives: list[Conjunction] = [()]
        for place in conjunction:
            alternatives = _product(alternatives, self._expand_place(place, open_places), place)
        return alternatives

    def _expand_place(self, place: Place, open_places: frozenset[Place]) -> list[Conjunction]:
        if isinstance(place.schema, bool):
            return [()] if place.schema else []
        if place in open_places:
            raise GrammarError("the schema refers to itself without a value between", place.pointer)
        inner = open_places | {place}
        own: Conjunction = (place,) if ASSERTIONS & place.schema.keys() else ()
        alternatives: list[Conjunction] = [own]
        if "$ref" in place.schema:
            target = self.document.resolve(place)
            alternatives = _product(alternatives, self._expand_place(target, inner), place)
        for part in keywords.branches(place, "allOf"):
            alternatives = _product(alternatives, self._expand_place(part, inner), place)
        for keyword in ("anyOf", "oneOf"):
            parts = keywords.branches(place, keyword)
            if keyword == "oneOf":
                self.check_disjoint(place)
            if parts:
                union = [b for part in parts for b in self._expand_place(part, inner)]
                alternatives = _product(alternatives, union, place)
        return alternatives

    def types(self, plain: Conjunction) -> frozenset[str]:
        """The types that all schemas of a plain conjunction allow."""
        allowed = keywords.ALL_TYPES
        for place in plain:
            allowed = keywords.common_types(allowed, keywords.types(place))
        return allowed

    def values(self, plain: Conjunction) -> list[Any] | None:
        """The listed values that satisfy a plain conjunction; None where no schema lists any."""
        lists = [v for v in map(keywords.values, plain) if v is not None]
        if not lists:
            return None
        distinct: dict[Hashable, Any] = {}
        for value in lists[0]:
            distinct.setdefault(keywords.identity(value), value)
        return [v for v in distinct.values() if all(self.admits(place, v) for place in plain)]

    def property(self, conjunction: Conjunction, name: str) -> Conjunction:
        """What holds at the property `name` of an object under a plain conjunction."""
        found: list[Place] = []
        for place in conjunction:
            patterns = keywords.properties(place, "patternProperties")
            held = [p for p in patterns.values() if accepted(key_pattern(p), name)]
            declared = keywords.properties(place).get(name)
            if declared is not None:
                held.append(declared)
            found += held or _additional(place)
        return conjunction_of(found)

    def other_properties(self, conjunction: Conjunction) -> list[tuple[list[Machine], Conjunction]]:
        """What holds at properties that are not declared, by the patterns that their names match.

        The machines of one entry accept the names for which it speaks.
        """
        patterns = [
            p
            for place in conjunction
            for p in keywords.properties(place, "patternProperties").values()
        ]
        if len(patterns) > MAX_PATTERNS:
            raise GrammarError(
                f"more than {MAX_PATTERNS} patterns for the properties of one object",
                conjunction[0].pointer,
            )
        entries: list[tuple[list[Machine], Conjunction]] = []
        for chosen in itertools.product((False, True), repeat=len(patterns)):
            matched = {p for p, yes in zip(patterns, chosen, strict=True) if yes}
            machines: list[Machine] = [
                key_pattern(p) if p in matched else Not(key_pattern(p)) for p in patterns
            ]
            found: list[Place] = []
            for place in conjunction:
                own = keywords.properties(place, "patternProperties").values()
                found += [p for p in own if p in matched] or _additional(place)
            entries.append((machines, conjunction_of(found)))
        return entries

    # Disjointness

    def check_disjoint(self, place: Place) -> None:
        """Raises GrammarError unless no value can match two of the schemas of `oneOf`."""
        parts = [self.plain((p,)) for p in keywords.branches(place, "oneOf")]
        for i, a in enumerate(parts):
            for b in parts[:i]:
                if not all(self._disjoint(x, y, 3) for x in a for y in b):
                    raise GrammarError(
                        "'oneOf' is supported where its schemas exclude each other by type, by "
                        "const or enum, or by such a required property; use 'anyOf' otherwise",
                        place.at("oneOf"),
                    )

    def _disjoint(self, a: Conjunction, b: Conjunction, depth: int) -> bool:
        common = keywords.common_types(self.types(a), self.types(b))
        if not common:
            return True
        for one, other in ((a, b), (b, a)):
            listed = self.values(one)
            if listed is not None:
                return not any(all(self.admits(p, v) for p in other) for v in listed)
        if common != {"object"} or depth == 0:
            return False
        shared = _required(a) & _required(b)
        return any(
            self._disjoint(x, y, depth - 1)
            for name in shared
            for x, y in self._single_plain(self.property(a, name), self.property(b, name))
        )

    def _single_plain(
        self, a: Conjunction, b: Conjunction
    ) -> list[tuple[Conjunction, Conjunction]]:
        """The pair of plain forms where both have exactly one: then disjointness is theirs."""
        plain_a, plain_b = self.plain(a), self.plain(b)
        return [(plain_a[0], plain_b[0])] if len(plain_a) == len(plain_b) == 1 else []

    # Does a value satisfy a schema

    def admits(self, place: Place, value: Any) -> bool:
        """Whether a JSON value satisfies the schema."""
        if isinstance(place.schema, bool):
            return place.schema
        listed = self._listed(place)
        if listed is not None and keywords.identity(value) not in listed:
            return False
        if not _has_type(value, keywords.types(place)):
            return False
        if COMBINING & place.schema.keys() and not self._admits_combined(place, value):
            return False
        if isinstance(value, str):
            return self._admits_text(place, value)
        if isinstance(value, list):
            return self._admits_items(place, value)
        if isinstance(value, dict):
            return all(n in value for n in keywords.names(place, "required")) and all(
                self.admits(p, v) for n, v in value.items() for p in self.property((place,), n)
            )
        return isinstance(value, bool) or value is None or _within(place, value)

    def _listed(self, place: Place) -> frozenset[Hashable] | None:
        """What `enum` and `const` list; made once, since every value of a long list asks."""
        if place not in self._identities:
            values = keywords.values(place)
            listed = None if values is None else frozenset(map(keywords.identity, values))
            self._identities[place] = listed
        return self._identities[place]

    def _admits_combined(self, place: Place, value: Any) -> bool:
        assert isinstance(place.schema, dict)
        if "$ref" in place.schema and not self.admits(self.document.resolve(place), value):
            return False
        if not all(self.admits(p, value) for p in keywords.branches(place, "allOf")):
            return False
        any_of = [self.admits(p, value) for p in keywords.branches(place, "anyOf")]
        one_of = [self.admits(p, value) for p in keywords.branches(place, "oneOf")]
        return (not any_of or any(any_of)) and (not one_of or sum(one_of) == 1)

    def _admits_text(self, place: Place, value: str) -> bool:
        low = keywords.count(place, "minLength") or 0
        high = keywords.count(place, "maxLength")
        if len(value) < low or (high is not None and len(value) > high):
            return False
        trees = text_patterns(place)
        return all(accepted(Pattern(tree, search=search), value) for tree, search in trees)

    def _admits_items(self, place: Place, value: list[Any]) -> bool:
        low = keywords.count(place, "minItems") or 0
        high = keywords.count(place, "maxItems")
        first, rest = keywords.items(place)
        if len(value) < low or (high is not None and len(value) > high):
            return False
        places = [*first, *[rest] * max(len(value) - len(first), 0)]
        return all(p is None or self.admits(p, v) for p, v in zip(places, value, strict=False))


def text_patterns(place: Place) -> list[tuple[Regex, bool]]:
    """The patterns that strings must match, each with whether it is only searched for."""
    found: list[tuple[Regex, bool]] = []
    pattern = keywords.text(place, "pattern")
    if pattern is not None:
        found.append((_tree(pattern, place.at("pattern")), True))
    name = keywords.text(place, "format")
    if name is not None:
        tree = formats.pattern(name)
        if tree is not None:
            found.append((tree, False))
        elif name in formats.KNOWN:
            raise GrammarError(
                f"format {name!r} is not supported; use a 'pattern'", place.at("format")
            )
    return found


def key_pattern(place: Place) -> Pattern:
    """The property names that match the pattern under which the schema stands."""
    return Pattern(_tree(place.key, place.pointer), search=True)


def _tree(pattern: str, pointer: str) -> Regex:
    try:
        return parse(pattern, "ecma")
    except GrammarError as error:
        raise GrammarError(f"{error.reason}, {error.pointer}", pointer) from None


def _additional(place: Place) -> list[Place]:
    schema = keywords.schema(place, "additionalProperties")
    return [] if schema is None else [schema]


def conjunction_of(places: Iterable[Place | None]) -> Conjunction:
    """The places that say something, each once."""
    return tuple(dict.fromkeys(p for p in places if p is not None and p.schema is not True))


def _product(a: list[Conjunction], b: list[Conjunction], place: Place) -> list[Conjunction]:
    if len(a) * len(b) > MAX_BRANCHES:
        raise GrammarError(f"more than {MAX_BRANCHES} combinations of alternatives", place.pointer)
    return list(dict.fromkeys(tuple(dict.fromkeys(x + y)) for x in a for y in b))


def _required(conjunction: Conjunction) -> set[str]:
    return {name for place in conjunction for name in keywords.names(place, "required")}


def _has_type(value: Any, allowed: frozenset[str]) -> bool:
    if value is None:
        return "null" in allowed
    if isinstance(value, bool):
        return "boolean" in allowed
    if isinstance(value, int | float):
        whole = isinstance(value, int) or value.is_integer()
        return "number" in allowed or (whole and "integer" in allowed)
    if isinstance(value, str):
        return "string" in allowed
    return ("array" if isinstance(value, list) else "object") in allowed


def _within(place: Place, value: float) -> bool:
    low, high = keywords.bounds(place)
    exact = keywords.exact(value)
    return (low is None or exact > low[0] or (exact == low[0] and not low[1])) and (
        high is None or exact < high[0] or (exact == high[0] and not high[1])
    )
