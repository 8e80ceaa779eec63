"""Lark grammars as expressions of the native builder.

What is ignored may stand before the first terminal and behind every one. Terminals are laid out
whole; priorities, aliases and the shape of trees say nothing about the language.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from sglite.errors import GrammarError
from sglite.grammars._native import Builder, Refused
from sglite.grammars.lark.sources import Sources
from sglite.grammars.lark.tree import (
    CharRange,
    Choice,
    Definition,
    Expr,
    Json,
    Literal,
    Name,
    Regexp,
    Repeat,
    Sequence,
    Source,
    is_terminal,
)
from sglite.grammars.schema import compile_json_schema
from sglite.grammars.vocabulary import Vocabulary

_MAX_INSTANCES = 10_000


class LarkGrammar:
    """A text with its imports, read; `lower` gives the expression of a rule."""

    def __init__(self, text: str, folder: Path | None, given: frozenset[str]) -> None:
        self._sources = Sources(text, folder, given)

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts of the imported files."""
        return self._sources.texts

    def lower(
        self, builder: Builder, vocab: Vocabulary, start: str, given: Mapping[str, int]
    ) -> int:
        """The expression of rule `start`; in place of a missing `root`, of `start`. `given`:
        expressions of the rules that the text uses without a definition."""
        main = self._sources.main
        known = main.definitions.keys() | main.imports.keys()
        if start == "root" and start not in known:
            start = "start"
        if start not in known:
            main.refuse(f"there is no rule {start!r} to start with", 0)
        return _Lowering(self._sources, builder, vocab, given).run(start)


class _Lowering:
    def __init__(
        self, sources: Sources, builder: Builder, vocab: Vocabulary, given: Mapping[str, int]
    ) -> None:
        self.sources = sources
        self.builder = builder
        self.vocab = vocab
        self.given = given
        self.calls: dict[tuple[int, str, tuple[int, ...]], int] = {}
        self.todo: list[tuple[int, Source, Definition, dict[str, int]]] = []
        self.tokens: dict[object, int] = {}
        self.instances = 0
        self.ignored = -1

    def run(self, start: str) -> int:
        main = self.sources.main
        _check_terminals(self.sources)
        name = Name(start, (), 0)
        if not main.ignored:
            root = self.in_rule(main, name, {})
        else:
            one = self.builder.choice([self.in_terminal(main, e) for e in main.ignored])
            ignored = self.builder.rule("%ignore")
            self.builder.define(ignored, self.builder.repeat(one, 0, -1))
            self.ignored = self.builder.call(ignored)
            root = self.builder.sequence([self.ignored, self.in_rule(main, name, {})])
        while self.todo:
            number, source, definition, values = self.todo.pop()
            body = (
                self.in_terminal(source, definition.body)
                if is_terminal(definition.name)
                else self.in_rule(source, definition.body, values)
            )
            self.builder.define(number, body)
        return root

    def token(self, key: object, terminal: int) -> int:
        """A terminal inside of a rule, with what is ignored behind it."""
        if key not in self.tokens:
            self.tokens[key] = (
                terminal if self.ignored < 0 else self.builder.sequence([terminal, self.ignored])
            )
        return self.tokens[key]

    def call(self, source: Source, name: Name, values: tuple[int, ...]) -> int:
        """The expression that stands for a rule, a terminal or an instance of a template."""
        source, definition = self.sources.definition(source, name.name)
        key = (id(source), definition.name, values)
        if key not in self.calls:
            if len(values) != len(definition.parameters):
                source_of_use = f"{len(definition.parameters)} arguments, not {len(values)}"
                source.refuse(f"{definition.name!r} takes {source_of_use}", name.at)
            self.instances += bool(values)
            if self.instances > _MAX_INSTANCES:
                source.refuse(
                    f"the templates have more than {_MAX_INSTANCES} different uses; "
                    f"does {definition.name!r} use itself with growing arguments?",
                    definition.at,
                )
            rule = self.builder.rule(definition.name)
            self.calls[key] = self.builder.call(rule)
            bound = dict(zip(definition.parameters, values, strict=True))
            self.todo.append((rule, source, definition, bound))
        return self.calls[key]

    def in_rule(self, source: Source, expr: Expr, values: dict[str, int]) -> int:
        builder = self.builder
        match expr:
            case Name(name, arguments):
                if name in values and not arguments:
                    return values[name]
                if name in self.given and source is self.sources.main:
                    return self.token(("given", name), self.given[name])
                found = self.call(
                    source, expr, tuple(self.in_rule(source, a, values) for a in arguments)
                )
                return self.token(found, found) if is_terminal(name) else found
            case Sequence(parts):
                return builder.sequence([self.in_rule(source, p, values) for p in parts])
            case Choice(parts):
                return builder.choice([self.in_rule(source, p, values) for p in parts])
            case Repeat(part, low, high):
                inner = self.in_rule(source, part, values)
                return builder.repeat(inner, low, -1 if high is None else high)
            case Json(schema, at):
                return self.token((id(source), at), self.schema(source, schema, at))
            case Literal(text, any_case):
                if ("text", text, any_case) in self.tokens:
                    return self.tokens["text", text, any_case]
                return self.token(("text", text, any_case), self.in_terminal(source, expr))
            case Regexp() | CharRange():
                return self.token((id(source), expr.at), self.in_terminal(source, expr))

    def in_terminal(self, source: Source, expr: Expr) -> int:
        builder = self.builder
        match expr:
            case Name():
                return self.call(source, expr, ())
            case Sequence(parts):
                return builder.sequence([self.in_terminal(source, p) for p in parts])
            case Choice(parts):
                return builder.choice([self.in_terminal(source, p) for p in parts])
            case Repeat(part, low, high):
                inner = self.in_terminal(source, part)
                return builder.repeat(inner, low, -1 if high is None else high)
            case Literal(text, any_case):
                return self.literal(text, any_case=any_case)
            case CharRange(low, high):
                return builder.characters([(ord(low), ord(high))])
            case Regexp():
                return self.regexp(source, expr)
            case Json():
                raise AssertionError("the parser keeps schemas out of terminals")

    def literal(self, text: str, *, any_case: bool) -> int:
        if any_case:
            return self.builder.pattern(b"(?i)" + re.escape(text).encode())
        return self.builder.literal(text.encode())

    def regexp(self, source: Source, expr: Regexp) -> int:
        unknown = set(expr.flags) - set("imsxu")
        if unknown:
            source.refuse(f"flag {min(unknown)!r} of a pattern is not supported", expr.at)
        flags = "".join(sorted(set(expr.flags) & set("isx")))
        begin = f"(?{flags})" if flags else ""
        try:
            return self.builder.pattern((begin + expr.pattern).encode())
        except Refused as error:
            within = int(error.pointer[2:]) - len(begin) if error.pointer else 0
            source.refuse(error.reason, expr.at + within)

    def schema(self, source: Source, schema: str, at: int) -> int:
        try:
            return self.builder.embed(compile_json_schema(schema, self.vocab)._native)
        except GrammarError as error:
            place = f" at {error.pointer}" if error.pointer else ""
            source.refuse(f"in the schema behind %json{place}: {error.reason}", at)


def _check_terminals(sources: Sources) -> None:
    """Terminals are regular: none may use itself."""
    done: set[tuple[int, str]] = set()
    for source in sources.all:
        for name in filter(is_terminal, source.definitions):
            _check_terminal(sources, source, name, done)


def _check_terminal(
    sources: Sources, source: Source, name: str, done: set[tuple[int, str]]
) -> None:
    open_now: set[tuple[int, str]] = set()
    path = [(source, name, False)]
    while path:
        source, name, leaving = path.pop()
        if leaving:
            open_now.discard((id(source), name))
            done.add((id(source), name))
            continue
        source, definition = sources.definition(source, name)
        key = (id(source), definition.name)
        if key in done:
            continue
        if key in open_now:
            source.refuse(f"terminal {name!r} uses itself; make it a rule", definition.at)
        open_now.add(key)
        path.append((source, definition.name, True))
        path += [(source, used, False) for used in _names(definition.body)]


def _names(expr: Expr) -> list[str]:
    match expr:
        case Name(name):
            return [name]
        case Sequence(parts) | Choice(parts):
            return [name for part in parts for name in _names(part)]
        case Repeat(part):
            return _names(part)
        case _:
            return []
