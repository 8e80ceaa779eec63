"""Values that are known when a compiled program runs: what it does with arguments and read values.

An expression tree of frozen nodes, small enough to be listed, written as JSON and evaluated without
the source of the program. Knows nothing of states and programs.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeAlias

# fmt: off
STR_METHODS = frozenset({
    "capitalize", "casefold", "center", "expandtabs", "join", "ljust", "lower", "lstrip",
    "partition", "removeprefix", "removesuffix", "replace", "rjust", "rpartition", "rsplit",
    "rstrip", "split", "splitlines", "strip", "swapcase", "title", "upper", "zfill",
})
# fmt: on
"""What a text may be asked for that is not known yet. They depend on the text alone."""

MAX_LENGTH = 100_000_000
"""Characters that one operation may make; a graph of a few lines could double a text many times."""

_LONG_NUMBER = re.compile("[0-9]{7}")
_CONVERSIONS: dict[str, Callable[[Any], str]] = {"r": repr, "s": str, "a": ascii}


class Value:
    """A node of the tree."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Argument(Value):
    """An argument of the program."""

    name: str


@dataclass(frozen=True, slots=True)
class Reading(Value):
    """What a program read: the occurrence `index` of a variable in a branch."""

    branch: int
    name: str
    index: int


@dataclass(frozen=True, slots=True)
class Branch(Value):
    """The state of a branch, returned as it is."""

    number: int


@dataclass(frozen=True, slots=True)
class Item(Value):
    """`of[key]`."""

    of: Operand
    key: Operand


@dataclass(frozen=True, slots=True)
class Method(Value):
    """`of.name(*args)`, for one of STR_METHODS."""

    of: Operand
    name: str
    args: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Format(Value):
    """`f"{of!conversion:spec}"`; `conversion` is "", "r", "s" or "a"."""

    of: Operand
    conversion: str = ""
    spec: Operand = ""


@dataclass(frozen=True, slots=True)
class Joined(Value):
    """`a + b + ...`"""

    parts: tuple[Operand, ...]


Operand: TypeAlias = Any
"""A Value; a constant; or a list, tuple, dict or slice of operands."""

Leaf = Callable[[Argument | Reading | Branch], Any]


def evaluate(operand: Operand, leaf: Leaf) -> Any:
    """The value of `operand`, where `leaf` gives that of arguments and readings."""
    return prepared(operand)(leaf)


def prepared(operand: Operand) -> Callable[[Leaf], Any]:
    """The function that evaluates `operand`."""
    match operand:
        case Argument() | Reading() | Branch():
            return lambda leaf: leaf(operand)
        case Format(of, conversion, spec):
            return _format(prepared(of), _CONVERSIONS.get(conversion), prepared(spec))
        case Joined(parts):
            each = [prepared(part) for part in parts]
            return lambda leaf: reduce(operator.add, [part(leaf) for part in each])
        case Item(of, key):
            container, index = prepared(of), prepared(key)
            return lambda leaf: container(leaf)[index(leaf)]
        case Method(of, name, args):
            return _method(operand, prepared(of), name, [prepared(arg) for arg in args])
        case list() | tuple() | dict() | slice():
            return lambda leaf: over(operand, lambda part: evaluate(part, leaf))
        case _:
            return lambda leaf: operand


def _format(
    of: Callable[[Leaf], Any],
    convert: Callable[[Any], str] | None,
    spec: Callable[[Leaf], Any],
) -> Callable[[Leaf], Any]:
    def call(leaf: Leaf) -> str:
        value, said = of(leaf), spec(leaf)
        if said and _LONG_NUMBER.search(said):
            raise ValueError(f"the format {said!r} makes a text that is too long")
        return _not_too_long(format(value if convert is None else convert(value), said))

    return call


def _method(
    whole: Method, of: Callable[[Leaf], Any], name: str, args: list[Callable[[Leaf], Any]]
) -> Callable[[Leaf], Any]:
    if name not in STR_METHODS:
        raise ValueError(f"{name!r} is no method of texts that a graph may use")
    method = getattr(str, name)

    def call(leaf: Leaf) -> Any:
        text = of(leaf)
        if not isinstance(text, str):  # what an argument of another class does is not known
            raise TypeError(f"{describe(whole.of)}.{name}() is for texts, got {text!r}")
        given = [arg(leaf) for arg in args]
        sizes = (each if isinstance(each, int) else len(each) for each in given if each)
        if (len(text) + 1) * max(sizes, default=1) > MAX_LENGTH:
            raise ValueError(f"{describe(whole.of)}.{name}() makes a text that is too long")
        return method(text, *given)

    return call


def _not_too_long(text: str) -> str:
    if len(text) > MAX_LENGTH:
        raise ValueError(f"the text of {len(text)} characters is longer than {MAX_LENGTH}")
    return text


def substitute(operand: Operand, leaf: Leaf) -> Operand:
    """The same tree with what `leaf` gives in the places of arguments and readings."""

    def again(part: Operand) -> Operand:
        return substitute(part, leaf)

    match operand:
        case Argument() | Reading() | Branch():
            return leaf(operand)
        case Format(of, conversion, spec):
            return Format(again(of), conversion, again(spec))
        case Joined(parts):
            return Joined(tuple(map(again, parts)))
        case Item(of, key):
            return Item(again(of), again(key))
        case Method(of, name, args):
            return Method(again(of), name, tuple(map(again, args)))
        case _:
            return over(operand, again)


def over(operand: Operand, change: Callable[[Operand], Any]) -> Any:
    """A container with its parts changed; anything else as it is."""
    match operand:
        case list():
            return [change(part) for part in operand]
        case tuple():
            return tuple(change(part) for part in operand)
        case dict():
            return {key: change(part) for key, part in operand.items()}
        case slice():
            return slice(*map(change, (operand.start, operand.stop, operand.step)))
        case _:
            return operand


def describe(operand: Operand) -> str:
    """The tree as the user might have written it."""
    match operand:
        case Argument(name):
            return name
        case Reading(_, name):
            return f"s[{name!r}]"
        case Branch(number):
            return f"branch {number}" if number else "s"
        case Item(of, slice() as key):
            ends = ["" if end is None else describe(end) for end in (key.start, key.stop)]
            step = "" if key.step is None else f":{describe(key.step)}"
            return f"{describe(of)}[{':'.join(ends)}{step}]"
        case Item(of, key):
            return f"{describe(of)}[{describe(key)}]"
        case Method(of, name, args):
            return f"{describe(of)}.{name}({', '.join(map(describe, args))})"
        case Format(of, conversion, spec):
            said = f"!{conversion}" if conversion else ""
            said += f":{spec if isinstance(spec, str) else describe(spec)}" if spec != "" else ""
            return f"{{{describe(of)}{said}}}"
        case Joined(parts):
            return " + ".join(map(describe, parts))
        case list() | tuple():
            return f"[{', '.join(map(describe, operand))}]"
        case dict():
            return f"{{{', '.join(f'{k!r}: {describe(v)}' for k, v in operand.items())}}}"
        case _:
            return repr(operand)
