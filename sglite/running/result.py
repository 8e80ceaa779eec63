"""What a run gives back: values, text, counters and times of one row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sglite.errors import ProgramError
from sglite.options import Options
from sglite.running.executor import Run
from sglite.running.meta import Meta, meta_of
from sglite.running.record import Record, Slot, Variable, flat, flat_slots, last_value
from sglite.runtime.engines.base import Engine
from sglite.runtime.segment import Usage

if TYPE_CHECKING:
    from sglite.graphs.graph import Graph
    from sglite.running.replaying import Difference
    from sglite.tools.declared import ToolResult


@dataclass(frozen=True, slots=True)
class Timing:
    """When a row started, got its first token and ended; time.monotonic() seconds."""

    started_at: float
    first_token_at: float
    finished_at: float

    @property
    def time_to_first_token(self) -> float:
        """Seconds from the start of the row to its first token."""
        return max(0.0, self.first_token_at - self.started_at)

    @property
    def total(self) -> float:
        """Seconds from the start of the row to its end."""
        return self.finished_at - self.started_at


@dataclass(slots=True)
class Past:
    """What a result is made of, of a run that ended in another process."""

    record: Record
    returned: Any
    options: Options
    model: dict[str, Any]
    error: ProgramError | None
    ids: tuple[int, ...]
    seed: int
    row: int
    started_at: float
    finished_at: float


class Result:
    """One row of a program.

    A row that failed has its `error` and keeps what was there before: `text`, `messages`,
    `variables`, `all` and `metas` give what exists; what is missing raises the error. `model` names
    the model that answered; of a fallback, its "fallback_from" the one that could not, and why.
    """

    __slots__ = (
        "__weakref__",
        "_ids",
        "_record",
        "_returned",
        "_timing",
        "difference",
        "error",
        "model",
        "options",
        "row",
        "seed",
    )

    def __init__(self, run: Run | Past) -> None:
        run = run if isinstance(run, Past) else run.last
        self._record = run.record
        self._returned = run.returned
        self._timing = (run.started_at, run.finished_at)
        self._ids = run.ids
        self.error: ProgramError | None = run.error
        self.options = run.options
        self.model = run.model if isinstance(run, Past) else model_of(run.engine, run.instead_of)
        self.difference: Difference | None = None
        self.seed: int = run.seed
        self.row: int = run.row
        if self.error is None:
            try:
                for slot in self._record.slots():
                    slot.value, slot.captures  # noqa: B018 (what a type refuses is an error)
            except ProgramError as error:
                self.error = error

    def __getitem__(self, name: str) -> Any:
        """The value of a variable, the last one under that name."""
        variable = self._variable(name)[-1]
        if any(slot.result is None for slot in flat_slots([variable])):
            self._check()
        return last_value(variable)

    def __contains__(self, name: object) -> bool:
        return name in self._record.variables

    def __iter__(self) -> Any:
        raise TypeError("a row is not a sequence; row.variables is the dict of its values")

    def all(self, name: str) -> list[Any]:
        """Every value under this name in the order of the program, those of branches too."""
        every = zip(flat(self._variable(name)), flat_slots(self._variable(name)), strict=True)
        return [variable.value for variable, slot in every if slot.result is not None]

    def meta(self, name: str) -> Meta:
        """All that is known of the last hole of this name: ids, logprobs, finish, distribution,
        and of each part of its value."""
        slot = list(flat_slots(self._variable(name)))[-1]
        if slot.result is None:
            self._check()
        return meta_of(slot)

    def metas(self, name: str) -> list[Meta]:
        """`meta` of every hole of this name, in the order of `all`."""
        return [meta_of(slot) for slot in self._filled(name)]

    def text(self) -> str:
        """The whole text, chat template included."""
        return self._record.text()

    def messages(self) -> list[dict[str, str]]:
        """The turns of a chat as `{"role": ..., "content": ...}`."""
        return self._record.messages()

    @property
    def tool_results(self) -> list[ToolResult]:
        """Every call of a tool that was run, with its result or error and how long it took."""
        return list(self._record.all_tool_results())

    @property
    def variables(self) -> dict[str, Any]:
        """The last value of every variable."""
        values = {}
        for name in self._record.variables:
            try:
                values[name] = self[name]
            except ProgramError:  # of a failed row: there is no such value
                continue
        return values

    @property
    def returned(self) -> Any:
        """What the program's function returned."""
        self._check()
        return self._returned

    @property
    def ids(self) -> tuple[int, ...]:
        """The token ids of the whole text."""
        self._check()
        return self._ids

    @property
    def usage(self) -> Usage:
        """Tokens of all holes, those of branches and of a failed row's finished holes too."""
        usage = Usage()
        for slot in self._record.slots():
            if slot.result is not None:
                usage.add(slot.result.usage)
        return usage

    @property
    def timing(self) -> Timing:
        """When this row started, got its first token and ended."""
        started, finished = self._timing
        firsts = [slot.result.first_token_at for slot in self._record.slots() if slot.result]
        return Timing(started, min(firsts, default=finished), finished)

    @property
    def graph(self) -> Graph:
        """The nodes that this row recorded."""
        from sglite.graphs.graph import Graph

        return Graph.of_record(self._record)

    def trace(self) -> str:
        """The run as JSON text, which `sgl.replay` gives back or runs again.

        Raises ValueError for a hole that cannot be written.
        """
        from sglite.running.replaying import dump

        return dump(self)

    def _repr_html_(self) -> str:
        from sglite.running.html import row_html

        return row_html(self)

    def __repr__(self) -> str:
        if self.error is not None:
            return f"<Result row={self.row} error={str(self.error)!r}>"
        values = ", ".join(f"{name}={value!r}" for name, value in self.variables.items())
        return f"<Result row={self.row} {values}>"

    def _check(self) -> None:
        if self.error is not None:
            raise self.error

    def _filled(self, name: str) -> list[Slot]:
        return [slot for slot in flat_slots(self._variable(name)) if slot.result is not None]

    def _variable(self, name: str) -> list[Variable]:
        try:
            return self._record.variables[name]
        except KeyError:
            self._check()
            known = ", ".join(map(repr, self._record.variables)) or "none"
            raise KeyError(f"no variable {name!r} in this row; there is: {known}") from None


def model_of(engine: Engine, instead_of: dict[str, Any] | None = None) -> dict[str, Any]:
    """The model as a trace names it; `instead_of`: the one that could not do it."""
    said = {"name": engine.name, "path": None if engine.path is None else str(engine.path)}
    return said if instead_of is None else {**said, "fallback_from": instead_of}


class BatchError(ProgramError):
    """Some rows of a batch failed; `rows` has all of them, the good ones too.

    Where rows were taken as completed, the good ones have been handed out, and `rows` has those
    that failed, at most the first thousand. The cause is the error of the first row that failed.
    """

    def __init__(self, rows: list[Result], failed: int = 0, total: int = 0) -> None:
        bad = [row for row in rows if row.error is not None]
        first = bad[0]
        super().__init__(
            f"{failed or len(bad)} of {total or len(rows)} rows failed, first row {first.row}: "
            f"{first.error} (errors='return' gives every row; they are also in the error's .rows)",
        )
        self.rows = rows
        self._counts = (failed, total)
        if first.error is not None:
            self.node = first.error.node
            self.filename = first.error.filename
            self.line = first.error.line
            self.__cause__ = first.error

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.rows, *self._counts)
