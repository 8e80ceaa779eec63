"""JSON Schema to grammars. Exact, or refused with the pointer of what cannot be."""

from __future__ import annotations

import json
from typing import Any, Literal, get_args

from sglite.errors import GrammarError
from sglite.grammars import _native
from sglite.grammars.matcher import Grammar
from sglite.grammars.refusals import refusals
from sglite.grammars.vocabulary import Vocabulary

PropertyOrder = Literal["declared", "any"]
Whitespace = Literal["single", "compact", "flexible"]
StringSpelling = Literal["canonical", "any"]


def compile_json_schema(
    schema: Any,
    vocab: Vocabulary,
    property_order: PropertyOrder = "declared",
    whitespace: Whitespace = "single",
    spelling: StringSpelling = "canonical",
) -> Grammar:
    """The grammar of the JSON texts whose value satisfies `schema`.

    schema: a dict or bool, JSON text of one, a pydantic model, or any type that pydantic can
    describe. property_order "declared": declared properties in their order, extra ones behind;
    "any": every order. whitespace "single": as `json.dumps` writes, "compact": none, "flexible":
    runs of up to 32 JSON whitespace characters between the tokens of JSON. spelling "canonical":
    strings as `json.dumps(ensure_ascii=False)` writes them, integers without fraction or exponent;
    "any": every JSON spelling of strings and numbers. `$schema` selects a draft (4 to 2020-12);
    without it, 2020-12. No key stands twice. What is enforced: `explain`.

    Raises GrammarError, with the JSON pointer of the place, for what cannot be decided while the
    text is written (never ignored), for wrong values of keywords, for a schema that no value
    satisfies, and past the limits on size, depth and work; ValueError for an unknown option.
    """
    style = _style(property_order, whitespace, spelling)
    with refusals("schema"):
        text = schema_text(schema)
        return vocab.compiled(
            ("json_schema", text, *style),
            lambda: Grammar(_native.json_schema(text, vocab.native, *style), vocab),
        )


def explain(
    schema: Any,
    property_order: PropertyOrder = "declared",
    whitespace: Whitespace = "single",
    spelling: StringSpelling = "canonical",
) -> str:
    """What a grammar of `schema` enforces and how, for people to read.

    A line per schema that can matter, behind its JSON pointer ("#": the whole): what its values
    must be, whether further keys may stand in its objects, and which of its keywords are
    annotations, formats that JSON Schema does not define among them. Schemas that no value comes
    to are not listed. The last line says how the text is written under these options.

    Raises as `compile_json_schema` does.
    """
    style = _style(property_order, whitespace, spelling)
    with refusals("schema"):
        places = _native.explain_json_schema(schema_text(schema), *style)
    return "\n".join(f"{pointer or '#'}: {how}" for pointer, how in places)


def _style(order: str, whitespace: str, spelling: str) -> tuple[bool, int, bool]:
    for name, value, known in (
        ("property_order", order, PropertyOrder),
        ("whitespace", whitespace, Whitespace),
        ("spelling", spelling, StringSpelling),
    ):
        if value not in get_args(known):
            raise ValueError(f"{name} must be one of {get_args(known)}, got {value!r}")
    return order == "declared", get_args(Whitespace).index(whitespace), spelling == "any"


def schema_text(schema: Any) -> str:
    """The JSON text of a schema in any of the forms that `compile_json_schema` takes."""
    if isinstance(schema, str):
        return schema
    if not isinstance(schema, dict | bool):
        from pydantic import TypeAdapter
        from pydantic.errors import PydanticUserError

        try:
            schema = TypeAdapter(schema).json_schema()
        except PydanticUserError as error:
            raise GrammarError(f"pydantic has no JSON schema for {schema!r}: {error}") from error
    try:
        return json.dumps(schema)
    except (TypeError, ValueError) as error:
        raise GrammarError(f"the schema is not JSON: {error}") from error
