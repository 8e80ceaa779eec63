"""Parts of composed grammars: what they are, and their expressions in the native builder."""

from __future__ import annotations

from dataclasses import dataclass

from sglite.errors import GrammarError
from sglite.grammars._native import Builder
from sglite.grammars.matcher import Grammar
from sglite.grammars.quotes import Quote, compile_quote
from sglite.grammars.regex import compile_regex
from sglite.grammars.schema import (
    PropertyOrder,
    StringSpelling,
    Whitespace,
    compile_json_schema,
)
from sglite.grammars.text import ReadGrammar
from sglite.grammars.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class Sequence:
    """One after another."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of them."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """`low` to `high` times; None: without end."""

    part: Part
    low: int
    high: int | None


@dataclass(frozen=True, slots=True)
class Until:
    """Any text up to the first marker, and the marker; `name` captures what is before it."""

    marker: str
    name: str | None


@dataclass(frozen=True, slots=True)
class Regex:
    """What a pattern matches in full."""

    pattern: str


@dataclass(frozen=True, slots=True)
class Schema:
    """The JSON texts of a schema."""

    text: str
    property_order: PropertyOrder
    whitespace: Whitespace
    spelling: StringSpelling


@dataclass(frozen=True, slots=True)
class Rules:
    """What rule `start` of a grammar text derives; `rules` are parts by the names of rules."""

    text: ReadGrammar
    start: str
    rules: tuple[tuple[str, Part], ...]


@dataclass(frozen=True, slots=True)
class Capture:
    """What a part reads, under a name."""

    name: str
    part: Part


Part = str | Grammar | Sequence | Choice | Repeat | Until | Regex | Quote | Schema | Rules | Capture
"""A string stands for itself, a compiled grammar for its texts."""


def names(part: Part) -> list[str]:
    """The names of all captures in a part."""
    match part:
        case Capture(name, inner):
            return [name, *names(inner)]
        case Until(_, str(name)):
            return [name]
        case Sequence(parts) | Choice(parts):
            return [name for inner in parts for name in names(inner)]
        case Repeat(inner):
            return names(inner)
        case _:
            return []


def lower(builder: Builder, vocab: Vocabulary, part: Part) -> int:
    """The expression of a part."""
    match part:
        case str():
            return builder.literal(part.encode())
        case Sequence(parts):
            return builder.sequence([lower(builder, vocab, p) for p in parts])
        case Choice(parts):
            return builder.choice([lower(builder, vocab, p) for p in parts])
        case Repeat(inner, low, high):
            return builder.repeat(lower(builder, vocab, inner), low, -1 if high is None else high)
        case Until(marker):
            return builder.until(marker.encode())
        case Regex(pattern):
            return builder.embed(compile_regex(pattern, vocab)._native)
        case Quote():
            return builder.embed(compile_quote(part, vocab)._native)
        case Schema(text, property_order, whitespace, spelling):
            schema = compile_json_schema(text, vocab, property_order, whitespace, spelling)
            return builder.embed(schema._native)
        case Grammar():
            if part.vocabulary is not vocab:
                raise GrammarError("a part is a grammar that was compiled for another vocabulary")
            return builder.embed(part._native)
        case Rules(text, start, rules):
            return text.lower(
                builder, vocab, start, {n: lower(builder, vocab, p) for n, p in rules}
            )
        case Capture(_, inner):
            return lower(builder, vocab, inner)
