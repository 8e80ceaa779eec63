"""What becomes of a run that its model could not do: it begins anew on the model's fallback.

A model could not do it if a prompt does not fit, if it was not loaded or knows no turns, or if its
engine failed. Whatever else ends a run is the program's own, and stays its error. What the user
holds is the first run all along: it ends when its successor does, and whoever watches is told once.
"""

from __future__ import annotations

import logging
import threading
from asyncio import AbstractEventLoop, Future
from collections.abc import Mapping
from contextvars import Context
from typing import TYPE_CHECKING, Any

from sglite.errors import CapacityError, ModelError, ProgramError, SgliteError
from sglite.running.executor import Run
from sglite.running.mailbox import mailbox
from sglite.running.result import model_of
from sglite.running.watching import NOBODY, Watcher

if TYPE_CHECKING:
    from sglite.model import Model
    from sglite.running.launch import Launch

logger = logging.getLogger("sglite.fallback")


class Fallback:
    """The way out of one run of `launch`: to execute the body on `model`. `loop`: where the body is
    a coroutine."""

    def __init__(
        self,
        launch: Launch,
        model: Model,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        loop: AbstractEventLoop | None = None,
    ) -> None:
        self.successor: Run | None = None
        self._launch = launch
        self._model = model
        self._args = args
        self._kwargs = kwargs
        self._unable: list[Exception] = []  # branches may fail side by side
        self._stopped: ProgramError | None = None
        self._lock = threading.Lock()
        self._box = None if loop is None else mailbox(loop)
        self._settled: Future[None] | None = None if loop is None else loop.create_future()

    def note(self, error: Exception, *, refused: bool = True) -> None:
        """The engine or the model has raised this; `refused`: before anything was computed.

        What is refused for another reason than room is wrong with the program; so is a value out of
        range that shows later. What else an engine raises while it works is a failure of its own.
        """
        its_own = not refused and not isinstance(error, SgliteError | ValueError | TypeError)
        if its_own or isinstance(error, CapacityError | ModelError):
            self._unable.append(error)

    def stop(self, error: ProgramError) -> None:
        """The run is cancelled or overdue, on whichever model it is."""
        with self._lock:
            self._stopped = error
            successor = self.successor
        if successor is not None:
            successor.fail(error, body_over=False)

    def goes_on(self, run: Run, in_body: bool) -> bool:
        """Called when the run is over, before anybody is told: whether a successor goes on.

        `in_body`: this is the thread of the body, which can execute it once more.
        """
        try:
            begun = self._begin(run, in_body)
        finally:
            if self._box is not None and self._settled is not None:
                self._box.complete(self._settled)
        if not begun or self._settled is not None:
            return begun
        if in_body:
            self._execute()
        else:  # the engine's thread must go on, and the body has none any more
            threading.Thread(target=self._execute, name="sglite-fallback", daemon=True).start()
        return True

    async def join_in_task(self, run: Run) -> None:
        """Return when the run has ended, having executed the body once more if need be."""
        assert self._settled is not None
        await self._settled
        if self.successor is None:
            await run.join_in_task()
        else:
            launch = self._launch.on(self._model)
            await launch.execute_in_task(self.successor, self._args, self._kwargs)

    def _execute(self) -> None:
        assert self.successor is not None
        self._launch.on(self._model).execute(self.successor, self._args, self._kwargs)

    def _begin(self, run: Run, in_body: bool) -> bool:
        reason = next((each for each in self._unable if _is_because_of(run.error, each)), None)
        if run.error is None or reason is None:
            return False
        name = run.engine.name
        why_not = self._hindrance(run)
        if why_not is not None:
            run.error.add_note(f"it is not run again on {self._model.name}: {why_not}")
            return False
        note = f"run on {self._model.name}, as {name} could not: {reason}"
        with self._lock:
            if self._stopped is not None:  # the first error was none to stay
                run.error = self._stopped
                return False
            # In no context: it is ended by way of the first, and is nobody's child.
            self.successor = successor = Context().run(
                Run,
                self._model.engine,
                run.options,
                run.seed,
                run.row,
                _Successor(run, note, run.watcher if in_body else NOBODY),
                in_task=run.in_task,
                started_at=run.started_at,
            )
            successor.instead_of = {
                **model_of(run.engine, run.instead_of),
                "reason": f"{type(reason).__name__}: {reason}",
            }
        program = self._launch.program.__name__
        logger.warning(
            "%s(), row %d, is run again on %s: %s cannot do it: %s",
            *(program, run.row, self._model.name, name, reason),
        )
        run.watcher.switched(run, self._model, str(reason))
        return True

    def _hindrance(self, run: Run) -> str | None:
        if self._model.closed:
            return "that model is closed"
        tools = {result.call.name for result in run.record.all_tool_results()}
        if tools:
            return f"its tools have done something, and would do it twice: {', '.join(tools)}"
        return None


class _Successor:
    """Watches a successor for the run that it takes the place of.

    `note`: what is said of its failure. `waiting`: who wants to know that its thread waits; a
    thread of its own is no one's.
    """

    __slots__ = (
        "_first",
        "_note",
        "blocked",
        "delta",
        "filled",
        "refused",
        "resumed",
        "returned",
        "switched",
    )

    def __init__(self, first: Run, note: str, waiting: Watcher) -> None:
        self._first = first
        self._note = note
        watcher = first.watcher
        self.blocked = waiting.blocked
        self.resumed = waiting.resumed
        self.delta: Any = watcher.delta
        self.filled: Any = watcher.filled
        self.refused: Any = watcher.refused
        self.returned: Any = watcher.returned
        self.switched: Any = watcher.switched

    def finished(self, run: Run) -> None:
        if run.error is not None:
            run.error.add_note(self._note)
        self._first.finish()


def _is_because_of(error: BaseException | None, reason: Exception) -> bool:
    while error is not None and error is not reason:
        error = error.__cause__
    return error is reason
