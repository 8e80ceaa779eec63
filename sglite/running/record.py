"""What a run leaves behind: nodes, text, and the values of its holes, for each branch.

A record is filled while the program runs and read through its `Result` afterwards. It refers to
no engine, so that results can outlive their model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, overload

from sglite.errors import ProgramError
from sglite.grammars import compose
from sglite.language import ir
from sglite.running.lowering import BranchPath, Pending
from sglite.runtime.segment import HoleResult

if TYPE_CHECKING:
    from sglite.tools.declared import ToolResult

_UNREAD = object()


class TemplateText(str):
    """Text of the chat template, in which special tokens are read."""

    __slots__ = ()


class SpecialText(str):
    """The text of one special token, asked for by the program."""

    __slots__ = ()


class Slot:
    """One occurrence of a hole: its node, and its result once the engine has delivered it."""

    __slots__ = ("_captures", "_refusal", "_value", "name", "node", "result")

    def __init__(self, node: ir.Hole, name: str) -> None:
        self.node = node
        self.name = name
        self.result: HoleResult | None = None
        self._value: Any = _UNREAD
        self._captures: dict[str, Any] | None = None
        self._refusal: ProgramError | None = None

    @property
    def done(self) -> HoleResult:
        """The result. Raises ProgramError if the program ended before this hole was filled."""
        if self.result is None:
            raise self.error("has no value: the program ended before it was filled")
        return self.result

    @property
    def value(self) -> Any:
        """The value, parsed and validated once.

        Raises ProgramError for a text that its type refuses.
        """
        if self._refusal is not None:
            raise self._refusal
        if self._value is _UNREAD:
            result = self.done
            parse = self.node.parse if isinstance(self.node, ir.Gen) else None
            try:
                self._value = parse(result.text) if parse is not None else result.text
            except Exception as error:
                cut = " (it was cut off)" if result.finish in ("length", "context") else ""
                message = f"wrote {result.text!r}{cut}, which its type refuses: {error}"
                raise self.error(message) from error
        return self._value

    def keep(self, value: Any, captures: dict[str, Any]) -> None:
        """Take over values that were read before, perhaps in another process."""
        self._value = value
        self._captures = captures

    def refuse(self, error: ProgramError) -> None:
        """There is no value, and will be none."""
        self._refusal = error

    @property
    def captures(self) -> dict[str, Any]:
        """The variables that are parts of the text. Raises ProgramError as `value` does."""
        if self._refusal is not None:
            raise self._refusal
        if self._captures is None:
            result, node = self.done, self.node
            if not isinstance(node, ir.Gen) or not node.captures or node.constraint is None:
                return {}
            try:
                self._captures = _read_captures(node, result.text)
            except Exception as error:
                message = f"wrote {result.text!r}, of which a part is refused: {error}"
                raise self.error(message) from error
        return self._captures

    def error(self, message: str) -> ProgramError:
        """An error about this hole, with its place."""
        return program_error(f"{self.node.describe()} {message}", self.node)


def _read_captures(node: ir.Gen, text: str) -> dict[str, Any]:
    assert node.constraint is not None
    found = compose.read_captures(node.constraint.source, text.encode())
    values: dict[str, Any] = {}
    for captured in node.captures:
        parse = captured.parse or str
        every = [parse(data.decode()) for data in found[captured.name]]
        values[captured.name] = every if captured.many else every[-1] if every else None
    return values


_Kind = TypeVar("_Kind", bound=ProgramError)


@overload
def program_error(message: str, node: ir.Node | None = None) -> ProgramError: ...


@overload
def program_error(message: str, node: ir.Node | None, kind: type[_Kind]) -> _Kind: ...


def program_error(
    message: str, node: ir.Node | None = None, kind: type[ProgramError] = ProgramError
) -> ProgramError:
    """A ProgramError that names `node` and where it was written."""
    if node is None or node.place is None:
        return kind(message, node=node.describe() if node else None)
    return kind(message, node=node.describe(), filename=node.place.filename, line=node.place.line)


@dataclass(frozen=True, slots=True)
class Taken:
    """A variable that is part of the text of a hole."""

    slot: Slot
    captured: ir.Captured

    @property
    def value(self) -> Any:
        """The value; None where the part was not read. Raises ProgramError as Slot.value does."""
        return self.slot.captures[self.captured.name]


@dataclass(frozen=True, slots=True)
class Gathered:
    """One variable in each of the branches of a join; None where a branch has none. `keys` are
    the names of the branches if they have any."""

    branches: tuple[Variable | None, ...]
    keys: tuple[str, ...] = ()


Variable: TypeAlias = Slot | Taken | Gathered


@dataclass(slots=True)
class Turn:
    """One turn of a chat: of all parts, those from `start` to `end` are its content.

    The template's text before it begins at part `begin`. `answers`: it has the results of tools.
    `dropped`: it is no longer in the context.
    """

    role: str
    start: int
    end: int | None = None
    begin: int = 0
    answers: bool = False
    dropped: bool = False


class Log:
    """Everything that a program recorded, in its order, and how many branches it has."""

    __slots__ = ("_noted", "branches")

    def __init__(self) -> None:
        self.branches = 1
        # Branch, node, None; or branch, text, place: a row has many of them, and most are text.
        self._noted: list[Any] = []

    def node(self, branch: int, node: ir.Node) -> None:
        """One more step."""
        self._noted += (branch, node, None)

    def text(self, branch: int, text: str, place: ir.Place) -> None:
        """One more step, a literal."""
        self._noted += (branch, text, place)

    @property
    def steps(self) -> list[ir.Step]:
        """All steps so far."""
        every = iter(self._noted)
        return [
            ir.Step(branch, what if place is None else ir.Literal(what, place=place))
            for branch, what, place in zip(every, every, every, strict=True)
        ]


@dataclass(slots=True)
class Record:
    """One branch, the one with `number` in the `log` that all branches share.

    `inherited` are the parts, and `known` counts the variables, that it had from its parent.
    """

    path: BranchPath = ()
    inherited: Sequence[str | Slot] = ()
    log: Log = field(default_factory=Log)
    number: int = 0
    parts: list[str | Slot] = field(default_factory=list)
    variables: dict[str, list[Variable]] = field(default_factory=dict)
    # Most programs have none of these: tuples cost them nothing.
    turns: tuple[Turn, ...] = ()
    forks: tuple[list[Record], ...] = ()
    tool_results: tuple[ToolResult, ...] = ()
    known: dict[str, int] = field(default_factory=dict)

    def branch(self, fork: int, number: int) -> Record:
        """The record of a branch that leaves here."""
        self.log.branches += 1
        return Record(
            path=(*self.path, fork, number),
            inherited=self.all_parts(),
            variables={name: list(every) for name, every in self.variables.items()},
            known={name: len(every) for name, every in self.variables.items()},
            turns=tuple(replace(turn) for turn in self.turns),
            log=self.log,
            number=self.log.branches - 1,
        )

    def note(self, node: ir.Node) -> None:
        """One more node of this branch."""
        self.log.node(self.number, node)

    def note_text(self, text: str, place: ir.Place) -> None:
        """One more literal of this branch, which is also part of its text."""
        self.log.text(self.number, text, place)
        self.parts.append(text)

    def take(self, slot: Slot) -> None:
        """The variables that are parts of the text of a hole."""
        node = slot.node
        for captured in node.captures if isinstance(node, ir.Gen) else ():
            self.variables.setdefault(captured.name, []).append(Taken(slot, captured))

    def own_variables(self) -> dict[str, Variable]:
        """What this branch has filled itself: the last one under each name."""
        return {
            name: every[-1]
            for name, every in self.variables.items()
            if len(every) > self.known.get(name, 0)
        }

    def all_parts(self) -> list[str | Slot]:
        """Texts and holes from the start of the program to the end of this branch."""
        return [*self.inherited, *self.parts]

    @property
    def position(self) -> int:
        """The number of the next part."""
        return len(self.inherited) + len(self.parts)

    def open_turn(self, role: str, begin: int) -> None:
        """What follows is the content of a turn, whose template text begins at part `begin`."""
        self.turns += (Turn(role, self.position, begin=begin),)

    def close_turn(self) -> None:
        """The content of the last turn ends here."""
        self.turns[-1].end = self.position

    def roles(self) -> list[str]:
        """The roles of the turns that are in the context."""
        return [turn.role for turn in self.turns if not turn.dropped]

    def filled_parts(self) -> list[str | Slot]:
        """All parts before the first hole that is not filled."""
        return list(
            takewhile(lambda p: isinstance(p, str) or p.result is not None, self.all_parts())
        )

    def text(self) -> str:
        """The text of this branch, templates included, up to the first hole without a value."""
        return text_of(self.filled_parts())

    def messages(self) -> list[dict[str, str]]:
        """The turns so far as `{"role": ..., "content": ...}`, as far as `text` goes."""
        parts = self.filled_parts()
        return [
            {"role": turn.role, "content": text_of(parts[turn.start : turn.end])}
            for turn in self.turns
            if turn.start <= len(parts)
        ]

    def slots(self) -> Iterator[Slot]:
        """Every hole of this branch and of the branches that left it."""
        for part in self.parts:
            if isinstance(part, Slot):
                yield part
        for fork in self.forks:
            for branch in fork:
                yield from branch.slots()

    def all_tool_results(self) -> Iterator[ToolResult]:
        """What tools gave, in this branch and in the branches that left it."""
        yield from self.tool_results
        for fork in self.forks:
            for branch in fork:
                yield from branch.all_tool_results()

    def specials(self) -> Iterator[ir.Special]:
        """Every special token of the program."""
        return (step.node for step in self.log.steps if isinstance(step.node, ir.Special))


def text_of(parts: list[str | Slot]) -> str:
    """The text of the parts, in order."""
    return "".join(
        part if isinstance(part, str) else part.done.text
        for part in parts
        if isinstance(part, str) or part.node.shown
    )


def add_parts(pending: Pending, parts: Iterable[str | Slot]) -> None:
    """Hand parts over once more, with the ids that were generated as they are."""
    for part in parts:
        if isinstance(part, Slot):
            if part.node.shown:
                pending.generated(part.done.text, part.done.ids, part.done.healed)
        elif isinstance(part, TemplateText):
            pending.text(part, "template")
        else:
            pending.text(part, "special" if isinstance(part, SpecialText) else "user")


def last_value(variable: Variable) -> Any:
    """The value of a variable; of gathered ones a list, or a dict by the names of the branches,
    with None where a branch had none."""
    if not isinstance(variable, Gathered):
        return variable.value
    values = [None if each is None else last_value(each) for each in variable.branches]
    return dict(zip(variable.keys, values, strict=True)) if variable.keys else values


def flat(variables: Iterable[Variable | None]) -> Iterator[Slot | Taken]:
    """All occurrences, those of branches one by one."""
    for variable in variables:
        if isinstance(variable, Gathered):
            yield from flat(variable.branches)
        elif variable is not None:
            yield variable


def flat_slots(variables: Iterable[Variable | None]) -> Iterator[Slot]:
    """The holes of all occurrences, those of branches one by one."""
    for variable in flat(variables):
        yield variable.slot if isinstance(variable, Taken) else variable
