"""Regular expressions, parsed: Python's `re` and ECMA-262 syntax as far as they are regular.

The result is a small tree over sets of characters. What is not regular, or depends on context
(lookaround, backreferences, word boundaries), is refused with its position.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, NoReturn

from sglite.errors import GrammarError
from sglite.grammars import characters
from sglite.grammars.characters import Ranges

Dialect = Literal["python", "ecma"]

MAX_COUNT = 100_000


@dataclass(frozen=True, slots=True)
class Chars:
    """One character of a set."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Concat:
    """One after another; of nothing: the empty text."""

    parts: tuple[Regex, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """One of the parts; of nothing: no text at all."""

    parts: tuple[Regex, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """`part` from `low` to `high` times; None: without end."""

    part: Regex
    low: int
    high: int | None


@dataclass(frozen=True, slots=True)
class Anchor:
    """The empty text, only at the start or the end of the whole."""

    at_end: bool


Regex = Chars | Concat | Either | Repeat | Anchor

EMPTY = Concat(())
ANYTHING = Repeat(Chars(characters.ANY), 0, None)


def text(literal: str) -> Regex:
    """The tree that matches `literal` only."""
    return Concat(tuple(Chars(((ord(c), ord(c)),)) for c in literal))


def parse(pattern: str, dialect: Dialect = "python") -> Regex:
    """The tree of `pattern`. Raises GrammarError with the position as its pointer."""
    return _Parser(pattern, dialect).run()


@dataclass(frozen=True, slots=True)
class _Flags:
    ignore_case: bool = False
    dot_all: bool = False
    ascii_only: bool = False


_CONTROL = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13}


class _Parser:
    def __init__(self, pattern: str, dialect: Dialect) -> None:
        self.pattern = pattern
        self.at = 0
        self.python = dialect == "python"
        self.flags = _Flags(ascii_only=not self.python)

    def run(self) -> Regex:
        tree = self.either()
        if self.at < len(self.pattern):
            self.refuse("unmatched ')'")
        return tree

    def refuse(self, reason: str, at: int | None = None) -> NoReturn:
        place = self.at if at is None else at
        raise GrammarError(f"{reason} in pattern {self.pattern!r}", f"1:{place + 1}")

    def peek(self, length: int = 1) -> str:
        return self.pattern[self.at : self.at + length]

    def take(self, expected: str) -> bool:
        if not self.pattern.startswith(expected, self.at):
            return False
        self.at += len(expected)
        return True

    def next_char(self, what: str) -> str:
        if self.at >= len(self.pattern):
            self.refuse(f"the pattern ends inside {what}")
        self.at += 1
        return self.pattern[self.at - 1]

    def either(self) -> Regex:
        parts = [self.concat()]
        while self.take("|"):
            parts.append(self.concat())
        return parts[0] if len(parts) == 1 else Either(tuple(parts))

    def concat(self) -> Regex:
        parts: list[Regex] = []
        while self.at < len(self.pattern) and self.peek() not in "|)":
            part = self.repeated()
            if part != EMPTY:
                parts.append(part)
        return parts[0] if len(parts) == 1 else Concat(tuple(parts))

    def repeated(self) -> Regex:
        part = self.atom()
        while (count := self.quantifier()) is not None:
            if isinstance(part, Anchor):
                self.refuse("an anchor cannot be repeated")
            part = Repeat(part, *count)
            if self.take("?"):  # lazy: the same language
                continue
            if self.peek() == "+" and self.python:
                self.refuse("a possessive quantifier is not regular; drop the '+'")
            if (self.peek() and self.peek() in "*+") or self.braces_follow():
                self.refuse("a quantifier of a quantifier")
        return part

    def braces_follow(self) -> bool:
        before = self.at
        found = self.braces() is not None
        self.at = before
        return found

    def quantifier(self) -> tuple[int, int | None] | None:
        if self.take("*"):
            return 0, None
        if self.take("+"):
            return 1, None
        if self.take("?"):
            return 0, 1
        return self.braces()

    def braces(self) -> tuple[int, int | None] | None:
        """`{m}`, `{m,}`, `{,n}` (Python) or `{m,n}`; None and nothing read for other braces."""
        end = self.pattern.find("}", self.at)
        if self.peek() != "{" or end < 0:
            return None
        low, comma, high = self.pattern[self.at + 1 : end].partition(",")
        digits = (low + high).isascii() and (low + high).isdigit()
        if not digits or (not low and not self.python) or (not low and not comma):
            return None
        first = int(low or "0")
        last = (int(high) if high else None) if comma else first
        if last is not None and last < first:
            self.refuse("a repetition whose maximum is below its minimum")
        if max(first, last or 0) > MAX_COUNT:
            self.refuse(f"a repetition of more than {MAX_COUNT}")
        self.at = end + 1
        return first, last

    def atom(self) -> Regex:
        start = self.at
        char = self.next_char("the pattern")
        if char == "(":
            return self.group(start)
        if char == "[":
            return Chars(self.char_class(start))
        if char == ".":
            return Chars(self.dot())
        if char == "^":
            return Anchor(at_end=False)
        if char == "$":
            return Anchor(at_end=True)
        if char == "\\":
            return self.escape(start)
        if char in "*+?":
            self.refuse("nothing to repeat", start)
        return Chars(self.cased(((ord(char), ord(char)),)))

    def dot(self) -> Ranges:
        if self.flags.dot_all:
            return characters.ANY
        ends = ((10, 10),) if self.python else ((10, 10), (13, 13), (0x2028, 0x2029))
        return characters.negate(ends)

    def cased(self, ranges: Ranges) -> Ranges:
        ranges = characters.union(ranges)
        if not self.flags.ignore_case:
            return ranges
        return characters.without_case(ranges, self.flags.ascii_only)

    def group(self, start: int) -> Regex:
        outer = self.flags
        if self.take("?"):
            if self.take("P<") or (self.peek() == "<" and self.peek(2) not in ("<=", "<!")):
                self.take("<")
                while self.next_char("a group's name") != ">":
                    pass
            elif self.take("#"):
                while self.next_char("a comment") != ")":
                    pass
                return EMPTY
            elif not self.take(":"):
                for sign, name in (
                    ("=", "lookahead"),
                    ("!", "negative lookahead"),
                    ("<=", "lookbehind"),
                    ("<!", "negative lookbehind"),
                    ("P=", "a backreference"),
                    ("(", "a conditional group"),
                    (">", "an atomic group"),
                ):
                    if self.peek(len(sign)) == sign:
                        self.refuse(f"{name} is not supported", start)
                if self.inline_flags(start):
                    return EMPTY
        tree = self.either()
        if not self.take(")"):
            self.refuse("a group is not closed", start)
        self.flags = outer
        return tree

    def inline_flags(self, start: int) -> bool:
        """Read `i`, `i-s:` and the like; True where the flags hold for all that follows."""
        names = {"i": "ignore_case", "s": "dot_all", "a": "ascii_only"}
        on = True
        while (letter := self.next_char("a group's flags")) not in ":)":
            if letter == "-" and on:
                on = False
            elif letter == "u" and self.python:
                self.flags = replace(self.flags, ascii_only=False)
            elif letter in "mx":
                self.refuse(f"flag {letter!r} is not supported", start)
            elif letter in names and (self.python or letter in "is"):
                self.flags = replace(self.flags, **{names[letter]: on})
            else:
                self.refuse(f"unknown group or flag {letter!r}", start)
        if letter == ")" and start != 0:
            self.refuse("flags for the whole pattern must stand at its start", start)
        return letter == ")"

    def escape(self, start: int) -> Regex:
        letter = self.peek()
        if letter in ("A", "Z") and self.python:
            self.at += 1
            return Anchor(at_end=letter == "Z")
        if letter and letter in "bB":
            self.refuse("a word boundary is not supported", start)
        if (letter and letter in "123456789") or (letter == "k" and not self.python):
            self.refuse("a backreference is not regular", start)
        return Chars(self.cased(self.escaped_set(start)))

    def escaped_set(self, start: int) -> Ranges:
        """What an escape stands for, inside or outside of brackets; the backslash is read."""
        letter = self.next_char("an escape")
        if letter.lower() in "dws":
            named = self.named_set(letter.lower())
            return characters.negate(named) if letter.isupper() else named
        if letter in _CONTROL:
            return _single(_CONTROL[letter])
        if letter == "a" and self.python:
            return _single(7)
        if letter == "0":
            return self.octal(start)
        if letter == "x":
            return _single(self.hexadecimal(2, start))
        if letter == "u":
            return self.unicode_escape(start)
        if letter == "U" and self.python:
            return _single(self.hexadecimal(8, start))
        if letter == "c" and not self.python:
            control = self.next_char("a control escape")
            if not (control.isascii() and control.isalpha()):
                self.refuse("a control escape needs a letter", start)
            return _single(ord(control) % 32)
        if letter in "pP" and not self.python:
            return self.property_set(letter == "P", start)
        if letter.isascii() and letter.isalnum():
            self.refuse(f"unknown escape \\{letter}", start)
        return _single(ord(letter))

    def named_set(self, letter: str) -> Ranges:
        if self.flags.ascii_only:
            space = characters.ASCII_SPACE if self.python else characters.ECMA_SPACE
            return {"d": characters.DIGIT, "w": characters.ASCII_WORD, "s": space}[letter]
        return characters.matching(f"\\{letter}")

    def octal(self, start: int) -> Ranges:
        digits = "0"
        while self.python and len(digits) < 3 and self.peek() and self.peek() in "01234567":
            digits += self.next_char("an escape")
        if not self.python and self.peek().isdigit():
            self.refuse("octal escapes are not ECMA-262", start)
        return _single(int(digits, 8))

    def hexadecimal(self, length: int, start: int) -> int:
        digits = self.peek(length)
        try:
            value = int(digits, 16) if len(digits) == length and digits.isalnum() else -1
        except ValueError:
            value = -1
        if not 0 <= value <= characters.LAST:
            self.refuse(f"an escape needs {length} hexadecimal digits of a character", start)
        self.at += length
        return value

    def unicode_escape(self, start: int) -> Ranges:
        if not self.python and self.take("{"):
            end = self.pattern.find("}", self.at)
            value = self.hexadecimal(max(end - self.at, 1), start)
            self.take("}")
            return _single(value)
        unit = self.hexadecimal(4, start)
        if 0xD800 <= unit < 0xDC00 and not self.python and self.take("\\u"):
            tail = self.hexadecimal(4, start)
            if 0xDC00 <= tail < 0xE000:
                return _single(0x10000 + ((unit - 0xD800) << 10) + tail - 0xDC00)
            self.refuse("half of a surrogate pair", start)
        return _single(unit)

    def property_set(self, negated: bool, start: int) -> Ranges:
        end = self.pattern.find("}", self.at)
        if not self.take("{") or end < 0:
            self.refuse("a property escape needs a name in braces", start)
        name = self.pattern[self.at : end]
        self.at = end + 1
        known = {"Letter": "L", "Mark": "M", "Number": "N", "Punctuation": "P", "Symbol": "S"}
        short = name.partition("=")[2] if name.startswith(("gc=", "General_Category=")) else name
        try:
            ranges = characters.category(known.get(short, short))
        except KeyError:
            self.refuse(f"unknown property {name!r}; only general categories are supported", start)
        return characters.negate(ranges) if negated else ranges

    def char_class(self, start: int) -> Ranges:
        negated = self.take("^")
        sets: list[Ranges] = []
        first = True
        while True:
            if self.at >= len(self.pattern):
                self.refuse("brackets are not closed", start)
            if self.take("]"):
                if not (first and self.python):
                    break
                self.at -= 1
            if self.peek(2) == "[:":
                self.refuse("POSIX classes are not supported; write the characters out", start)
            first = False
            sets.append(self.class_item(start))
        ranges = self.cased(characters.union(*sets))
        return characters.negate(ranges) if negated else ranges

    def class_item(self, start: int) -> Ranges:
        low = self.class_char(start)
        if self.peek() != "-" or self.peek(2) in ("-]", "-"):
            return low
        self.at += 1
        high = self.class_char(start)
        if len(low) != 1 or len(high) != 1 or low[0][0] != low[0][1] or high[0][0] != high[0][1]:
            self.refuse("a range between sets", start)
        if low[0][0] > high[0][0]:
            self.refuse("a range that runs backwards", start)
        return ((low[0][0], high[0][0]),)

    def class_char(self, start: int) -> Ranges:
        char = self.next_char("brackets")
        if char != "\\":
            return _single(ord(char))
        if self.peek() == "b":
            self.at += 1
            return _single(8)
        if self.python and self.peek() and self.peek() in "1234567":
            digits = self.next_char("an escape")
            while len(digits) < 3 and self.peek() and self.peek() in "01234567":
                digits += self.next_char("an escape")
            return _single(int(digits, 8))
        if not self.python and self.peek() == "-":
            self.at += 1
            return _single(ord("-"))
        return self.escaped_set(start)


def _single(code: int) -> Ranges:
    return ((code, code),)
