"""A JSON Schema document: places in it, references, and which keywords we understand.

Knows what keywords exist, not what they mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from sglite.errors import GrammarError

COMBINING = frozenset({"$ref", "allOf", "anyOf", "oneOf"})

ASSERTIONS = frozenset(
    [
        "type",
        "enum",
        "const",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "minLength",
        "maxLength",
        "pattern",
        "format",
        "properties",
        "required",
        "patternProperties",
        "additionalProperties",
        "items",
        "prefixItems",
        "additionalItems",
        "minItems",
        "maxItems",
    ]
)

_UNSUPPORTED = frozenset(
    [
        "not",
        "if",
        "then",
        "else",
        "multipleOf",
        "divisibleBy",
        "uniqueItems",
        "contains",
        "minContains",
        "maxContains",
        "minProperties",
        "maxProperties",
        "propertyNames",
        "dependencies",
        "dependentRequired",
        "dependentSchemas",
        "unevaluatedItems",
        "unevaluatedProperties",
        "$dynamicRef",
        "$recursiveRef",
        "disallow",
        "extends",
    ]
)

# Values under which an unsupported keyword asserts nothing.
_VACUOUS: dict[str, tuple[Any, ...]] = {
    "uniqueItems": (False,),
    "minProperties": (0,),
    "dependencies": ({},),
    "dependentRequired": ({},),
    "dependentSchemas": ({},),
    "unevaluatedItems": (True,),
    "unevaluatedProperties": (True,),
    "propertyNames": (True, {}),
}


@dataclass(frozen=True)
class Place:
    """A schema and the JSON pointer where it stands; equal places are the same pointer."""

    pointer: str
    schema: dict[str, Any] | bool

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Place) and other.pointer == self.pointer

    def __hash__(self) -> int:
        return hash(self.pointer)

    @property
    def key(self) -> str:
        """The last part of the pointer: the name under which the schema stands."""
        return self.pointer.rpartition("/")[2].replace("~1", "/").replace("~0", "~")

    def at(self, *keys: str | int) -> str:
        """The pointer of something inside of this schema."""
        return self.pointer + "".join(f"/{_escape(str(key))}" for key in keys)

    def inside(self, *keys: str | int) -> Place:
        """The schema that stands inside under `keys`. Raises GrammarError if it is none."""
        value: Any = self.schema
        for key in keys:
            value = value[key]
        return schema_at(self.at(*keys), value)


def schema_at(pointer: str, value: Any) -> Place:
    """A checked place: an object of known keywords, or true or false."""
    if not isinstance(value, dict | bool):
        raise GrammarError(
            f"a schema must be an object or a boolean, not {type(value).__name__}", pointer
        )
    place = Place(pointer, value)
    if isinstance(value, dict):
        for keyword in value:
            if keyword in _UNSUPPORTED and not _is_vacuous(keyword, value):
                raise GrammarError(
                    f"keyword {keyword!r} is not supported; remove it or state the constraint "
                    "in another way",
                    place.at(keyword),
                )
    return place


def _is_vacuous(keyword: str, schema: dict[str, Any]) -> bool:
    if keyword in ("then", "else"):
        return "if" not in schema
    if keyword in ("minContains", "maxContains"):
        return "contains" not in schema
    value = schema[keyword]
    return any(type(value) is type(v) and value == v for v in _VACUOUS.get(keyword, ()))


class Document:
    """The whole schema that references point into."""

    def __init__(self, root: Any) -> None:
        self.root = schema_at("", root)

    def resolve(self, place: Place) -> Place:
        """The schema that the `$ref` of `place` means. Raises GrammarError."""
        assert isinstance(place.schema, dict)
        reference = place.schema["$ref"]
        where = place.at("$ref")
        if not isinstance(reference, str):
            raise GrammarError("'$ref' must be a string", where)
        base, _, fragment = reference.partition("#")
        own = self.root.schema.get("$id", "") if isinstance(self.root.schema, dict) else ""
        if base and base != str(own).partition("#")[0]:
            raise GrammarError(
                f"reference {reference!r} leaves the document; put the schema under '$defs'", where
            )
        if fragment and not fragment.startswith("/"):
            return self._anchor(fragment, reference, where)
        value: Any = self.root.schema
        pointer = ""
        for key in unquote(fragment).split("/")[1:]:
            key = key.replace("~1", "/").replace("~0", "~")
            try:
                value = value[int(key)] if isinstance(value, list) else value[key]
            except (KeyError, IndexError, ValueError, TypeError):
                raise GrammarError(f"reference {reference!r} points to nothing", where) from None
            pointer += f"/{_escape(key)}"
        return schema_at(pointer, value)

    def _anchor(self, name: str, reference: str, where: str) -> Place:
        for pointer, schema in _objects("", self.root.schema):
            if schema.get("$anchor") == name:
                return schema_at(pointer, schema)
        raise GrammarError(f"reference {reference!r} points to nothing", where)


def _objects(pointer: str, value: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(value, dict):
        yield pointer, value
        for key, inner in value.items():
            yield from _objects(f"{pointer}/{_escape(str(key))}", inner)
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from _objects(f"{pointer}/{i}", inner)


def _escape(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
