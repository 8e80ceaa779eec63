"""Schemas that follow from others: negations, and the conditions of `if` and `dependentSchemas`.

A negation is a list of alternatives, one for each way to break the schema: `{"minLength": 3}` is
broken by a string of at most 2 characters and by nothing else. What has no such form is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from typing import Any, NoReturn

from sglite.errors import GrammarError
from sglite.grammars.automaton import Machine, Not, OtherThan
from sglite.grammars.schema import formats, keywords
from sglite.grammars.schema.document import (
    CONTAINS,
    NOT_MULTIPLE,
    NOT_TEXT,
    NOT_WORDS,
    SOME_KEY,
    Place,
)
from sglite.grammars.schema.references import Document
from sglite.grammars.schema.texts import key_pattern


def negation(place: Place) -> Place:
    """The schema that holds where `place` does not."""
    return place.derived("not", {"not": place})


def conditions(place: Place, *, heard: bool) -> list[Place]:
    """What `if` with `then` and `else`, and the dependent keywords, demand together.

    heard: an `if` alone counts as well, for what it evaluates.
    """
    found = []
    condition = keywords.schema(place, "if")
    branches = [keywords.schema(place, keyword) for keyword in ("then", "else")]
    if condition is not None and (heard or any(branches)):
        ways: list[Place] = []
        for held, then in zip((condition, negation(condition)), branches, strict=True):
            parts = [held] if then is None else [held, then]
            ways.append(place.derived(f"if {len(ways)}", {"allOf": parts}))
        found.append(place.derived("if", {"anyOf": ways}))
    for keyword in ("dependentRequired", "dependentSchemas", "dependencies"):
        for name in keywords.members(place, keyword):
            found.append(_dependency(place, keyword, name))
    return found


def _dependency(place: Place, keyword: str, name: str) -> Place:
    mark = f"{keyword} {name}"
    assert isinstance(place.schema, dict)
    value = place.schema[keyword][name]
    if keyword == "dependentSchemas" or isinstance(value, dict | bool):
        if keyword == "dependentRequired":
            raise GrammarError("a dependency is a list of names", place.at(keyword, name))
        present = place.derived(f"{mark} present", {"type": "object", "required": [name]})
        then = place.derived(f"{mark} then", {"allOf": [present, place.inside(keyword, name)]})
    else:
        names = [value] if isinstance(value, str) else value
        if not isinstance(names, list) or not all(isinstance(n, str) for n in names):
            raise GrammarError("a dependency is a list of names", place.at(keyword, name))
        then = place.derived(f"{mark} then", {"required": [name, *names]})
    absent = place.derived(f"{mark} absent", {"properties": {name: False}})
    return place.derived(mark, {"anyOf": [absent, then]})


def _all_but(*types: str) -> list[str]:
    return sorted(keywords.ALL_TYPES.difference(types))


def negated(place: Place, document: Document) -> list[Place]:
    """Alternatives that hold exactly where `place` does not. Raises GrammarError."""
    if isinstance(place.schema, bool):
        return (
            [] if place.schema else [Place(place.pointer, True, f"{place.mark}/true", place.draft)]
        )
    return list(_Negation(place, document).alternatives())


class _Negation:
    def __init__(self, place: Place, document: Document) -> None:
        self.place = place
        self.document = document

    def alternatives(self) -> Iterator[Place]:
        place, known = self.place, _HANDLERS
        assert isinstance(place.schema, dict)
        done: set[Callable[..., Any]] = set()
        for keyword in place.schema:
            handler = known.get(keyword)
            if handler is not None and handler not in done:
                done.add(handler)
                for i, broken in enumerate(handler(self)):
                    if isinstance(broken, Place):
                        yield broken
                    else:
                        yield place.derived(f"not {handler.__name__} {i}", broken)

    def refuse(self, keyword: str) -> NoReturn:
        raise GrammarError(
            f"the negation of {keyword!r} is not supported (in 'not', 'oneOf', 'if' or a "
            "dependency); state the constraint in another way",
            self.place.at(keyword),
        )

    # Combining keywords

    def reference(self) -> Iterator[Place]:
        assert isinstance(self.place.schema, dict)
        for keyword in ("$ref", "$dynamicRef"):
            if keyword in self.place.schema:
                yield negation(self.document.resolve(self.place, keyword))

    def all_of(self) -> Iterator[Place]:
        yield from map(negation, keywords.branches(self.place, "allOf"))

    def any_of(self) -> Iterator[dict[str, Any]]:
        yield {"allOf": list(map(negation, keywords.branches(self.place, "anyOf")))}

    def one_of(self) -> Iterator[dict[str, Any]]:
        yield {"allOf": list(map(negation, exactly_one(self.place)))}

    def inverse(self) -> Iterator[Place]:
        yield self.place.inside("not")

    def conditional(self) -> Iterator[Place]:
        yield from map(negation, conditions(self.place, heard=False))

    # Any value

    def types(self) -> Iterator[dict[str, Any]]:
        yield {"type": _all_but(*keywords.types(self.place))}

    def values(self) -> Iterator[dict[str, Any]]:
        listed = keywords.values(self.place) or []
        yield {"type": _all_but(*{keywords.type_of(v) for v in listed}, "integer", "fraction")}
        truths = [v for v in listed if isinstance(v, bool)]
        if len(set(truths)) == 1:
            yield {"type": "boolean", "enum": [not truths[0]]}
        words = [v for v in listed if isinstance(v, str)]
        if words:
            yield {"type": "string", NOT_WORDS: words}
        yield from self._between_numbers(listed)
        for kind, name in ((list, "array"), (dict, "object")):
            same = [v for v in listed if isinstance(v, kind)]
            if same:
                others = [self._other_than(v, i) for i, v in enumerate(same)]
                yield {"type": name, "allOf": others}

    def _between_numbers(self, listed: Sequence[Any]) -> Iterator[dict[str, Any]]:
        numbers = sorted({keywords.exact(v) for v in listed if keywords.is_number(v)})
        for low, high in zip([None, *numbers], [*numbers, None], strict=True):
            bounds = {"exclusiveMinimum": low, "exclusiveMaximum": high}
            yield {"type": "number", **{k: v for k, v in bounds.items() if v is not None}}

    def _other_than(self, value: Any, number: int) -> Place:
        """An array or object that differs from `value`."""
        place, mark = self.place, f"other than {number}"
        inner = [
            negation(place.derived(f"{mark} at {key}", {"const": part}))
            for key, part in (value.items() if isinstance(value, dict) else enumerate(value))
        ]
        ways: list[dict[str, Any]]
        if isinstance(value, list):
            ways = [{"minItems": len(value) + 1}]
            if value:
                ways.append({"maxItems": len(value) - 1})
            for i, other in enumerate(inner):
                ways.append({"minItems": i + 1, "prefixItems": [*[True] * i, other]})
        else:
            ways = [{"required": list(value), "minProperties": len(value) + 1}]
            ways += [{"properties": {name: False}} for name in value]
            for name, other in zip(value, inner, strict=True):
                ways.append({"required": [name], "properties": {name: other}})
        parts = [place.derived(f"{mark} way {i}", way) for i, way in enumerate(ways)]
        return place.derived(mark, {"anyOf": parts})

    # Numbers

    def bounds(self) -> Iterator[dict[str, Any]]:
        low, high = keywords.bounds(self.place)
        if low is not None:
            yield {"type": "number", "maximum" if low[1] else "exclusiveMaximum": low[0]}
        if high is not None:
            yield {"type": "number", "minimum" if high[1] else "exclusiveMinimum": high[0]}

    def multiple(self) -> Iterator[dict[str, Any]]:
        yield {"type": "number", NOT_MULTIPLE: keywords.multiple(self.place)}

    # Strings

    def length(self) -> Iterator[dict[str, Any]]:
        yield from self._counts("string", "minLength", "maxLength")

    def _counts(self, kind: str, least: str, most: str) -> Iterator[dict[str, Any]]:
        low, high = keywords.count(self.place, least), keywords.count(self.place, most)
        if low:
            yield {"type": kind, most: low - 1}
        if high is not None:
            yield {"type": kind, least: high + 1}

    def pattern(self) -> Iterator[dict[str, Any]]:
        place = self.place
        yield {"type": "string", NOT_TEXT: place.derived("pattern", self._only("pattern"))}

    def format(self) -> Iterator[dict[str, Any]]:
        if keywords.text(self.place, "format") in formats.KNOWN:
            place = self.place
            yield {"type": "string", NOT_TEXT: place.derived("format", self._only("format"))}

    def _only(self, keyword: str) -> dict[str, Any]:
        assert isinstance(self.place.schema, dict)
        return {keyword: self.place.schema[keyword]}

    # Arrays

    def items_count(self) -> Iterator[dict[str, Any]]:
        yield from self._counts("array", "minItems", "maxItems")

    def items(self) -> Iterator[dict[str, Any]]:
        first, rest = keywords.items(self.place)
        for i, place in enumerate(first):
            prefix = [*[True] * i, negation(place)]
            yield {"type": "array", "minItems": i + 1, "prefixItems": prefix}
        if rest is not None and rest.schema is not True:
            some = keywords.Contained(len(first), negation(rest), 1, None)
            yield {"type": "array", CONTAINS: [some]}

    def contains(self) -> Iterator[dict[str, Any]]:
        for part in keywords.contained(self.place):
            if part.low > 0:
                few = keywords.Contained(part.begin, part.schema, 0, part.low - 1)
                yield {"type": "array", CONTAINS: [few]}
            if part.high is not None:
                many = keywords.Contained(part.begin, part.schema, part.high + 1, None)
                yield {"type": "array", CONTAINS: [many]}

    def unique(self) -> Iterator[dict[str, Any]]:
        if keywords.flag(self.place, "uniqueItems"):
            self.refuse("uniqueItems")
        yield from ()

    # Objects

    def members_count(self) -> Iterator[dict[str, Any]]:
        yield from self._counts("object", "minProperties", "maxProperties")

    def required(self) -> Iterator[dict[str, Any]]:
        for name in keywords.names(self.place, "required"):
            yield {"type": "object", "properties": {name: False}}

    def properties(self) -> Iterator[dict[str, Any]]:
        for name, place in keywords.properties(self.place).items():
            wrong = {name: negation(place)}
            yield {"type": "object", "required": [name], "properties": wrong}
        patterns = list(keywords.properties(self.place, "patternProperties").values())
        for place in patterns:
            if place.schema is False:
                yield {"type": "object", SOME_KEY: [key_pattern(place)]}
            elif place.schema is not True:
                self.refuse("patternProperties")
        additional = keywords.schema(self.place, "additionalProperties")
        if additional is not None and additional.schema is False:
            others: list[Machine] = [OtherThan(set(keywords.properties(self.place)))]
            others += [Not(key_pattern(place)) for place in patterns]
            yield {"type": "object", SOME_KEY: others}
        elif additional is not None and additional.schema is not True and additional.schema != {}:
            self.refuse("additionalProperties")

    def property_names(self) -> Iterator[dict[str, Any]]:
        names = keywords.schema(self.place, "propertyNames")
        if names is not None and names.schema is False:
            yield {"type": "object", "minProperties": 1}
        elif names is not None and names.schema is not True:
            self.refuse("propertyNames")

    def unevaluated(self) -> Iterator[dict[str, Any]]:
        for keyword in ("unevaluatedItems", "unevaluatedProperties"):
            inner = keywords.schema(self.place, keyword)
            if inner is not None and inner.schema is not True:
                self.refuse(keyword)
        yield from ()

    def derived_only(self) -> Iterator[dict[str, Any]]:
        assert isinstance(self.place.schema, dict)
        schema = self.place.schema
        if NOT_WORDS in schema:
            yield {"enum": schema[NOT_WORDS]}
        if NOT_MULTIPLE in schema:
            yield {"type": "number", "multipleOf": schema[NOT_MULTIPLE]}
        if SOME_KEY in schema:
            self.refuse("additionalProperties")
        if NOT_TEXT in schema:
            yield {"type": "string", "allOf": [schema[NOT_TEXT]]}


def exactly_one(place: Place, overlapping: Container[tuple[int, int]] | None = None) -> list[Place]:
    """Alternatives for `oneOf`: each of its schemas, without the others that it overlaps with.

    overlapping: the pairs (i, j), i < j, of schemas that may hold together; None: all of them.
    """
    parts = keywords.branches(place, "oneOf")
    found = []
    for i, part in enumerate(parts):
        others = [
            negation(other)
            for j, other in enumerate(parts)
            if i != j and (overlapping is None or (min(i, j), max(i, j)) in overlapping)
        ]
        found.append(place.derived(f"only {i}", {"allOf": [part, *others]}) if others else part)
    return found


_HANDLERS: dict[str, Callable[[_Negation], Iterator[Any]]] = {
    **dict.fromkeys(("$ref", "$dynamicRef"), _Negation.reference),
    "allOf": _Negation.all_of,
    "anyOf": _Negation.any_of,
    "oneOf": _Negation.one_of,
    "not": _Negation.inverse,
    **dict.fromkeys(
        ("if", "dependencies", "dependentRequired", "dependentSchemas"), _Negation.conditional
    ),
    "type": _Negation.types,
    **dict.fromkeys(("enum", "const"), _Negation.values),
    **dict.fromkeys(
        ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _Negation.bounds
    ),
    "multipleOf": _Negation.multiple,
    **dict.fromkeys(("minLength", "maxLength"), _Negation.length),
    "pattern": _Negation.pattern,
    "format": _Negation.format,
    **dict.fromkeys(("minItems", "maxItems"), _Negation.items_count),
    **dict.fromkeys(("items", "prefixItems", "additionalItems"), _Negation.items),
    **dict.fromkeys(("contains", CONTAINS), _Negation.contains),
    "uniqueItems": _Negation.unique,
    **dict.fromkeys(("minProperties", "maxProperties"), _Negation.members_count),
    "required": _Negation.required,
    **dict.fromkeys(
        ("properties", "patternProperties", "additionalProperties"), _Negation.properties
    ),
    "propertyNames": _Negation.property_names,
    **dict.fromkeys(("unevaluatedItems", "unevaluatedProperties"), _Negation.unevaluated),
    **dict.fromkeys((NOT_TEXT, NOT_WORDS, NOT_MULTIPLE, SOME_KEY), _Negation.derived_only),
}
