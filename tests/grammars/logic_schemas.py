"""Random schemas whose keywords combine, negate and count, and values that tell them apart.

Their references go to `#/$defs/x` and `#/$defs/y`: see `whole`.
"""

from __future__ import annotations

from typing import Any

import jsonschema
from hypothesis import reject
from hypothesis import strategies as st

SCALARS: list[Any] = [None, True, False, 0, 1, 1.0, -2, 3, 6, 1.5, 0.25, "", "a", "ab", "ba", "é"]
VALUES: list[Any] = [
    *SCALARS,
    [],
    *([x] for x in SCALARS),
    *([x, y] for x in SCALARS[1::3] for y in SCALARS[::2]),
    [1, 1, "a"],
    [1, 1.0],
    [True, 1, 6, "a"],
    [None, None],
    [[1], {"a": 1}, [1]],
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
            "maximum": NUMBERS,
            "exclusiveMinimum": NUMBERS,
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
    st.builds(lambda n: {"$ref": f"#/$defs/{n}"}, st.sampled_from("xy")),
)


def _deeper(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    names = st.sampled_from("abz")
    objects = st.fixed_dictionaries(
        {},
        optional={
            "type": st.just("object"),
            "properties": st.dictionaries(st.sampled_from("ab"), inner),
            "patternProperties": st.dictionaries(st.sampled_from(["a", "^[ab]", "z$"]), inner),
            "required": st.lists(names, unique=True),
            "additionalProperties": inner,
            "minProperties": COUNTS,
            "maxProperties": COUNTS,
            "propertyNames": inner,
            "dependentRequired": st.dictionaries(names, st.lists(names, unique=True)),
            "dependentSchemas": st.dictionaries(st.sampled_from("ab"), inner),
            "unevaluatedProperties": inner,
        },
    )
    arrays = st.fixed_dictionaries(
        {},
        optional={
            "type": st.just("array"),
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
            "allOf": st.lists(inner, min_size=1, max_size=2),
            "if": inner,
            "then": inner,
            "else": inner,
            "properties": st.dictionaries(st.sampled_from("ab"), inner, max_size=1),
            "unevaluatedProperties": st.booleans(),
            "unevaluatedItems": st.booleans(),
        },
    )
    return st.one_of(objects, arrays, logic)


schemas = st.recursive(leaves, _deeper, max_leaves=7)


def whole(schema: Any, x: Any, y: Any) -> dict[str, Any]:
    """A schema with the two definitions that it may refer to."""
    return {"$defs": {"x": x, "y": y}, "allOf": [schema]}


def is_reference(schema: Any) -> bool:
    """As a definition, one that jsonschema may not return from."""
    return schema in [{"$ref": "#/$defs/x"}, {"$ref": "#/$defs/y"}]


def judge(schema: Any) -> jsonschema.Draft202012Validator:
    """The validator of a schema. Rejects one whose references lead in a circle at the same value:
    the validator never comes to a verdict there."""
    validator = jsonschema.Draft202012Validator(schema)
    try:
        for value in VALUES:
            validator.is_valid(value)
    except RecursionError:
        reject()
    return validator
