"""Quotes: the texts that stand in a document, word for word."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sglite.errors import GrammarError
from sglite.grammars import _native
from sglite.grammars.matcher import Grammar
from sglite.grammars.refusals import refusals
from sglite.grammars.vocabulary import Vocabulary

KEYWORD = "x-sglite-quote"
"""The keyword of a schema whose strings are quotes."""


@dataclass(frozen=True, slots=True)
class Quote:
    """The passages of a document: its substrings that are not empty.

    `whole_words`: those that begin and end with no white space and cut no word in two.
    `min_length` and `max_length` are counted in characters. As a keyword of a JSON Schema:
    `{"type": "string", "x-sglite-quote": {"document": TEXT, "whole_words": BOOL}}`, beside
    `minLength` and `maxLength`.
    """

    document: str
    whole_words: bool = False
    min_length: int = 1
    max_length: int | None = None

    def __repr__(self) -> str:
        words = ", whole words" if self.whole_words else ""
        return f"<quote from {len(self.document)} characters{words}>"

    def places(self, text: str) -> tuple[int, int]:
        """Where `text` first stands in the document as such a passage, in characters, and how often
        it does; -1 and 0 where it does not. Its length is not looked at."""
        return _native.places_of_quote(text.encode(), self.document.encode(), self.whole_words)

    @staticmethod
    def of_keyword(said: Any) -> Quote:
        """The quote that a keyword of a schema says, which a grammar was made of."""
        return Quote(said["document"], said.get("whole_words", False))

    def schema(self) -> dict[str, Any]:
        """The keywords that a string needs to be such a quote."""
        lengths: dict[str, int] = {}
        if self.min_length > 1:
            lengths["minLength"] = self.min_length
        if self.max_length is not None:
            lengths["maxLength"] = self.max_length
        return {**lengths, KEYWORD: {"document": self.document, "whole_words": self.whole_words}}


def without_quotes(schema: Any) -> Any:
    """A schema without what others do not know: its strings may be anything."""
    if isinstance(schema, list):
        return [without_quotes(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: without_quotes(part) for key, part in schema.items() if key != KEYWORD}


def compile_quote(quote: Quote, vocab: Vocabulary) -> Grammar:
    """The grammar of the passages of a document.

    Raises GrammarError for a document without such a passage, for one of more than 4,000,000
    bytes as UTF-8, and for a vocabulary without a token for one of its single bytes.
    """

    def compile_now() -> Grammar:
        high = -1 if quote.max_length is None else quote.max_length
        native = _native.compile_quote(
            quote.document.encode(), quote.whole_words, quote.min_length, high, vocab.native
        )
        return Grammar(native, vocab)

    with refusals("document"):
        try:
            return vocab.compiled(("quote", quote), compile_now)
        except _native.Refused as error:
            if error.reason != "nothing can match":
                raise
            most = "" if quote.max_length is None else f" and at most {quote.max_length}"
            raise GrammarError(
                f"the document of {len(quote.document)} characters has no passage of at least "
                f"{quote.min_length}{most} characters"
            ) from None
