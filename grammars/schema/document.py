"""Places in a JSON Schema document, and which keywords we understand.

Knows what keywords exist, not what they mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sglite.errors import GrammarError

COMBINING = frozenset(
    [
        "$ref",
        "$dynamicRef",
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "if",
        "dependencies",
        "dependentRequired",
        "dependentSchemas",
        "unevaluatedItems",
        "unevaluatedProperties",
    ]
)

# Keywords of derived schemas only; no keyword of a document may have such a name.
NOT_TEXT = "\0not text"
NOT_WORDS = "\0not words"
NOT_MULTIPLE = "\0not a multiple"
CONTAINS = "\0contains"
SOME_KEY = "\0some key"

SILENT = "/silent"
"""The end of the mark of a schema as it stands in the document, but inside of a negation."""

ASSERTIONS = frozenset(
    [
        "type",
        "enum",
        "const",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "pattern",
        "format",
        "properties",
        "required",
        "patternProperties",
        "additionalProperties",
        "propertyNames",
        "minProperties",
        "maxProperties",
        "items",
        "prefixItems",
        "additionalItems",
        "minItems",
        "maxItems",
        "uniqueItems",
        "contains",
        NOT_TEXT,
        NOT_WORDS,
        NOT_MULTIPLE,
        CONTAINS,
        SOME_KEY,
    ]
)

_UNSUPPORTED = frozenset(
    [
        "divisibleBy",
        "$recursiveRef",
        "disallow",
        "extends",
    ]
)

_DERIVED = frozenset([NOT_TEXT, NOT_WORDS, NOT_MULTIPLE, CONTAINS, SOME_KEY])


# The keywords that came after each draft; there they are annotations without meaning.
_AFTER_2019 = frozenset({"prefixItems", "$dynamicRef"})
_AFTER_7 = _AFTER_2019 | {
    "dependentRequired",
    "dependentSchemas",
    "minContains",
    "maxContains",
    "unevaluatedItems",
    "unevaluatedProperties",
    "$recursiveRef",
}
_AFTER_6 = _AFTER_7 | {"if", "then", "else"}
_AFTER_4 = _AFTER_6 | {"const", "contains", "propertyNames"}
LATER: dict[str, frozenset[str]] = {
    "draft-04": _AFTER_4,
    "draft-06": _AFTER_6,
    "draft-07": _AFTER_7,
    "2019-09": _AFTER_2019,
}


@dataclass(frozen=True)
class Place:
    """A schema and the JSON pointer where it stands; equal places are the same pointer and mark.

    mark: empty for the document's own schemas. A derived schema, such as the negation of one, has
    the pointer of its origin and says here what it is; its values are places where the document
    would have schemas. draft: the name of an older draft in which to read the schema, or empty.
    """

    pointer: str
    schema: dict[str, Any] | bool
    mark: str = ""
    draft: str = ""

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Place) and other.pointer == self.pointer and other.mark == self.mark
        )

    def __hash__(self) -> int:
        return hash((self.pointer, self.mark))

    @property
    def key(self) -> str:
        """The last part of the pointer: the name under which the schema stands."""
        last = (self.mark or self.pointer).rpartition("/")[2]
        return last.replace("~1", "/").replace("~0", "~")

    def at(self, *keys: str | int) -> str:
        """The pointer of something inside of this schema; of a derived one, its origin."""
        derived = self.mark and not self.mark.endswith(SILENT)
        return self.pointer if derived else _joined(self.pointer, keys)

    def inside(self, *keys: str | int) -> Place:
        """The schema that stands inside under `keys`. Raises GrammarError if it is none."""
        value: Any = self.schema
        for key in keys:
            value = value[key]
        if isinstance(value, Place):
            return value
        mark = _joined(self.mark, keys) if self.mark else ""
        return schema_at(self.at(*keys), value, mark, self.draft)

    def derived(self, mark: str, schema: dict[str, Any]) -> Place:
        """A schema that follows from this one."""
        return Place(self.pointer, schema, f"{self.mark}/{mark}", self.draft)


def _joined(pointer: str, keys: tuple[str | int, ...]) -> str:
    return pointer + "".join(f"/{escape(str(key))}" for key in keys)


def schema_at(pointer: str, value: Any, mark: str = "", draft: str = "") -> Place:
    """A checked place: an object of known keywords, or true or false."""
    if not isinstance(value, dict | bool):
        raise GrammarError(
            f"a schema must be an object or a boolean, not {type(value).__name__}", pointer
        )
    if draft and isinstance(value, dict):
        value = _in_draft(value, draft)
    place = Place(pointer, value, mark, draft)
    if isinstance(value, dict):
        for keyword in value:
            if keyword in _UNSUPPORTED or keyword in _DERIVED:
                raise GrammarError(
                    f"keyword {keyword!r} is not supported; remove it or state the constraint "
                    "in another way",
                    place.at(keyword),
                )
    return place


def _in_draft(schema: dict[str, Any], draft: str) -> dict[str, Any]:
    """What an older draft reads of a schema."""
    if "$ref" in schema and draft != "2019-09":
        return {"$ref": schema["$ref"]}
    later = LATER[draft]
    if later.isdisjoint(schema):
        return schema
    return {keyword: value for keyword, value in schema.items() if keyword not in later}


def escape(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
