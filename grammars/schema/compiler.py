"""JSON Schema to a grammar: every conjunction of schemas becomes one rule.

The front end of the native builder; knows the meaning of schemas, not of tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from sglite.errors import GrammarError
from sglite.grammars._native import Builder
from sglite.grammars.automaton import Length, Machine, Pattern, explore
from sglite.grammars.characters import ANY
from sglite.grammars.lowering import Spelling, lower_automaton, lower_full, lower_search
from sglite.grammars.schema import keywords
from sglite.grammars.schema.arrays import Arrays
from sglite.grammars.schema.branches import Branches, Conjunction
from sglite.grammars.schema.document import ASSERTIONS, COMBINING, Place
from sglite.grammars.schema.numbers import Divisor, between
from sglite.grammars.schema.objects import Objects
from sglite.grammars.schema.references import Document
from sglite.grammars.schema.style import Style
from sglite.grammars.schema.texts import further_machines, text_patterns
from sglite.grammars.schema.values import divisors

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
        self._arrays = Arrays(self._branches, builder, style, self.value, self._listed)
        self._objects = Objects(self._branches, builder, style, self.value)
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
            return self._branches.one_of(place)
        if combining == {"anyOf"}:
            return keywords.branches(place, "anyOf")
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
            "integer": lambda: self._number(plain, {"integer", "fraction"} & allowed),
            "string": lambda: self._style.quoted(self._content(plain)),
            "array": lambda: self._arrays.lay(plain),
            "object": lambda: self._objects.lay(plain),
        }
        allowed = self._branches.types(plain)
        if "fraction" in allowed:
            makers["fraction"] = makers.pop("integer")
        return self._builder.choice([make() for name, make in makers.items() if name in allowed])

    def _listed(self, value: Any) -> int:
        if isinstance(value, list):
            return self._arrays.write([self._listed(v) for v in value], None, len(value), None)
        if isinstance(value, dict):
            return self._objects.listed([(n, self._listed(v)) for n, v in value.items()])
        return self._style.scalar(value)

    # Numbers

    def _number(self, plain: Conjunction, kinds: set[str]) -> int:
        """Numbers that are integers, fractions (that is, no integers) or both."""
        whole = "fraction" not in kinds
        needed = [d for place in plain for d in divisors(place)]
        if "integer" not in kinds:
            needed.append(Divisor(Decimal(1), negated=True))
        lows, highs = zip(*map(keywords.bounds, plain), strict=True) if plain else ((), ())
        low = max((b for b in lows if b), default=None)
        # Of equal upper bounds the excluded one is tighter.
        high = min((b for b in highs if b), key=lambda b: (b[0], not b[1]), default=None)
        if low is None and high is None and not needed:
            any_integer = _INTEGER_ANY if self._style.any_spelling else _INTEGER
            return self._style.pattern(any_integer if whole else _NUMBER)
        zeros = whole and self._style.any_spelling
        try:
            automaton = between(low, high, whole=whole, zeros=zeros, divisors=needed)
        except GrammarError as error:
            raise GrammarError(error.reason, plain[0].pointer) from None
        return lower_automaton(self._builder, automaton, Spelling.UTF8)

    # Strings

    def _content(self, plain: Conjunction) -> int:
        """What stands between the quotes of a string."""
        builder, spelling = self._builder, self._style.inside
        low = max((keywords.count(p, "minLength") or 0 for p in plain), default=0)
        highs = [h for p in plain if (h := keywords.count(p, "maxLength")) is not None]
        high = min(highs, default=None)
        trees = [found for place in plain for found in text_patterns(place)]
        further = [machine for place in plain for machine in further_machines(place)]
        if not trees and not further:
            if high is not None and high < low:
                return builder.choice([])
            part = builder.characters(ANY, spelling)
            return builder.repeat(part, low, -1 if high is None else high)
        if len(trees) == 1 and low == 0 and high is None and not further:
            tree, search = trees[0]
            return (lower_search if search else lower_full)(builder, tree, spelling)
        machines: list[Machine] = [Pattern(tree, search=search) for tree, search in trees]
        try:
            automaton = explore([*machines, *further, Length(low, high)])
        except GrammarError as error:
            raise GrammarError(error.reason, plain[0].pointer) from None
        return lower_automaton(builder, automaton, spelling)
