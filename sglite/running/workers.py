"""The threads that execute bodies: a bounded number for the whole process.

A body that waits for a value keeps its thread. Whoever hands work over must be able to do it
himself if no thread is free, so that bodies inside of bodies cannot starve each other.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable

MAX_WORKERS = 64
"""Threads of all programs of the process together."""

_IDLE_SECONDS = 0.1


class Workers:
    """At most `limit` threads, which end when there is nothing to do."""

    def __init__(self, limit: int = MAX_WORKERS) -> None:
        self._limit = limit
        self._changed = threading.Condition()
        self._jobs: deque[Callable[[], None]] = deque()
        self._threads = 0
        self._idle = 0
        self._process = os.getpid()

    def offer(self, job: Callable[[], None]) -> bool:
        """Have the job done at once; False if every thread is busy. It must not raise."""
        return self._take(job, waiting=False)

    def submit(self, job: Callable[[], None]) -> None:
        """Have the job done as soon as a thread is free."""
        self._take(job, waiting=True)

    def _take(self, job: Callable[[], None], *, waiting: bool) -> bool:
        if self._process != os.getpid():  # the child of a fork: the threads stayed in the parent
            self.__init__(self._limit)  # type: ignore[misc]
        with self._changed:
            if self._idle > len(self._jobs):
                self._jobs.append(job)
                self._changed.notify()
                return True
            if self._threads >= self._limit:
                if waiting:
                    self._jobs.append(job)
                return waiting
            self._threads += 1
        threading.Thread(target=self._run, args=(job,), name="sglite-worker", daemon=True).start()
        return True

    def withdraw(self, job: Callable[[], None]) -> bool:
        """Take back a job that nobody has begun; whether that was so."""
        with self._changed:
            if job in self._jobs:
                self._jobs.remove(job)
                return True
            return False

    def _run(self, job: Callable[[], None] | None) -> None:
        while job is not None:
            job()
            with self._changed:
                if not self._jobs:
                    self._idle += 1
                    self._changed.wait(_IDLE_SECONDS)
                    self._idle -= 1
                job = self._jobs.popleft() if self._jobs else None
                self._threads -= job is None


workers = Workers()
