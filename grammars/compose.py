"""Grammars put together from parts: texts, patterns, schemas, grammar texts, and captures by name.

    part = sequence(
        "<think>", text_until("</think>", name="thoughts"),
        choice(capture("answer", json_schema(Answer)), "I do not know."),
    )
    grammar = compile_parts(part, vocab)
    grammar.captures(b'<think>hm</think>{"value": 1}')
    # {"thoughts": [b"hm"], "answer": [b'{"value": 1}']}

A plain string is a part that stands for itself, a compiled grammar one that stands for its texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from sglite.errors import GrammarError
from sglite.grammars import _native
from sglite.grammars.matcher import Grammar, build
from sglite.grammars.parts import (
    Capture,
    Choice,
    Part,
    Regex,
    Repeat,
    Rules,
    Schema,
    Sequence,
    Until,
    lower,
    names,
)
from sglite.grammars.quotes import Quote
from sglite.grammars.reading import Reader
from sglite.grammars.refusals import refusals
from sglite.grammars.schema import PropertyOrder, StringSpelling, Whitespace, schema_text
from sglite.grammars.text import GrammarFormat, read_grammar
from sglite.grammars.vocabulary import Vocabulary

__all__ = [
    "ComposedGrammar",
    "Part",
    "capture",
    "capture_names",
    "choice",
    "compile_parts",
    "grammar",
    "json_schema",
    "quote",
    "read_captures",
    "regex",
    "repeat",
    "sequence",
    "text_until",
]

_MAX_MARKER = 1000


def sequence(*parts: Part) -> Part:
    """One after another; of nothing: the empty text."""
    return Sequence(_checked(parts))


def choice(*parts: Part) -> Part:
    """One of the parts. Raises ValueError for none."""
    if not parts:
        raise ValueError("a choice needs at least one part")
    return Choice(_checked(parts))


def repeat(part: Part, low: int = 0, high: int | None = None) -> Part:
    """A part `low` to `high` times; None: without end. Raises ValueError for other counts."""
    if low < 0 or (high is not None and high < low):
        raise ValueError(f"a repetition needs 0 <= low <= high, got {low} and {high}")
    return Repeat(_checked((part,))[0], low, high)


def text_until(marker: str, name: str | None = None) -> Part:
    """Any text up to the first `marker`, and the marker. With `name`, the text without the marker
    is a capture. Raises ValueError for an empty marker or one of more than 1000 characters."""
    if not 0 < len(marker) <= _MAX_MARKER:
        raise ValueError(f"a marker has 1 to {_MAX_MARKER} characters")
    return Until(marker, name)


def regex(pattern: str) -> Part:
    """The texts that `re.fullmatch(pattern, text)` accepts, as `compile_regex` takes it."""
    return Regex(pattern)


def quote(
    document: str, whole_words: bool = False, min_length: int = 1, max_length: int | None = None
) -> Part:
    """The passages of a document, as `Quote` says.

    Raises TypeError for a document that is no text, ValueError for an empty one and for lengths
    that exclude each other.
    """
    if not isinstance(document, str):
        raise TypeError(f"a quote is taken from a text, got {type(document).__name__}")
    if not document:
        raise ValueError("the document to quote from is empty")
    for name, value in (("min_length", min_length), ("max_length", max_length)):
        if value is not None and (type(value) is not int or value < 1):
            raise ValueError(f"{name} is a whole number of at least 1, got {value!r}")
    if max_length is not None and max_length < min_length:
        raise ValueError(f"max_length={max_length} is below min_length={min_length}")
    return Quote(document, bool(whole_words), min_length, max_length)


def json_schema(
    schema: Any,
    property_order: PropertyOrder = "declared",
    whitespace: Whitespace = "single",
    spelling: StringSpelling = "canonical",
) -> Part:
    """The JSON texts whose value satisfies a schema, all as in `compile_json_schema`."""
    with refusals("schema"):
        return Schema(schema_text(schema), property_order, whitespace, spelling)


def grammar(
    text: str | Path,
    start: str = "root",
    format: GrammarFormat | None = None,
    rules: Mapping[str, Part] | None = None,
) -> Part:
    """The texts of a grammar, all as in `compile_grammar`. `rules`: parts that the text may use
    as rules by these names; they hold no captures, since a rule may be used in a recursion."""
    with refusals("grammar"):
        given = tuple((rules or {}).items())
        for name, part in given:
            if names(_checked((part,))[0]):
                raise GrammarError(f"rule {name!r} of a grammar holds a capture; capture outside")
        return Rules(read_grammar(text, format, frozenset(rules or ())), start, given)


def capture(name: str, part: Part) -> Part:
    """A part whose texts are found again under `name`."""
    return Capture(name, _checked((part,))[0])


class ComposedGrammar(Grammar):
    """A grammar that knows its parts."""

    def __init__(self, native: _native.Grammar, vocabulary: Vocabulary, part: Part) -> None:
        super().__init__(native, vocabulary)
        self._part = part

    def captures(self, text: bytes) -> dict[str, list[bytes]]:
        """What each name captured in a match, in the order of the text; [] for those that stand in
        no part of it.

        Where a text can be read in several ways, every part, from left to right, reads as much as
        it can, and of alternatives for the same text the first one counts. Raises ValueError for
        a text that is no match.
        """
        spans = Reader(text, self.vocabulary, compile_parts).read(self._part)
        if spans is None:
            raise ValueError("captures are taken from a whole match, and the text is none")
        found: dict[str, list[bytes]] = {name: [] for name in names(self._part)}
        for name, begin, end in spans:
            found[name].append(text[begin:end])
        return found


def compile_parts(part: Part, vocab: Vocabulary) -> ComposedGrammar:
    """The grammar of the texts of a part. Raises GrammarError as the compilers of its parts do."""

    def compile_now() -> ComposedGrammar:
        builder = _native.Builder(vocab.native)
        built = build(builder, lower(builder, vocab, part), vocab)
        return ComposedGrammar(built._native, vocab, part)

    with refusals("composition"):
        compiled = vocab.compiled(("parts", part), compile_now)
    assert isinstance(compiled, ComposedGrammar)
    return compiled


def capture_names(part: Part) -> list[str]:
    """The names of all captures in a part, in their order, each as often as it is there."""
    return names(part)


def read_captures(part: Part, text: bytes) -> dict[str, list[bytes]]:
    """`ComposedGrammar.captures` without the vocabulary of a model. Raises GrammarError for a part
    that is a compiled grammar, since that one knows its vocabulary alone."""
    return compile_parts(part, _single_bytes()).captures(text)


@cache
def _single_bytes() -> Vocabulary:
    return Vocabulary.from_tokens([bytes([b]) for b in range(256)] + [b"<end>"], [256], [256])


def _checked(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    for part in parts:
        if not isinstance(part, Part):
            raise TypeError(f"{part!r} is no part of a grammar; wrap it, or pass a string")
    return parts
