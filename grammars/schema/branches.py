"""Schemas taken apart: what holds at a value is a conjunction of schemas; combining keywords
(`$ref`, `allOf`, `anyOf`, `oneOf`, `not`, `if` and the like) are resolved into alternatives of
plain conjunctions. Alternatives may overlap: only their union counts.

Since a conjunction is a set of places in one document, or of what derives from them, there are
finitely many of them, and recursion ends by itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Iterator
from typing import Any

from sglite.errors import GrammarError
from sglite.grammars.automaton import Machine, Not, accepted
from sglite.grammars.schema import keywords
from sglite.grammars.schema.document import ASSERTIONS, COMBINING, Place
from sglite.grammars.schema.negation import conditions, exactly_one, negated
from sglite.grammars.schema.references import Document
from sglite.grammars.schema.texts import key_pattern
from sglite.grammars.schema.unevaluated import UNEVALUATED, closed, silent
from sglite.grammars.schema.values import holds

MAX_BRANCHES = 1024
MAX_PATTERNS = 6

Conjunction = tuple[Place, ...]
"""Schemas that hold together, each place once, in the order in which they were met."""


class Branches:
    """Takes the schemas of one document apart."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self._one_of: dict[Place, list[Place] | None] = {}
        self._identities: dict[Place, frozenset[Hashable] | None] = {}

    def plain(self, conjunction: Conjunction) -> list[Conjunction]:
        """Alternatives without combining keywords whose union is the conjunction; none: false."""
        return self._expand(conjunction, frozenset(), False)

    def _expand(
        self, conjunction: Conjunction, open_places: frozenset[Place], together: bool
    ) -> list[Conjunction]:
        alternatives: list[Conjunction] = [()]
        for place in conjunction:
            alternatives = self._product(
                alternatives, self._expand_place(place, open_places, together), place
            )
        return alternatives

    def _expand_place(
        self, place: Place, open_places: frozenset[Place], together: bool
    ) -> list[Conjunction]:
        """With `together`, alternatives that can hold together also stand as one: whoever asks
        which properties a match has evaluated needs the largest set."""
        if isinstance(place.schema, bool):
            return [()] if place.schema else []
        if place in open_places:
            raise GrammarError("the schema refers to itself without a value between", place.pointer)
        inner = open_places | {place}
        together = together or bool(UNEVALUATED & place.schema.keys())
        own: Conjunction = (place,) if ASSERTIONS & place.schema.keys() else ()
        alternatives: list[Conjunction] = [own]
        for part in self._parts(place, together):
            more = self._expand_place(part, inner, together)
            alternatives = self._product(alternatives, more, place)
        for union in self._unions(place):
            found = [self._expand_place(part, inner, together) for part in union]
            more = [b for branches in found for b in branches]
            if together:
                more = self._combinations(found, place)
            alternatives = self._product(alternatives, more, place)
        if "not" in place.schema:
            ways = negated(place.inside("not"), self.document)
            more = [silent(b) for p in ways for b in self._expand_place(p, inner, False)]
            alternatives = self._product(alternatives, more, place)
        if UNEVALUATED & place.schema.keys():
            alternatives = [closed(place, conjunction) for conjunction in alternatives]
        return alternatives

    def _parts(self, place: Place, heard: bool) -> list[Place]:
        """Schemas that a combining schema wants to hold together."""
        assert isinstance(place.schema, dict)
        references = [k for k in ("$ref", "$dynamicRef") if k in place.schema]
        found = [self.document.resolve(place, keyword) for keyword in references]
        return [*found, *keywords.branches(place, "allOf"), *conditions(place, heard=heard)]

    def _unions(self, place: Place) -> Iterator[list[Place]]:
        """Lists of schemas of each of which a combining schema wants one to hold."""
        for union in (keywords.branches(place, "anyOf"), self.one_of(place)):
            if union:
                yield union

    def _combinations(self, found: list[list[Conjunction]], place: Place) -> list[Conjunction]:
        total: list[Conjunction] = []
        for branches in found:
            total += branches + self._product(total, branches, place)
        return total

    def _product(
        self, a: list[Conjunction], b: list[Conjunction], place: Place
    ) -> list[Conjunction]:
        if len(a) * len(b) > MAX_BRANCHES:
            raise GrammarError(
                f"more than {MAX_BRANCHES} combinations of alternatives", place.pointer
            )
        joined = dict.fromkeys(tuple(dict.fromkeys(x + y)) for x in a for y in b)
        if len(joined) < 2:
            return list(joined)
        return [conjunction for conjunction in joined if self.types(conjunction)]

    def types(self, plain: Conjunction) -> frozenset[str]:
        """The types that all schemas of a plain conjunction allow."""
        allowed = keywords.ALL_TYPES
        for place in plain:
            allowed &= keywords.types(place)
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

    def admits(self, place: Place, value: Any) -> bool:
        """Whether a JSON value satisfies the schema."""
        if isinstance(place.schema, bool):
            return place.schema
        alternatives = self.plain((place,)) if COMBINING & place.schema.keys() else [(place,)]
        return any(all(self._holds(p, value) for p in plain) for plain in alternatives)

    def _holds(self, place: Place, value: Any) -> bool:
        listed = self._listed(place)
        if listed is not None and keywords.identity(value) not in listed:
            return False
        return holds(place, value, self.admits, self._own_property)

    def _listed(self, place: Place) -> frozenset[Hashable] | None:
        """What `enum` and `const` list; made once, since every value of a long list asks."""
        if place not in self._identities:
            values = keywords.values(place)
            listed = None if values is None else frozenset(map(keywords.identity, values))
            self._identities[place] = listed
        return self._identities[place]

    def _own_property(self, place: Place, name: str) -> Conjunction:
        return self.property((place,), name)

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

    def one_of(self, place: Place) -> list[Place]:
        """Schemas whose union is the `oneOf` of `place`; empty without the keyword."""
        if place not in self._one_of:
            parts = keywords.branches(place, "oneOf")
            self._one_of[place] = None
            plain = [self.plain((p,)) for p in parts]
            overlapping = {
                pair
                for pair in itertools.combinations(range(len(parts)), 2)
                if not all(self._disjoint(x, y, 3) for x in plain[pair[0]] for y in plain[pair[1]])
            }
            self._one_of[place] = exactly_one(place, overlapping)
        found = self._one_of[place]
        if found is None:
            raise GrammarError("the schema refers to itself without a value between", place.pointer)
        return found

    def _disjoint(self, a: Conjunction, b: Conjunction, depth: int) -> bool:
        common = self.types(a) & self.types(b)
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


def _additional(place: Place) -> list[Place]:
    schema = keywords.schema(place, "additionalProperties")
    return [] if schema is None else [schema]


def conjunction_of(places: Iterable[Place | None]) -> Conjunction:
    """The places that say something, each once."""
    return tuple(dict.fromkeys(p for p in places if p is not None and p.schema is not True))


def _required(conjunction: Conjunction) -> set[str]:
    return {name for place in conjunction for name in keywords.names(place, "required")}
