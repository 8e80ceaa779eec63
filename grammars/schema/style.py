"""How JSON is written: whitespace and spelling, as pieces of the native builder."""

from __future__ import annotations

import json
from typing import Any, Literal

from sglite.grammars._native import Builder
from sglite.grammars.lowering import Spelling, lower_full
from sglite.grammars.regex_syntax import parse, text

PropertyOrder = Literal["declared", "any"]
Whitespace = Literal["single", "compact", "flexible"]
StringSpelling = Literal["canonical", "any"]

MAX_RUN = 32
"""Whitespace characters in a row under "flexible"."""


class Style:
    """The pieces of JSON text under one choice of options; each is an expression."""

    def __init__(
        self,
        builder: Builder,
        order: PropertyOrder,
        whitespace: Whitespace,
        spelling: StringSpelling,
    ) -> None:
        self.builder = builder
        self.order = order
        self.any_spelling = spelling == "any"
        self.inside = Spelling.JSON_ANY if self.any_spelling else Spelling.JSON_CANONICAL
        space = builder.literal(b" " if whitespace == "single" else b"")
        run = builder.literal(b"")
        if whitespace == "flexible":
            run = space = builder.repeat(self.pattern("[ \\t\\n\\r]"), 0, MAX_RUN)
        self.comma = self._separator(b",", run, space, whitespace)
        self.colon = self._separator(b":", run, space, whitespace)
        self.open_object = builder.sequence([builder.literal(b"{"), run])
        self.close_object = builder.sequence([run, builder.literal(b"}")])
        self.open_array = builder.sequence([builder.literal(b"["), run])
        self.close_array = builder.sequence([run, builder.literal(b"]")])

    def _separator(self, mark: bytes, run: int, space: int, whitespace: Whitespace) -> int:
        if whitespace == "flexible":
            return self.builder.sequence([run, self.builder.literal(mark), space])
        return self.builder.literal(mark + (b" " if whitespace == "single" else b""))

    def pattern(self, pattern: str) -> int:
        """Text outside of strings that matches in full."""
        return lower_full(self.builder, parse(pattern), Spelling.UTF8)

    def quoted(self, content: int) -> int:
        """A string with the content of an expression in the spelling `inside`."""
        quote = self.builder.literal(b'"')
        return self.builder.sequence([quote, content, quote])

    def string(self, value: str) -> int:
        """One string: a key or a listed value."""
        if self.any_spelling:
            return self.quoted(lower_full(self.builder, text(value), self.inside))
        return self.builder.literal(json.dumps(value, ensure_ascii=False).encode())

    def scalar(self, value: Any) -> int:
        """A listed null, boolean, number or string."""
        if isinstance(value, str):
            return self.string(value)
        written = json.dumps(value)
        if isinstance(value, float) and value.is_integer() and "e" not in written:
            written = written.removesuffix(".0")
        if self.any_spelling and isinstance(value, int | float) and not isinstance(value, bool):
            return self._any_number(written)
        return self.builder.literal(written.encode())

    def _any_number(self, written: str) -> int:
        """A number in its own spelling and with zeros at the end of its fraction."""
        if "e" in written:
            return self.builder.literal(written.encode())
        whole, _, fraction = written.partition(".")
        fraction = fraction.rstrip("0")
        sign = "-?" if whole in ("0", "-0") and not fraction else ""
        body = whole.removeprefix("-") if sign else whole
        tail = rf"\.{fraction}0*" if fraction else r"(?:\.0+)?"
        return self.pattern(f"{sign}{body}{tail}")
