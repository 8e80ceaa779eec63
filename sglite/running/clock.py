"""Calls that are due at a time: the deadlines of runs.

One thread for the whole process, which is there only while somebody waits for a deadline.
"""

from __future__ import annotations

import heapq
import itertools
import os
import threading
import time
from collections.abc import Callable


class Alarm:
    """A call that is due at `at`, in time.monotonic() seconds."""

    __slots__ = ("at", "call")

    def __init__(self, at: float, call: Callable[[], None]) -> None:
        self.at = at
        self.call: Callable[[], None] | None = call

    def stop(self) -> None:
        """The call is not made any more."""
        self.call = None


class _Clock:
    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._due: list[tuple[float, int, Alarm]] = []
        self._numbers = itertools.count()
        self._running = False
        self._process = os.getpid()

    def set(self, alarm: Alarm) -> None:
        if self._process != os.getpid():  # the child of a fork: the thread stayed in the parent
            self.__init__()  # type: ignore[misc]
        with self._changed:
            heapq.heappush(self._due, (alarm.at, next(self._numbers), alarm))
            if not self._running:
                self._running = True
                threading.Thread(target=self._run, name="sglite-clock", daemon=True).start()
            elif self._due[0][2] is alarm:
                self._changed.notify()

    def _run(self) -> None:
        while (alarm := self._next()) is not None:
            call = alarm.call
            if call is not None:
                call()

    def _next(self) -> Alarm | None:
        """The next alarm, when it is due; None ends the thread."""
        with self._changed:
            while self._due:
                at, _, alarm = self._due[0]
                wait = at - time.monotonic()
                if alarm.call is None or wait <= 0:
                    heapq.heappop(self._due)
                    if alarm.call is not None:
                        return alarm
                else:
                    self._changed.wait(min(wait, threading.TIMEOUT_MAX))
            self._running = False
            return None


_clock = _Clock()


def alarm(at: float, call: Callable[[], None]) -> Alarm:
    """Make this call at `at`, on a thread of its own; it must be quick and must not raise."""
    made = Alarm(at, call)
    _clock.set(made)
    return made
