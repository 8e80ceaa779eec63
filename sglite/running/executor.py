"""One run of a program on an engine: it hands segments over and waits for what was read.

Knows only `Engine`. A run belongs to whoever executes the body, a thread or a task of an event
loop, while events arrive on the engine's thread. The run ends when the body has returned and every
segment has ended. At the first error, be it a cancellation or a deadline, its sequences are closed
at once, and every wait of the body raises it; then the end of the body is the end of the run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from sglite.errors import CapacityError, DeadlineError, ProgramError
from sglite.options import Options
from sglite.running import clock
from sglite.running.attempts import RetryError
from sglite.running.failures import RunCancelled, RunOverdue, overdue, step_error
from sglite.running.lowering import BranchPath
from sglite.running.record import Record, Slot
from sglite.running.waiting import Waitable
from sglite.running.watching import NOBODY, Watcher
from sglite.runtime.engines.base import Engine, SequenceId, StepRefused
from sglite.runtime.segment import (
    Event,
    HoleDone,
    HoleRefused,
    Segment,
    SegmentDone,
    Step,
    TextDelta,
)

if TYPE_CHECKING:
    from sglite.running.fallback import Fallback

current_run: ContextVar[Run | None] = ContextVar("sglite_run", default=None)
"""The run whose body is being executed: those that it starts end with it."""


class Run(Waitable):
    """The life of one execution of a program. `in_task`: its body is a coroutine."""

    __slots__ = (
        "_awaited",
        "_body_over",
        "_busy",
        "_children",
        "_end_early",
        "_ending",
        "_outstanding",
        "_parent",
        "_released",
        "_sequences",
        "_watched",
        "deadline",
        "engine",
        "fallback",
        "finished_at",
        "ids",
        "in_task",
        "instead_of",
        "options",
        "record",
        "returned",
        "row",
        "seed",
        "started_at",
        "watcher",
    )

    def __init__(
        self,
        engine: Engine,
        options: Options,
        seed: int,
        row: int,
        watcher: Watcher | None = None,
        *,
        in_task: bool = False,
        started_at: float | None = None,
    ) -> None:
        super().__init__()
        self.engine = engine
        self.options = options
        self.seed = seed
        self.row = row
        self.in_task = in_task
        self.record = Record()
        self.returned: Any = None
        self.ids: tuple[int, ...] = ()
        self.started_at = time.monotonic() if started_at is None else started_at
        self.finished_at = 0.0
        self.fallback: Fallback | None = None
        self.instead_of: dict[str, Any] | None = None
        self.deadline: clock.Alarm | None = None
        self.watcher: Watcher = watcher or NOBODY
        self._watched = watcher is not None
        self._awaited: set[Slot] | None = None
        self._sequences: list[SequenceId] = []
        self._children: set[Run] | None = None
        self._end_early: Callable[[], None] | None = None
        self._busy: dict[SequenceId, int] = {}  # segments under way
        self._released: set[SequenceId] | None = None
        self._outstanding = 0
        self._body_over = False
        self._ending = False
        if options.timeout is not None:
            self.deadline = clock.alarm(self.started_at + options.timeout, self._overdue)
        self._parent = current_run.get()
        if self._parent is not None:
            self._parent._adopt(self)

    # ---- called by the states, where the body is executed

    def open(self) -> SequenceId:
        """A new empty sequence, closed at the end of the run."""
        self.check()
        priority = self.options.priority or 0
        deadline = None if self.deadline is None else self.deadline.at
        try:
            sequence = self.engine.open(priority=priority, deadline=deadline)
        except Exception as error:
            self.cannot(error)
        self._own((sequence,))
        return sequence

    def fork(self, sequence: SequenceId, n: int) -> Sequence[SequenceId]:
        """`n` sequences that continue from this one, closed at the end of the run."""
        self.check()
        try:
            sequences = self.engine.fork(sequence, n)
        except Exception as error:
            self.cannot(error)
        self._own(sequences)
        return sequences

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
        with self._lock:
            self._outstanding += 1
            self._busy[sequence] = self._busy.get(sequence, 0) + 1

        sink = partial(self._on_event, sequence, steps, slots, path)
        try:
            self.engine.submit(sequence, Segment(steps), sink)
        except Exception as error:
            with self._lock:
                self._outstanding -= 1
            if self.error is not None:
                raise self.error from error.__cause__
            if isinstance(error, StepRefused):
                failure = self._step_error("was refused", error.step, error.error, steps, slots)
                raise failure from error.error
            self.cannot(error)

    def wait(self, slot: Slot) -> None:
        """Return when the slot has its result. Raises the run's error if that comes first."""
        if self.in_task and (self._awaited is None or slot not in self._awaited):
            raise slot.error(
                f"is read without await, which an async program cannot: write "
                f"await s.read({slot.name!r}), or await s.wait() for all that was recorded before"
            )
        if slot.result is None and self.error is None:
            self.watcher.blocked()
            try:
                self._sleep(slot)
            finally:
                self.watcher.resumed()
        if slot.result is None and self.error is not None:
            raise self.error

    @contextmanager
    def elsewhere(self) -> Iterator[None]:
        """The body does something of its own that takes time, such as running a tool."""
        self.watcher.blocked()
        try:
            yield
        finally:
            self.watcher.resumed()

    async def wait_in_task(self, slot: Slot) -> None:
        """`wait` of a coroutine. Cancelling the task cancels the run."""
        if slot.result is None and self.error is None:
            await self._sleep_in_task(slot)
        if self._awaited is None:
            self._awaited = set()
        self._awaited.add(slot)
        if slot.result is None and self.error is not None:
            raise self.error

    def check(self) -> None:
        """Raises the run's error if it has one, and ProgramError if the run has ended."""
        if self.error is not None:
            raise self.error
        if self._body_over:
            raise ProgramError("the program has ended; its states take nothing more")

    def cannot(self, error: Exception) -> NoReturn:
        """Raise what the engine or the model has raised; another one may be able to do it."""
        if self.fallback is not None:
            self.fallback.note(error)
        raise error

    def release(self, sequence: SequenceId) -> None:
        """Close a sequence, to which nothing will be added, as soon as its work is done."""
        with self._lock:
            if self._released is None:
                self._released = set()
            self._released.add(sequence)
        self._close_idle(sequence)

    # ---- called by the owner of the run

    def body_returned(self, returned: Any) -> None:
        """The body is over and everything has been handed over."""
        with self._lock:
            self.returned = returned
            self._body_over = True
        self._settle(in_body=True)

    def fail(self, error: ProgramError, *, body_over: bool = True) -> None:
        """End with this error, unless another one came first."""
        with self._lock:
            self._body_over = self._body_over or body_over
            first = self.error is None and not self._ending
            if first:
                self.error = error
        if first:
            self._give_back()
            self._wake_all()
            end_early = self._end_early
            if end_early is not None and isinstance(error, RunCancelled | RunOverdue):
                end_early()
        if self.fallback is not None and isinstance(error, RunCancelled | RunOverdue):
            self.fallback.stop(error)
        self._settle(in_body=body_over)

    def cancel(self, reason: str = "the run was cancelled") -> None:
        """End as soon as the body comes to its next step. Of a run that has ended: nothing."""
        self.fail(RunCancelled(reason), body_over=False)

    def when_ended_early(self, call: Callable[[], None]) -> None:
        """What ends the body, whatever it waits for, when the run is cancelled or overdue."""
        self._end_early = call
        if isinstance(self.error, RunCancelled | RunOverdue):
            call()

    @property
    def last(self) -> Run:
        """The run with the result: this one, or the one that went on in its place."""
        successor = self.fallback.successor if self.fallback is not None else None
        return self if successor is None else successor.last

    @property
    def finished(self) -> bool:
        """Whether the run has ended."""
        return self._finished

    def join(self, timeout: float | None = None) -> bool:
        """Return when the run has ended; False if it has not within `timeout` seconds."""
        if not self._finished:
            self._sleep(None, timeout)
        return self._finished

    async def join_in_task(self) -> None:
        """`join` of a coroutine."""
        if not self._finished:
            await self._sleep_in_task(None)

    # ---- called on the engine's thread, or on one that judges values

    def _on_event(
        self,
        sequence: SequenceId,
        steps: tuple[Step, ...],
        slots: list[Slot | None],
        path: BranchPath,
        event: Event,
    ) -> None:
        kind = type(event)
        if kind is TextDelta:
            if self._watched and (slot := slots[event.step]) is not None:  # type: ignore[union-attr]
                self.watcher.delta(slot, event.text, path)  # type: ignore[union-attr]
        elif isinstance(event, HoleDone):
            slot = slots[event.step]
            if slot is not None:
                slot.result = event.result
                if self._asleep:
                    self._wake(slot)
                if self._watched:
                    self.watcher.filled(slot, path)
        elif isinstance(event, HoleRefused):
            slot = slots[event.step]
            if self._watched and slot is not None:
                self.watcher.refused(slot, event.attempt, path)
        elif isinstance(event, SegmentDone):
            with self._lock:
                self._outstanding -= 1
                self._busy[sequence] -= 1
                if not path:
                    self.ids = event.ids
            if self._released is not None:
                self._close_idle(sequence)
            if self._body_over:
                self._settle()
        elif not isinstance(event, TextDelta):
            with self._lock:
                self._outstanding -= 1
            failure = self._step_error("failed", event.step, event.error, steps, slots)
            self.fail(failure, body_over=False)

    def _close_idle(self, sequence: SequenceId) -> None:
        """Close a released sequence that has nothing under way."""
        with self._lock:
            released = self._released is not None and sequence in self._released
            if not released or self._busy.get(sequence) or sequence not in self._sequences:
                return
            self._sequences.remove(sequence)
        self.engine.close(sequence)

    def _step_error(
        self,
        verb: str,
        index: int,
        error: Exception,
        steps: tuple[Step, ...],
        slots: list[Slot | None],
    ) -> ProgramError:
        if isinstance(error, DeadlineError) and self.options.timeout is not None:
            return overdue(self.record, self.options.timeout)
        if isinstance(error, ProgramError):  # says already what and where
            cause = error.__cause__ if isinstance(error, RetryError) else None
            if self.fallback is not None and isinstance(cause, CapacityError):
                self.fallback.note(cause, refused=False)
            return error
        if self.fallback is not None:
            self.fallback.note(error, refused=verb == "was refused")
        return step_error(verb, index, error, steps, slots, self.record)

    # ---- the end

    def _overdue(self) -> None:
        self.fail(overdue(self.record, self.options.timeout), body_over=False)

    def _own(self, sequences: Sequence[SequenceId]) -> None:
        with self._lock:
            ended = self._ending or self.error is not None
            if not ended:
                self._sequences.extend(sequences)
        if ended:  # cancelled from outside while the body was still running
            for sequence in sequences:
                self.engine.close(sequence)
            self.check()

    def _adopt(self, child: Run) -> None:
        with self._lock:
            if self._children is None:
                self._children = set()
            self._children.add(child)
            failed = self.error is not None
        if failed:
            child.cancel("the run that started this one has ended")

    def _give_back(self) -> None:
        """Close what the engine has of this run and of those that its body has started."""
        with self._lock:
            sequences, self._sequences = self._sequences, []
            children, self._children = self._children, None
        for child in children or ():
            child.cancel("the run that started this one has ended")
        for sequence in sequences:
            self.engine.close(sequence)

    def _settle(self, *, in_body: bool = False) -> None:
        """End, if all is over. `in_body`: on the thread of the body, which has just ended."""
        with self._lock:
            over = self._body_over and (self.error is not None or self._outstanding == 0)
            if not over or self._ending:
                return
            self._ending = True
            self.finished_at = time.monotonic()
        try:
            if self.deadline is not None:
                self.deadline.stop()
            self._give_back()
        finally:  # whoever waits must not hang, whatever the engine does
            if self.fallback is None or not self.fallback.goes_on(self, in_body):
                self.finish()

    def finish(self) -> None:
        """Tell whoever waits for the end of the run."""
        if self._parent is not None:
            self._parent._release(self)
        self._finished = True
        if self._asleep:
            self._wake_all()
            self._wake(None)
        self._end_early = None  # which knows the body, and that this run
        watcher, self.watcher = self.watcher, NOBODY  # which knows all rows of a batch
        watcher.finished(self)

    def _release(self, child: Run) -> None:
        with self._lock:
            if self._children is not None:
                self._children.discard(child)
