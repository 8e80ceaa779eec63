"""The executions of a program: what all rows of a call share, and how a body is executed.

A body runs concretely, exactly once for each row: a plain def in the thread that executes it, an
`async def` as a coroutine of the event loop that it was started in.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
import secrets
from collections.abc import Mapping
from contextvars import Context
from functools import partial
from typing import TYPE_CHECKING, Any

from sglite.errors import ModelError, ProgramError, SgliteError
from sglite.language.places import users_line
from sglite.language.state import State
from sglite.model import Model, context_with, current_model
from sglite.options import Options
from sglite.running.executor import Run, current_run
from sglite.running.failures import RunCancelled
from sglite.running.fallback import Fallback
from sglite.running.mailbox import mailbox
from sglite.running.watching import Watcher

if TYPE_CHECKING:
    from sglite.chat import ChatTemplate
    from sglite.language.program import Function


class Launch:
    """What all rows of one call share: program, model, options and seed, settled when submitted."""

    def __init__(
        self,
        program: Function,
        model: Model | None,
        options: Options | None,
        *,
        timeout: float | None = None,
        priority: int | None = None,
    ) -> None:
        if options is not None and not isinstance(options, Options):
            raise TypeError(
                f"options= takes an Options, got {options!r}; "
                "write options=sgl.Options(temperature=0.5, seed=1)"
            )
        if model is not None and not isinstance(model, Model):
            raise TypeError(f"model= takes a Model, got {model!r}; write model=sgl.Model(...)")
        self.program = program
        self.in_task = inspect.iscoroutinefunction(program.body)
        self.model = model if model is not None else current_model()
        if self.model.closed:
            raise ModelError(f"the model {self.model.name} is closed; open a new one")
        self.options = Options(timeout=timeout, priority=priority).over(options or Options())
        self.options.sampling()
        seed = self.options.seed
        self.seed = secrets.randbits(63) if seed is None else seed
        self._context = context_with(self.model)  # for programs that the body runs

    def start(self, row: int, watcher: Watcher | None = None) -> Run:
        """A run for one row; its body has not been executed yet."""
        return Run(self.model.engine, self.options, self.seed, row, watcher, in_task=self.in_task)

    def on(self, model: Model) -> Launch:
        """The same on another model."""
        other = copy.copy(self)
        other.model = model
        other._context = self._context.run(context_with, model)
        return other

    def execute(self, run: Run, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Execute the body in this thread and hand everything over.

        An exception of the body ends the run with a ProgramError and is not raised here; one that
        is meant to end the thread is.
        """
        if self.in_task:
            asyncio.run(self.execute_in_task(run, args, kwargs))
            return
        if self.model.fallback is not None:
            run.fallback = Fallback(self, self.model.fallback, args, kwargs)
        try:
            returned = self._inside(run).run(self._body, run, args, kwargs)
        except BaseException as error:
            run.fail(_as_program_error(error, run, self.program))
            if not isinstance(error, Exception):
                raise
        else:
            run.body_returned(returned)

    async def execute_in_task(
        self, run: Run, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> None:
        """`execute` of an `async def`, in a task of its own; returns when the run has ended.

        Cancelling the caller cancels the run, and cancelling the run cancels the body.
        """
        loop = asyncio.get_running_loop()
        if self.model.fallback is not None:
            run.fallback = Fallback(self, self.model.fallback, args, kwargs, loop)
        body = loop.create_task(self._body_in_task(run, args, kwargs), context=self._inside(run))
        box = mailbox(loop)
        run.when_ended_early(lambda: box.call(body.cancel))
        try:
            run.body_returned(await body)
        except BaseException as error:
            outside = _is_cancelled(error)
            failure = RunCancelled("the task of the run was cancelled") if outside else error
            run.fail(_as_program_error(failure, run, self.program))
            if outside or not isinstance(error, Exception | asyncio.CancelledError):
                raise
        try:
            if run.fallback is None:
                await run.join_in_task()
            else:
                await run.fallback.join_in_task(run)
        except asyncio.CancelledError:
            run.cancel("the task of the run was cancelled")
            raise

    def _inside(self, run: Run) -> Context:
        """The context of a body: which model is in use, and whose child a run in it is."""
        context = self._context.copy()
        context.run(current_run.set, run)
        return context

    def _body(self, run: Run, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        self.program.signature.check(args, kwargs)  # rows of a batch come here unchecked
        state = self._state(run)
        returned = self.program.body(state, *args, **kwargs)
        state._end()
        return returned

    async def _body_in_task(
        self, run: Run, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        self.program.signature.check(args, kwargs)
        state = self._state(run)
        returned = await self.program.body(state, *args, **kwargs)
        state._end()
        return returned

    def _state(self, run: Run) -> State:
        if self.model.failure is not None:
            run.cannot(self.model.failure)
        return State(run, partial(self._template, run))

    def _template(self, run: Run) -> ChatTemplate:
        try:
            return self.model.chat
        except ModelError as error:
            run.cannot(error)


def _is_cancelled(error: BaseException) -> bool:
    """Whether it is this task that is being cancelled, not only what it has waited for."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


def _as_program_error(error: BaseException, run: Run, program: Function) -> ProgramError:
    """What a body raised, as the error of its run."""
    if isinstance(error, RunCancelled):
        return error
    if isinstance(error, ProgramError) and (error is run.error or error.filename is not None):
        return error
    place = users_line(error.__traceback__)
    message = str(error) if isinstance(error, SgliteError) else f"{type(error).__name__}: {error}"
    failure = ProgramError(
        f"{program.__name__}() failed: {message}",
        filename=place.filename if place else None,
        line=place.line if place else None,
    )
    failure.__cause__ = error
    return failure
