"""Who looks on while a run goes on: batches, streams, or nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from sglite.running.lowering import BranchPath
from sglite.running.record import Slot
from sglite.runtime.segment import Attempt

if TYPE_CHECKING:
    from sglite.model import Model
    from sglite.running.executor import Run
    from sglite.tools.declared import ToolResult


class Watcher(Protocol):
    """Who wants to know how a run goes on. Calls come from any thread and must be quick."""

    def blocked(self) -> None:
        """The body waits for a value from here on, and its thread with it."""

    def resumed(self) -> None:
        """The body goes on."""

    def delta(self, slot: Slot, text: str, path: BranchPath) -> None:
        """More text of a hole."""

    def filled(self, slot: Slot, path: BranchPath) -> None:
        """A hole has its result."""

    def refused(self, slot: Slot, attempt: Attempt, path: BranchPath) -> None:
        """The text of a hole so far is void: its value was refused, and it is tried again."""

    def returned(self, result: ToolResult, path: BranchPath) -> None:
        """A tool has run."""

    def switched(self, run: Run, model: Model, reason: str) -> None:
        """`run` is over and begins anew on this model; called before anything happens there."""

    def finished(self, run: Run) -> None:
        """The run has ended; called once."""


class Unwatched:
    """A watcher that looks at nothing."""

    __slots__ = ()

    def blocked(self) -> None:
        pass

    def resumed(self) -> None:
        pass

    def delta(self, slot: Slot, text: str, path: BranchPath) -> None:
        pass

    def filled(self, slot: Slot, path: BranchPath) -> None:
        pass

    def refused(self, slot: Slot, attempt: Attempt, path: BranchPath) -> None:
        pass

    def returned(self, result: ToolResult, path: BranchPath) -> None:
        pass

    def switched(self, run: Run, model: Model, reason: str) -> None:
        pass

    def finished(self, run: Run) -> None:
        pass


NOBODY = Unwatched()
