"""Values that are likely to be valid against a schema, and neighbours of them that may not be."""

from __future__ import annotations

import random
from typing import Any

from schemas import CONSTANTS, KEYS, SCALARS

WORDS = ["", "a", "b", "z", "ab", "ba", "aa", "aab", "é", "é1", "1", "z1", "0.0.0.0"]
NUMBERS: list[Any] = [0, 1, -1, 2, 3, 6, 10, 11, 12, 0.5, 1.5, 0.01, -0.5, 1.25, 100]
_DEPTH = 4


def instances(schema: Any, rng: random.Random, count: int) -> list[Any]:
    """`count` values: guesses from the schema, constants, and mutations of both."""
    made: list[Any] = []
    for _ in range(count):
        kind = rng.random()
        if kind < 0.55 or not made:
            made.append(_guess(schema, schema, rng, _DEPTH))
        elif kind < 0.7:
            made.append(rng.choice(CONSTANTS))
        else:
            made.append(mutated(rng.choice(made), rng))
    return made


def mutated(value: Any, rng: random.Random) -> Any:
    """The value with one place changed: replaced, dropped, doubled, moved."""
    if isinstance(value, list) and value and rng.random() < 0.8:
        i = rng.randrange(len(value))
        changed = value[:i] + rng.choice([[], value[i : i + 1] * 2]) + value[i + 1 :]
        inner = [*value[:i], mutated(value[i], rng), *value[i + 1 :]]
        return rng.choice([changed, inner, inner, rng.sample(value, len(value))])
    if isinstance(value, dict) and rng.random() < 0.8:
        made = dict(value)
        if made and rng.random() < 0.7:
            key = rng.choice(list(made))
            if rng.random() < 0.4:
                del made[key]
            else:
                made[key] = mutated(made[key], rng)
        else:
            made[rng.choice([*KEYS, *WORDS])] = rng.choice(SCALARS)
        return made
    if isinstance(value, bool) or value is None or rng.random() < 0.3:
        return rng.choice(CONSTANTS)
    if isinstance(value, str):
        return rng.choice([value + "a", value[:-1], "b" + value, value[::-1]])
    if isinstance(value, int | float):
        return value + rng.choice([1, -1, 0.5, 0.25])
    return rng.choice(CONSTANTS)


def _guess(schema: Any, root: Any, rng: random.Random, depth: int) -> Any:
    if not isinstance(schema, dict) or depth <= 0 or rng.random() < 0.05:
        return rng.choice(SCALARS if depth <= 0 else CONSTANTS)
    for keyword in ("$ref", "$dynamicRef"):
        if keyword in schema:
            target = _target(schema[keyword], root)
            rest = {k: v for k, v in schema.items() if k != keyword}
            return _guess(_joined(target, rest), root, rng, depth - 1)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return rng.choice(schema["enum"])
    branches = [(k, s) for k in ("allOf", "anyOf", "oneOf") for s in schema.get(k, ())]
    branches += [(k, schema[k]) for k in ("if", "then", "else") if k in schema]
    if branches and rng.random() < 0.9:
        dropped, chosen = rng.choice(branches)
        rest = {k: v for k, v in schema.items() if k != dropped}
        return _guess(_joined(chosen, rest), root, rng, depth)
    kind = _type(schema, rng)
    if kind == "object":
        return _object(schema, root, rng, depth)
    if kind == "array":
        return _array(schema, root, rng, depth)
    if kind == "number":
        near = [schema[k] for k in ("minimum", "maximum", "multipleOf") if k in schema]
        near += [schema[k] for k in ("exclusiveMinimum", "exclusiveMaximum") if k in schema]
        near = [n for n in near if not isinstance(n, bool)]
        if near and rng.random() < 0.8:
            return rng.choice(near) * rng.choice([1, 1, 2]) + rng.choice([0, 0, 1, -1, 0.5])
        return rng.choice(NUMBERS)
    return rng.choice(WORDS if kind == "string" else [None, True, False])


def _joined(one: Any, two: Any) -> Any:
    return {**one, **two} if isinstance(one, dict) else two


def _target(reference: str, root: Any) -> Any:
    if reference.endswith("tree"):
        return root["$defs"]["tree"]
    place = root
    for name in reference.partition("#")[2].split("/")[1:]:
        place = place[name.replace("~1", "/")]
    return place


def _type(schema: dict[str, Any], rng: random.Random) -> str:
    types = schema.get("type", [])
    if isinstance(types, str):
        types = [types]
    if not types:
        words = " ".join(schema)
        types = [
            kind
            for kind, hints in (
                ("object", ("ropert", "required", "depend")),
                ("array", ("tems", "ontains")),
                ("string", ("Length", "pattern", "format")),
                ("number", ("imum", "multiple")),
            )
            if any(hint in words for hint in hints)
        ]
    kind: str = rng.choice(types or ["object", "array", "string", "number", "null"])
    return "number" if kind == "integer" else kind


def _object(schema: dict[str, Any], root: Any, rng: random.Random, depth: int) -> Any:
    named = schema.get("properties", {})
    wanted = [k for k in schema.get("required", ()) if rng.random() < 0.95]
    wanted += [k for k in named if rng.random() < 0.5]
    wanted += [
        k
        for keyword in ("dependentRequired", "dependencies")
        for key, needed in schema.get(keyword, {}).items()
        if isinstance(needed, list)
        for k in [key, *needed]
        if rng.random() < 0.5
    ]
    for _ in range(rng.choice([0, 0, 1, 2])):
        wanted.append(rng.choice([*KEYS, "aa", "", "é"]))
    while len(set(wanted)) < schema.get("minProperties", 0) and rng.random() < 0.95:
        wanted.append(rng.choice([*KEYS, *WORDS]))
    wanted = list(dict.fromkeys(wanted))[: int(schema.get("maxProperties", 9))]
    rng.shuffle(wanted)
    others = [
        *schema.get("patternProperties", {}).values(),
        *(schema[k] for k in ("additionalProperties", "unevaluatedProperties") if k in schema),
    ]
    return {
        k: _guess(named.get(k, rng.choice(others or [True])), root, rng, depth - 1)
        for k in wanted
    }  # fmt: skip


def _array(schema: dict[str, Any], root: Any, rng: random.Random, depth: int) -> Any:
    items = schema.get("items", True)
    first = schema.get("prefixItems", items if isinstance(items, list) else [])
    others = [schema[k] for k in ("contains", "unevaluatedItems", "additionalItems") if k in schema]
    if not isinstance(items, list):
        others += [items] * 2
    low = max(int(schema.get("minItems", 0)), int(schema.get("minContains", 0)))
    high = min(int(schema.get("maxItems", 4)), 4)
    length = rng.randint(min(low, high), max(low, high))
    return [
        _guess(first[i] if i < len(first) else rng.choice(others or [True]), root, rng, depth - 1)
        for i in range(length)
    ]  # fmt: skip
