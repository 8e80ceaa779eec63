"""What becomes of an engine in the child of a fork: its memory is there, its threads are not.

Without a word to it the child would wait for ever for a thread that only the parent has.
"""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet


class Forked(Protocol):
    """Somebody with a thread."""

    def forked(self) -> None:
        """This process is the child of a fork. Locks may be held by threads that do not exist."""


_watched: WeakSet[Forked] = WeakSet()


def watch(engine: Forked) -> None:
    """Call `engine.forked()` in every child that is forked while the engine lives."""
    _watched.add(engine)


def _tell() -> None:
    for engine in list(_watched):
        engine.forked()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_tell)
