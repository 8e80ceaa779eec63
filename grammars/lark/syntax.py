"""Grammar texts in Lark's format, read.

start: _list{pair, ","}            rules and templates, lower case
_list{item, sep}: item (sep item)*
pair.2: KEY ":" value -> pair      priorities, aliases, ?x and !x: nothing to the language
KEY: /[a-z]+/i "!"?                terminals, upper case, of strings, patterns and terminals
%ignore " "
"""

from __future__ import annotations

import json
import re
from typing import NoReturn

from sglite.grammars.lark.tree import (
    CharRange,
    Choice,
    Definition,
    Expr,
    Import,
    Json,
    Literal,
    Name,
    Regexp,
    Repeat,
    Sequence,
    Source,
    is_terminal,
)


def parse(text: str, file: str = "") -> Source:
    """The definitions of a text. Raises GrammarError with line and column."""
    return _Parser(Source(text, file)).run()


_TOKEN = re.compile(
    r"""[ \t\r\f]*  # blanks, and what stands behind them
      (?:(?P<line>\n)
      | (?P<blank>(?://|\#)[^\n]*|\Z)
      | (?P<regexp>/(?:\\.|[^/\\])+/[a-z]*)
      | (?P<string>"(?:\\.|[^"\\\n])*"i?)
      | (?P<name>_?[a-z][_a-z0-9]*|_?[A-Z][_A-Z0-9]*)
      | (?P<directive>%[a-z]+)
      | (?P<number>-?[0-9]+)
      | (?P<mark>\.\.|->|[:|?!*+~(){}\[\],.]))""",
    re.VERBOSE | re.DOTALL,
)
_CONTROL = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "\\": "\\", '"': '"'}
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_MAX_COUNT = 100_000

_REFUSED = {
    "%declare": "terminals without a definition cannot be matched; define the terminal",
    "%override": "%override is not supported; write the definition into this grammar instead",
    "%extend": "%extend is not supported; write the definition into this grammar instead",
}


class _Parser:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.kinds: list[str] = []
        self.texts: list[str] = []
        self.places: list[int] = []
        self.at = 0
        self.parameters: frozenset[str] = frozenset()
        self.in_terminal = False

    def run(self) -> Source:
        self.tokenise()
        while self.kinds[self.at] != "end":
            if self.kinds[self.at] == "line":
                self.at += 1
            elif self.kinds[self.at] == "directive":
                self.directive()
            else:
                self.definition()
        return self.source

    # Tokens

    def tokenise(self) -> None:
        """Split the text. A line that goes on with `|`, or inside of brackets, is no new one."""
        text, at, depth = self.source.text, 0, 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                self.source.refuse(*_unreadable(text, at))
            kind = match.lastgroup
            assert kind is not None
            found, at, end = match[kind], match.start(kind), match.end()
            if kind == "mark":
                depth += (found in "([{") - (found in ")]}")
                if found == "|" and self.kinds and self.kinds[-1] == "line":
                    self.drop_lines()
            elif kind == "directive" and found == "%json":
                kind, end = "json", self.end_of_json(end)
                found = text[match.end() : end]
            if kind != "blank" and not (kind == "line" and depth > 0):
                self.kinds.append(kind)
                self.texts.append(found)
                self.places.append(at)
            at = end
        self.kinds += ["line", "end"]
        self.texts += ["the end of the line", "the end"]
        self.places += [len(text), len(text)]

    def drop_lines(self) -> None:
        while self.kinds and self.kinds[-1] == "line":
            self.kinds.pop()
            self.texts.pop()
            self.places.pop()

    def end_of_json(self, begin: int) -> int:
        text = self.source.text
        while begin < len(text) and text[begin] in " \t\r\n":
            begin += 1
        try:
            return json.JSONDecoder().raw_decode(text, begin)[1]
        except ValueError as error:
            place = getattr(error, "pos", begin)
            self.source.refuse(
                f"%json needs a JSON schema behind it: {error}", min(place, len(text))
            )

    def refuse(self, reason: str, at: int | None = None) -> NoReturn:
        self.source.refuse(reason, self.places[self.at if at is None else at])

    def unexpected(self, expected: str) -> NoReturn:
        found = self.texts[self.at] if self.texts[self.at] != "\n" else "the end of the line"
        self.refuse(f"expected {expected}, found {found!r}")

    def take(self, *marks: str) -> bool:
        if self.kinds[self.at] != "mark" or self.texts[self.at] not in marks:
            return False
        self.at += 1
        return True

    def need(self, kind: str, expected: str) -> str:
        if self.kinds[self.at] != kind:
            self.unexpected(expected)
        self.at += 1
        return self.texts[self.at - 1]

    def need_mark(self, mark: str) -> None:
        if not self.take(mark):
            self.unexpected(f"{mark!r}")

    # Statements

    def definition(self) -> None:
        while self.take("?", "!"):
            pass
        begin = self.places[self.at]
        name = self.need("name", "a rule, a terminal or a directive")
        parameters: list[str] = []
        if self.take("{"):
            parameters.append(self.need("name", "a parameter's name"))
            while self.take(","):
                parameters.append(self.need("name", "a parameter's name"))
            self.need_mark("}")
        if self.take("."):
            self.need("number", "a priority")
        self.need_mark(":")
        self.in_terminal = is_terminal(name)
        if parameters and self.in_terminal:
            self.source.refuse(f"terminal {name!r} cannot be a template; make it a rule", begin)
        self.parameters = frozenset(parameters)
        body = self.either(aliases=not self.in_terminal)
        self.parameters = frozenset()
        self.end_line()
        self.declare(name, begin)
        self.source.definitions[name] = Definition(name, tuple(parameters), body, begin)

    def declare(self, name: str, at: int) -> None:
        if name in self.source.definitions or name in self.source.imports:
            self.source.refuse(f"{name!r} is defined twice", at)

    def end_line(self) -> None:
        if self.kinds[self.at] != "line":
            self.unexpected("the end of the definition")
        self.at += 1

    def directive(self) -> None:
        name = self.texts[self.at]
        if name in _REFUSED:
            self.refuse(_REFUSED[name])
        if name not in ("%ignore", "%import"):
            self.refuse(f"unknown directive {name}; known: %ignore, %import, %json")
        self.at += 1
        if name == "%ignore":
            self.in_terminal = True
            self.source.ignored.append(self.either(aliases=False))
        else:
            self.imports()
        self.end_line()

    def imports(self) -> None:
        begin = self.places[self.at]
        relative = self.take(".")
        path = [self.need("name", "the name of a grammar")]
        while self.take("."):
            path.append(self.need("name", "a name"))
        names: list[tuple[str, str, int]] = []
        if self.take("("):
            while True:
                place = self.places[self.at]
                name = self.need("name", "a name to import")
                names.append((name, name, place))
                if not self.take(","):
                    break
            self.need_mark(")")
        else:
            name = path.pop()
            if not path and not relative:
                self.source.refuse("write %import GRAMMAR.NAME", begin)
            alias = self.need("name", "a name") if self.take("->") else name
            names.append((name, alias, begin))
        if not path:
            self.source.refuse("write %import .FILE.NAME", begin)
        for name, alias, place in names:
            if is_terminal(name) != is_terminal(alias):
                self.source.refuse(f"{name!r} and {alias!r} must both be rules or terminals", place)
            self.declare(alias, place)
            self.source.imports[alias] = Import(tuple(path), relative, name, alias, place)

    # Expressions

    def either(self, *, aliases: bool) -> Expr:
        parts = [self.concat(aliases=aliases)]
        while self.take("|"):
            parts.append(self.concat(aliases=aliases))
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def concat(self, *, aliases: bool) -> Expr:
        parts: list[Expr] = []
        while self.kinds[self.at] not in ("line", "end") and not (
            self.kinds[self.at] == "mark" and self.texts[self.at] in "|)]->"
        ):
            parts.append(self.repeated())
        if aliases and self.take("->"):
            self.need("name", "an alias")
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def repeated(self) -> Expr:
        part = self.atom()
        if self.take("*"):
            return Repeat(part, 0, None)
        if self.take("+"):
            return Repeat(part, 1, None)
        if self.take("?"):
            return Repeat(part, 0, 1)
        if not self.take("~"):
            return part
        begin = self.at
        low = high = self.count()
        if self.take(".."):
            high = self.count()
        if high < low:
            self.refuse("a repetition whose maximum is below its minimum", begin)
        return Repeat(part, low, high)

    def count(self) -> int:
        digits = self.need("number", "a count")
        if len(digits) > 9 or not 0 <= int(digits) <= _MAX_COUNT:
            self.refuse(f"a count must be 0 to {_MAX_COUNT}", self.at - 1)
        return int(digits)

    def atom(self) -> Expr:
        at, kind, found = self.places[self.at], self.kinds[self.at], self.texts[self.at]
        if self.take("("):
            inner = self.either(aliases=False)
            self.need_mark(")")
            return inner
        if self.take("["):
            inner = self.either(aliases=False)
            self.need_mark("]")
            return Repeat(inner, 0, 1)
        if kind not in ("string", "regexp", "name", "json"):
            self.unexpected("a name, a string, a pattern or a group")
        self.at += 1
        if kind == "string":
            return self.string(found, at)
        if kind == "regexp":
            body, _, flags = found.rpartition("/")
            return Regexp(body[1:], flags, at)
        if kind == "json":
            if self.in_terminal:
                self.source.refuse("a schema cannot stand in a terminal; put it into a rule", at)
            return Json(found, at)
        return self.named(found, at)

    def named(self, name: str, at: int) -> Expr:
        arguments: list[Expr] = []
        if self.take("{"):
            arguments.append(self.atom())
            while self.take(","):
                arguments.append(self.atom())
            self.need_mark("}")
        if arguments and name in self.parameters:
            self.source.refuse(f"parameter {name!r} takes no arguments", at)
        found = Name(name, tuple(arguments), at)
        if name not in self.parameters:
            self.source.names.append(found)
            if self.in_terminal and not is_terminal(name):
                self.source.refuse(
                    f"a terminal is made of terminals only, and {name!r} is a rule", at
                )
        return found

    def string(self, found: str, at: int) -> Expr:
        text = self.unescaped(found.rstrip("i") if found.endswith("i") else found, at)
        if not self.take(".."):
            return Literal(text, found.endswith("i"), at)
        other = self.places[self.at]
        last = self.unescaped(self.need("string", "the last character of the range"), other)
        if len(text) != 1 or len(last) != 1 or last < text or found.endswith("i"):
            self.source.refuse("a range goes from one character up to another", at)
        return CharRange(text, last, at)

    def unescaped(self, quoted: str, at: int) -> str:
        def character(match: re.Match[str]) -> str:
            escape = match.group(1)
            if escape in _CONTROL:
                return _CONTROL[escape]
            code = int(escape[1:], 16) if len(escape) > 1 else -1
            if not 0 <= code <= 0x10FFFF or 0xD800 <= code <= 0xDFFF:
                self.source.refuse(f"unknown escape \\{escape} in a string", at + match.start())
            return chr(code)

        return _ESCAPE.sub(character, quoted)[1:-1]


def _unreadable(text: str, at: int) -> tuple[str, int]:
    """What is wrong with the token behind the blanks, and its place."""
    at += len(text[at:]) - len(text[at:].lstrip(" \t\r\f"))
    if text[at] in '"/':
        return "a string is not closed" if text[at] == '"' else "a pattern is not closed", at
    return f"unexpected {text[at]!r}", at
