"""How other threads complete the futures of an event loop: many with one wake-up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from threading import Lock
from weakref import WeakKeyDictionary


class Mailbox:
    """Calls for one event loop, from any thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._lock = Lock()
        self._calls: list[Callable[[], object]] = []

    def complete(self, future: asyncio.Future[None]) -> None:
        """Let whoever awaits this future go on."""

        def done() -> None:
            if not future.done():
                future.set_result(None)

        self.call(done)

    def call(self, call: Callable[[], object]) -> None:
        """Make this call in the loop. Of a loop that is closed: nothing."""
        with self._lock:
            self._calls.append(call)
            if len(self._calls) > 1:  # a wake-up is under way
                return
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        with self._lock:
            calls, self._calls = self._calls, []
        for call in calls:
            call()


_boxes: WeakKeyDictionary[asyncio.AbstractEventLoop, Mailbox] = WeakKeyDictionary()


def mailbox(loop: asyncio.AbstractEventLoop) -> Mailbox:
    """The mailbox of a loop; called from that loop."""
    box = _boxes.get(loop)
    if box is None:
        box = _boxes[loop] = Mailbox(loop)
    return box
