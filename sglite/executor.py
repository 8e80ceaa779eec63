"""One run of a program on an engine: it hands segments over and waits for what was read.

Knows only `Engine`. A run belongs to the thread that executes the body, while events arrive on the
engine's thread; everything that both touch is behind one lock. The run ends when the body has
returned and every segment has ended, or at the first error; then its sequences are closed, once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from sglite import ir
from sglite.errors import GrammarError, ProgramError
from sglite.lowering import BranchPath
from sglite.options import Options
from sglite.record import Record, Slot, program_error
from sglite.runtime.engines.base import Engine, SequenceId, StepRefused
from sglite.runtime.segment import (
    Append,
    Event,
    HoleDone,
    Segment,
    SegmentDone,
    Step,
    TextDelta,
)


class Watcher(Protocol):
    """Who wants to know how a run goes on. Calls come from any thread and must be quick."""

    def blocked(self) -> None:
        """The body waits for a value from here on."""

    def resumed(self) -> None:
        """The body goes on."""

    def delta(self, slot: Slot, text: str, path: BranchPath) -> None:
        """More text of a hole."""

    def filled(self, slot: Slot, path: BranchPath) -> None:
        """A hole has its result."""

    def finished(self) -> None:
        """The run has ended; called once."""


class Run:
    """The life of one execution of a program."""

    def __init__(
        self,
        engine: Engine,
        options: Options,
        seed: int,
        row: int,
        watcher: Watcher | None = None,
    ) -> None:
        self.engine = engine
        self.options = options
        self.seed = seed
        self.row = row
        self.record = Record()
        self.error: ProgramError | None = None
        self.ids: tuple[int, ...] = ()
        self.started_at = time.monotonic()
        self.finished_at = 0.0
        self._watcher = watcher
        self._changed = threading.Condition()
        self._sequences: list[SequenceId] = []
        self._outstanding = 0
        self._body_over = False
        self._ending = False
        self._finished = False

    # ---- called by the states, on the thread of the body

    def open(self) -> SequenceId:
        """A new empty sequence, closed at the end of the run."""
        self.check()
        sequence = self.engine.open(priority=self.options.priority or 0)
        self._own((sequence,))
        return sequence

    def fork(self, sequence: SequenceId, n: int) -> Sequence[SequenceId]:
        """`n` sequences that continue from this one, closed at the end of the run."""
        self.check()
        sequences = self.engine.fork(sequence, n)
        self._own(sequences)
        return sequences

    def release(self, sequence: SequenceId) -> None:
        """Close a sequence that nothing will be added to any more."""
        with self._changed:
            if sequence not in self._sequences:
                return
            self._sequences.remove(sequence)
        self.engine.close(sequence)

    def submit(
        self,
        sequence: SequenceId,
        steps: tuple[Step, ...],
        slots: list[Slot | None],
        path: BranchPath,
    ) -> None:
        """Hand over steps; `slots[i]` takes the result of step i.

        Raises ProgramError for a step that is refused, with the engine's own error as its cause.
        """
        self.check()
        with self._changed:
            self._outstanding += 1

        def sink(event: Event) -> None:
            self._on_event(event, steps, slots, path)

        try:
            self.engine.submit(sequence, Segment(steps), sink)
        except Exception as error:
            with self._changed:
                self._outstanding -= 1
            if self.error is not None:
                raise self.error from error.__cause__
            if isinstance(error, StepRefused):
                failure = self._step_error("was refused", error.step, error.error, steps, slots)
                raise failure from error.error
            raise

    def wait(self, slot: Slot) -> None:
        """Return when the slot has its result. Raises the run's error if that comes first."""
        with self._changed:
            if slot.result is not None:
                return
        with self.elsewhere(), self._changed:
            while slot.result is None and self.error is None:
                self._changed.wait()
        if slot.result is None and self.error is not None:
            raise self.error

    @contextmanager
    def elsewhere(self) -> Iterator[None]:
        """The body does something of its own that takes time, such as running a tool."""
        if self._watcher is not None:
            self._watcher.blocked()
        try:
            yield
        finally:
            if self._watcher is not None:
                self._watcher.resumed()

    def check(self) -> None:
        """Raises the run's error if it has one, and ProgramError if the run has ended."""
        if self.error is not None:
            raise self.error
        if self._body_over:
            raise ProgramError("the program has ended; its states take nothing more")

    # ---- called by the owner of the run

    def body_returned(self) -> None:
        """The body is over and everything has been handed over."""
        with self._changed:
            self._body_over = True
        self._settle()

    def fail(self, error: ProgramError, *, body_over: bool = True) -> None:
        """End with this error, unless another one came first."""
        with self._changed:
            if self.error is None and not self._ending:
                self.error = error
            self._body_over = self._body_over or body_over
            self._changed.notify_all()
        self._settle()

    def join(self) -> None:
        """Return when the run has ended."""
        with self._changed:
            while not self._finished:
                self._changed.wait()

    # ---- called on the engine's thread

    def _on_event(
        self,
        event: Event,
        steps: tuple[Step, ...],
        slots: list[Slot | None],
        path: BranchPath,
    ) -> None:
        if isinstance(event, TextDelta):
            slot = slots[event.step]
            if self._watcher is not None and slot is not None:
                self._watcher.delta(slot, event.text, path)
        elif isinstance(event, HoleDone):
            slot = slots[event.step]
            if slot is not None:
                with self._changed:
                    slot.result = event.result
                    self._changed.notify_all()
                if self._watcher is not None:
                    self._watcher.filled(slot, path)
        elif isinstance(event, SegmentDone):
            with self._changed:
                self._outstanding -= 1
                if not path:
                    self.ids = event.ids
            self._settle()
        else:
            with self._changed:
                self._outstanding -= 1
            failure = self._step_error("failed", event.step, event.error, steps, slots)
            self.fail(failure, body_over=False)

    def _step_error(
        self,
        verb: str,
        index: int,
        error: Exception,
        steps: tuple[Step, ...],
        slots: list[Slot | None],
    ) -> ProgramError:
        """The error of one step: about its hole, its special token, or the hole that follows."""
        said = _say(error)
        slot = next((slot for slot in slots[index:] if slot is not None), None)
        if isinstance(error, GrammarError) and slot and isinstance(slot.node, ir.Gen):
            said += f", in the schema of the type {slot.node.origin}" * bool(slot.node.origin)
        step = steps[index] if index < len(steps) else None
        special = self._special(step, said) if isinstance(step, Append) else None
        if special is not None:
            failure = program_error(f"{special.describe()} {verb}: {said}", special)
        elif slot is not None:
            where = " at the text before it" if isinstance(step, Append) else ""
            failure = slot.error(f"{verb}{where}: {said}")
        else:
            failure = ProgramError(f"the text at the end of the program {verb}: {said}")
        failure.__cause__ = error
        return failure

    def _special(self, step: Append, said: str) -> ir.Special | None:
        """The special token in this text that the engine speaks of."""
        named = {p.text for p in step.pieces if p.kind == "special" and repr(p.text) in said}
        return next((node for node in self.record.specials() if node.text in named), None)

    def _own(self, sequences: Sequence[SequenceId]) -> None:
        with self._changed:
            self._sequences.extend(sequences)
            ended = self._ending
        if ended:  # cancelled from outside while the body was still running
            for sequence in sequences:
                self.engine.close(sequence)
            self.check()

    def _settle(self) -> None:
        with self._changed:
            over = self._body_over and (self.error is not None or self._outstanding == 0)
            if not over or self._ending:
                return
            self._ending = True
            self.finished_at = time.monotonic()
            sequences = tuple(self._sequences)
        try:
            for sequence in sequences:
                self.engine.close(sequence)
        finally:  # whoever waits must not hang, whatever the engine does
            with self._changed:
                self._finished = True
                self._changed.notify_all()
            if self._watcher is not None:
                self._watcher.finished()


def _say(error: Exception) -> str:
    return str(error) or type(error).__name__
