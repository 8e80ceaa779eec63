"""Quotes: text that stands word for word in a document of the user's.

    s += "Evidence: " + sgl.gen("evidence", sgl.quote(doc, whole_words=True))

    class Claim(BaseModel):
        text: str
        evidence: Annotated[str, sgl.quote(doc, whole_words=True)]

Where the quote stands: `row.meta("evidence").span`, `row.meta("claim").fields["/evidence"].source`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from sglite.grammars import compose
from sglite.grammars.quotes import Quote as QuotePart
from sglite.language.composition import Pattern, named


@dataclass(frozen=True, slots=True, repr=False)
class Quote(Pattern):
    """A pattern that is also a type of a hole or a field, and an annotation of `str`."""

    quoted: QuotePart | None = None

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        text = str if source is self else source  # it may also stand alone, in place of str
        return core_schema.no_info_after_validator_function(self._check, handler(text))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        found = handler(schema)
        if found.get("type") != "string":
            raise TypeError("sgl.quote() annotates str: Annotated[str, sgl.quote(document)]")
        assert self.quoted is not None
        return {**found, **self.quoted.schema()}

    def _check(self, value: str) -> str:
        assert self.quoted is not None
        if not value or value not in self.quoted.document:
            raise PydanticCustomError("quote", "the text does not stand in the document")
        return value


def quote(
    document: str,
    *,
    whole_words: bool = False,
    min_length: int = 1,
    max_length: int | None = None,
    name: str | None = None,
) -> Pattern:
    """Text that stands in `document`, character for character, and is not empty.

    Take it as the type of a hole, `gen("x", sgl.quote(doc))`; as the type of a field or its
    annotation, `Annotated[str, sgl.quote(doc)]`; or as a part of a pattern. `whole_words`: the
    quote begins and ends with no white space and cuts no word in two (in scripts without spaces
    between words it may be cut anywhere). `min_length` and `max_length` are in characters. `name`
    makes a variable of it where it is a part of a pattern.

    Raises TypeError for a document that is no text, ValueError for an empty one and for lengths
    that exclude each other. What the document does not have (a passage so long, one word) is a
    GrammarError of the hole, as is a document of more than 4,000,000 bytes.
    """
    part = compose.quote(document, whole_words, min_length, max_length)
    assert isinstance(part, QuotePart)
    return named(name, Quote(part, quoted=part))
