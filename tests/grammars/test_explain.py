"""What `explain` tells about a schema."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from sglite.errors import GrammarError
from sglite.grammars import _native, explain


def lines(schema: Any, **options: Any) -> dict[str, str]:
    """What is said per pointer."""
    found = {}
    for line in explain(schema, **options).splitlines():
        pointer, separator, how = line.partition(": ")
        assert separator
        assert pointer not in found
        found[pointer] = how
    return found


def test_every_place_has_a_line_in_the_order_of_the_schema() -> None:
    told = lines(
        {
            "title": "A person",
            "type": "object",
            "properties": {
                "name": {"type": "string", "minLength": 1, "maxLength": 40},
                "age": {"type": "integer", "minimum": 0, "exclusiveMaximum": 150},
                "tags": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
            },
            "required": ["name"],
            "additionalProperties": False,
        }
    )
    assert list(told) == [
        "#",
        "/properties/name",
        "/properties/age",
        "/properties/tags",
        "/properties/tags/items",
        "text",
    ]
    assert told["#"].startswith('object; required: "name"; optional: "age", "tags"; no other keys')
    assert told["#"].endswith("not enforced (annotations): title")
    assert "1 to 40 characters" in told["/properties/name"]
    assert "integer; at least 0, below 150 (digit by digit" in told["/properties/age"]
    assert "all different" in told["/properties/tags"]
    assert told["/properties/tags/items"] == "string"


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        (True, "any value"),
        ({}, "any value"),
        ({"minimum": 3}, "numbers: at least 3"),
        ({"type": ["integer", "null"], "minimum": 3}, "integer or null; numbers: at least 3"),
        ({"minimum": 3, "exclusiveMinimum": True, "$schema": "http://json-schema.org/draft-04/schema#"},
         "numbers: above 3"),
        ({"multipleOf": 0.01}, "numbers: a multiple of 0.01"),
        ({"const": {"a": 1.0}}, 'equal to {"a": 1}'),
        ({"enum": [1, "b", None]}, 'one of [1, "b", null] (by value'),
        ({"pattern": "b+"}, 'matching "b+" anywhere'),
        ({"pattern": "^b+$"}, 'matching "^b+$" ('),
        ({"pattern": "^a|b$"}, 'matching "^a|b$" anywhere'),
        ({"type": "object"}, "object; other keys allowed here"),
        ({"additionalProperties": {"type": "null"}}, "objects: other keys as under additional"),
        ({"unevaluatedProperties": False}, "objects: no keys that no subschema speaks of"),
        ({"minProperties": 2}, "objects: at least 2 keys"),
        ({"type": "array", "prefixItems": [{}, {}], "items": False},
         "array; the first 2 as under prefixItems; no further items"),
        ({"minItems": 3, "maxItems": 3}, "arrays: 3 items"),
        ({"maxItems": 1}, "arrays: at most 1 item"),
        ({"contains": {"type": "null"}, "maxContains": 2}, "arrays: 1 to 2 items as under con"),
        ({"dependentRequired": {"a": ["b"]}}, 'where there is "a", what dependentRequired says'),
        ({"not": {"type": "null"}}, "never as under not"),
        ({"oneOf": [{"type": "null"}, {"minimum": 1}]}, "exactly one of 2 under oneOf"),
        ({"if": {"type": "null"}, "else": {"minimum": 1}}, "if as under if, else as under else"),
        ({"$defs": {"a": {"type": "null"}}, "$ref": "#/$defs/a"}, "as under /$defs/a ($ref)"),
    ],
)  # fmt: skip
def test_what_is_said_of_a_schema(schema: Any, told: str) -> None:
    assert told in lines(schema)["#"]


@pytest.mark.parametrize(
    ("schema", "without_force"),
    [
        ({"format": "colour"}, 'format "colour"'),
        ({"format": 3.0, "type": "null"}, None),
        ({"minContains": 2}, "minContains"),
        ({"then": {"type": "null"}}, "then"),
        ({"if": {"type": "null"}}, "if"),
        ({"$schema": "http://json-schema.org/draft-04/schema#", "const": 1}, "const"),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "minimum": 3,
          "$ref": "#/definitions/a", "definitions": {"a": {"type": "integer"}}}, "minimum"),
        ({"description": "x", "x-order": 1}, "description, x-order"),
    ],
)  # fmt: skip
def test_what_has_no_force_is_named(schema: Any, without_force: str | None) -> None:
    if without_force is None:
        with pytest.raises(GrammarError, match="'format' must be a string"):
            explain(schema)
    else:
        assert f"not enforced (annotations): {without_force}" in lines(schema)["#"]


@pytest.mark.parametrize("name", _native.format_names())
def test_a_known_format_is_enforced(name: str) -> None:
    assert f'format "{name}" (an automaton' in lines({"format": name})["#"]
    assert "annotations" not in lines({"format": name})["#"]


def test_options_are_told() -> None:
    assert "declared keys in their order" in lines(True)["text"]
    told = lines(True, property_order="any", whitespace="flexible", spelling="any")["text"]
    for part in ("keys in any order", "up to 32", "every spelling"):
        assert part in told
    assert "no white space" in lines(True, whitespace="compact")["text"]
    with pytest.raises(ValueError, match="whitespace must be one of"):
        explain(True, whitespace="none")  # type: ignore[arg-type]


def test_schemas_without_use_are_left_out_and_recursion_ends() -> None:
    told = lines(
        {
            "$defs": {
                "unused": {"type": "null"},
                "tree": {"type": "array", "items": {"$ref": "#/$defs/tree"}},
            },
            "$ref": "#/$defs/tree",
        }
    )
    assert set(told) == {"#", "/$defs/tree", "/$defs/tree/items", "text"}


def test_a_model() -> None:
    class Person(BaseModel):
        age: int = Field(ge=0, le=150, description="in years")

    assert "annotations): description, title" in lines(Person)["/properties/age"]


def test_wrong_schemas_are_refused_as_when_they_are_compiled() -> None:
    with pytest.raises(GrammarError, match="unknown type") as error:
        explain({"properties": {"a": {"type": "text"}}})
    assert error.value.pointer == "/properties/a/type"


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda v: st.lists(v, max_size=9)
)


@settings(max_examples=200, deadline=None)
@given(st.lists(values, min_size=1, max_size=9), st.dictionaries(st.text(), values, max_size=4))
def test_any_text_comes_in_one_line(listed: list[Any], annotations: dict[str, Any]) -> None:
    schema = {**{f"x-{key}": value for key, value in annotations.items()}, "enum": listed}
    (whole, manner) = _native.explain_json_schema(json.dumps(schema), True, 0, False)
    assert (whole[0], manner[0]) == ("", "text")
    assert len(whole[1]) < 1000
    assert not any(c < " " for c in whole[1])
    assert ("annotations" in whole[1]) == bool(annotations)


def test_a_pointer_stays_in_its_line() -> None:
    told = lines({"properties": {"a\nb": {"type": "null"}}})
    assert told[r"/properties/a\u000ab"] == "null"
    told = lines({"$defs": {"a\n": {"type": "null"}}, "$ref": "#/$defs/a%0A"})
    assert told["#"] == r"as under /$defs/a\u000a ($ref)"


def test_lone_surrogates_can_be_printed() -> None:
    (whole, _) = _native.explain_json_schema(r'{"x-\ud800": 1, "x-y": 2}', True, 0, False)
    assert r"x-\ud800, x-y" in whole[1]
