"""Small, nasty JSON Schemas for property tests: every assertion keyword, nested and combined.

Keys come from a tiny alphabet, patterns and bounds from tiny sets, so that they meet each other and
so that the values which decide are short. References into a value's own place never form a circle.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

Schema = st.SearchStrategy[Any]

KEYS = ["a", "b", "ab", "z"]
PATTERNS = [
    "^a",
    "b$",
    "^[ab]*$",
    "^$",
    "a|z",
    "^.$",
    "^(?!z)",
    "^(?=.*b)a",
    "[^a]",
    "^\\w{2}",
    "é",
]
SCALARS: list[Any] = [None, True, False, 0, 1, 1.0, -1, 2, 0.5, "", "a", "b", "ab", "é", "1"]
CONSTANTS: list[Any] = [
    *SCALARS,
    [], [1], [True], [1, 1], ["a", "b"], [[]], [None, 0.5],
    {}, {"a": 1}, {"a": True}, {"b": 1, "a": "a"}, {"z": []}, {"ab": {"a": 0}},
]  # fmt: skip
TYPES = ["null", "boolean", "string", "integer", "number", "array", "object"]

counts = st.integers(0, 3)
bounds = st.sampled_from([-1, 0, 0.5, 1, 1.0, 1.5, 2, 10, 12])
keys = st.lists(st.sampled_from(KEYS), unique=True, max_size=3)


def some(**optional: Schema) -> Schema:
    """A schema of one to four of the keywords (a leading `_` stands for `$`)."""
    named = {name.replace("_", "$"): strategy for name, strategy in optional.items()}
    chosen = st.lists(st.sampled_from(sorted(named)), min_size=1, max_size=4, unique=True)
    return chosen.flatmap(lambda names: st.fixed_dictionaries({n: named[n] for n in names}))


def by_key(parts: Schema, most: int = 2) -> Schema:
    return st.dictionaries(st.sampled_from(KEYS), parts, min_size=1, max_size=most)


numbers = some(
    type=st.sampled_from(["integer", "number"]),
    minimum=bounds,
    maximum=bounds,
    exclusiveMinimum=bounds,
    exclusiveMaximum=bounds,
    multipleOf=st.sampled_from([1, 2, 3, 0.5, 1.5, 0.01]),
)
texts = some(
    type=st.just("string"),
    minLength=counts,
    maxLength=counts,
    pattern=st.sampled_from(PATTERNS),
    format=st.sampled_from(["ipv4", "nobody-knows"]),
)
constants = st.lists(st.sampled_from(CONSTANTS), min_size=1, max_size=4)
shallow_objects = some(
    type=st.just("object"),
    required=keys,
    minProperties=counts,
    maxProperties=counts,
    dependentRequired=by_key(keys),
)
shallow_arrays = some(
    type=st.just("array"), minItems=counts, maxItems=counts, uniqueItems=st.booleans()
)
leaves: Schema = st.one_of(
    st.booleans(),
    st.sampled_from([{"type": t} for t in TYPES]),
    st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True).map(
        lambda types: {"type": types}
    ),
    constants.map(lambda values: {"enum": values}),
    st.sampled_from([{"const": value} for value in CONSTANTS]),
    numbers,
    texts,
    shallow_objects,
    shallow_arrays,
)

below = st.sampled_from(
    [
        {"$ref": "#"},
        {"$ref": "#/$defs/x"},
        {"$ref": "#/$defs/y~1z"},
        {"$dynamicRef": "#node"},
        {"$ref": "http://example.org/tree"},
        {"$ref": "#/$defs/x", "minLength": 1, "minimum": 1, "minItems": 1},
    ]
)
"""References for the places of parts (members, items): what they lead to sees a smaller value."""


def objects(inner: Schema) -> Schema:
    part = inner | below
    return some(
        type=st.sampled_from(["object", ["object", "null"]]),
        properties=by_key(part, 3),
        patternProperties=st.dictionaries(st.sampled_from(PATTERNS), part, min_size=1, max_size=2),
        additionalProperties=part,
        required=keys,
        propertyNames=inner | texts,
        minProperties=counts,
        maxProperties=counts,
        dependentRequired=by_key(keys),
        dependentSchemas=by_key(inner),
        dependencies=by_key(inner | keys),
        unevaluatedProperties=part,
    )


def arrays(inner: Schema) -> Schema:
    part = inner | below
    counted = st.fixed_dictionaries(
        {"contains": part},
        optional={
            "minContains": counts,
            "maxContains": counts,
            "maxItems": counts,
            "items": part,
            "uniqueItems": st.booleans(),
            "unevaluatedItems": part,
        },
    )
    return counted | some(
        type=st.just("array"),
        items=part,
        prefixItems=st.lists(part, min_size=1, max_size=2),
        minItems=counts,
        maxItems=counts,
        contains=part,
        uniqueItems=st.booleans(),
        unevaluatedItems=part,
    )


def branches(inner: Schema) -> Schema:
    """Logic over schemas of all kinds, and over several that speak of the same type."""
    kinds = [inner, numbers, texts, shallow_objects, objects(inner), arrays(inner)]
    return st.sampled_from(kinds).flatmap(_logic)


def _logic(kind: Schema) -> Schema:
    several = st.lists(kind, min_size=1, max_size=3)
    condition = st.fixed_dictionaries({"if": kind}, optional={"then": kind, "else": kind})
    return condition | some(
        allOf=several,
        anyOf=several,
        oneOf=several,
        _ref=st.just("#/$defs/leaf"),
        **{"not": kind},
        properties=by_key(kind | below),
        prefixItems=st.lists(kind, min_size=1, max_size=2),
        unevaluatedProperties=st.booleans() | kind,
        unevaluatedItems=st.booleans() | kind,
    )


bodies: Schema = st.recursive(
    leaves, lambda inner: st.one_of(objects(inner), arrays(inner), branches(inner)), max_leaves=7
)


@st.composite
def schemas(draw: st.DrawFn) -> Any:
    """A schema of draft 2020-12 with what its references name."""
    body = draw(bodies)
    if isinstance(body, bool):
        return body
    return body | _definitions(draw, str(body))


def _definitions(draw: st.DrawFn, body: str) -> dict[str, Any]:
    if "Ref'" not in body and "$ref" not in body:
        return {}
    defined: dict[str, Any] = {
        "leaf": draw(leaves),
        "x": draw(bodies),
        "y/z": draw(leaves),
        "tree": {"$id": "http://example.org/tree", "$dynamicAnchor": "node",
                 "items": {"$dynamicRef": "#node"}, **draw(arrays(leaves))},
    }  # fmt: skip
    # Inside of a resource of its own, "#" and its definitions are other ones.
    defined["tree"]["$defs"] = {name: defined[name] for name in ("leaf", "y/z")}
    defined["tree"]["$defs"]["x"] = {"type": "null"}
    return {"$id": "http://example.org/root", "$dynamicAnchor": "node", "$defs": defined}


@st.composite
def old_schemas(draw: st.DrawFn) -> Any:
    """A schema of draft 4, 6 or 7, with the keywords that mean something else there."""
    draft = draw(st.sampled_from(["04", "06", "07"]))
    simple: Schema = st.one_of(
        st.sampled_from([{"type": t} for t in TYPES]),
        st.lists(st.sampled_from(CONSTANTS), min_size=1, max_size=3).map(lambda v: {"enum": v}),
        some(minLength=counts, maxLength=counts, pattern=st.sampled_from(PATTERNS)),
        st.just({"$ref": "#/definitions/x"}),
        # Beside `$ref` nothing counts in these drafts.
        st.just({"$ref": "#/definitions/x", "type": "null", "maxLength": 0}),
    )
    if draft == "04":
        limits = some(minimum=bounds, maximum=bounds) | st.fixed_dictionaries(
            {
                "minimum": bounds,
                "exclusiveMinimum": st.booleans(),
                "maximum": bounds,
                "exclusiveMaximum": st.booleans(),
            }
        )
    else:
        limits = some(exclusiveMinimum=bounds, exclusiveMaximum=bounds, const=bounds)
        simple |= st.booleans()
    simple |= limits

    def deeper(inner: Schema) -> Schema:
        part = inner | st.just({"$ref": "#"})
        extra = part | st.booleans()
        both = st.lists(inner, min_size=1, max_size=3)
        kinds: dict[str, Any] = {
            "items": part | st.lists(part, min_size=1, max_size=2),
            "additionalItems": extra,
            "dependencies": st.dictionaries(st.sampled_from(KEYS), inner | keys.filter(bool)),
            "properties": st.dictionaries(st.sampled_from(KEYS), part, max_size=2),
            "additionalProperties": extra,
            "required": keys.filter(bool),
            "uniqueItems": st.booleans(),
            "anyOf": both,
            "oneOf": both,
            "not": inner,
        }
        if draft != "04":
            kinds |= {"contains": inner, "propertyNames": inner}
        if draft == "07":
            kinds |= {"if": inner, "then": inner, "else": inner}
        return some(**kinds)

    body = draw(st.recursive(simple, deeper, max_leaves=5))
    if not isinstance(body, dict):
        body = {}
    names = {"$schema": f"http://json-schema.org/draft-{draft}/schema#"}
    return {"allOf": [body], **names, "definitions": {"x": draw(limits)}}
