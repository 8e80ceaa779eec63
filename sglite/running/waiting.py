"""Who waits for a run: its body for a value, others for its end; threads and tasks alike."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from threading import Lock

from sglite.errors import ProgramError
from sglite.running.mailbox import mailbox
from sglite.running.record import Slot

_Sleeper = tuple[Slot | None, Callable[[], None]]
"""The hole that is waited for, None for the end of the run; and what wakes whoever waits."""


class Waitable:
    """The base of a run: what it is waited for, and the waiting. Knows nothing of how it goes on.

    Whoever sets the result of a slot, `error` or `_finished` wakes those who wait for it.
    """

    __slots__ = ("_asleep", "_finished", "_lock", "error")

    def __init__(self) -> None:
        self.error: ProgramError | None = None
        self._finished = False
        self._lock = Lock()
        self._asleep: list[_Sleeper] = []

    def _sleep(self, slot: Slot | None, timeout: float | None = None) -> None:
        """Return when the slot has its result or the run an error; None: when it has ended."""
        gate = Lock()
        gate.acquire()
        entry = (slot, gate.release)
        if self._enter(entry):
            try:
                gate.acquire(timeout=-1 if timeout is None else max(0.0, timeout))
            finally:
                self._leave(entry)

    async def _sleep_in_task(self, slot: Slot | None) -> None:
        loop = asyncio.get_running_loop()
        box, future = mailbox(loop), loop.create_future()
        entry = (slot, lambda: box.complete(future))
        if self._enter(entry):
            try:
                await future
            finally:
                self._leave(entry)

    def _enter(self, entry: _Sleeper) -> bool:
        """Wait, unless what is waited for is there."""
        slot = entry[0]
        with self._lock:
            # Appended before the look at the result: the engine's thread does it in the other
            # order and without the lock, so one of the two sees the other.
            self._asleep.append(entry)
            over = self._finished if slot is None else slot.result or self.error
            if over:
                self._asleep.remove(entry)
            return not over

    def _leave(self, entry: _Sleeper) -> None:
        with self._lock:
            if entry in self._asleep:
                self._asleep.remove(entry)

    def _wake(self, slot: Slot | None) -> None:
        with self._lock:
            woken = [entry for entry in self._asleep if entry[0] is slot]
            for entry in woken:
                self._asleep.remove(entry)
        for _, wake in woken:
            wake()

    def _wake_all(self) -> None:
        """Whoever waits for a value goes on; those who wait for the end wait for it."""
        with self._lock:
            woken = [entry for entry in self._asleep if entry[0] is not None]
            self._asleep = [entry for entry in self._asleep if entry[0] is None]
        for _, wake in woken:
            wake()
