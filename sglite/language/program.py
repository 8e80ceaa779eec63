"""Programs: a decorated function and the ways to run it.

Every way executes the body concretely, exactly once for each row (`launch`). What is here settles
the arguments; one row that is waited for is `run`, and each other way has a module of its own.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
)
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, overload

from sglite.language import ir
from sglite.language.signature import Signature
from sglite.language.state import State
from sglite.model import Model
from sglite.options import Options
from sglite.running.failures import RunCancelled
from sglite.running.launch import Launch
from sglite.running.result import Result

if TYPE_CHECKING:
    from sglite.graphs.graph import Graph
    from sglite.running.handle import Started
    from sglite.running.journal import Journal
    from sglite.running.stream import StreamEvent

Row = Mapping[str, Any]
Errors = Literal["raise", "return"]


class Function:
    """A program. Call it to record it inside of another program: `s += other(x)`."""

    def __init__(self, body: Callable[..., Any]) -> None:
        self.body = body
        self.signature = Signature(body)
        functools.update_wrapper(self, body)

    __name__: str

    def run(
        self,
        *args: Any,
        options: Options | None = None,
        row: int | None = None,
        model: Model | None = None,
        timeout: float | None = None,
        priority: int | None = None,
        **kwargs: Any,
    ) -> Result:
        """Run the program once with these arguments and wait for it.

        `row` repeats that row of a batch with the same seed. `model` None: the model in use.
        `timeout`: seconds it may take. `priority`: higher goes first, 0 where not said.
        Raises ProgramError for a program that fails, with node, file and line, which is also a
        DeadlineError after `timeout`; TypeError for arguments that the function does not take.
        """
        self.signature.check(args, kwargs)
        launch = Launch(self, model, options, timeout=timeout, priority=priority)
        self._check_no_loop("arun")
        run = launch.start(row or 0)
        try:
            launch.execute(run, args, kwargs)
            run.join()
        except BaseException:
            run.fail(RunCancelled("the run was interrupted"))
            raise
        result = Result(run)
        if result.error is not None:
            raise result.error
        return result

    def start(
        self,
        *args: Any,
        options: Options | None = None,
        row: int | None = None,
        model: Model | None = None,
        timeout: float | None = None,
        priority: int | None = None,
        **kwargs: Any,
    ) -> Started:
        """Like `run`, but do not wait: the run has `result()`, `done()` and `cancel()`."""
        from sglite.running.handle import Started

        self.signature.check(args, kwargs)
        launch = Launch(self, model, options, timeout=timeout, priority=priority)
        return Started(launch, row or 0, args, kwargs)

    @overload
    def run_batch(
        self,
        rows: Iterable[Row],
        *,
        order: Literal["rows"] = "rows",
        options: Options | None = None,
        model: Model | None = None,
        errors: Errors = "raise",
        progress: bool = False,
        window: int = 1024,
        journal: str | PathLike[str] | None = None,
        timeout: float | None = None,
        priority: int | None = None,
    ) -> list[Result]: ...

    @overload
    def run_batch(
        self,
        rows: Iterable[Row],
        *,
        order: Literal["completed"],
        options: Options | None = None,
        model: Model | None = None,
        errors: Errors = "raise",
        progress: bool = False,
        window: int = 1024,
        journal: str | PathLike[str] | None = None,
        timeout: float | None = None,
        priority: int | None = None,
    ) -> Iterator[Result]: ...

    def run_batch(
        self,
        rows: Iterable[Row],
        *,
        order: Literal["rows", "completed"] = "rows",
        options: Options | None = None,
        model: Model | None = None,
        errors: Errors = "raise",
        progress: bool = False,
        window: int = 1024,
        journal: str | PathLike[str] | None = None,
        timeout: float | None = None,
        priority: int | None = None,
    ) -> list[Result] | Iterator[Result]:
        """Run the program once for each row of arguments, together.

        `order="rows"`: a list in the order of the rows. `"completed"`: an iterator that gives each
        row when it is done and takes new ones as it is read, so that it never holds more than
        `window` rows; leaving it ends the batch.

        A failing row never stops the others. `errors="return"`: it comes back with its `error`;
        `"raise"`: when all rows are done, BatchError is raised. `progress` shows a bar. At most
        `window` rows are under way at a time. `journal`: a file that gets each row when it is done;
        a batch that is started again with it goes on where it ended, and raises JournalError if
        program, model, options or seed have changed. `timeout`: seconds for each row.
        """
        from sglite.running import batch
        from sglite.running.progress import Bar

        batch.check_settings(rows, errors, order, window)
        launch = Launch(self, model, options, timeout=timeout, priority=priority)
        self._check_no_loop("arun_batch")
        bar = Bar(rows, self.__name__, shown=progress)
        kept = _journal(journal, launch)
        if launch.in_task:
            from sglite.running import async_runs

            results = async_runs.from_loop(
                async_runs.arun_as_completed(launch, rows, window, bar, kept)
            )
        elif order == "rows" and kept is None and not progress:
            return batch.in_order(batch.run_all(launch, rows, window), errors)
        else:
            results = batch.run_as_completed(launch, rows, window, bar, kept)
        if order == "rows":
            return batch.in_order(results, errors)
        return results if errors == "return" else batch.good_ones(results)

    def stream(
        self,
        *args: Any,
        options: Options | None = None,
        row: int | None = None,
        model: Model | None = None,
        errors: Errors = "raise",
        timeout: float | None = None,
        priority: int | None = None,
        **kwargs: Any,
    ) -> Iterator[StreamEvent]:
        """Run the program once and yield what happens: `Text`, `Partial`, `Filled`, at last `End`.

        Leaving the loop early cancels the run. A program that fails raises what `run` raises; with
        `errors="return"` it yields `Failed` and then `End` instead.
        """
        from sglite.running.stream import stream

        self.signature.check(args, kwargs)
        launch = Launch(self, model, options, timeout=timeout, priority=priority)
        return stream(launch, row or 0, args, kwargs, errors)

    async def arun(
        self,
        *args: Any,
        options: Options | None = None,
        row: int | None = None,
        model: Model | None = None,
        timeout: float | None = None,
        priority: int | None = None,
        **kwargs: Any,
    ) -> Result:
        """`run` for an event loop, which goes on meanwhile; cancelling it cancels the run."""
        from sglite.running.async_runs import arun

        self.signature.check(args, kwargs)
        launch = Launch(self, model, options, timeout=timeout, priority=priority)
        return await arun(launch, row or 0, args, kwargs)

    @overload
    def arun_batch(
        self,
        rows: Iterable[Row] | AsyncIterable[Row],
        *,
        order: Literal["rows"] = "rows",
        options: Options | None = None,
        model: Model | None = None,
        errors: Errors = "raise",
        progress: bool = False,
        window: int = 1024,
        journal: str | PathLike[str] | None = None,
        timeout: float | None = None,
        priority: int | None = None,
    ) -> Awaitable[list[Result]]: ...

    @overload
    def arun_batch(
        self,
        rows: Iterable[Row] | AsyncIterable[Row],
        *,
        order: Literal["completed"],
        options: Options | None = None,
        model: Model | None = None,
        errors: Errors = "raise",
        progress: bool = False,
        window: int = 1024,
        journal: str | PathLike[str] | None = None,
        timeout: float | None = None,
        priority: int | None = None,
    ) -> AsyncIterator[Result]: ...

    def arun_batch(
        self,
        rows: Iterable[Row] | AsyncIterable[Row],
        *,
        order: Literal["rows", "completed"] = "rows",
        options: Options | None = None,
        model: Model | None = None,
        errors: Errors = "raise",
        progress: bool = False,
        window: int = 1024,
        journal: str | PathLike[str] | None = None,
        timeout: float | None = None,
        priority: int | None = None,
    ) -> Awaitable[list[Result]] | AsyncIterator[Result]:
        """`run_batch` for an event loop; the rows may come from an async iterator.

        `await fn.arun_batch(rows)`, and `async for row in fn.arun_batch(rows, order="completed")`.
        """
        from sglite.running import async_runs, batch
        from sglite.running.progress import Bar

        batch.check_settings(rows, errors, order, window)
        launch = Launch(self, model, options, timeout=timeout, priority=priority)
        bar = Bar(rows, self.__name__, shown=progress)
        kept = _journal(journal, launch)
        results = async_runs.arun_as_completed(launch, rows, window, bar, kept)
        if order == "rows":
            return async_runs.arun_in_order(results, errors)
        return results if errors == "return" else async_runs.good_ones(results)

    def astream(
        self,
        *args: Any,
        options: Options | None = None,
        row: int | None = None,
        model: Model | None = None,
        errors: Errors = "raise",
        timeout: float | None = None,
        priority: int | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[StreamEvent]:
        """`stream` for an event loop: `async for event in fn.astream(...)`."""
        from sglite.running.async_runs import astream

        self.signature.check(args, kwargs)
        launch = Launch(self, model, options, timeout=timeout, priority=priority)
        return astream(launch, row or 0, args, kwargs, errors)

    def compile(self, *, passes: Iterable[str] | None = None, **constants: Any) -> Graph:
        """Trace the program once and return its graph, which runs with the same values.

        `constants` are arguments that the graph is made for: loops over them are unrolled. All
        others stay open. `passes`: which of `sglite.graphs.passes` are applied, None: all. Raises
        GraphBreak, with file and line, for what a graph cannot say.
        """
        from sglite.graphs.graph import Graph
        from sglite.graphs.passes import applied, chosen
        from sglite.graphs.trace import trace

        names = chosen(passes)
        traced = trace(self, constants)
        steps = applied(traced.steps, traced.returned, names)
        return Graph(steps, self.__name__, traced.parameters, traced.returned, names)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Record this program inside of another one.

        `other(s, ...)` runs the body on the state `s` and returns what it returns;
        `s += other(...)` does the same where it is added.
        """
        if args and isinstance(args[0], State):
            return args[0].call(self, *args[1:], **kwargs)
        self.signature.check(args, kwargs)
        return ir.Invoke(self.__name__, self.body, args, kwargs)

    def __repr__(self) -> str:
        return f"<sglite program {self.__name__}{self.signature}>"

    def _check_no_loop(self, instead: str) -> None:
        """Raises TypeError where waiting for an `async def` would stand in the way of itself."""
        if not inspect.iscoroutinefunction(self.body):
            return
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return
        name = self.__name__
        raise TypeError(
            f"{name}() is async, and an event loop is running here: write "
            f"await {name}.{instead}(...)"
        )


@overload
def function(body: Callable[..., Any]) -> Function: ...


@overload
def function() -> Callable[[Callable[..., Any]], Function]: ...


def function(
    body: Callable[..., Any] | None = None,
) -> Function | Callable[[Callable[..., Any]], Function]:
    """Make a program of a function whose first parameter is the state: `@sgl.function`.

    Raises TypeError for a function that cannot be a program.
    """
    return Function if body is None else Function(body)


def _journal(path: str | PathLike[str] | None, launch: Launch) -> Journal | None:
    if path is None:
        return None
    from sglite.running.journal import Journal

    return Journal(path, launch)
