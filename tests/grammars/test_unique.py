"""`uniqueItems` over items of every kind: the masks against all texts that there are.

Schemas with few values are made together with these values; every beginning of every text is then
asked what may follow.
"""

from __future__ import annotations

import itertools
import json
import math
import random
from typing import Any

import jsonschema
import pytest
from limits import examples
from trials import finish, mask_ids

from sglite.errors import GrammarError
from sglite.grammars import Matcher, Vocabulary, compile_json_schema

Few = tuple[dict[str, Any], list[Any]]
"""A schema and all of its values."""

_SCALARS = [None, True, False, "", "a", "ab", "b", "ba"]
_MOST_VALUES = 14
_MOST_TEXTS = 3000


def distinct(values: list[Any]) -> list[Any]:
    """Each value once."""
    return list({json.dumps(v, sort_keys=True): v for v in values}.values())


def some_object(rng: random.Random, depth: int) -> Few:
    names = ["a", "b", "c"][: rng.randint(1, 3)]
    parts = {name: few(rng, depth - 1) for name in names}
    required = [name for name in names if rng.random() < 0.5]
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: part[0] for name, part in parts.items()},
        "required": required,
        "additionalProperties": False,
    }
    if rng.random() < 0.4:
        parts["x"] = parts["y"] = few(rng, depth - 1)
        schema["patternProperties"] = {"^[xy]$": parts["x"][0]}
    low = rng.choice([0, 0, 1, 2])
    high = rng.choice([2, 3, 9])
    schema |= {"minProperties": low, "maxProperties": high}
    missing = object()
    ways = [
        [*values, *([] if name in required else [missing])] for name, (_, values) in parts.items()
    ]
    found: list[Any] = []
    if math.prod(map(len, ways)) > 2000:
        return schema, found  # too many to list
    for way in itertools.product(*ways):
        value = {n: v for n, v in zip(parts, way, strict=True) if v is not missing}
        if low <= len(value) <= high:
            found.append(value)
    return schema, found


def some_array(rng: random.Random, depth: int) -> Few:
    inner, values = few(rng, depth - 1)
    low = rng.randint(0, 2)
    high = rng.randint(low, 2)
    unique = rng.random() < 0.5
    schema: dict[str, Any] = {"type": "array", "items": inner, "minItems": low, "maxItems": high}
    schema["uniqueItems"] = unique
    found = arrays(values, low, high, unique)
    if rng.random() < 0.3:
        schema["contains"], wanted = few(rng, depth - 1)
        found = [array for array in found if any(item in distinct(wanted) for item in array)]
    return schema, found


def arrays(values: list[Any], low: int, high: int, unique: bool) -> list[Any]:
    ways = itertools.permutations if unique else lambda v, n: itertools.product(v, repeat=n)
    return [list(a) for n in range(low, high + 1) for a in ways(values, n)]


def few(rng: random.Random, depth: int) -> Few:
    """A schema with at most a dozen values."""
    while True:
        kind = rng.random()
        if depth == 0 or kind < 0.3:
            values: list[Any] = rng.sample(_SCALARS, rng.randint(1, 3))
            schema: dict[str, Any] = {"enum": values}
            found = values
        elif kind < 0.65:
            schema, found = some_object(rng, depth)
        elif kind < 0.85:
            schema, found = some_array(rng, depth)
        else:
            (one, first), (two, second) = few(rng, depth - 1), few(rng, depth - 1)
            schema, found = {"anyOf": [one, two]}, first + second
        found = distinct(found)
        if 0 < len(found) <= _MOST_VALUES:
            return schema, found


def texts(value: Any, declared: bool) -> list[str]:
    """Every way to write a value."""
    if isinstance(value, list):
        parts = [texts(item, declared) for item in value]
        return ["[" + ",".join(way) + "]" for way in itertools.product(*parts)]
    if isinstance(value, dict):
        fixed, extra = [k for k in value if k in "abc"], [k for k in value if k not in "abc"]
        orders: Any = itertools.permutations(value)
        if declared:
            orders = [(*fixed, *behind) for behind in itertools.permutations(extra)]
        found = []
        for order in orders:
            parts = [[f'"{k}":{t}' for t in texts(value[k], declared)] for k in order]
            found += ["{" + ",".join(way) + "}" for way in itertools.product(*parts)]
        return found
    return [json.dumps(value)]


def check(matcher: Matcher, known: set[str]) -> int:
    """Every beginning of the texts; how many there are."""
    follow: dict[str, set[str]] = {}
    for text in known:
        for i in range(len(text)):
            follow.setdefault(text[:i], set()).add(text[i])
    open_: list[tuple[str, Matcher]] = [("", matcher)]
    count = 0
    while open_:
        begun, at = open_.pop()
        count += 1
        assert at.is_complete == (begun in known), begun
        ids = [i for i in mask_ids(at) if i < 128]
        assert {chr(i) for i in ids} == follow.get(begun, set()), begun
        cost = at.tokens_to_finish()
        costs = []
        for i in ids:
            then = at.fork()
            assert then.accept(i)
            costs.append(then.tokens_to_finish())
            open_.append((begun + chr(i), then))
        assert cost == 0 or min(costs) < cost, begun
    return count


@pytest.fixture(scope="module")
def letters() -> Vocabulary:
    return Vocabulary.from_tokens([bytes([b]) for b in range(128)] + [b""], eos_ids=[128])


def trial(seed: int, letters: Vocabulary) -> int:
    rng = random.Random(seed)
    inner, values = few(rng, 2)
    high = rng.randint(0, 3)
    low = rng.randint(0, high)
    schema: dict[str, Any] = {"type": "array", "items": inner, "uniqueItems": True}
    schema |= {"minItems": low, "maxItems": high}
    found = arrays(values, low, high, True)
    if rng.random() < 0.3:  # so long arrays may have an item twice, too
        most = rng.randint(0, 2)
        schema = {"anyOf": [schema, {"type": "array", "items": inner, "maxItems": most}]}
        found = distinct(found + arrays(values, 0, most, False))
    declared = rng.random() < 0.5
    ways: list[str] = []
    for value in found:
        ways += texts(value, declared)
        if len(ways) > _MOST_TEXTS:
            return 0
    order: Any = "declared" if declared else "any"
    try:
        grammar = compile_json_schema(schema, letters, order, "compact")
    except GrammarError as error:
        if ways and "needs" not in error.reason:
            raise
        return 0
    assert ways, schema
    try:
        return check(grammar.matcher(), set(ways))
    except Exception as error:
        error.add_note(json.dumps(schema))
        raise


def test_masks_of_items_that_must_differ(letters: Vocabulary) -> None:
    seeds = random.sample(range(10**9), examples(120))
    assert sum(trial(seed, letters) for seed in seeds) > 1000


_SMALL = {"$ref": "#/$defs/small"}
_TREES: list[dict[str, Any]] = [
    {"contains": {"type": "array"}, "minContains": 2, "uniqueItems": True},
    {
        "$defs": {
            "small": {
                "anyOf": [
                    {"type": "boolean"},
                    {"type": "array", "items": _SMALL, "uniqueItems": True, "minItems": 2},
                ]
            }
        },
        "type": "array",
        "items": _SMALL,
        "minItems": 4,
        "uniqueItems": True,
    },
    {
        "$defs": {"small": {"type": "array", "items": _SMALL, "uniqueItems": True}},
        "type": "array",
        "items": _SMALL,
        "minItems": 5,
        "uniqueItems": True,
    },
    {
        "$defs": {
            "small": {
                "type": "object",
                "properties": {"c": {"type": "array", "items": _SMALL, "minItems": 3}},
                "additionalProperties": False,
            }
        },
        "type": "array",
        "items": _SMALL,
        "minItems": 3,
        "uniqueItems": True,
    },
]


@pytest.mark.parametrize("schema", _TREES)
def test_the_bound_of_different_items_is_kept(schema: dict[str, Any], letters: Vocabulary) -> None:
    grammar = compile_json_schema(schema, letters, whitespace="single")
    for seed in range(examples(20)):
        text = json.loads(finish(grammar.matcher(), random.Random(seed), b""))
        jsonschema.validate(text, schema)


def test_trees_of_too_few_different_values_are_refused(letters: Vocabulary) -> None:
    twins = {"type": "array", "items": _SMALL, "uniqueItems": True, "minItems": 2}
    schema = {"$defs": {"small": {"anyOf": [{"type": "null"}, twins]}}, "$ref": "#/$defs/small"}
    with pytest.raises(GrammarError, match="different values") as caught:
        compile_json_schema(schema, letters)
    assert caught.value.pointer == "/$defs/small"
