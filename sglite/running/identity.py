"""Digests that tell whether a program, a model and the arguments of a row are the same as before,
in another process.

A program is its source, without comments and layout, and what that refers to: other programs,
functions and classes of the same package by their source, constants by their value, the rest by
name.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from hashlib import blake2b
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any
from uuid import UUID

from pydantic import BaseModel

if TYPE_CHECKING:
    from sglite.language.program import Function
    from sglite.model import Model

_PLAIN = (str, int, float, complex, bool, bytes, type(None))
_BY_REPR = (date, datetime, time, timedelta, Decimal, Fraction, UUID, PurePath, range)
_SAMPLE = 1 << 16
_SAMPLES = 64


def digest(value: object) -> str:
    """A digest of plain data, dataclasses, pydantic models, enums, arrays and the like.

    Raises TypeError for an object that cannot be told from others of its type.
    """
    hasher = blake2b(digest_size=12)
    for part in _parts(value, 0):
        hasher.update(part)
    return hasher.hexdigest()


def digests_of_program(program: Function) -> dict[str, str]:
    """By name: the body, and everything of the user's that it refers to."""
    written = getattr(program, "to_json", None)
    if written is not None:  # a graph is all that there is of it
        return {program.__name__: digest(written())}
    found: dict[str, str] = {}
    package = program.body.__module__.partition(".")[0]
    _collect(program.body, program.__name__, package, found)
    return found


def digest_of_model(model: Model) -> dict[str, Any]:
    """Name, and size and digest of the file; of a large one of samples all over it.

    Of a model that did not load, whose fallback does everything, the name alone.
    """
    said: dict[str, Any] = {"name": model.name}
    if model.failure is not None:
        said["loaded"] = False
    if model.path is not None:
        size = Path(model.path).stat().st_size
        hasher = blake2b(digest_size=12)
        with open(model.path, "rb") as file:
            step = max(_SAMPLE, size // _SAMPLES)
            for at in range(0, size, step):
                file.seek(at)
                hasher.update(file.read(_SAMPLE))
        said |= {"bytes": size, "file": hasher.hexdigest()}
    return said


def _parts(value: object, depth: int) -> Iterator[bytes]:
    """What is hashed of a value; lengths and types keep different values apart."""
    if depth > 100:
        raise TypeError("data nested more than 100 deep, or in itself")
    kind = type(value)
    if kind in _PLAIN:
        data = value if isinstance(value, bytes) else repr(value).encode()
        yield b"%s %d " % (kind.__name__.encode(), len(data))
        yield data
        return
    yield f"{kind.__module__}.{kind.__qualname__} ".encode()
    if isinstance(value, Enum):
        yield value.name.encode()
    elif isinstance(value, (*_PLAIN, *_BY_REPR)):
        yield repr(value).encode()
    elif isinstance(value, Mapping):
        # Arguments by name: which was written first makes no difference to the program.
        items = sorted(value.items(), key=lambda i: repr(i[0])) if depth == 0 else value.items()
        yield b"%d " % len(value)
        for key, item in items:
            yield from _parts(key, depth + 1)
            yield from _parts(item, depth + 1)
    elif isinstance(value, list | tuple):
        yield b"%d " % len(value)
        for item in value:
            yield from _parts(item, depth + 1)
    elif isinstance(value, set | frozenset):
        yield "".join(sorted(map(digest, value))).encode()
    elif isinstance(value, BaseModel):
        yield from _parts(dict(value), depth + 1)
    elif is_dataclass(value) and not isinstance(value, type):
        for each in fields(value):
            yield from _parts(getattr(value, each.name), depth + 1)
    elif hasattr(value, "tobytes") and hasattr(value, "dtype"):
        yield f"{value.dtype} {getattr(value, 'shape', '')} ".encode()
        yield value.tobytes()
    else:
        raise TypeError(
            f"a {kind.__name__} cannot be recognised by another process; pass plain data, a "
            "dataclass or a pydantic model"
        )


def _collect(body: Callable[..., Any], name: str, package: str, found: dict[str, str]) -> None:
    found[name] = digest(_source(body))
    code = getattr(body, "__code__", None)
    if code is None:
        return
    named = {**inspect.getclosurevars(body).nonlocals, **_globals(code, body.__globals__)}
    if body.__defaults__ or body.__kwdefaults__:
        named |= {f"{name}'s defaults": (body.__defaults__, body.__kwdefaults__)}
    for key, value in sorted(named.items()):
        if key in found:
            continue
        inner = getattr(value, "body", value)
        if isinstance(inner, types.FunctionType):
            if inner.__module__.partition(".")[0] == package:
                _collect(inner, key, package, found)
            else:
                found[key] = f"{inner.__module__}.{inner.__qualname__}"
        elif isinstance(value, type):
            own = value.__module__.partition(".")[0] == package
            found[key] = digest(_source(value)) if own else f"{value.__module__}.{key}"
        elif not isinstance(value, types.ModuleType):
            try:
                found[key] = digest(value)
            except TypeError:
                found[key] = type(value).__qualname__


def _globals(code: types.CodeType, scope: Mapping[str, Any]) -> dict[str, Any]:
    """The globals that a function and those inside of it name."""
    named = {name: scope[name] for name in code.co_names if name in scope}
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            named |= _globals(constant, scope)
    return named


def _source(item: Any) -> str:
    """The source of a function or class, without comments and layout."""
    try:
        text = textwrap.dedent(inspect.getsource(item))
        return ast.unparse(ast.parse(text))
    except SyntaxError:  # a lambda in the middle of a line
        return text
    except (OSError, TypeError):
        code = getattr(item, "__code__", None)
        return repr(item) if code is None else f"{code.co_code.hex()} {code.co_consts!r}"
