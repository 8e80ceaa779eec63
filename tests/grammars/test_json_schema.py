"""JSON Schema against the jsonschema package, in both directions, and the record workload."""

from __future__ import annotations

import itertools
import json
import random
from datetime import date
from typing import Any, Literal

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import instances
from mask_oracle import accepts, draw
from pydantic import BaseModel
from validator import Validator

from sglite.errors import GrammarError
from sglite.grammars import Vocabulary, compile_json_schema

SCALARS: list[Any] = [
    None,
    True,
    False,
    0,
    1,
    2,
    -1,
    10,
    1.5,
    -0.25,
    "",
    "a",
    "b",
    "ab",
    'q"\n',
    "é",
]
VALUES: list[Any] = [
    *SCALARS,
    [],
    *([x] for x in SCALARS[::2]),
    *([x, y] for x in SCALARS[::4] for y in SCALARS[1::5]),
    [1, 2, "a"],
    {},
    *({"a": x} for x in SCALARS[::2]),
    *({"b": x, "a": y} for x in SCALARS[::3] for y in SCALARS[1::6]),
    *({"z": x, "b": "a"} for x in SCALARS[::3]),
    {"a": 1, "b": "ab", "z": None},
    {"a": {"a": 1}, "b": [1]},
]
NUMBERS = st.sampled_from([-1, 0, 0.5, 1, 1.5, 2, 10])
COUNTS = st.integers(0, 3)

scalar_schemas = st.one_of(
    st.booleans(),
    st.fixed_dictionaries(
        {"type": st.sampled_from(["integer", "number"])},
        optional={
            "minimum": NUMBERS,
            "maximum": NUMBERS,
            "exclusiveMinimum": NUMBERS,
            "exclusiveMaximum": NUMBERS,
        },
    ),
    st.fixed_dictionaries(
        {"type": st.just("string")},
        optional={
            "minLength": COUNTS,
            "maxLength": COUNTS,
            "pattern": st.sampled_from(["^a", "b$", "a|^b$", "^[ab]*$", "(a|b)b", "^$", "\n"]),
        },
    ),
    st.builds(lambda v: {"enum": v}, st.lists(st.sampled_from(VALUES), min_size=1, max_size=4)),
    st.builds(lambda v: {"const": v}, st.sampled_from(VALUES)),
    st.builds(
        lambda t: {"type": t},
        st.lists(
            st.sampled_from(["null", "boolean", "string", "integer"]), min_size=1, unique=True
        ),
    ),
    st.just({"minLength": 2, "minimum": 1, "minItems": 1}),
)


def _deeper(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    objects = st.fixed_dictionaries(
        {},
        optional={
            "type": st.just("object"),
            "properties": st.dictionaries(st.sampled_from("ab"), inner),
            "required": st.lists(st.sampled_from("abz"), unique=True),
            "additionalProperties": inner,
            "patternProperties": st.dictionaries(st.sampled_from(["a", "^[ab]", "z$"]), inner),
        },
    )
    arrays = st.fixed_dictionaries(
        {"type": st.just("array")},
        optional={
            "items": inner,
            "prefixItems": st.lists(inner, min_size=1, max_size=2),
            "minItems": COUNTS,
            "maxItems": COUNTS,
        },
    )
    combined = st.one_of(
        st.builds(lambda s: {"anyOf": s}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda s: {"allOf": s}, st.lists(inner, min_size=1, max_size=2)),
        st.builds(
            lambda s, t: {**t, "anyOf": s} if isinstance(t, dict) else {"anyOf": s},
            st.lists(inner, min_size=1, max_size=2),
            objects,
        ),
        st.builds(lambda s: {"$defs": {"x/y": s}, "$ref": "#/$defs/x~1y"}, inner),
    )
    return st.one_of(objects, arrays, combined)


schemas = st.recursive(scalar_schemas, _deeper, max_leaves=5)


def _absolute(schema: Any) -> Any:
    """References of nested `$defs` do not survive nesting: put the target in their place."""
    if isinstance(schema, dict):
        if "$ref" in schema and "$defs" in schema:
            return {"allOf": [_absolute(schema["$defs"]["x/y"])]}
        return {k: v if k in ("enum", "const") else _absolute(v) for k, v in schema.items()}
    return [_absolute(s) for s in schema] if isinstance(schema, list) else schema


def _orders(value: Any) -> list[Any]:
    if not isinstance(value, dict):
        return [value]
    return [dict(items) for items in itertools.permutations(value.items())]


@settings(max_examples=120, deadline=None)
@given(schema=schemas, seed=st.integers(0, 2**32))
def test_accepts_exactly_the_valid_values(vocab: Vocabulary, schema: Any, seed: int) -> None:
    if not (isinstance(schema, dict) and "$defs" in schema):
        schema = _absolute(schema)
    else:
        schema["$defs"]["x/y"] = _absolute(schema["$defs"]["x/y"])
    validator = jsonschema.Draft202012Validator(schema)
    valid = [v for v in VALUES if validator.is_valid(v)]
    try:
        declared = compile_json_schema(schema, vocab)
        free = compile_json_schema(schema, vocab, property_order="any", whitespace="compact")
    except GrammarError as error:
        reason = error.reason
    else:
        reason = ""
    if reason:
        assert "nothing can match" in reason
        assert not valid
        return
    for value in VALUES:
        right = validator.is_valid(value)
        written = [json.dumps(v, ensure_ascii=False).encode() for v in _orders(value)]
        assert any(accepts(declared, text) for text in written) == right, value
        compact = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
        assert accepts(free, compact) == right, value
    rng = random.Random(seed)
    for grammar in (declared, free):
        for _ in range(4):
            budget = grammar.matcher().tokens_to_finish() + rng.randrange(12)
            text = draw(grammar, rng, budget)
            validator.validate(json.loads(text))


def test_spelling_any_takes_every_spelling_and_no_wrong_key(vocab: Vocabulary) -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "additionalProperties": {"type": "string"},
    }
    grammar = compile_json_schema(schema, vocab, spelling="any", whitespace="flexible")
    for text in [
        r'{"\u0061": 1}',
        r'{"a":1.0 , "b" : "\/\u00E9\u00e9\ud83d\uDE00😀\t"}',
        '{ "a"\n:\t-1 }',
        r'{"a":1E2}',
    ]:
        jsonschema.validate(json.loads(text), schema)
        assert accepts(grammar, text.encode()), text
    for text in [
        r'{"\u0061": "x"}',
        r'{"a": 1, "\u0061": "x"}',
        r'{"b": "\ud83d"}',
        r'{"b": "\ud83dx"}',
        r'{"b": "\uDE00"}',
        r'{"a": 1.5}',
        r'{"a": 01}',
    ]:
        assert not accepts(grammar, text.encode()), text
    canonical = compile_json_schema(schema, vocab)
    for text in [r'{"\u0061": 1}', '{"a": 1.0}', '{"a":1}', r'{"b": "\/"}', r'{"b": "\u001F"}']:
        assert not accepts(canonical, text.encode()), text
    assert accepts(canonical, rb'{"b": "/\u001f\n' + "\u007fé".encode() + b'"}')


def test_free_key_order_never_repeats_a_declared_key(vocab: Vocabulary) -> None:
    schema = {
        "properties": {k: {"type": "boolean"} for k in ["a", "ab", "b"]},
        "required": ["ab"],
        "additionalProperties": False,
        "type": "object",
    }
    grammar = compile_json_schema(schema, vocab, property_order="any")
    for n in range(5):
        for keys in itertools.product(["a", "ab", "b"], repeat=n):
            text = "{" + ", ".join(f'"{k}": true' for k in keys) + "}"
            right = "ab" in keys and len(set(keys)) == n
            assert accepts(grammar, text.encode()) == right, text


@pytest.mark.parametrize("seed", range(3))
def test_number_bounds_are_exact(vocab: Vocabulary, seed: int) -> None:
    rng = random.Random(seed)
    spread = [0, 1, 9, 10, 99, 100, 0.5, 0.05, 12.34, 250]
    for _ in range(25):
        low, high = sorted(rng.choice(spread) * rng.choice([1, -1]) for _ in range(2))
        schema = {
            "type": rng.choice(["integer", "number"]),
            rng.choice(["minimum", "exclusiveMinimum"]): low,
            rng.choice(["maximum", "exclusiveMaximum"]): high,
        }
        validator = jsonschema.Draft202012Validator(schema)
        around = {low, high} | {x + d for x in (low, high) for d in (-1, -0.01, 0.01, 1)}
        around |= {rng.randint(-120, 120) for _ in range(20)} | {0}
        valid = {v for v in around if validator.is_valid(v)}
        try:
            grammar = compile_json_schema(schema, vocab)
        except GrammarError:
            assert not valid
            continue
        for value in around:
            value = round(value, 4)
            integral = schema["type"] == "integer"
            if integral and isinstance(value, float) and value.is_integer():
                value = int(value)
            assert accepts(grammar, json.dumps(value).encode()) == validator.is_valid(value), (
                schema,
                value,
            )


@pytest.mark.parametrize(
    ("name", "yes", "no"),
    [
        ("date", ["2024-02-29", "1999-12-31", "2000-02-29"], ["2023-02-29", "1900-02-29",
                                                              "2024-04-31", "0000-01-01"]),
        ("time", ["23:59:59Z", "00:00:00.5+01:00"], ["24:00:00Z", "12:00:60Z", "12:00:00"]),
        ("date-time", ["2024-02-29T01:02:03Z"], ["2024-02-30T01:02:03Z", "2024-02-29 01:02:03Z"]),
        ("uuid", ["123e4567-e89b-12d3-A456-426614174000"], ["123e4567e89b12d3a456426614174000"]),
        ("email", ["a.b+c@d.example"], ["a..b@c", "a@", "@b", "a@-b.c"]),
        ("ipv4", ["0.0.0.0", "255.249.19.1"], ["256.0.0.1", "1.2.3", "01.2.3.4"]),
        ("colour", ["anything"], []),
    ],
)  # fmt: skip
def test_formats(vocab: Vocabulary, name: str, yes: list[str], no: list[str]) -> None:
    grammar = compile_json_schema({"type": "string", "format": name}, vocab)
    assert [t for t in yes if not accepts(grammar, json.dumps(t).encode())] == []
    assert [t for t in no if accepts(grammar, json.dumps(t).encode())] == []


@pytest.mark.parametrize(
    "pattern",
    ["^(?!ab)", "^(?!ab$).*$", "^(?=.*b)(?!.*bb)[ab]*$", "^(?!a|b$)(?=[)|]|.b)..", r"^(?!\)).$"],
)
def test_lookaheads_at_the_start_of_a_pattern(vocab: Vocabulary, pattern: str) -> None:
    text = {"type": "string", "pattern": pattern}
    names = {"type": "object", "patternProperties": {pattern: {"type": "null"}}}
    for schema in (text, {"type": "string", "not": text}, names):
        grammar = compile_json_schema(schema, vocab)
        for length in range(4):
            for letters in itertools.product("ab)|\\", repeat=length):
                word = "".join(letters)
                value = {word: 1} if schema is names else word
                right = jsonschema.Draft202012Validator(schema).is_valid(value)
                assert accepts(grammar, json.dumps(value).encode()) == right, value


def test_every_day_of_the_calendar(vocab: Vocabulary) -> None:
    grammar = compile_json_schema({"type": "string", "format": "date"}, vocab)
    for year in (1, 4, 1900, 2000, 2023, 2024, 9999):
        for month in range(14):
            for day in range(27, 33):
                text = f"{year:04}-{month:02}-{day:02}"
                try:
                    right = bool(date.fromisoformat(text))
                except ValueError:
                    right = False
                assert accepts(grammar, f'"{text}"'.encode()) == right, text


@pytest.mark.parametrize(
    "schema",
    [
        {"not": {"additionalProperties": {"type": "null"}}},
        {"not": {"patternProperties": {"a": {"type": "null"}}}},
        {"not": {"propertyNames": {"maxLength": 1}}},
        {"not": {"unevaluatedItems": False}},
        {"not": {"prefixItems": [True], "unevaluatedItems": False}},
        {"uniqueItems": True},
        {"uniqueItems": True, "items": {"enum": [1, 2, 3]}, "maxItems": 2},
        {"minProperties": 2},
        {"type": "string", "pattern": "^(?=a)b|c"},
        {"type": "string", "pattern": "^(?!a)*b"},
        {"type": "string", "pattern": "(?=a)"},
        {"patternProperties": {"(?=a)": {"type": "integer"}}},
        {"contains": {"type": "null"}, "unevaluatedItems": False},
        {"properties": {"z": {"format": "hostname"}}},
    ],
)
def test_whole_documents_decide_and_are_decided(vocab: Vocabulary, schema: Any) -> None:
    """Negations of what speaks of every member or item, values that must differ, lookaheads."""
    truth = Validator(schema)
    rng = random.Random(3)
    values = [*VALUES, *instances(schema, rng, 60)]
    values += [[1, 2, 1], [[1], [True]], [None, None], [None, 1], {"z": "-a"}, {"z": "a.b"}, "c"]
    grammar = compile_json_schema(schema, vocab, property_order="any", whitespace="compact")
    judged = set()
    for value in values:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
        right = truth.accepts(text)
        judged.add(right)
        assert accepts(grammar, text) == right, value
    assert judged == {True, False}
    for _ in range(10):
        budget = grammar.matcher().tokens_to_finish() + rng.randrange(12)
        text = draw(grammar, rng, budget)
        assert truth.accepts(text), text


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"not": {"uniqueItems": True}}, "/not/uniqueItems"),
        ({"if": {"uniqueItems": True}, "then": {"maxItems": 1}}, "/if/uniqueItems"),
        ({"type": "number", "multipleOf": 0.123456789}, "/multipleOf"),
        ({"type": "number", "multipleOf": 0}, "/multipleOf"),
        ({"dependencies": {"a": 1}}, "/dependencies/a"),
        ({"dependentRequired": {"a": {}}}, "/dependentRequired/a"),
        ({"patternProperties": {"[a": 1}}, "/patternProperties/[a"),
        ({"$recursiveRef": "#"}, "/$recursiveRef"),
        ({"properties": {"a/b": {"items": {"extends": {}}}}}, "/properties/a~1b/items/extends"),
        ({"type": "string", "pattern": "["}, "/pattern"),
    ],
)
def test_what_cannot_be_exact_is_refused_with_its_pointer(
    vocab: Vocabulary, schema: Any, pointer: str
) -> None:
    with pytest.raises(GrammarError) as caught:
        compile_json_schema(schema, vocab)
    assert caught.value.pointer == pointer


@pytest.mark.parametrize(
    "schema",
    [
        False,
        {"type": "object", "required": ["a"], "additionalProperties": False},
        {"type": "array", "items": False, "minItems": 1},
    ],
)
@pytest.mark.parametrize("order", ["declared", "any"])
def test_a_schema_without_values_is_refused(
    vocab: Vocabulary, schema: Any, order: Literal["declared", "any"]
) -> None:
    with pytest.raises(GrammarError, match="nothing can match"):
        compile_json_schema(schema, vocab, property_order=order)


def test_annotations_and_vacuous_keywords_are_fine(vocab: Vocabulary) -> None:
    schema = {
        "$schema": "x", "$id": "y", "$comment": "z", "title": "t", "description": "d",
        "default": 1, "examples": [1], "deprecated": True, "readOnly": True, "x-mine": {"not": 1},
        "uniqueItems": False, "minProperties": 0, "then": {}, "type": "null",
    }  # fmt: skip
    assert accepts(compile_json_schema(schema, vocab), b"null")


def test_recursion_through_the_root_and_definitions(vocab: Vocabulary) -> None:
    tree = {
        "type": "object",
        "properties": {"kids": {"type": "array", "items": {"$ref": "#"}}},
        "required": ["kids"],
        "additionalProperties": False,
    }
    grammar = compile_json_schema(tree, vocab)
    depth = 30
    text = '{"kids": [' * depth + "]}" * depth
    assert accepts(grammar, text.encode())
    assert not accepts(grammar, text[:-1].encode())
    mutual = {
        "$defs": {
            "even": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/odd"}]},
            "odd": {"type": "array", "prefixItems": [{"$ref": "#/$defs/even"}], "minItems": 1,
                    "items": False},
        },
        "$ref": "#/$defs/even",
    }  # fmt: skip
    assert accepts(compile_json_schema(mutual, vocab), b"[[[null]]]")


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    name: str | None = None


class Owner(BaseModel):
    pet: Cat | Dog
    born: date


def test_pydantic_models_and_types(vocab: Vocabulary) -> None:
    grammar = compile_json_schema(Owner, vocab)
    rng = random.Random(5)
    for _ in range(20):
        budget = grammar.matcher().tokens_to_finish() + 30
        Owner.model_validate_json(draw(grammar, rng, budget))
    numbers = compile_json_schema(list[int], vocab)
    assert accepts(numbers, b"[1, 2]")
    with pytest.raises(GrammarError, match="pydantic"):
        compile_json_schema(object(), vocab)


def test_one_of_with_a_discriminator_is_exact(vocab: Vocabulary) -> None:
    schema = {
        "oneOf": [
            {"properties": {"k": {"const": "x"}, "v": {"type": "integer"}}, "required": ["k"],
             "type": "object"},
            {"properties": {"k": {"const": "y"}}, "required": ["k"], "type": "object"},
            {"type": "null"},
        ]
    }  # fmt: skip
    grammar = compile_json_schema(schema, vocab)
    assert accepts(grammar, b'{"k": "x", "v": 1}')
    assert accepts(grammar, b'{"k": "y", "v": "free"}')
    assert not accepts(grammar, b'{"k": "x", "v": "free"}')
    assert accepts(grammar, b"null")


def test_options_are_checked(vocab: Vocabulary) -> None:
    with pytest.raises(ValueError, match="whitespace"):
        compile_json_schema({}, vocab, whitespace="none")  # type: ignore[arg-type]
    with pytest.raises(GrammarError, match="not JSON"):
        compile_json_schema("{", vocab)


ORDER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "order_id": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{5}$"},
        "customer": {"type": "string", "maxLength": 40},
        "country": {"enum": ["DE", "FR", "US", "JP"]},
        "quantity": {"type": "integer", "minimum": 1, "maximum": 999},
        "paid": {"type": "boolean"},
        "items": {
            "type": "array",
            "minItems": 1,
            "maxItems": 3,
            "items": {
                "type": "object",
                "properties": {
                    "sku": {"type": "string", "maxLength": 12},
                    "count": {"type": "integer", "minimum": 1, "maximum": 99},
                },
                "required": ["sku", "count"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["order_id", "customer", "country", "quantity", "paid", "items"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("order", ["declared", "any"])
def test_a_whole_record(vocab: Vocabulary, order: Literal["declared", "any"]) -> None:
    grammar = compile_json_schema(ORDER, vocab, property_order=order)
    rng = random.Random(11)
    for _ in range(10):
        budget = grammar.matcher().tokens_to_finish() + rng.randrange(40)
        jsonschema.validate(json.loads(draw(grammar, rng, budget)), ORDER)
    first = grammar.matcher()
    assert first.forced_bytes() == (b'{"order_id": "' if order == "declared" else b'{"')
