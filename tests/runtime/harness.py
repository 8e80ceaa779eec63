"""Drives a LocalEngine by hand and collects what comes out."""

from __future__ import annotations

from dataclasses import dataclass, field

from fakes import FakeBackend, FakeConstraints, FakeTokenizer, FakeVocabulary

from sglite.runtime.engine import LocalEngine
from sglite.runtime.segment import (
    Append,
    HoleDone,
    HoleResult,
    Piece,
    Segment,
    SegmentDone,
    SegmentFailed,
    TextDelta,
)


def make_engine(backend: FakeBackend | None = None, **options) -> LocalEngine:
    options = {"constraints": FakeConstraints(), "check": True, "threaded": False} | options
    tokenizer = options.pop("tokenizer", None) or FakeTokenizer()
    return LocalEngine("fake", backend or FakeBackend(), tokenizer, FakeVocabulary(), **options)


def text(*parts: str) -> Append:
    return Append(tuple(Piece(part) for part in parts))


@dataclass
class Collector:
    """A sink that checks the order of the events."""

    results: list[HoleResult] = field(default_factory=list)
    ids: tuple[int, ...] | None = None
    error: Exception | None = None
    failed_step: int | None = None
    terminal: int = 0
    deltas: str = ""
    delta_steps: set[int] = field(default_factory=set)

    def __call__(self, event) -> None:
        assert not self.terminal, "an event after the terminal one"
        if isinstance(event, TextDelta):
            assert event.text
            self.delta_steps.add(event.step)
            self.deltas += event.text
        elif isinstance(event, HoleDone):
            if event.result.finish != "select":
                assert self.deltas == event.result.text
            assert self.delta_steps <= {event.step}, "text under the step of another hole"
            self.deltas = ""
            self.delta_steps.clear()
            assert len(event.result.ids) == len(event.result.logprobs)
            self.results.append(event.result)
        elif isinstance(event, SegmentDone):
            self.terminal += 1
            self.ids = event.ids
        elif isinstance(event, SegmentFailed):
            self.terminal += 1
            self.error, self.failed_step = event.error, event.step
        else:
            raise AssertionError(event)


def submit(engine: LocalEngine, sequence: int, *steps) -> Collector:
    collector = Collector()
    engine.submit(sequence, Segment(tuple(steps)), collector)
    return collector


def drain(engine: LocalEngine, limit: int = 20_000) -> None:
    for _ in range(limit):
        if not engine.step():
            return
    raise AssertionError("the engine does not come to rest")


def run(engine: LocalEngine, *steps) -> Collector:
    """Run the steps on a new sequence and close it."""
    sequence = engine.open()
    collector = submit(engine, sequence, *steps)
    drain(engine)
    engine.close(sequence)
    drain(engine)
    if collector.error is not None:
        raise collector.error
    return collector
