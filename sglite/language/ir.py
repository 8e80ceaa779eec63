"""The nodes of a program: what a run records, one value for each step.

Nodes are frozen values that know where the user wrote them and nothing of engines, tokens or
models. `lowering` turns them into the steps of a segment; a `Graph` has them in their order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from sglite.graphs.values import Operand, Value, describe
from sglite.options import Options
from sglite.runtime.segment import DEFAULT_METHOD, Constraint, SelectMethod

if TYPE_CHECKING:
    from sglite.tools.declared import Tool
    from sglite.tools.formats import ToolUse

_NOTHING_SAID = Options()


class Place(NamedTuple):
    """Where the user wrote something."""

    filename: str
    line: int


NOWHERE = Place("<graph>", 0)
"""Of a node that was written by hand."""


class Expression:
    """What `s += ...` takes besides text. `+` puts expressions and texts one after the other."""

    __slots__ = ()

    def __add__(self, other: object) -> Concat:
        return _concat(self, other)

    def __radd__(self, other: object) -> Concat:
        return _concat(other, self)

    def __str__(self) -> str:
        # Text of it in a prompt would be taken for text of the user, and the model never asked.
        raise TypeError(
            f"{self!r} is no text and cannot stand in an f-string or in str(); "
            "write s += 'before ' + sgl.gen('x') + ' after'"
        )

    def __format__(self, spec: str) -> str:
        return str(self)


@dataclass(frozen=True, slots=True)
class Concat(Expression):
    """Several parts in a row; recording it records each part."""

    parts: tuple[str | Expression, ...]


@dataclass(frozen=True, slots=True)
class Turn(Expression):
    """A whole turn of a chat, `user("...")`; recording it opens and closes the role. `tools`: what
    the model is told of there."""

    role: str
    parts: tuple[str | Expression, ...]
    tools: tuple[Tool, ...] = ()


@dataclass(frozen=True, slots=True)
class Invoke(Expression):
    """Another program with its arguments; recording it runs its body on the same state."""

    name: str
    body: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def __repr__(self) -> str:
        given = [*map(repr, self.args), *(f"{k}={v!r}" for k, v in self.kwargs.items())]
        call = f"{self.name}({', '.join(given)})"
        return (
            f"<call {call}: s += {self.name}(...) in a program runs it, {self.name}.run(...) alone>"
        )


def unfit(content: object) -> TypeError:
    """The error of what cannot be added to a program."""
    if hasattr(content, "body"):
        name = getattr(content, "__name__", "the program")
        return TypeError(f"cannot add a program that is not called; write s += {name}(...)")
    return TypeError(
        f"cannot add {type(content).__name__} to a program; "
        "add text, holes and turns, and put str() around other values"
    )


_PARTS = (str, Expression)


def _concat(*operands: object) -> Concat:
    parts: list[str | Expression] = []
    for operand in operands:
        if type(operand) is Concat:
            parts += operand.parts
        elif isinstance(operand, _PARTS):
            parts.append(operand)
        else:
            raise unfit(operand)
    return Concat(tuple(parts))


_placed: dict[tuple[int, Place], tuple[Any, Any]] = {}
"""Nodes that were recorded before: each row of a batch records the same ones at the same places."""

_MOST_PLACED = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Node(Expression):
    """One recorded step. `place` is None until a state has recorded it."""

    place: Place | None = field(default=None, compare=False)

    def at(self, place: Place) -> Self:
        """This node, recorded at `place`."""
        key = (id(self), place)
        found = _placed.get(key)
        if found is None:
            if len(_placed) >= _MOST_PLACED:
                _placed.clear()
            # With the node itself, so that its id is nobody else's.
            found = _placed[key] = (self, replace(self, place=place))
        placed: Self = found[1]
        return placed

    def describe(self) -> str:
        """The node as an error message names it, for instance `gen('age')`."""
        return type(self).__name__.lower()


@dataclass(frozen=True, slots=True)
class Literal(Node):
    """Text of the program or of its arguments."""

    text: str

    def describe(self) -> str:
        return f"text {short(self.text)}"


@dataclass(frozen=True, slots=True)
class Insert(Node):
    """What a compiled program works out when it runs, and adds: text of an argument or of a value
    that was generated, or an expression that was passed as an argument."""

    value: Value

    def describe(self) -> str:
        return f"insert {describe(self.value)}"


@dataclass(frozen=True, slots=True)
class Special(Node):
    """The text of exactly one special token; not `exact`: any text, in which special tokens count.
    `hidden`: it stands in the prompt for a while and is no part of the text."""

    text: str
    exact: bool = True
    hidden: bool = False

    def describe(self) -> str:
        return f"special({self.text!r})"


class Thought(NamedTuple):
    """Free text before a value, up to a mark. `opening` None: found with `closing` in the model's
    template, "" for none. `hidden`: it leaves the prompt when the value is there."""

    closing: str | None
    opening: str | None
    max_tokens: int
    hidden: bool


@dataclass(frozen=True, slots=True)
class Captured:
    """A variable that is part of the text of a hole. `many`: a list, one for each time that the
    part was read; `parse` and `origin` as in Gen."""

    name: str
    parse: Callable[[str], Any] | None = field(default=None, compare=False, repr=False)
    many: bool = False
    origin: str | None = None


@dataclass(frozen=True, slots=True)
class Gen(Node):
    """A hole that generates. `parse` makes the value out of the text; None keeps the text.

    `options` has what the hole itself says; what it leaves open is taken from the run. `spaced`:
    a space may come before the value where the text before the hole does not end in one. `origin`:
    the type whose schema the constraint is, as the user wrote it. `tools`: what the model may call
    instead of writing text; the constraint follows when the format of the model is known.

    `hidden`: the text leaves the prompt when the hole has ended. `shown`: whether it is part of the
    program's text. `drops`: so many steps before it leave the prompt with its end. `thought`: it is
    what the model thinks before the value of the next hole. `think` and `samples` are what one call
    of `gen` asked for; a state records what they stand for. `retries`: so many more tries at a
    value that `parse` refuses.
    """

    name: str | None
    constraint: Constraint | None = None
    options: Options = _NOTHING_SAID
    stop: tuple[str, ...] = ()
    stop_ids: tuple[int, ...] = ()
    until: tuple[str, ...] = ()
    ignore_eos: bool = False
    parse: Callable[[str], Any] | None = field(default=None, compare=False, repr=False)
    spaced: bool = False
    origin: str | None = None
    min_tokens: int = 0
    stop_regex: tuple[str, ...] = ()
    logit_bias: tuple[tuple[int | str, float], ...] = ()
    top_logprobs: int = 0
    hidden: bool = False
    shown: bool = True
    drops: int = 0
    think: Thought | None = None
    samples: int | None = None
    captures: tuple[Captured, ...] = ()
    retries: int = 0
    tools: ToolUse | None = field(default=None, compare=False, repr=False)
    thought: bool = False

    def describe(self) -> str:
        return f"gen({'' if self.name is None else repr(self.name)})"


@dataclass(frozen=True, slots=True)
class Select(Node):
    """A hole that picks one of `choices`."""

    name: str | None
    choices: tuple[str, ...]
    options: Options = _NOTHING_SAID
    method: SelectMethod = DEFAULT_METHOD
    until: tuple[str, ...] = ()
    hidden: bool = False

    @property
    def shown(self) -> bool:
        """Whether its text is part of the program's text."""
        return not self.hidden

    def describe(self) -> str:
        return f"select({self.name!r})"


@dataclass(frozen=True, slots=True)
class Late(Node):
    """A hole of a compiled program with options that are known when it runs: a call of `gen` or
    `select`, with its arguments by name."""

    primitive: str
    name: str | None
    arguments: tuple[tuple[str, Operand], ...]

    def describe(self) -> str:
        return f"{self.primitive}({self.name!r})"


Hole = Gen | Select


@dataclass(frozen=True, slots=True)
class RoleOpen(Node):
    """The start of a turn. `text`: what the template of the model wrote there, once it has run;
    `verbatim`: it holds for other runs too, since tools had a part in it."""

    role: str
    text: str = field(default="", compare=False)
    verbatim: bool = field(default=False, compare=False)

    def describe(self) -> str:
        return f"{self.role}()"


@dataclass(frozen=True, slots=True)
class RoleClose(Node):
    """The end of a turn. `text` and `verbatim`: as for its start."""

    role: str
    text: str = field(default="", compare=False)
    verbatim: bool = field(default=False, compare=False)

    def describe(self) -> str:
        return f"end of {self.role}()"


@dataclass(frozen=True, slots=True)
class Fork(Node):
    """The point at which `branches` branches leave this one; their numbers begin with `first`."""

    branches: int
    names: tuple[str, ...] = ()
    first: int = 1

    def describe(self) -> str:
        return f"fork({list(self.names) if self.names else self.branches})"


@dataclass(frozen=True, slots=True)
class Join(Node):
    """The point at which the variables `names` of `branches` came back: as lists, or, where the
    branches are called `keys`, as dicts."""

    names: tuple[str, ...]
    branches: tuple[int, ...] = ()
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CallOpen(Node):
    """The start of another program's body."""

    name: str

    def describe(self) -> str:
        return f"call of {self.name}"


@dataclass(frozen=True, slots=True)
class CallClose(Node):
    """The end of another program's body."""

    name: str


@dataclass(frozen=True, slots=True)
class Release(Node):
    """The point after which nothing uses this branch."""


class Step(NamedTuple):
    """A node, and the number of the branch that recorded it; 0 is the program itself."""

    branch: int
    node: Node


def details(node: Node) -> str:
    """What stands after the name of a node in a tree."""
    if isinstance(node, Gen) and node.constraint is not None:
        if node.tools is not None:
            return f": tools {short(', '.join(tool.name for tool in node.tools.tools))}"
        source = node.constraint.source
        if node.constraint.kind == "parts":
            from sglite.grammars import show_part  # native, and seldom needed here

            return f": parts {short(show_part(source), quoted=False)}"
        return f": {node.constraint.kind} {short(str(source))}"
    if isinstance(node, Select):
        return f": {short(', '.join(node.choices))}"
    if isinstance(node, Late):
        said = (f"{n}={describe(v)}" for n, v in node.arguments if n != "name")
        return f": {short(', '.join(said))}"
    if isinstance(node, Join):
        return f": {', '.join(node.names)}"
    return ""


def check_text(what: str, text: str) -> None:
    """Raises ValueError for half of a surrogate pair, which no encoding and no model has."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{what} has the lone surrogate {text[error.start]!r} at character {error.start}; "
            "decode the bytes it came from with errors='replace'"
        ) from None


def short(text: str, *, quoted: bool = True) -> str:
    """The beginning of a text, in quotes."""
    cut = text if len(text) <= 48 else f"{text[:45]}..."
    return repr(cut) if quoted else cut
