"""What to say about an argument that does not exist."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import ParamSpec, TypeVar

from sglite.options import Options

P = ParamSpec("P")
R = TypeVar("R")

_REMEMBERED = 1024

OPTIONS = frozenset(field.name for field in fields(Options))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """ ", did you mean ...?" with the nearest of the known names, or nothing."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f", did you mean {near[0]!r}?" if near else ""


def _content(value: object) -> object:
    return (*value, *map(type, value)) if isinstance(value, list) else value


def remembers(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function that makes immutable values give the same one for the same arguments.

    A program is executed once for each row, and describes the same holes each time.
    """
    made: dict[object, R] = {}

    @functools.wraps(function)
    def remembered(*args: P.args, **kwargs: P.kwargs) -> R:
        # With the types, since 1 and True and 1.0 are equal and mean different things.
        values = (*args, *kwargs.values())
        key = (values, *kwargs, *map(type, values))
        try:
            value = made.get(key)
        except TypeError:  # a list, which counts as what is in it now, or a dict
            key = (*map(_content, values), *kwargs, *map(type, values))
            try:
                value = made.get(key)
            except TypeError:
                return function(*args, **kwargs)
        if value is None:
            if len(made) >= _REMEMBERED:
                made.clear()
            value = made[key] = function(*args, **kwargs)
        return value

    return remembered


def names_unknown_arguments(**hints: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function say what was meant by a keyword argument that it does not have.

    `hints`: what to say for names that mean something in another function.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        known = frozenset(inspect.signature(function).parameters)

        @functools.wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            for name in kwargs.keys() - known:
                hint = f"; {hints[name]}" if name in hints else did_you_mean(name, known)
                raise TypeError(f"{function.__name__}() has no argument {name!r}{hint}")
            return function(*args, **kwargs)

        return checked

    return decorate
