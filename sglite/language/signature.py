"""What a program takes: the parameters of its function, and whether given arguments fit them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from sglite.language.suggestions import OPTIONS, did_you_mean

_RESERVED = ("options", "row", "model", "timeout", "priority", "errors")


class Signature:
    """The parameters of a program after the state.

    Raises TypeError for a function that cannot be a program.
    """

    def __init__(self, body: Callable[..., Any]) -> None:
        self._whole = _check_signature(body)
        self._name = getattr(body, "__name__", repr(body))
        every = self.parameters
        self._taken = {
            parameter.name
            for parameter in every
            if parameter.kind in (parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        }
        self._required = {
            parameter.name
            for parameter in every
            if parameter.default is parameter.empty
            and parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
        }

    @property
    def parameters(self) -> list[inspect.Parameter]:
        """The parameters, without that of the state."""
        return [*self._whole.parameters.values()][1:]

    def __str__(self) -> str:
        return str(self._whole)

    def bind(self, *args: Any, **kwargs: Any) -> inspect.BoundArguments:
        """All arguments, that of the state included, by their parameters. Raises TypeError."""
        return self._whole.bind(*args, **kwargs)

    def check(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Raises TypeError for arguments that the program does not take."""
        if not args and self._required <= kwargs.keys() <= self._taken:
            return  # as rows of a batch are, and quicker than to bind them
        try:
            self._whole.bind(None, *args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self._name}(): {error}{self._unknown(kwargs)}") from None

    def _unknown(self, kwargs: Mapping[str, Any]) -> str:
        """What may have been meant by the keyword arguments that the function does not take."""
        parameters = self._whole.parameters
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


def _check_signature(body: Callable[..., Any]) -> inspect.Signature:
    if not callable(body):
        raise TypeError(f"@function goes above a def, got {body!r}")
    name = getattr(body, "__name__", repr(body))
    if inspect.isgeneratorfunction(body) or inspect.isasyncgenfunction(body):
        raise TypeError(f"{name}() cannot be a program: write a def without yield")
    signature = inspect.signature(body)
    parameters = list(signature.parameters.values())
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if not parameters or parameters[0].kind not in positional:
        raise TypeError(f"{name}() needs a first parameter for the state: def {name}(s, ...)")
    for parameter in parameters[1:]:
        if parameter.name in _RESERVED and parameter.kind != parameter.POSITIONAL_ONLY:
            raise TypeError(
                f"{name}() has a parameter {parameter.name!r}, which is an argument of run() or "
                "stream() itself; give it another name"
            )
    return signature
