"""Keywords that combine, negate and count, on random schemas, against the jsonschema package."""

from __future__ import annotations

import json
import random
from typing import Any

import jsonschema
from hypothesis import given, settings
from hypothesis import strategies as st
from mask_oracle import accepts, draw

from sglite.errors import GrammarError
from sglite.grammars import Vocabulary, compile_json_schema

SCALARS: list[Any] = [None, True, False, 0, 1, 1.0, -2, 3, 6, 1.5, 0.25, "", "a", "ab", "ba", "é"]
VALUES: list[Any] = [
    *SCALARS,
    [],
    *([x] for x in SCALARS),
    *([x, y] for x in SCALARS[1::3] for y in SCALARS[::2]),
    [1, 1, "a"],
    [True, 1, 6, "a"],
    [None, None],
    {},
    *({"a": x} for x in SCALARS),
    *({"b": x, "a": y} for x in SCALARS[::4] for y in SCALARS[1::3]),
    *({"z": x} for x in SCALARS[::3]),
    {"a": 1, "b": "ab", "z": None},
    {"z": 1, "ab": "ab", "y": 1.5},
    {"a": {"a": 1}, "b": [1]},
]
COUNTS = st.integers(0, 3)
NUMBERS = st.sampled_from([-2, 0, 0.25, 1, 1.5, 3])

leaves = st.one_of(
    st.booleans(),
    st.fixed_dictionaries(
        {},
        optional={
            "minimum": NUMBERS,
            "exclusiveMaximum": NUMBERS,
            "multipleOf": st.sampled_from([1, 2, 3, 0.5, 1.5]),
        },
    ),
    st.fixed_dictionaries(
        {},
        optional={
            "minLength": COUNTS,
            "maxLength": COUNTS,
            "pattern": st.sampled_from(["^a", "b$", "^[ab]*$", "^$"]),
        },
    ),
    st.builds(lambda v: {"enum": v}, st.lists(st.sampled_from(VALUES), min_size=1, max_size=3)),
    st.builds(lambda v: {"const": v}, st.sampled_from(VALUES)),
    st.builds(
        lambda t: {"type": t},
        st.sampled_from(["null", "boolean", "string", "integer", "number", "array", "object"]),
    ),
    st.builds(
        lambda n, p: {
            "properties": dict.fromkeys(n, True),
            "patternProperties": dict.fromkeys(p, True),
            "additionalProperties": False,
        },
        st.lists(st.sampled_from("abz"), unique=True),
        st.lists(st.sampled_from(["^a", "b", "^(?!z)"]), max_size=1),
    ),
    st.builds(lambda n: {"required": n}, st.lists(st.sampled_from("abz"), unique=True)),
)


def _deeper(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    objects = st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(st.sampled_from("ab"), inner),
            "required": st.lists(st.sampled_from("abz"), unique=True),
            "additionalProperties": inner,
            "minProperties": COUNTS,
            "maxProperties": COUNTS,
            "propertyNames": inner,
            "dependentRequired": st.dictionaries(
                st.sampled_from("abz"), st.lists(st.sampled_from("abz"), unique=True)
            ),
            "dependentSchemas": st.dictionaries(st.sampled_from("ab"), inner),
            "unevaluatedProperties": inner,
        },
    )
    arrays = st.fixed_dictionaries(
        {},
        optional={
            "items": inner,
            "prefixItems": st.lists(inner, min_size=1, max_size=2),
            "minItems": COUNTS,
            "maxItems": COUNTS,
            "contains": inner,
            "minContains": COUNTS,
            "maxContains": COUNTS,
            "uniqueItems": st.booleans(),
            "unevaluatedItems": inner,
        },
    )
    logic = st.fixed_dictionaries(
        {},
        optional={
            "not": inner,
            "oneOf": st.lists(inner, min_size=1, max_size=3),
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "if": inner,
            "then": inner,
            "else": inner,
            "properties": st.dictionaries(st.sampled_from("ab"), inner, max_size=1),
            "unevaluatedProperties": st.booleans(),
        },
    )
    return st.one_of(objects, arrays, logic)


schemas = st.recursive(leaves, _deeper, max_leaves=6)


def _depends_on_order(value: Any) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return (isinstance(value, dict) and len(value) > 1) or any(map(_depends_on_order, inner))


@settings(max_examples=120, deadline=None)
@given(schema=schemas, declared=st.booleans(), seed=st.integers(0, 2**32))
def test_what_compiles_is_exact(vocab: Vocabulary, schema: Any, declared: bool, seed: int) -> None:
    validator = jsonschema.Draft202012Validator(schema)
    valid = [v for v in VALUES if validator.is_valid(v)]
    try:
        if declared:
            grammar = compile_json_schema(schema, vocab)
        else:
            grammar = compile_json_schema(
                schema, vocab, property_order="any", whitespace="compact", spelling="any"
            )
    except GrammarError as error:
        reason = error.reason
    else:
        reason = ""
    if reason:
        assert not valid or "nothing can match" not in reason
        return
    for value in VALUES:
        text = json.dumps(value, separators=(", ", ": ") if declared else (",", ":"))
        if declared and (_depends_on_order(value) or "\\u" in text or "1.0" in text):
            continue  # written otherwise under these options
        assert accepts(grammar, text.encode()) == validator.is_valid(value), value
    rng = random.Random(seed)
    for _ in range(4):
        budget = grammar.matcher().tokens_to_finish() + rng.randrange(16)
        text = draw(grammar, rng, budget).decode()
        assert validator.is_valid(json.loads(text)), text
