"""The engine of a run that has holes with retries, in front of the one that it shares with others.

    run ---- submit, fork, close ----> RetryingEngine ---- the same, in parts ----> engine

Sequences in which nothing is tried again go straight through. How a segment with such a hole is
carried on is told in `courses`, what waits meanwhile in `lines`, what the model reads in
`attempts`.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from sglite.language import ir
from sglite.running.attempts import RetriedGen, retried
from sglite.running.courses import Course
from sglite.running.lines import Birth, Line
from sglite.running.record import Slot
from sglite.runtime.engines.base import Engine, EventSink, SequenceId
from sglite.runtime.segment import Hole, Segment

if TYPE_CHECKING:
    from sglite.grammars import Vocabulary
    from sglite.language.recorder import Recorder


def with_retries(state: Recorder, slot: Slot, hole: Hole) -> RetriedGen:
    """The step of a hole with retries, whose run can carry it on from here on."""
    assert isinstance(slot.node, ir.Gen)
    run = state._run
    if not isinstance(run.engine, RetryingEngine):
        run.engine = RetryingEngine(run.engine)
    return retried(state, slot, hole, slot.node.retries)


class RetryingEngine(Engine):
    """An engine that carries on the steps of `RetriedGen` holes."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lines: dict[SequenceId, Line] = {}
        self._unborn = itertools.count(-1, -1)  # numbers that no engine has
        self._lock = Lock()
        self.name = engine.name
        self.path: Path | None = engine.path
        self.capabilities = engine.capabilities

    @property
    def vocabulary(self) -> Vocabulary:
        return self._engine.vocabulary

    @property
    def chat_template(self) -> str | None:
        return self._engine.chat_template

    @property
    def template_variables(self) -> dict[str, str]:
        return self._engine.template_variables

    @property
    def capacity(self) -> int:
        return self._engine.capacity

    def open(self, *, priority: int = 0, deadline: float | None = None) -> SequenceId:
        return self._engine.open(priority=priority, deadline=deadline)

    def submit(self, sequence: SequenceId, segment: Segment, sink: EventSink) -> None:
        with self._lock:
            line = self._lines.get(sequence)
            if line is None and any(isinstance(step, RetriedGen) for step in segment.steps):
                line = self._lines[sequence] = Line(self._engine, sequence)
        if line is None:
            self._engine.submit(sequence, segment, sink)
        else:
            line.ask(Course(segment.steps, sink))

    def fork(self, sequence: SequenceId, n: int) -> Sequence[SequenceId]:
        line = self._lines.get(sequence)
        if line is None:
            return self._engine.fork(sequence, n)
        children = [Line(self._engine, None) for _ in range(n)]
        with self._lock:
            numbers = [next(self._unborn) for _ in range(n)]
            self._lines.update(zip(numbers, children, strict=True))
        line.ask(Birth(children))
        return numbers

    def close(self, sequence: SequenceId) -> None:
        with self._lock:
            line = self._lines.pop(sequence, None)
        if line is None:
            self._engine.close(sequence)
        else:
            line.close()

    def count_tokens(self, text: str) -> int:
        return self._engine.count_tokens(text)

    def stats(self) -> dict[str, Any]:
        return self._engine.stats()

    def shutdown(self) -> None:
        self._engine.shutdown()
