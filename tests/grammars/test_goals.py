"""Goals of JSON Schemas: the values that their shapes admit, against the jsonschema package."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import assume, given, settings
from limits import SLOWDOWN
from logic_schemas import VALUES, is_reference, judge, leaves, schemas, whole

from sglite.grammars import _native

TEXTS = [json.dumps(v) for v in VALUES]


def refusal(schema: Any) -> tuple[str, str]:
    """The reason and the pointer."""
    text = schema if isinstance(schema, str) else json.dumps(schema)
    with pytest.raises(_native.Refused) as caught:
        _native.Goals(text)
    reason, pointer = caught.value.reason, caught.value.pointer
    return reason, pointer


@settings(max_examples=200, deadline=None)
@given(schema=schemas, x=schemas, y=leaves)
def test_the_shapes_admit_exactly_the_valid_values(schema: Any, x: Any, y: Any) -> None:
    assume(not is_reference(y))
    asked = whole(schema, x, y)
    validator = judge(asked)
    try:
        goals = _native.Goals(json.dumps(asked))
    except _native.Refused as refused:
        if refused.reason != "nothing can match":
            return
        assert not [v for v in VALUES if validator.is_valid(v)]
        return
    for value, text in zip(VALUES, TEXTS, strict=True):
        assert goals.admits(goals.root, text) == validator.is_valid(value), value


@pytest.mark.parametrize(
    "values",
    [
        [{"a": i, "b": [i, str(i)]} for i in range(20)],
        [[i, i % 3] for i in range(20)],
        [f"w{i}" for i in range(20)],
        [*range(10), *(i + 0.5 for i in range(10))],
    ],
    ids=["objects", "arrays", "strings", "numbers"],
)
def test_so_many_listed_values_can_differ(values: list[Any]) -> None:
    unique = {"type": "array", "uniqueItems": True, "items": {"enum": values}}
    assert _native.Goals(json.dumps({**unique, "minItems": len(values)})).root >= 0
    assert refusal({**unique, "minItems": len(values) + 1})[0] == "nothing can match"


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"not": {"uniqueItems": True}}, "/not/uniqueItems"),
        ({"if": {"uniqueItems": True}, "then": {"maxItems": 1}}, "/if/uniqueItems"),
        ({"type": "number", "multipleOf": 0}, "/multipleOf"),
        ({"dependencies": {"a": 1}}, "/dependencies/a"),
        ({"dependentRequired": {"a": {}}}, "/dependentRequired/a"),
        ({"patternProperties": {"[a": 1}}, "/patternProperties/[a"),
        ({"$recursiveRef": "#"}, "/$recursiveRef"),
        ({"properties": {"a/b": {"items": {"extends": {}}}}}, "/properties/a~1b/items/extends"),
        ({"oneOf": [{"$ref": "#"}, {"type": "null"}]}, ""),
        ({"type": "text"}, "/type"),
        ({"type": 3}, "/type"),
        ({"type": "string", "maxLength": -1}, "/maxLength"),
        ({"type": "string", "maxLength": 1.5}, "/maxLength"),
        ({"type": "string", "pattern": "["}, "/pattern"),
        ({"minimum": "1"}, "/minimum"),
        ({"required": "a"}, "/required"),
        ({"properties": []}, "/properties"),
        ({"anyOf": []}, "/anyOf"),
        ({"enum": 1}, "/enum"),
        ({"items": 3}, "/items"),
        ({"uniqueItems": 1}, "/uniqueItems"),
        ({"$ref": "#/$defs/missing"}, "/$ref"),
        ({"$ref": "other.json"}, "/$ref"),
        ({"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}, "/$defs/a/$ref"),
    ],
)
def test_what_is_wrong_or_unsupported_is_refused_with_its_pointer(
    schema: Any, pointer: str
) -> None:
    assert refusal(schema)[1] == pointer


@pytest.mark.parametrize(
    "schema",
    [
        False,
        {"type": "integer", "minimum": 2, "maximum": 1},
        {"type": "string", "minLength": 3, "maxLength": 2},
        {"type": "string", "pattern": "^a", "enum": ["b"]},
        {"type": "string", "enum": [1]},
        {"allOf": [{"type": "string"}, {"type": "null"}]},
        {"type": "object", "required": ["a"], "additionalProperties": False},
        {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]},
        {"type": "object", "minProperties": 3, "propertyNames": {"enum": ["a", "b"]}},
        {"type": "array", "items": False, "minItems": 1},
        {"type": "array", "items": {"$ref": "#"}, "minItems": 1},
        {"type": "array", "items": {"type": "boolean"}, "uniqueItems": True, "minItems": 3},
        {"type": "array", "contains": {"const": 1}, "items": {"const": 2}},
        {"allOf": [{"enum": [1, "a"]}], "not": {"enum": ["a", 1.0]}},
    ],
)
def test_a_schema_without_values_is_refused(schema: Any) -> None:
    assert refusal(schema)[0] == "nothing can match"


def test_dynamic_references_go_to_the_outermost_anchor() -> None:
    schema: dict[str, Any] = {
        "$id": "https://sglite.example/strict",
        "$dynamicAnchor": "node",
        "$ref": "tree",
        "unevaluatedProperties": False,
        "$defs": {
            "tree": {
                "$id": "tree",
                "$dynamicAnchor": "node",
                "properties": {
                    "value": {"type": "integer"},
                    "kids": {"items": {"$dynamicRef": "#node"}},
                },
            }
        },
    }
    goals = _native.Goals(json.dumps(schema))
    assert goals.admits(goals.root, '{"kids": [{"value": 1, "kids": []}]}')
    assert not goals.admits(goals.root, '{"kids": [{"value": 1, "more": []}]}')
    loose = _native.Goals(json.dumps(schema["$defs"]["tree"]))
    assert loose.admits(loose.root, '{"kids": [{"value": 1, "more": []}]}')


def test_relative_identifiers() -> None:
    schema = {
        "$id": "http://sglite.example/a/b/root.json",
        "properties": {
            name: {"$ref": reference}
            for name, reference in {
                "here": "#/$defs/text",
                "up": "../other.json",
                "path": "/top.json",
                "anchor": "../other.json#word",
                "escaped": "#/$defs/a%25b~1c",
            }.items()
        },
        "$defs": {
            "text": {"type": "string"},
            "a%b/c": {"type": "null"},
            "o": {
                "$id": "../other.json",
                "type": "integer",
                "$defs": {"w": {"$anchor": "word", "type": "boolean"}},
            },
            "t": {"$id": "http://sglite.example/top.json", "type": "array"},
        },
    }
    goals = _native.Goals(json.dumps(schema))
    right = {"here": '"x"', "up": "1", "path": "[]", "anchor": "true", "escaped": "null"}
    for name in right:
        for other, text in right.items():
            assert goals.admits(goals.root, f'{{"{name}": {text}}}') == (name == other)


@pytest.mark.parametrize("draft", ["draft-04", "draft-06", "draft-07", "2019-09", "2020-12"])
def test_keywords_that_came_later_are_annotations(draft: str) -> None:
    order = ["draft-04", "draft-06", "draft-07", "2019-09", "2020-12"]
    cases: list[tuple[str, dict[str, Any], str]] = [
        ("draft-06", {"const": 1}, "2"),
        ("draft-07", {"if": {"type": "null"}, "then": False}, "null"),
        ("2019-09", {"dependentRequired": {"a": ["b"]}}, '{"a": 1}'),
        ("2020-12", {"prefixItems": [{"type": "null"}]}, "[1]"),
    ]
    for since, schema, wrong in cases:
        name = f"https://json-schema.org/{draft}/schema"
        goals = _native.Goals(json.dumps({"$schema": name, **schema}))
        assert goals.admits(goals.root, wrong) == (order.index(draft) < order.index(since))


def test_depth_and_size_are_bounded() -> None:
    began = time.monotonic()
    deep = '{"anyOf": [' * 5000 + "true" + "]}" * 5000
    assert "nested too deeply" in refusal(deep)[0]
    chain: dict[str, Any] = {"a5000": {"type": "object"}}
    for i in range(5000):
        chain[f"a{i}"] = {"$ref": f"#/$defs/a{i + 1}"}
    lone = {"$defs": chain, "$ref": "#/$defs/a0"}
    assert _native.Goals(json.dumps(lone)).root >= 0
    for i in range(5000):
        chain[f"a{i}"]["minProperties"] = 1
    assert "nested too deeply" in refusal(lone)[0]
    ways = [{"properties": {f"{i}{j}": {"type": "null"} for j in range(9)}} for i in range(9)]
    assert refusal({"type": "object", "allOf": [{"not": way} for way in ways]})[0]
    assert time.monotonic() - began < 5 * SLOWDOWN


def test_many_conditions_on_one_key_leave_few_alternatives() -> None:
    kinds = [f"kind {i}" for i in range(30)]
    schema = {
        "type": "object",
        "required": ["kind"],
        "properties": {"kind": {"enum": kinds}},
        "allOf": [
            {"if": {"properties": {"kind": {"const": kind}}}, "then": {"required": [f"a {kind}"]}}
            for kind in kinds
        ],
    }
    goals = _native.Goals(json.dumps(schema))
    assert goals.admits(goals.root, '{"kind": "kind 7", "a kind 7": 1}')
    assert not goals.admits(goals.root, '{"kind": "kind 7", "a kind 8": 1}')


def circle(length: int) -> dict[str, Any]:
    """Schemas of lists within lists, each of another kind, in a circle."""
    return {
        f"p{length} {i}": {
            "type": ["array", "null"],
            "items": {"$ref": f"#/$defs/p{length}%20{(i + 1) % length}"},
        }
        for i in range(length)
    }


PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23)


@pytest.mark.parametrize(
    "schema",
    [
        {"oneOf": [{"oneOf": [{"properties": {f"k{i}{j}": {"const": j}}} for j in range(30)]}
                   for i in range(30)]},
        {"allOf": [{"$ref": f"#/$defs/p{p}%200"} for p in PRIMES],
         "$defs": {k: v for p in PRIMES for k, v in circle(p).items()}},
        {"type": "array", "contains": {"type": "string"}, "minContains": 5000},
        {"type": "object", "patternProperties": {c: {"minimum": 1} for c in "abcdefghi"},
         "additionalProperties": False},
        {"type": "object", "allOf": [{"not": {"patternProperties": {f"^{c}": False}}}
                                     for c in "abcdefghijklm"]},
        {"enum": [{"a": i} for i in range(9000)]},
    ],
    ids=["ways", "circles", "counts", "patterns", "demands", "objects"],
)  # fmt: skip
def test_what_takes_too_long_is_refused_soon(schema: Any) -> None:
    began = time.monotonic()
    assert refusal(schema)[0] != "nothing can match"
    assert time.monotonic() - began < 4 * SLOWDOWN  # on busy cores


def test_ten_thousand_values() -> None:
    values = [f"value number {i}" for i in range(10_000)] + list(range(10_000))
    began = time.monotonic()
    goals = _native.Goals(json.dumps({"enum": values}))
    assert time.monotonic() - began < 2 * SLOWDOWN
    for text, right in [('"value number 9999"', True), ("777", True), ("10000", False)]:
        assert goals.admits(goals.root, text) == right


def test_supplies_count_different_values() -> None:
    for schema, count in [
        ({"enum": [1, 1.0, "a", None, True, [1], {"a": 1}]}, 6),
        ({"type": "boolean"}, 2),
        ({"type": "integer", "minimum": 1, "maximum": 10, "not": {"const": 3}}, 9),
        ({"type": "string", "pattern": "^[ab]{0,2}$"}, 7),
        ({"type": "string"}, 1 << 20),
        ({"properties": {"a": {"type": "boolean"}}, "type": "object",
          "additionalProperties": False}, 3),
    ]:  # fmt: skip
        whole = {"type": "array", "items": schema, "uniqueItems": True, "minItems": min(count, 9)}
        assert _native.Goals(json.dumps(whole)).root >= 0
        if count < 9:
            assert refusal({**whole, "minItems": count + 1})[0] == "nothing can match"


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        (False, ""),
        ({"allOf": [{"type": "null"}, {"type": "string"}]}, ""),
        ({"allOf": [{}, {"enum": []}]}, "/allOf/1"),
        ({"type": "object", "required": ["a"], "properties": {"a": False}}, "/properties/a"),
        ({"required": ["a"], "properties": {"a": False}, "type": ["object"]}, ""),
        ({"type": "object", "required": ["a", "b"], "maxProperties": 1}, ""),
        ({"type": "object", "required": ["a", "b"], "maxProperties": 1,
          "properties": {"c": False}}, ""),
        ({"$ref": "#/$defs/x", "$defs": {"x": {"type": "array", "minItems": 1,
          "items": {"type": "integer", "minimum": 2, "maximum": 1}}}}, "/$defs/x/items"),
        ({"$ref": "#/$defs/x", "$defs": {"x": {"type": "array", "minItems": 1,
          "items": {"$ref": "#/$defs/x"}}}}, None),
    ],
)  # fmt: skip
def test_the_place_of_what_nothing_can_match(schema: Any, pointer: str | None) -> None:
    reason, place = refusal(schema)
    assert reason == "nothing can match"
    assert pointer is None or place == pointer
