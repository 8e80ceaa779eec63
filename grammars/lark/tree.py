"""Lark grammars as trees: what is written, with the place of every name.

Knows nothing of what names stand for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NoReturn

from sglite.errors import GrammarError


@dataclass(frozen=True, slots=True)
class Literal:
    """A string; with `any_case`, in upper or lower case."""

    text: str
    any_case: bool
    at: int


@dataclass(frozen=True, slots=True)
class Regexp:
    """A pattern between slashes, as it is written, and its flags."""

    pattern: str
    flags: str
    at: int


@dataclass(frozen=True, slots=True)
class CharRange:
    """One character between two, inclusive."""

    low: str
    high: str
    at: int


@dataclass(frozen=True, slots=True)
class Name:
    """A rule, a terminal or a template's parameter; with arguments: a template."""

    name: str
    arguments: tuple[Expr, ...]
    at: int


@dataclass(frozen=True, slots=True)
class Json:
    """The text of a JSON schema behind %json."""

    schema: str
    at: int


@dataclass(frozen=True, slots=True)
class Sequence:
    """One after another; of nothing: the empty text."""

    parts: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the parts."""

    parts: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """`part` from `low` to `high` times; None: without end."""

    part: Expr
    low: int
    high: int | None


Expr = Literal | Regexp | CharRange | Name | Json | Sequence | Choice | Repeat


@dataclass(frozen=True, slots=True)
class Definition:
    """A rule or a terminal; with parameters: a template."""

    name: str
    parameters: tuple[str, ...]
    body: Expr
    at: int


@dataclass(frozen=True, slots=True)
class Import:
    """`name` of the grammar at `path`, here under `alias`; relative: from the file's folder."""

    path: tuple[str, ...]
    relative: bool
    name: str
    alias: str
    at: int


@dataclass(slots=True)
class Source:
    """One grammar text."""

    text: str
    file: str = ""
    definitions: dict[str, Definition] = field(default_factory=dict)
    imports: dict[str, Import] = field(default_factory=dict)
    ignored: list[Expr] = field(default_factory=list)
    names: list[Name] = field(default_factory=list)
    """Every use of a name that is not a parameter's."""

    def refuse(self, reason: str, at: int) -> NoReturn:
        """Raises GrammarError with the place as line and column."""
        line = self.text.count("\n", 0, at) + 1
        column = at - self.text.rfind("\n", 0, at)
        raise GrammarError(reason, f"{self.file}{':' if self.file else ''}{line}:{column}")


def is_terminal(name: str) -> bool:
    """Whether a name is a terminal's."""
    return name.lstrip("_")[:1].isupper()
