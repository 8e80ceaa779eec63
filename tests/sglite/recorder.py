"""A scripted model that writes down what it was asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import sglite as sgl
from sglite.runtime.engines.base import EventSink, SequenceId
from sglite.runtime.engines.scripted import ScriptedEngine
from sglite.runtime.segment import Append, Gen, Piece, Segment, Select


class Recorder(ScriptedEngine):
    """A scripted engine that remembers every call."""

    def __init__(self, script: Mapping[str, Any] | None = None, **options: Any) -> None:
        super().__init__(script=script, **options)
        self.segments: list[tuple[SequenceId, Segment]] = []
        self.opened: list[SequenceId] = []
        self.closed: list[SequenceId] = []
        self.forked: list[tuple[SequenceId, SequenceId]] = []
        self.priorities: list[int] = []

    def open(self, *, priority: int = 0, deadline: float | None = None) -> SequenceId:
        sequence = super().open(priority=priority, deadline=deadline)
        self.opened.append(sequence)
        self.priorities.append(priority)
        return sequence

    def fork(self, sequence: SequenceId, n: int) -> list[SequenceId]:
        forks = list(super().fork(sequence, n))
        self.opened.extend(forks)
        self.forked.extend((sequence, fork) for fork in forks)
        return forks

    def submit(self, sequence: SequenceId, segment: Segment, sink: EventSink) -> None:
        self.segments.append((sequence, segment))
        super().submit(sequence, segment, sink)

    def close(self, sequence: SequenceId) -> None:
        self.closed.append(sequence)
        super().close(sequence)

    def steps(self, sequence: SequenceId | None = None) -> list[Append | Gen | Select]:
        """All steps of a sequence (the first one), in order, however they were cut in segments."""
        sequence = self.opened[0] if sequence is None else sequence
        return [step for s, segment in self.segments if s == sequence for step in segment.steps]

    def texts(self, sequence: SequenceId | None = None) -> list[str]:
        """The literal texts of a sequence, one for each Append."""
        return [text_of(step) for step in self.steps(sequence) if isinstance(step, Append)]


def text_of(step: Append) -> str:
    return "".join(piece.text for piece in step.pieces)


def user(text: str) -> Append:
    return Append((Piece(text),))


class Scripted(sgl.Model):
    """A model on a recorder."""

    engine: Recorder

    def __init__(self, script: Mapping[str, Any] | None, **options: Any) -> None:
        self._adopt(Recorder(script, **options))


MakeScripted = Callable[..., Recorder]
