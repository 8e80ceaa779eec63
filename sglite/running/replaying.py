"""Runs out of their traces: a row is written down, given back without a model, or run again.

A trace is JSON: the graph of the row with every text as it was, seed, row, options and model, and
the result of every hole by its key.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sglite.chat import Fragments
from sglite.errors import CancelledError, ModelError, ProgramError
from sglite.graphs.graph import Graph
from sglite.graphs.graph_json import from_plain, plain
from sglite.language import ir
from sglite.model import Model
from sglite.options import Options
from sglite.running.attempts import restored_attempts
from sglite.running.launch import Launch
from sglite.running.lowering import BranchPath, hole_key
from sglite.running.record import Record, Slot
from sglite.running.result import Result
from sglite.runtime.engines.base import Engine, EventSink, SequenceId
from sglite.runtime.segment import (
    Append,
    HoleDone,
    HoleResult,
    Segment,
    SegmentDone,
    SegmentFailed,
    Usage,
)

if TYPE_CHECKING:
    from sglite.grammars import Vocabulary
    from sglite.tools.declared import Tool

VERSION = 1


@dataclass(frozen=True, slots=True)
class Difference:
    """The first token of a repeated run that is another one than in its trace.

    `recorded` and `replayed` are None where that run had no token at `index`.
    """

    hole: str
    branch: BranchPath
    index: int
    recorded: int | None
    replayed: int | None

    def __str__(self) -> str:
        where = f" in branch {self.branch}" if self.branch else ""
        return f"{self.hole}{where}: token {self.index} is {self.replayed}, was {self.recorded}"


def dump(row: Result) -> str:
    """`Result.trace`."""
    record = row._record
    try:
        returned = plain(Graph((), returned=row._returned))["returned"]
    except TypeError:  # an object of the program's own
        returned = None
    error = row.error
    holes = [
        {"branch": path, "hole": slot.node.describe(), "key": key, **asdict(slot.result)}
        for slot, path, key in _holes(record, row.seed, row.row)
        if slot.result is not None
    ]
    failure = None
    if error is not None:
        failure = [str(error), error.node, error.filename, error.line]
    return json.dumps(
        {
            "trace": VERSION,
            "graph": {**plain(Graph.of_record(record)), "returned": returned},
            "seed": row.seed,
            "row": row.row,
            "options": _said(row.options),
            "model": row.model,
            "ids": row._ids,
            "timing": row._timing,
            "holes": holes,
            "error": failure,
        },
        ensure_ascii=False,
    )


def replay(
    trace: str | Mapping[str, Any],
    model: Model | None = None,
    *,
    types: Mapping[str, Any] | None = None,
) -> Result:
    """The row of a trace (`row.trace()`).

    Without a model the row comes back as it was. With one, its graph is run again, and
    `row.difference` says where the tokens first differ: None if they are the same. `types` as in
    `Graph.from_json`. Raises ValueError for a text that is no trace, ProgramError as `run` does.
    """
    data = _read(trace)
    try:
        graph = from_plain(data["graph"], types or {})
        results = {int(hole["key"]): _result(hole) for hole in data["holes"]}
        options = Options(**{**data["options"], "seed": data["seed"]})
        ids = tuple(data["ids"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"the text is not a trace: {error}") from error
    if model is not None:
        row = graph.run(options=options, row=data["row"], model=model)
        row.difference = _difference(row, data["holes"])
        return row
    with _RecordedModel(data["model"]["name"], graph, results, ids) as recorded:
        launch = Launch(graph, recorded, replace(options, on_overflow=None))
        run = launch.start(data["row"])
        launch.execute(run, (), {})
        run.join()
        row = Result(run)
    row._timing = tuple(data["timing"])
    row.model = data["model"]
    if data["error"] is not None:
        message, node, filename, line = data["error"]
        row.error = ProgramError(message)
        row.error.node, row.error.filename, row.error.line = node, filename, line
    return row


def _read(trace: str | Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        data = json.loads(trace) if isinstance(trace, str) else trace
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the text is not a trace: {error}") from None
    if not isinstance(data, Mapping) or data.get("trace") != VERSION:
        raise ValueError(f"the text is not a trace of version {VERSION}; row.trace() writes one")
    return data


def _said(options: Options) -> dict[str, Any]:
    said = {f.name: getattr(options, f.name) for f in fields(options)}
    said.pop("timeout", None)  # to be replayed takes the time that it takes
    return {name: value for name, value in said.items() if isinstance(value, str | int | float)}


def _holes(record: Record, seed: int, row: int) -> Iterator[tuple[Slot, BranchPath, int]]:
    """Every hole, with its branch and its key."""
    for part in record.parts:
        if isinstance(part, Slot):
            every = record.variables[part.name]
            occurrence = next(i for i, variable in enumerate(every) if variable is part)
            own = part.node.options.seed
            key = hole_key(seed if own is None else own, row, record.path, part.name, occurrence)
            yield part, record.path, key
    for fork in record.forks:
        for branch in fork:
            yield from _holes(branch, seed, row)


def _result(hole: Mapping[str, Any]) -> HoleResult:
    said = {f.name: hole[f.name] for f in fields(HoleResult) if f.name in hole}
    for name in ("ids", "logprobs", "ends"):
        said[name] = tuple(said[name])
    tops = said.get("top_logprobs", ())
    said["top_logprobs"] = tuple({int(i): p for i, p in top.items()} for top in tops)
    said["usage"] = Usage(**said["usage"])
    said["attempts"] = restored_attempts(said.get("attempts", ()))
    return HoleResult(**said)


def _difference(row: Result, holes: Sequence[Mapping[str, Any]]) -> Difference | None:
    again = {
        key: slot.result.ids
        for slot, _, key in _holes(row._record, row.seed, row.row)
        if slot.result is not None
    }
    for hole in holes:
        was, now = tuple(hole["ids"]), again.get(hole["key"], ())
        if was != now:
            pairs = zip(was, now, strict=False)
            index = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(was), len(now)))
            return Difference(
                hole["hole"],
                tuple(hole["branch"]),
                index,
                was[index] if index < len(was) else None,
                now[index] if index < len(now) else None,
            )
    return None


class _RecordedModel(Model):
    """The model of a trace: it says what was said."""

    def __init__(
        self, name: str, graph: Graph, results: Mapping[int, HoleResult], ids: tuple[int, ...]
    ) -> None:
        self._adopt(_RecordedEngine(name, results, ids))
        self._graph = graph

    @cached_property
    def chat(self) -> Any:
        """What the template of the model wrote around the turns."""
        return _RecordedTemplate(self._graph)


class _RecordedTemplate:
    def __init__(self, graph: Graph) -> None:
        self._openings: dict[tuple[str, ...], str] = {}
        self._closings: dict[tuple[str, ...], str] = {}
        roles: dict[int, tuple[str, ...]] = {0: ()}
        for branch, node in graph.steps:
            if isinstance(node, ir.Fork):
                numbers = range(node.first, node.first + node.branches)
                roles.update(dict.fromkeys(numbers, roles[branch]))
            elif isinstance(node, ir.RoleOpen):
                roles[branch] += (node.role,)
                self._openings[roles[branch]] = node.text
            elif isinstance(node, ir.RoleClose):
                self._closings[roles[branch]] = node.text

    def fragments(self, roles: Sequence[str], tools: tuple[Tool, ...] = ()) -> Fragments:
        key = tuple(roles)
        return Fragments(self._openings.get(key, ""), self._closings.get(key, ""))


class _RecordedEngine(Engine):
    """Answers every hole with the result of the trace."""

    capabilities = frozenset({"constraints", "select", "fork", "logprobs", "tokens"})

    def __init__(self, name: str, results: Mapping[int, HoleResult], ids: tuple[int, ...]) -> None:
        self.name = name
        self._results = results
        self._ids = ids

    @property
    def vocabulary(self) -> Vocabulary:
        raise ModelError("a trace has no vocabulary; replay it with model=")

    chat_template = None
    template_variables: dict[str, str] = {}  # noqa: RUF012 (never changed)
    capacity = 1 << 62

    def open(self, *, priority: int = 0, deadline: float | None = None) -> SequenceId:
        return 0

    def submit(self, sequence: SequenceId, segment: Segment, sink: EventSink) -> None:
        for index, step in enumerate(segment.steps):
            if isinstance(step, Append):
                continue
            result = self._results.get(step.key)
            if result is None:
                sink(SegmentFailed(index, CancelledError("the trace ends before this hole")))
                return
            sink(HoleDone(index, result))
        sink(SegmentDone(self._ids))

    def fork(self, sequence: SequenceId, n: int) -> Sequence[SequenceId]:
        return [0] * n

    def close(self, sequence: SequenceId) -> None:
        pass

    def count_tokens(self, text: str) -> int:
        raise ModelError("a trace has no tokeniser; replay it with model=")

    def stats(self) -> dict[str, Any]:
        return {}

    def shutdown(self) -> None:
        pass
