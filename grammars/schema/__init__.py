"""JSON Schema to grammars. Exact, or refused with the pointer of what cannot be."""

from __future__ import annotations

import json
from typing import Any, get_args

from sglite.errors import GrammarError
from sglite.grammars import _native
from sglite.grammars.matcher import Grammar, build
from sglite.grammars.refusals import refusals
from sglite.grammars.schema.compiler import Compiler
from sglite.grammars.schema.references import Document
from sglite.grammars.schema.style import PropertyOrder, StringSpelling, Style, Whitespace
from sglite.grammars.vocabulary import Vocabulary


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
    "any": every JSON spelling of strings, integers also with a fraction of zeros. Numbers under a
    bound or `multipleOf` have no exponent. `$schema` selects a draft; without it, 2020-12.

    Raises GrammarError, with the JSON pointer of the place, for keywords, formats and combinations
    of them that are not supported (never ignored), for wrong values of keywords, and for a schema
    that no value satisfies; ValueError for an unknown option.
    """
    for name, value, known in (
        ("property_order", property_order, PropertyOrder),
        ("whitespace", whitespace, Whitespace),
        ("spelling", spelling, StringSpelling),
    ):
        if value not in get_args(known):
            raise ValueError(f"{name} must be one of {get_args(known)}, got {value!r}")

    def compile_now() -> Grammar:
        builder = _native.Builder()
        style = Style(builder, property_order, whitespace, spelling)
        root = Compiler(Document(_load(text)), builder, style).run()
        return build(builder, root, vocab)

    with refusals("schema"):
        text = schema_text(schema)
        key = ("json_schema", text, property_order, whitespace, spelling)
        return vocab.compiled(key, compile_now)


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


def _load(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise GrammarError(f"the schema is not JSON: {error}") from None
