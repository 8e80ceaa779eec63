"""Patterns of ECMA-262 as patterns of the `regex` package: the oracle's reading of `pattern`.

The `u` flag is on, as the specification of JSON Schema recommends; identity escapes of
punctuation, which only the older syntax has, are read unless `strict`. Nothing of the engine under
test is used here.
"""

from __future__ import annotations

import functools
from typing import Any

import regex

SPACE = (
    "\\u0009-\\u000d\\u0020\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000\\ufeff"
)
NO_SPACE = (
    "\\u0000-\\u0008\\u000e-\\u001f\\u0021-\\u009f\\u00a1-\\u167f\\u1681-\\u1fff\\u200b-\\u2027"
    "\\u202a-\\u202e\\u2030-\\u205e\\u2060-\\u2fff\\u3001-\\ufefe\\uff00-\\U0010ffff"
)
SETS = {
    "d": "0-9",
    "D": "\\u0000-/:-\\U0010ffff",
    "w": "0-9A-Z_a-z",
    "W": "\\u0000-/:-@\\[-\\^`\\{-\\U0010ffff",
    "s": SPACE,
    "S": NO_SPACE,
}
CONTROL = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13}
SYNTAX = "^$\\.*+?()[]{}|/"
_WORD = f"[{SETS['w']}]"
BOUNDARY = f"(?:(?<={_WORD})(?!{_WORD})|(?<!{_WORD})(?={_WORD}))"


class BadPattern(ValueError):  # noqa: N818
    """No pattern of ECMA-262."""


def search(pattern: str, text: str) -> bool:
    """Whether the pattern matches somewhere. Raises BadPattern."""
    return _compiled(pattern).search(text) is not None


def is_pattern(text: str) -> bool:
    """Whether the text is a pattern by the letter of ECMA-262 with the `u` flag."""
    try:
        regex.compile(translate(text, strict=True))
    except (BadPattern, regex.error):
        return False
    return True


@functools.lru_cache(4096)
def _compiled(pattern: str) -> Any:
    try:
        return regex.compile(translate(pattern))
    except regex.error as error:
        raise BadPattern(f"{pattern!r}: {error}") from None


def translate(pattern: str, strict: bool = False) -> str:
    """The same language in the syntax of `regex` (version 0). Raises BadPattern."""
    return _Translator(pattern, strict).run()


class _Translator:
    def __init__(self, pattern: str, strict: bool) -> None:
        self.pattern, self.strict, self.at = pattern, strict, 0

    def run(self) -> str:
        out = []
        while self.at < len(self.pattern):
            out.append(self.piece())
        return "".join(out)

    def fail(self, reason: str) -> BadPattern:
        return BadPattern(f"{self.pattern!r} at {self.at}: {reason}")

    def take(self, count: int = 1) -> str:
        taken = self.pattern[self.at : self.at + count]
        if len(taken) < count:
            raise self.fail("the pattern ends too early")
        self.at += count
        return taken

    def piece(self) -> str:
        char = self.take()
        if char == "\\":
            return self.escape()
        if char == "[":
            return self.set()
        if char == "(":
            return self.group()
        if char == "$":
            return "(?!.|\\n)"
        if char == "^":
            return "(?<!.|\\n)"
        if char == ".":
            return "[^\\n\\r\\u2028\\u2029]"
        if char in "*+?":
            return char + self.lazy()
        if char == "{":
            return self.braces()
        if char in "]}" and self.strict:
            raise self.fail(f"lone {char!r}")
        return char if char in "|)" else literal(ord(char))

    def lazy(self) -> str:
        if self.pattern.startswith("+", self.at):
            raise self.fail("nothing to repeat")
        return self.take() if self.pattern.startswith("?", self.at) else ""

    def braces(self) -> str:
        found = regex.compile(r"(\d+)(,\d*)?\}").match(self.pattern, self.at)
        if found is None:
            if self.strict:
                raise self.fail("lone '{'")
            return "\\{"
        self.at = found.end()
        return "{" + found[0] + self.lazy()

    def group(self) -> str:
        for begin in ("?:", "?=", "?!", "?<=", "?<!"):
            if self.pattern.startswith(begin, self.at):
                self.at += len(begin)
                return "(" + begin
        if self.pattern.startswith("?<", self.at):
            self.at += 2
            return f"(?P<{self.name()}>"
        if self.pattern.startswith("?", self.at):
            raise self.fail("unknown group")
        return "("

    def name(self) -> str:
        end = self.pattern.find(">", self.at)
        if end < 0 or not self.pattern[self.at : end].isidentifier():
            raise self.fail("bad name of a group")
        name, self.at = self.pattern[self.at : end], end + 1
        return name

    def escape(self) -> str:
        char = self.pattern[self.at : self.at + 1]
        if char in "bB" and char:
            self.at += 1
            return BOUNDARY if char == "b" else f"(?!{BOUNDARY})"
        if char == "k":
            self.take(1)
            if self.take(1) != "<":
                raise self.fail("\\k needs a name")
            return f"(?P={self.name()})"
        if char in "123456789" and char:
            self.at += 1
            return f"(?:\\{char})"
        return f"[{self.set_escape()}]"

    def set_escape(self) -> str:
        """What stands behind a backslash, as a part of a set."""
        char = self.take()
        if char in SETS:
            return SETS[char]
        if char in "pP":
            return self.property(char)
        code = self.code(char)
        return literal(code)

    def property(self, kind: str) -> str:
        found = regex.compile(r"\{([A-Za-z_]+(=[A-Za-z_0-9]+)?)\}").match(self.pattern, self.at)
        if found is None:
            raise self.fail("bad property of Unicode")
        self.at = found.end()
        name = found[1].replace("Script_Extensions=", "scx=")
        return f"\\{kind}{{{name}}}"

    def code(self, char: str) -> int:
        if char in CONTROL:
            return CONTROL[char]
        if char == "0" and not self.pattern[self.at : self.at + 1].isdigit():
            return 0
        if char == "c" and regex.match("[A-Za-z]", self.pattern[self.at : self.at + 1]):
            return ord(self.take()) % 32
        if char == "x":
            return self.hexadecimal(2)
        if char == "u":
            return self.unicode()
        if char in SYNTAX or char == "-":
            return ord(char)
        if self.strict or char.isalnum():
            raise self.fail(f"unknown escape \\{char}")
        return ord(char)

    def hexadecimal(self, count: int) -> int:
        digits = self.take(count)
        if not regex.fullmatch("[0-9A-Fa-f]+", digits):
            raise self.fail("bad hexadecimal digits")
        return int(digits, 16)

    def unicode(self) -> int:
        if self.pattern.startswith("{", self.at):
            end = self.pattern.find("}", self.at)
            digits = self.pattern[self.at + 1 : end]
            if not regex.fullmatch("[0-9A-Fa-f]+", digits) or int(digits, 16) > 0x10FFFF:
                raise self.fail("bad code point")
            self.at = end + 1
            return int(digits, 16)
        code = self.hexadecimal(4)
        low = regex.compile(r"\\u([dD][c-fC-F][0-9A-Fa-f]{2})").match(self.pattern, self.at)
        if 0xD800 <= code < 0xDC00 and low:
            self.at = low.end()
            return 0x10000 + (code - 0xD800) * 0x400 + int(low[1], 16) - 0xDC00
        return code

    def set(self) -> str:
        negated = self.pattern.startswith("^", self.at)
        self.at += negated
        parts: list[str] = []
        while not self.pattern.startswith("]", self.at):
            low = self.member()
            if self.pattern.startswith("-", self.at) and self.pattern[self.at + 1 :][:1] != "]":
                self.at += 1
                high = self.member()
                if not (low.startswith("\\U") and high.startswith("\\U")):
                    if self.strict:
                        raise self.fail("a range of sets")
                    parts += [low, "\\-", high]
                else:
                    if low > high:
                        raise self.fail("range out of order")
                    parts.append(f"{low}-{high}")
            else:
                parts.append(low)
        self.at += 1
        if not parts:
            return "(?:.|\\n)" if negated else "(?!)"
        return ("[^" if negated else "[") + "".join(parts) + "]"

    def member(self) -> str:
        """One character, as 10 characters `\\UXXXXXXXX`, or a set."""
        char = self.take()
        if char != "\\":
            return f"\\U{ord(char):08x}"
        if self.pattern.startswith("b", self.at):
            self.at += 1
            return "\\U00000008"
        return self.set_escape()


def literal(code: int) -> str:
    """One character outside of sets, or inside."""
    return f"\\U{code:08x}"
