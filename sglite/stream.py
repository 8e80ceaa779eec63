"""What happens in a run, while it happens."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from sglite.errors import ProgramError
from sglite.lowering import BranchPath
from sglite.record import Slot
from sglite.result import Result

if TYPE_CHECKING:
    from sglite.program import Launch


@dataclass(frozen=True, slots=True)
class Text:
    """More text of a variable; `branch` is () for the program itself."""

    name: str
    text: str
    branch: BranchPath = ()


@dataclass(frozen=True, slots=True)
class Filled:
    """A variable has its value."""

    name: str
    value: Any
    branch: BranchPath = ()


@dataclass(frozen=True, slots=True)
class End:
    """The program is over; `row` is what `run` would have returned."""

    row: Result


StreamEvent = Text | Filled | End


def stream(
    launch: Launch, row: int, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Iterator[StreamEvent]:
    """`Function.stream`, with program, model, options and seed settled in `launch`."""
    queue: SimpleQueue[Text | tuple[Slot, BranchPath] | None] = SimpleQueue()
    run = launch.start(row, _Feed(queue))
    returned: list[Any] = []

    def body() -> None:
        returned.append(launch.execute(run, args, kwargs))

    # A thread of its own: the body may wait for values whose text is to be seen meanwhile.
    thread = threading.Thread(target=body, name="sglite-stream", daemon=True)
    thread.start()
    try:
        while (event := queue.get()) is not None:
            if isinstance(event, Text):
                yield event
            else:
                slot, path = event
                yield Filled(slot.name, slot.value, path)
        thread.join()
        result = Result(run, returned[0] if returned else None)
        if result.error is not None:
            raise result.error
        yield End(result)
    finally:
        run.fail(ProgramError("the stream was left before its end"))


class _Feed:
    """Puts the events of a run into a queue; None ends it."""

    def __init__(self, queue: SimpleQueue[Text | tuple[Slot, BranchPath] | None]) -> None:
        self._queue = queue

    def blocked(self) -> None:
        pass

    def resumed(self) -> None:
        pass

    def delta(self, slot: Slot, text: str, path: BranchPath) -> None:
        self._queue.put(Text(slot.name, text, path))

    def filled(self, slot: Slot, path: BranchPath) -> None:
        self._queue.put((slot, path))

    def finished(self) -> None:
        self._queue.put(None)
