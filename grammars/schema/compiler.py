"""JSON Schema to a grammar: every conjunction of schemas becomes one rule.

The front end of the native builder; knows the meaning of schemas, not of tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sglite.errors import GrammarError
from sglite.grammars._native import Builder
from sglite.grammars.automaton import Length, Machine, OtherThan, Pattern, explore
from sglite.grammars.characters import ANY
from sglite.grammars.lowering import Spelling, lower_automaton, lower_full, lower_search
from sglite.grammars.schema import keywords
from sglite.grammars.schema.branches import Branches, Conjunction, conjunction_of, text_patterns
from sglite.grammars.schema.document import ASSERTIONS, COMBINING, Document, Place
from sglite.grammars.schema.numbers import between
from sglite.grammars.schema.style import Style

_NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+\-]?[0-9]+)?"
_INTEGER = r"-?(?:0|[1-9][0-9]*)"
_INTEGER_ANY = _INTEGER + r"(?:\.0+)?(?:[eE](?:\+?[0-9]+|-0+))?"


class Compiler:
    """Compiles the schemas of one document into one builder."""

    def __init__(self, document: Document, builder: Builder, style: Style) -> None:
        self._branches = Branches(document)
        self._document = document
        self._builder = builder
        self._style = style
        self._rules: dict[frozenset[Place], int] = {}
        self._open: list[tuple[int, Conjunction]] = []

    def run(self) -> int:
        """The expression of the whole document."""
        root = self.value((self._document.root,))
        while self._open:
            rule, conjunction = self._open.pop()
            self._builder.define(rule, self._body(conjunction))
        return root

    def value(self, conjunction: Conjunction) -> int:
        """A value for which all of the schemas hold."""
        key = frozenset(conjunction)
        if key not in self._rules:
            name = " and ".join(place.pointer or "#" for place in conjunction) or "any value"
            # A pointer may hold a lone surrogate, which is refused where its text is used.
            self._rules[key] = self._builder.rule(name.encode(errors="replace").decode())
            self._open.append((self._rules[key], conjunction))
        return self._builder.call(self._rules[key])

    def _body(self, conjunction: Conjunction) -> int:
        if len(conjunction) == 1:
            lone = self._only_combining(conjunction[0])
            if lone is not None:
                return self._builder.choice([self.value((place,)) for place in lone])
        return self._builder.choice(
            [self._plain(plain) for plain in self._branches.plain(conjunction)]
        )

    def _only_combining(self, place: Place) -> list[Place] | None:
        """The alternatives of a schema that is nothing but one `$ref`, `anyOf` or `oneOf`.

        They stay rules of their own, so recursion is not expanded.
        """
        if isinstance(place.schema, bool) or ASSERTIONS & place.schema.keys():
            return None
        combining = COMBINING & place.schema.keys()
        if combining == {"$ref"}:
            return [self._target(place)]
        if combining == {"oneOf"}:
            self._branches.check_disjoint(place)
        if len(combining) == 1 and combining <= {"anyOf", "oneOf"}:
            return keywords.branches(place, *combining)
        return None

    def _target(self, place: Place) -> Place:
        """The end of a chain of references, which must not be a circle."""
        seen = {place}
        while True:
            place = self._document.resolve(place)
            schema = place.schema
            if place in seen:
                raise GrammarError("the reference leads back to itself", place.at("$ref"))
            if isinstance(schema, bool) or "$ref" not in schema or ASSERTIONS & schema.keys():
                return place
            if COMBINING & schema.keys() != {"$ref"}:
                return place
            seen.add(place)

    def _plain(self, plain: Conjunction) -> int:
        listed = self._branches.values(plain)
        if listed is not None:
            return self._builder.choice([self._listed(value) for value in listed])
        makers: dict[str, Callable[[], int]] = {
            "null": lambda: self._style.scalar(None),
            "boolean": lambda: self._builder.choice(
                [self._style.scalar(True), self._style.scalar(False)]
            ),
            "integer": lambda: self._number(plain, whole=True),
            "number": lambda: self._number(plain, whole=False),
            "string": lambda: self._style.quoted(self._content(plain)),
            "array": lambda: self._array(plain),
            "object": lambda: self._object(plain),
        }
        allowed = self._branches.types(plain)
        return self._builder.choice([make() for name, make in makers.items() if name in allowed])

    def _listed(self, value: Any) -> int:
        if isinstance(value, list):
            return self._write_array([self._listed(v) for v in value], None, len(value), None)
        if isinstance(value, dict):
            members = [(self._key(name), self._listed(v), True) for name, v in value.items()]
            return self._write_object(members, [])
        return self._style.scalar(value)

    # Numbers

    def _number(self, plain: Conjunction, *, whole: bool) -> int:
        lows, highs = zip(*map(keywords.bounds, plain), strict=True) if plain else ((), ())
        low = max((b for b in lows if b), default=None)
        # Of equal upper bounds the excluded one is tighter.
        high = min((b for b in highs if b), key=lambda b: (b[0], not b[1]), default=None)
        if low is None and high is None:
            any_integer = _INTEGER_ANY if self._style.any_spelling else _INTEGER
            return self._style.pattern(any_integer if whole else _NUMBER)
        automaton = between(low, high, whole=whole, zeros=whole and self._style.any_spelling)
        return lower_automaton(self._builder, automaton, Spelling.UTF8)

    # Strings

    def _content(self, plain: Conjunction) -> int:
        """What stands between the quotes of a string."""
        builder, spelling = self._builder, self._style.inside
        low = max((keywords.count(p, "minLength") or 0 for p in plain), default=0)
        highs = [h for p in plain if (h := keywords.count(p, "maxLength")) is not None]
        high = min(highs, default=None)
        trees = [found for place in plain for found in text_patterns(place)]
        if not trees:
            if high is not None and high < low:
                return builder.choice([])
            part = builder.characters(ANY, spelling)
            return builder.repeat(part, low, -1 if high is None else high)
        if len(trees) == 1 and low == 0 and high is None:
            tree, search = trees[0]
            return (lower_search if search else lower_full)(builder, tree, spelling)
        machines: list[Machine] = [Pattern(tree, search=search) for tree, search in trees]
        try:
            automaton = explore([*machines, Length(low, high)])
        except GrammarError as error:
            raise GrammarError(error.reason, plain[0].pointer) from None
        return lower_automaton(builder, automaton, spelling)

    # Arrays

    def _array(self, plain: Conjunction) -> int:
        low = max((keywords.count(p, "minItems") or 0 for p in plain), default=0)
        highs = [h for p in plain if (h := keywords.count(p, "maxItems")) is not None]
        split = [keywords.items(place) for place in plain]
        longest = max((len(first) for first, _ in split), default=0)
        positions: list[Conjunction] = []
        for i in range(longest + 1):  # the last one stands for all that follow
            places = [first[i] if i < len(first) else rest for first, rest in split]
            positions.append(conjunction_of(places))
        first = [self.value(c) for c in positions[:-1]]
        return self._write_array(first, self.value(positions[-1]), low, min(highs, default=None))

    def _write_array(self, first: list[int], rest: int | None, low: int, high: int | None) -> int:
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

    # Objects

    def _object(self, plain: Conjunction) -> int:
        required = list(dict.fromkeys(n for p in plain for n in keywords.names(p, "required")))
        declared = list(dict.fromkeys(n for p in plain for n in keywords.properties(p)))
        members = []
        for name in [*declared, *(n for n in required if n not in declared)]:
            held = self._branches.property(plain, name)
            if any(place.schema is False for place in held):
                if name in required:
                    return self._builder.choice([])
                continue
            members.append((self._key(name), self.value(held), name in required))
        names = {*declared, *required}
        extra = [
            (
                self._other_key([*machines, OtherThan(names)] if names else machines),
                self.value(held),
            )
            for machines, held in self._branches.other_properties(plain)
            if not any(place.schema is False for place in held)
        ]
        return self._write_object(members, extra)

    def _key(self, name: str) -> int:
        return self._style.string(name)

    def _other_key(self, machines: list[Machine]) -> int:
        """A key that all of the machines accept, compared after unescaping."""
        builder, spelling = self._builder, self._style.inside
        if not machines:
            return self._style.quoted(builder.repeat(builder.characters(ANY, spelling), 0, -1))
        return self._style.quoted(lower_automaton(builder, explore(machines), spelling))

    def _write_object(
        self, members: Sequence[tuple[int, int, bool]], extra: Sequence[tuple[int, int]]
    ) -> int:
        """An object of (key, value, required) members and any number of extra ones."""
        builder, style = self._builder, self._style
        written = [
            (builder.sequence([key, style.colon, value]), required)
            for key, value, required in members
        ]
        others = [builder.sequence([key, style.colon, value]) for key, value in extra]
        other = builder.choice(others) if others else None
        if style.order == "any" and (len(written) > 1 or (written and other is not None)):
            body = builder.free_order(
                written, -1 if other is None else other, style.comma, style.close_object
            )
            return builder.sequence([style.open_object, body])
        body = self._in_order(written, other)
        return builder.sequence([style.open_object, body, style.close_object])

    def _in_order(self, members: Sequence[tuple[int, bool]], extra: int | None) -> int:
        """Members in their order, those not required left out at will, then the extra ones.

            first present member --> rest after it --> rest after the next --> ...

        The rests are rules, each used by every place that can lead to it.
        """
        builder, comma = self._builder, self._style.comma
        nothing = builder.literal(b"")
        rest = nothing
        if extra is not None:
            rest = builder.repeat(builder.sequence([comma, extra]), 0, -1)
        starts = [nothing] if extra is None else [nothing, builder.sequence([extra, rest])]
        lead = next((i for i, (_, required) in enumerate(members) if required), len(members))
        for i in reversed(range(len(members))):
            member, required = members[i]
            if i <= lead:
                if i == lead:
                    starts = []
                if lead > 0:
                    rule = builder.rule(f"the members after number {i + 1}")
                    builder.define(rule, rest)
                    rest = builder.call(rule)
                starts.append(builder.sequence([member, rest]))
            step = builder.sequence([comma, member])
            step = step if required else builder.choice([nothing, step])
            rest = builder.sequence([step, rest])
        return builder.choice(starts)
