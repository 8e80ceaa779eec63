"""Grammar texts in the GBNF format of llama.cpp, as expressions of the native builder.

    root   ::= "{" pair ("," pair)* "}"     rules, alternatives |, groups ( ), repetitions * + ?
    pair   ::= [a-z]+ ":" value             sets [a-z] [^"\\\\], any character .
    value  ::= "\\"" [^"]{1,8} "\\""        {m} {m,} {m,n}; # starts a comment

Recursion is free, also on the left. Knows nothing of JSON or regular expressions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from sglite.errors import GrammarError
from sglite.grammars import _native

_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")
_ESCAPES = {
    "n": 10,
    "r": 13,
    "t": 9,
    "\\": 92,
    '"': 34,
    "[": 91,
    "]": 93,
    "-": 45,
    "^": 94,
    "/": 47,
}
_HEX_LENGTH = {"x": 2, "u": 4, "U": 8}
_MAX_COUNT = 100_000


def lower_gbnf(text: str, builder: _native.Builder, start: str, given: Mapping[str, int]) -> int:
    """The expression of rule `start`. `given`: expressions of rules that the text may use without
    a definition. Raises GrammarError, its pointer "line:column"."""
    return _Reader(text, builder, given).run(start)


class _Reader:
    """One pass over the text; rules are declared when they are first named."""

    def __init__(self, text: str, builder: _native.Builder, given: Mapping[str, int]) -> None:
        self.text = text
        self.builder = builder
        self.given = given
        self.at = 0
        self.rules: dict[str, int] = {}
        self.defined: set[str] = set()
        self.used_at: dict[str, int] = {}

    def run(self, start: str) -> int:
        self.skip(newlines=True)
        while self.at < len(self.text):
            self.definition()
            self.skip(newlines=True)
        for name, place in self.used_at.items():
            if name not in self.defined:
                self.refuse(f"rule {name!r} is used but never defined", place)
        if start not in self.defined:
            self.refuse(f"there is no rule {start!r} to start with", 0)
        return self.builder.call(self.rules[start])

    def refuse(self, reason: str, at: int | None = None) -> NoReturn:
        place = self.at if at is None else at
        line = self.text.count("\n", 0, place) + 1
        column = place - self.text.rfind("\n", 0, place)
        raise GrammarError(reason, f"{line}:{column}")

    def skip(self, *, newlines: bool) -> None:
        """Skip blanks and comments; past the end of the line only where the rule can go on."""
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif char in " \t" or (newlines and char in "\r\n"):
                self.at += 1
            else:
                return

    def take(self, expected: str) -> bool:
        if not self.text.startswith(expected, self.at):
            return False
        self.at += len(expected)
        return True

    def name(self) -> str:
        begin = self.at
        while self.at < len(self.text) and self.text[self.at] in _NAME:
            self.at += 1
        if begin == self.at:
            self.refuse("expected a rule's name")
        return self.text[begin : self.at]

    def rule(self, name: str) -> int:
        if name not in self.rules:
            self.rules[name] = self.builder.rule(name)
        return self.rules[name]

    def definition(self) -> None:
        begin = self.at
        name = self.name()
        self.skip(newlines=False)
        if not self.take("::="):
            self.refuse("expected '::=' after the rule's name")
        if name in self.defined or name in self.given:
            self.refuse(f"rule {name!r} is defined twice", begin)
        self.defined.add(name)
        self.skip(newlines=True)
        self.builder.define(self.rule(name), self.either(nested=False))
        if self.at < len(self.text) and self.text[self.at] not in "\r\n":
            self.refuse(f"unexpected {self.text[self.at]!r}")

    def either(self, *, nested: bool) -> int:
        parts = [self.concat(nested=nested)]
        while self.another():
            self.skip(newlines=True)
            parts.append(self.concat(nested=nested))
        return parts[0] if len(parts) == 1 else self.builder.choice(parts)

    def another(self) -> bool:
        """Read a `|`, also one that begins a line further down: no rule begins so."""
        before = self.at
        self.skip(newlines=True)
        if self.take("|"):
            return True
        self.at = before
        return False

    def concat(self, *, nested: bool) -> int:
        parts: list[int] = []
        while self.at < len(self.text) and self.text[self.at] not in "|)\r\n":
            parts.append(self.repeated(nested=nested))
            self.skip(newlines=nested)
        return parts[0] if len(parts) == 1 else self.builder.sequence(parts)

    def repeated(self, *, nested: bool) -> int:
        part = self.atom()
        while True:
            self.skip(newlines=nested)
            if self.take("*"):
                part = self.builder.repeat(part, 0, -1)
            elif self.take("+"):
                part = self.builder.repeat(part, 1, -1)
            elif self.take("?"):
                part = self.builder.repeat(part, 0, 1)
            elif self.at < len(self.text) and self.text[self.at] == "{":
                part = self.builder.repeat(part, *self.braces())
            else:
                return part

    def braces(self) -> tuple[int, int]:
        begin = self.at
        end = self.text.find("}", begin)
        low, comma, high = self.text[begin + 1 : max(end, begin)].partition(",")
        low, high = low.strip(), high.strip()
        if end < 0 or not low.isdecimal() or (high and not high.isdecimal()):
            self.refuse("a repetition is {m}, {m,} or {m,n}", begin)
        first = int(low)
        last = (int(high) if high else -1) if comma else first
        if 0 <= last < first:
            self.refuse("a repetition whose maximum is below its minimum", begin)
        if max(first, last) > _MAX_COUNT:
            self.refuse(f"a repetition of more than {_MAX_COUNT}", begin)
        self.at = end + 1
        return first, last

    def atom(self) -> int:
        begin = self.at
        if self.take('"'):
            return self.builder.literal(self.literal(begin).encode())
        if self.take("["):
            complement = self.take("^")
            return self.builder.characters(self.char_set(begin), complement)
        if self.take("."):
            return self.builder.characters([], complement=True)
        if self.take("("):
            self.skip(newlines=True)
            inner = self.either(nested=True)
            if not self.take(")"):
                self.refuse("a group is not closed", begin)
            return inner
        if self.text[begin] not in _NAME:
            self.refuse(f"unexpected {self.text[begin]!r}")
        name = self.name()
        if name in self.given:
            return self.given[name]
        self.used_at.setdefault(name, begin)
        return self.builder.call(self.rule(name))

    def literal(self, begin: int) -> str:
        found = ""
        while not self.take('"'):
            if self.at >= len(self.text) or self.text[self.at] == "\n":
                self.refuse("a literal is not closed", begin)
            found += chr(self.character())
        return found

    def character(self) -> int:
        """One character or escape of a literal or a set, never half of a surrogate pair."""
        begin = self.at
        char = self.text[self.at]
        self.at += 1
        if char != "\\":
            return ord(char)
        letter = self.text[self.at : self.at + 1]
        self.at += 1
        if letter and letter in _ESCAPES:
            return _ESCAPES[letter]
        length = _HEX_LENGTH.get(letter)
        digits = self.text[self.at : self.at + (length or 0)]
        if (
            length is None
            or len(digits) < length
            or not set(digits) <= set("0123456789abcdefABCDEF")
        ):
            self.refuse(f"unknown escape \\{letter}", begin)
        self.at += length
        code = int(digits, 16)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            self.refuse("an escape that is no character", begin)
        return code

    def char_set(self, begin: int) -> list[tuple[int, int]]:
        ranges: list[tuple[int, int]] = []
        while not self.take("]"):
            if self.at >= len(self.text) or self.text[self.at] == "\n":
                self.refuse("brackets are not closed", begin)
            low = high = self.character()
            if (
                self.text[self.at : self.at + 1] == "-"
                and self.text[self.at + 1 : self.at + 2] != "]"
            ):
                self.at += 1
                if self.at >= len(self.text):
                    self.refuse("brackets are not closed", begin)
                high = self.character()
            if high < low:
                self.refuse("a range that runs backwards", begin)
            ranges.append((low, high))
        return ranges
