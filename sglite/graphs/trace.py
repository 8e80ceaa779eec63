"""Symbolic tracing: a program is run once, with symbols for its arguments, and leaves its graph.

The state of a trace is a `State` whose run has no engine: it records and never waits. What a symbol
does not permit ends the trace with GraphBreak, even where the program catches that.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, is_dataclass
from functools import partial
from types import BuiltinMethodType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any

from sglite.errors import GraphBreak
from sglite.graphs.rewrite import rewritten
from sglite.graphs.symbol import Symbol, graph_break, symbols_in, text_of, unwrap
from sglite.graphs.trace_state import NO_TEMPLATE, Recording, TraceState
from sglite.graphs.values import (
    Argument,
    Branch,
    Method,
    Operand,
    Value,
    over,
)
from sglite.language import ir, primitives
from sglite.language.places import users_line
from sglite.language.state import State
from sglite.language.suggestions import did_you_mean

if TYPE_CHECKING:
    from sglite.language.program import Function

_PACKAGE = __name__.partition(".")[0]
_CONSTANTS = (str, int, float, bool, type(None))


@dataclass(frozen=True, slots=True)
class Traced:
    """What a trace leaves: steps, the parameters that are still open, and what is returned."""

    steps: tuple[ir.Step, ...]
    parameters: tuple[inspect.Parameter, ...]
    returned: Operand


def trace(program: Function, constants: dict[str, Any]) -> Traced:
    """Trace `program` with these arguments as they are and symbols for all others.

    Raises GraphBreak for what a graph cannot say, TypeError for constants that are no arguments.
    """
    tracer = Tracer(program.__name__)
    if inspect.iscoroutinefunction(program.body):
        code = program.body.__code__
        raise GraphBreak(
            f"{program.__name__}() is async; compile() takes a plain def",
            filename=code.co_filename,
            line=code.co_firstlineno,
        )
    parameters = program.signature.parameters
    args, kwargs = tracer.arguments(parameters, dict(constants))
    run = Recording()
    state = TraceState(run, lambda: NO_TEMPLATE)  # type: ignore[arg-type, return-value]
    state._tracer = tracer
    try:
        returned = tracer.seen(program.body)(state, *args, **kwargs)
        operand = tracer.result(returned, program.body)
    except GraphBreak as error:
        raise tracer.break_ or error from None
    except TypeError as error:
        if Symbol.__name__ not in str(error):
            raise
        place = users_line(error.__traceback__)
        raise GraphBreak(
            f"{program.__name__}() does with an argument what a compiled program cannot: {error}",
            filename=place.filename if place else None,
            line=place.line if place else None,
        ) from error
    if tracer.break_ is not None:  # caught by the program, which then went on
        raise tracer.break_
    open_ = tuple(p for p in parameters if p.name in tracer.open)
    return Traced(tuple(run.record.log.steps), open_, operand)


class Tracer:
    """One trace: the hooks of the code that it runs, and how it ended."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.break_: GraphBreak | None = None
        self.open: set[str] = set()

    def symbol(self, value: Value) -> Symbol:
        return Symbol(value, self.broken)

    def broken(self, error: GraphBreak) -> None:
        self.break_ = self.break_ or error

    def lift(self, operand: Operand) -> Any:
        """An operand as the program gets it: values as symbols, constants as they are."""
        if isinstance(operand, Value):
            return self.symbol(operand)
        return over(operand, self.lift)

    def refuse(self, message: str) -> GraphBreak:
        error = graph_break(message)
        self.broken(error)
        return error

    def arguments(
        self, parameters: Sequence[inspect.Parameter], constants: dict[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        known = [p.name for p in parameters]
        catch_all = False
        for parameter in parameters:
            if parameter.kind == parameter.VAR_KEYWORD:
                catch_all = True
            elif parameter.kind == parameter.VAR_POSITIONAL:
                args.extend(constants.pop(parameter.name, ()))
            else:
                if parameter.name not in constants:
                    self.open.add(parameter.name)
                value = constants.pop(parameter.name, self.symbol(Argument(parameter.name)))
                if parameter.kind == parameter.KEYWORD_ONLY:
                    kwargs[parameter.name] = value
                else:
                    args.append(value)
        if constants and not catch_all:
            name = next(iter(constants))
            raise TypeError(
                f"{self.name}() has no argument {name!r} to compile with{did_you_mean(name, known)}"
            )
        return args, {**kwargs, **constants}

    def result(self, returned: Any, body: Any) -> Operand:
        """What the program returned, as an operand."""

        def plain(part: Any) -> Operand:
            if isinstance(part, State):
                return Branch(part._record.number)
            if isinstance(part, (Value, *_CONSTANTS)):
                return part
            if isinstance(part, list | tuple | dict):
                return over(part, plain)
            code = getattr(body, "__code__", None)
            error = graph_break(
                f"{self.name}() returns {type(part).__name__}; a compiled program returns texts, "
                "numbers, values that it read, and lists and dicts of them",
                ir.Place(code.co_filename, code.co_firstlineno) if code else None,
            )
            self.broken(error)
            raise error

        return plain(unwrap(returned))

    # ---- hooks

    def text(self, *parts: Any) -> Any:
        return text_of(parts)

    def known(self, value: Any) -> Any:
        if value is Symbol:  # type(argument) is ...
            raise self.refuse("a compiled program does not know the types of its arguments")
        for symbol in symbols_in(value):
            symbol.refuse("what it is, and the program would go one way or another")
        return value

    def callee(self, function: Any) -> Any:
        kind = type(function)
        if kind is FunctionType:
            return self.seen(function)
        if kind is MethodType and type(function.__func__) is FunctionType:
            return MethodType(self.seen(function.__func__), function.__self__)
        if kind is BuiltinMethodType and type(function.__self__) is str:
            return self._text_method(function)
        if function is str:
            return self._str
        if function is format:
            return lambda value, spec="": text_of(((value, "", spec),))
        if function is repr:
            return lambda value: text_of(((value, "r", ""),))
        if kind is partial:
            return partial(self.callee(function.func), *function.args, **function.keywords)
        if isinstance(function, type):
            return self._made(function)
        if any(function is each for each in _LOOKERS):
            return lambda *args: function(*map(self.known, args))
        call = kind.__dict__.get("__call__")
        if type(call) is FunctionType and not _is_ours(call):
            return MethodType(self.seen(call), function)
        return function

    def _made(self, kind: type) -> Callable[..., Any]:
        """A class whose objects are made under our eyes, or are made as they are."""
        begin: Any = kind.__init__  # type: ignore[misc]
        new: Any = kind.__new__
        plain = type(kind) is type and new is object.__new__
        if kind in _LOOKERS:
            return lambda *args: kind(*map(self.known, args))
        if not plain or type(begin) is not FunctionType or _is_ours(begin):
            return kind
        if is_dataclass(kind) and begin.__code__.co_filename.startswith("<"):
            begin = getattr(kind, "__post_init__", None)  # the rest only assigns
            if begin is None:
                return kind

        def make(*args: Any, **kwargs: Any) -> Any:
            if not symbols_in((args, kwargs)):
                return kind(*args, **kwargs)
            if is_dataclass(kind):
                symbols_in((args, kwargs))[0].refuse(f"something in {kind.__name__}.__post_init__")
            made: Any = object.__new__(kind)
            self.seen(begin)(made, *args, **kwargs)
            return made

        return make

    def seen(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function with hooks, or one that takes no symbols."""
        if not isinstance(function, FunctionType):
            return function
        if _is_ours(function):
            return self._primitive(function)
        again = rewritten(function, self)
        if again is not None:
            return again

        def blind(*args: Any, **kwargs: Any) -> Any:
            symbols = symbols_in((args, kwargs))
            if symbols:
                symbols[0].refuse(
                    f"something in {function.__name__}(), whose source is not there",
                    "put that function into a file",
                )
            return function(*args, **kwargs)

        return blind

    def _primitive(self, function: FunctionType) -> Callable[..., Any]:
        """`gen` and `select` with options that are not known yet are called later."""
        if function not in (primitives.gen, primitives.select):
            return function

        def maybe_late(*args: Any, **kwargs: Any) -> Any:
            if not symbols_in((args, kwargs)):
                return function(*args, **kwargs)
            bound = inspect.signature(function).bind(*args, **kwargs).arguments
            name = bound.get("name")
            if isinstance(name, Symbol):
                name.refuse("the name of a hole")
            arguments = tuple((key, unwrap(value)) for key, value in bound.items())
            return ir.Late(function.__name__, name, arguments)

        return maybe_late

    def _text_method(self, method: BuiltinMethodType) -> Callable[..., Any]:
        """A method of a text that is known, with arguments that are not."""

        def call(*args: Any, **kwargs: Any) -> Any:
            symbols = symbols_in((args, kwargs))
            text, name = method.__self__, method.__name__
            if not symbols:
                return method(*args, **kwargs)
            value = Method(text, name, tuple(map(unwrap, args)))
            if kwargs or name not in _WITH_ARGUMENTS:
                symbols[0].refuse(f"the {name}() of a text", "write an f-string")
            return self.symbol(value)

        return call

    def _str(self, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and symbols_in(args):
            return text_of(((args[0], "s", ""),))
        return str(*args, **kwargs)


_LOOKERS = (isinstance, issubclass, type, callable, id, hasattr)
_WITH_ARGUMENTS = ("join", "replace", "removeprefix", "removesuffix", "strip", "lstrip", "rstrip")


def _is_ours(function: FunctionType) -> bool:
    return str(function.__globals__.get("__name__", "")).partition(".")[0] == _PACKAGE
