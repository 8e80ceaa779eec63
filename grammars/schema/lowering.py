"""A schema as one expression inside of a larger grammar."""

from __future__ import annotations

import json
from typing import Any

from sglite.errors import GrammarError
from sglite.grammars._native import Builder
from sglite.grammars.schema.compiler import Compiler
from sglite.grammars.schema.references import Document
from sglite.grammars.schema.style import PropertyOrder, StringSpelling, Style, Whitespace


def lower_schema(
    builder: Builder,
    text: str,
    property_order: PropertyOrder = "declared",
    whitespace: Whitespace = "single",
    spelling: StringSpelling = "canonical",
) -> int:
    """The expression of the JSON texts whose value satisfies the schema in `text`."""
    style = Style(builder, property_order, whitespace, spelling)
    return Compiler(Document(_load(text)), builder, style).run()


def _load(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise GrammarError(f"the schema is not JSON: {error}") from None
