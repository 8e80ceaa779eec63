"""A sequence of a run that has holes with retries: what is asked of it is done in its order.

Between the attempts at a hole the engine knows nothing of what comes after it. So segments and
forks wait here, and a fork has a number of its own before the engine knows it. Knows nothing of
values and attempts.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Sequence
from threading import Lock
from typing import Protocol

from sglite.errors import CancelledError
from sglite.running.workers import Workers
from sglite.runtime.engines.base import Engine, EventSink, SequenceId
from sglite.runtime.segment import Segment, Step

judges = Workers(sys.maxsize)
"""The threads on which values are judged. Without a bound: a validator may itself wait for holes
whose values have to be judged."""


class Work(Protocol):
    """What is asked of a line."""

    def begin(self, line: Line) -> bool:
        """Hand it on to the engine; False if that is not over yet, and ends with `work_off`."""

    def refuse(self, error: Exception) -> None:
        """It will never begin."""


class Line:
    """`number`: the sequence in the engine, None before it is born.

    A line is held while somebody works off what waits, or a hole is being tried.
    """

    def __init__(self, engine: Engine, number: SequenceId | None) -> None:
        self._engine = engine
        self._number = number
        self._base: SequenceId | None = None
        self._held = number is None
        self._error: Exception | None = None
        self._waiting: deque[Work] = deque()
        self._lock = Lock()

    def ask(self, work: Work) -> None:
        """Do this after all that was asked before."""
        with self._lock:
            error = self._error
            if error is None:
                self._waiting.append(work)
                if self._held:
                    return
                self._held = True
        if error is not None:
            judges.submit(lambda: work.refuse(error))
        else:
            self.work_off()

    def work_off(self) -> None:
        """Begin what waits, one after the other. For whoever holds the line."""
        while True:
            with self._lock:
                if not self._waiting or self._error is not None:
                    self._held = False
                    return
                work = self._waiting.popleft()
            if not work.begin(self):
                return

    def submit(self, steps: tuple[Step, ...], sink: EventSink) -> None:
        """Hand steps on to the engine. Raises what that raises."""
        self._engine.submit(self._there(), Segment(steps), sink)

    def fork(self, n: int) -> Sequence[SequenceId]:
        """`n` sequences of the engine that go on from here."""
        return self._engine.fork(self._there(), n)

    def born(self, number: SequenceId) -> None:
        """The engine knows it now."""
        with self._lock:
            is_gone = self._error is not None
            if not is_gone:
                self._number = number
        if is_gone:
            self._engine.close(number)
        else:
            self.work_off()

    def keep(self) -> None:
        """Keep the state as it is, to go back to."""
        (base,) = self.fork(1)
        with self._lock:
            is_gone = self._number is None
            if not is_gone:
                self._base = base
        if is_gone:
            self._engine.close(base)

    def let_go(self) -> None:
        """Nobody will go back to what was kept."""
        with self._lock:
            base, self._base = self._base, None
        self._close(base)

    def go_back(self) -> None:
        """Go on from the state that was kept."""
        with self._lock:
            left, self._number, self._base = self._number, self._base, None
        self._close(left)

    def fail(self, error: Exception) -> None:
        """Nothing more can be done; what waits is refused."""
        with self._lock:
            self._error = self._error or error
            refused = [*self._waiting]
            self._waiting.clear()
        if refused:
            # Not on this thread, which may be in the middle of something of whoever is told.
            judges.submit(lambda: _refuse(refused, error))

    def close(self) -> None:
        """Give everything back."""
        self.fail(CancelledError("the sequence was closed"))
        with self._lock:
            left = (self._number, self._base)
            self._number = self._base = None
        for number in left:
            self._close(number)

    def _there(self) -> SequenceId:
        with self._lock:
            if self._number is None:
                raise self._error or CancelledError("the sequence was closed")
            return self._number

    def _close(self, number: SequenceId | None) -> None:
        if number is not None:
            self._engine.close(number)


class Birth:
    """A fork of a line: its children are there when it begins."""

    def __init__(self, children: Sequence[Line]) -> None:
        self._children = children

    def begin(self, line: Line) -> bool:
        try:
            numbers = line.fork(len(self._children))
        except Exception as error:
            self.refuse(error)
            return True
        for child, number in zip(self._children, numbers, strict=True):
            child.born(number)
        return True

    def refuse(self, error: Exception) -> None:
        for child in self._children:
            child.fail(error)


def _refuse(refused: Sequence[Work], error: Exception) -> None:
    for work in refused:
        work.refuse(error)
