"""What happens in a run, while it happens.

`Text` is for whoever reads along: no thoughts, nothing that leaves the prompt, and no calls of
tools as the model writes them. Those are events of other kinds.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sglite.errors import ProgramError
from sglite.language import ir
from sglite.running.executor import Run
from sglite.running.lowering import BranchPath
from sglite.running.partial import NOTHING, partial_value
from sglite.running.record import Slot
from sglite.running.result import Result
from sglite.runtime.segment import Attempt
from sglite.tools.declared import ToolCall, ToolResult
from sglite.tools.formats import ToolFormat, format_of_hole, text_before_calls

if TYPE_CHECKING:
    from sglite.model import Model
    from sglite.running.batch import Errors
    from sglite.running.launch import Launch


@dataclass(frozen=True, slots=True)
class Text:
    """More text of a variable; `branch` is () for the program itself."""

    name: str
    text: str
    branch: BranchPath = ()


@dataclass(frozen=True, slots=True)
class Hidden:
    """More text that is not the answer: of a hole with `hidden=True`, or a thought."""

    name: str
    text: str
    branch: BranchPath = ()


@dataclass(frozen=True, slots=True)
class Partial:
    """What a variable that is written as JSON has so far: an object of its type, not yet whole.

    Fields of a model or dataclass that are not there yet have their default, or None.
    """

    name: str
    value: Any
    branch: BranchPath = ()


@dataclass(frozen=True, slots=True)
class Retried:
    """The value of a variable was refused for these `errors`, and the hole is tried again: what
    there was of its text and value so far is void."""

    name: str
    errors: tuple[str, ...]
    branch: BranchPath = ()


@dataclass(frozen=True, slots=True)
class Filled:
    """A variable has its value."""

    name: str
    value: Any
    branch: BranchPath = ()


@dataclass(frozen=True, slots=True)
class ToolCalled:
    """The model calls a tool in the hole `name`; of several calls each is an event.

    `call` has the tool's name and arguments. `Filled`, with all calls as its value, follows.
    """

    name: str
    call: ToolCall
    branch: BranchPath = ()


@dataclass(frozen=True, slots=True)
class ToolReturned:
    """A tool that was called has run; `result` has the call, and a value or an error."""

    result: ToolResult
    branch: BranchPath = ()


@dataclass(frozen=True, slots=True)
class Switched:
    """The model could not do it, and the program begins anew on its fallback, `model`.

    Everything before this event counts no more.
    """

    model: str
    reason: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The program failed; only with `errors="return"`, and `End` follows."""

    error: ProgramError


@dataclass(frozen=True, slots=True)
class End:
    """The program is over; `row` is what `run` would have returned."""

    row: Result


StreamEvent = (
    Text | Hidden | Partial | Retried | Filled | ToolCalled | ToolReturned | Switched | Failed | End
)


_Happened = tuple[Slot, BranchPath, str | Attempt | None]
"""More text of a hole, an attempt that was refused, or None: it has its value."""


class Reader:
    """A watcher that keeps what happened until somebody takes it; `tell`: there is more."""

    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell = tell
        self._happened: deque[_Happened | ToolReturned | Switched] = deque()
        self._written: dict[Slot, list[str]] = {}
        self._shown: dict[Slot, Any] = {}
        self._void: set[Slot] = set()
        self._over = False

    @property
    def ended(self) -> bool:
        """Whether the run has ended and everything was taken."""
        return self._over and not self._happened

    def events(self) -> Iterator[StreamEvent]:
        """What has happened since the last call."""
        while self._happened:
            happened = self._happened.popleft()
            if isinstance(happened, ToolReturned | Switched):
                yield happened
                continue
            slot, path, text = happened
            if slot in self._void:
                continue
            if text is None:
                yield from self._filled(slot, path)
            elif isinstance(text, Attempt):
                self._written.pop(slot, None)
                self._shown.pop(slot, None)
                yield Retried(slot.name, text.errors, path)
            elif not slot.node.shown or (isinstance(slot.node, ir.Gen) and slot.node.thought):
                yield Hidden(slot.name, text, path)
            elif (form := _format_of(slot)) is not None:
                yield from self._before_calls(slot, path, text, form)
            else:
                yield Text(slot.name, text, path)
                if _is_json(slot):
                    yield from self._partial(slot, path, text)

    def last(self, result: Result, errors: Errors) -> Iterator[StreamEvent]:
        """How the stream ends. Raises the error of the row, unless `errors` is "return"."""
        if result.error is not None:
            if errors == "raise":
                raise result.error
            yield Failed(result.error)
        yield End(result)

    def _filled(self, slot: Slot, path: BranchPath) -> Iterator[StreamEvent]:
        self._written.pop(slot, None)
        shown = self._shown.pop(slot, None)
        try:
            value = slot.value
        except ProgramError:  # a type refuses it: the error of the row, which comes at its end
            return
        if _format_of(slot) is not None and slot.node.shown:
            if isinstance(value, str) and value != (shown or ""):  # it might have become a call
                yield Text(slot.name, value.removeprefix(shown or ""), path)
            for call in [value] if isinstance(value, ToolCall) else value:
                if isinstance(call, ToolCall):
                    yield ToolCalled(slot.name, call, path)
        yield Filled(slot.name, value, path)

    def _before_calls(
        self, slot: Slot, path: BranchPath, text: str, form: ToolFormat
    ) -> Iterator[Text]:
        written = self._written.setdefault(slot, [])
        written.append(text)
        said, shown = text_before_calls("".join(written), form), self._shown.get(slot, "")
        if len(said) > len(shown):
            self._shown[slot] = said
            yield Text(slot.name, said[len(shown) :], path)

    def _partial(self, slot: Slot, path: BranchPath, text: str) -> Iterator[Partial]:
        written = self._written.setdefault(slot, [])
        written.append(text)
        following = self._happened[0] if self._happened else None
        if isinstance(following, tuple) and following[0] is slot and isinstance(following[2], str):
            return  # what comes next says more; so a fast model costs no more than a slow one
        value = partial_value(slot.node, "".join(written))
        if value is not NOTHING and value != self._shown.get(slot, NOTHING):
            self._shown[slot] = value
            yield Partial(slot.name, value, path)

    # ---- what the run calls, from any thread

    def blocked(self) -> None:
        pass

    def resumed(self) -> None:
        pass

    def delta(self, slot: Slot, text: str, path: BranchPath) -> None:
        self._happened.append((slot, path, text))
        self._tell()

    def filled(self, slot: Slot, path: BranchPath) -> None:
        self._happened.append((slot, path, None))
        self._tell()

    def refused(self, slot: Slot, attempt: Attempt, path: BranchPath) -> None:
        self._happened.append((slot, path, attempt))
        self._tell()

    def returned(self, result: ToolResult, path: BranchPath) -> None:
        self._happened.append(ToolReturned(result, path))
        self._tell()

    def switched(self, run: Run, model: Model, reason: str) -> None:
        self._void.update(run.record.slots())  # an engine may still say something of them
        self._happened.append(Switched(model.name, reason))
        self._tell()

    def finished(self, run: Run) -> None:
        self._over = True
        self._tell()


def stream(
    launch: Launch, row: int, args: tuple[Any, ...], kwargs: Mapping[str, Any], errors: Errors
) -> Iterator[StreamEvent]:
    """`Function.stream`, with program, model, options and seed settled in `launch`."""
    there = threading.Semaphore(0)
    reader = Reader(there.release)
    run = launch.start(row, reader)

    def body() -> None:
        launch.execute(run, args, kwargs)

    # A thread of its own: the body may wait for values whose text is to be seen meanwhile.
    thread = threading.Thread(target=body, name="sglite-stream", daemon=True)
    thread.start()
    try:
        while not reader.ended:
            there.acquire()
            yield from reader.events()
        yield from reader.last(Result(run), errors)
    finally:
        run.cancel("the stream was left before its end")


def _format_of(slot: Slot) -> ToolFormat | None:
    """How the calls of a hole with tools are written."""
    node = slot.node
    return format_of_hole(node) if isinstance(node, ir.Gen) and node.tools is not None else None


def _is_json(slot: Slot) -> bool:
    node = slot.node
    return (
        isinstance(node, ir.Gen)
        and node.constraint is not None
        and node.constraint.kind == "json_schema"
    )
