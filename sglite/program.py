"""Programs: a decorated function and the ways to run it.

A body runs concretely, exactly once for each row. `run` executes it here and waits; `run_batch`
and `stream` are in modules of their own.
"""

from __future__ import annotations

import functools
import inspect
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, overload

from sglite import ir
from sglite.errors import ModelError, ProgramError, SgliteError
from sglite.executor import Run, Watcher
from sglite.model import Model, context_with, current_model
from sglite.options import Options
from sglite.places import users_line
from sglite.result import Result
from sglite.state import State
from sglite.suggestions import OPTIONS, did_you_mean

if TYPE_CHECKING:
    from sglite.graph import Graph
    from sglite.stream import StreamEvent

_RESERVED = ("options", "row", "model")


class Function:
    """A program. Call it to record it inside of another program: `s += other(x)`."""

    def __init__(self, body: Callable[..., Any]) -> None:
        self.body = body
        self._signature = _check_signature(body)
        functools.update_wrapper(self, body)

    __name__: str

    def run(
        self,
        *args: Any,
        options: Options | None = None,
        row: int | None = None,
        model: Model | None = None,
        **kwargs: Any,
    ) -> Result:
        """Run the program once with these arguments and wait for it.

        `row` repeats that row of a batch with the same seed. `model` None: the model in use.
        Raises ProgramError for a program that fails, with node, file and line; TypeError for
        arguments that the function does not take.
        """
        self._bind(args, kwargs)
        launch = Launch(self, model, options)
        run = launch.start(row or 0)
        try:
            returned = launch.execute(run, args, kwargs)
            run.join()
        except BaseException:
            run.fail(ProgramError("the run was interrupted"))
            raise
        result = Result(run, returned)
        if result.error is not None:
            raise result.error
        return result

    def run_batch(
        self,
        rows: Iterable[Mapping[str, Any]],
        *,
        options: Options | None = None,
        model: Model | None = None,
        errors: Literal["raise", "return"] = "raise",
        progress: bool = False,
        window: int = 1024,
    ) -> list[Result]:
        """Run the program once for each row of arguments, together; results in the order of rows.

        A failing row never stops the others. `errors="return"`: it comes back with its `error`;
        `"raise"`: when all rows are done, BatchError is raised, which has every row. `progress`
        shows a bar. At most `window` rows are under way at a time.
        """
        from sglite.batch import run_batch

        return run_batch(
            Launch(self, model, options), rows, errors=errors, progress=progress, window=window
        )

    def stream(
        self,
        *args: Any,
        options: Options | None = None,
        row: int | None = None,
        model: Model | None = None,
        **kwargs: Any,
    ) -> Iterator[StreamEvent]:
        """Run the program once and yield what happens: `Text`, `Filled`, and at last `End`.

        Leaving the loop early cancels the run. Raises what `run` raises.
        """
        from sglite.stream import stream

        self._bind(args, kwargs)
        return stream(Launch(self, model, options), row or 0, args, kwargs)

    def compile(self, *, passes: Iterable[str] | None = None, **constants: Any) -> Graph:
        """Trace the program once and return its graph, which runs with the same values.

        `constants` are arguments that the graph is made for: loops over them are unrolled. All
        others stay open. `passes`: which of `sglite.passes` are applied, None: all. Raises
        GraphBreak, with file and line, for what a graph cannot say.
        """
        from sglite.graph import Graph
        from sglite.passes import applied, chosen
        from sglite.trace import trace

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
        self._bind(args, kwargs)
        return ir.Invoke(self.__name__, self.body, args, kwargs)

    def __repr__(self) -> str:
        return f"<sglite program {self.__name__}{self._signature}>"

    def _bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        try:
            self._signature.bind(None, *args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.__name__}(): {error}{self._unknown(kwargs)}") from None

    def _unknown(self, kwargs: Mapping[str, Any]) -> str:
        """What may have been meant by the keyword arguments that the function does not take."""
        parameters = self._signature.parameters
        if any(parameter.kind == parameter.VAR_KEYWORD for parameter in parameters.values()):
            return ""
        known = list(parameters)[1:]
        said = []
        for name in kwargs:
            if name in OPTIONS and name not in known:
                said.append(f"pass options=sgl.Options({name}=...)")
            elif name not in known:
                said.append(f"there is no argument {name!r}{did_you_mean(name, known)}")
        return "".join(f"; {hint}" for hint in said)


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


class Launch:
    """What all rows of one call share: program, model, options and seed, settled when submitted."""

    def __init__(self, program: Function, model: Model | None, options: Options | None) -> None:
        if options is not None and not isinstance(options, Options):
            raise TypeError(
                f"options= takes an Options, got {options!r}; "
                "write options=sgl.Options(temperature=0.5, seed=1)"
            )
        if model is not None and not isinstance(model, Model):
            raise TypeError(f"model= takes a Model, got {model!r}; write model=sgl.Model(...)")
        self.program = program
        self.model = model if model is not None else current_model()
        if self.model.closed:
            raise ModelError(f"the model {self.model.name} is closed; open a new one")
        self.options = options or Options()
        self.options.sampling()
        seed = self.options.seed
        self.seed = secrets.randbits(63) if seed is None else seed
        self._context = context_with(self.model)  # for programs that the body runs

    def start(self, row: int, watcher: Watcher | None = None) -> Run:
        """A run for one row; its body has not been executed yet."""
        return Run(self.model.engine, self.options, self.seed, row, watcher)

    def execute(self, run: Run, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Execute the body in this thread and hand everything over; returns what it returns.

        An exception of the body ends the run with a ProgramError and is not raised here; one that
        is meant to end the thread is.
        """
        try:
            returned = self._context.copy().run(self._body, run, args, kwargs)
        except BaseException as error:
            run.fail(_as_program_error(error, run, self.program))
            if not isinstance(error, Exception):
                raise
            return None
        run.body_returned()
        return returned

    def _body(self, run: Run, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        self.program._bind(args, kwargs)  # rows of a batch come here unchecked
        state = State(run, lambda: self.model.chat)
        returned = self.program.body(state, *args, **kwargs)
        state._end()
        return returned


def _check_signature(body: Callable[..., Any]) -> inspect.Signature:
    if not callable(body):
        raise TypeError(f"@function goes above a def, got {body!r}")
    name = getattr(body, "__name__", repr(body))
    if inspect.iscoroutinefunction(body) or inspect.isgeneratorfunction(body):
        raise TypeError(f"{name}() cannot be a program: write a plain def, without async or yield")
    signature = inspect.signature(body)
    parameters = list(signature.parameters.values())
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if not parameters or parameters[0].kind not in positional:
        raise TypeError(f"{name}() needs a first parameter for the state: def {name}(s, ...)")
    for parameter in parameters[1:]:
        if parameter.name in _RESERVED and parameter.kind != parameter.POSITIONAL_ONLY:
            raise TypeError(
                f"{name}() has a parameter {parameter.name!r}, which is an argument of run() "
                "itself; give it another name"
            )
    return signature


def _as_program_error(error: BaseException, run: Run, program: Function) -> ProgramError:
    """What a body raised, as the error of its run."""
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
