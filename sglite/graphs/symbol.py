"""What stands for a value that a trace does not know: an argument, or a value that was read.

It permits the operations that a graph can do later and ends the trace at any other, with the user's
line: a guess would be a program that does something else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from sglite.errors import GraphBreak
from sglite.graphs.values import (
    STR_METHODS,
    Format,
    Item,
    Joined,
    Method,
    Operand,
    Value,
    describe,
    evaluate,
    over,
)
from sglite.language import ir
from sglite.language.places import users_place


def graph_break(message: str, place: ir.Place | None = None) -> GraphBreak:
    """The error of what cannot be traced, at `place` or the user's line."""
    place = place or users_place()
    return GraphBreak(message, filename=place.filename, line=place.line)


class Symbol(ir.Expression):
    """A value that is known when the program runs. `broken` hears of the trace's end."""

    __slots__ = ("broken", "value")

    def __init__(self, value: Value, broken: Callable[[GraphBreak], None]) -> None:
        self.value = value
        self.broken = broken

    def refuse(self, what: str, remedy: str = "") -> NoReturn:
        """End the trace because of what was asked of this value."""
        from_argument = "pass it to compile() as a constant, or move this out of the program"
        error = graph_break(
            f"a compiled program does not know {describe(self.value)}, which is asked for {what}; "
            f"{remedy or from_argument}"
        )
        self.broken(error)
        raise error

    def over(self, value: Value) -> Symbol:
        """Another value, made out of this one."""
        return Symbol(value, self.broken)

    def __add__(self, other: object) -> Any:
        if isinstance(other, Symbol | str):
            return self.over(Joined((*_parts(self), unwrap(other))))
        if isinstance(other, ir.Expression):
            return super().__add__(other)
        return self.refuse("arithmetic")

    def __radd__(self, other: object) -> Any:
        if isinstance(other, str):
            return self.over(Joined((other, self.value)))
        if isinstance(other, ir.Expression):
            return super().__radd__(other)
        return self.refuse("arithmetic")

    def __getitem__(self, key: object) -> Symbol:
        return self.over(Item(self.value, unwrap(key)))

    def __getattr__(self, name: str) -> Any:
        if name in STR_METHODS:
            return _TextMethod(self, name)
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)  # asked by protocols, which go on without
        return self.refuse(f"its attribute {name!r}")

    def __format__(self, spec: str) -> str:
        self.refuse("its text here", _SEEN)

    def __str__(self) -> str:
        self.refuse("its text here", _SEEN)

    def __repr__(self) -> str:
        self.refuse("its text here", _SEEN)

    def __copy__(self) -> Symbol:
        return self

    def __deepcopy__(self, memo: object) -> Symbol:
        return self


_SEEN = (
    "write f-strings, str() and join() in the program itself, or in a plain function that it "
    "calls and whose source is in a file"
)


class _TextMethod:
    """A method of a text that is not known yet."""

    __slots__ = ("name", "symbol")

    def __init__(self, symbol: Symbol, name: str) -> None:
        self.symbol = symbol
        self.name = name

    def __call__(self, *args: Any) -> Symbol:
        symbol = self.symbol
        return symbol.over(Method(symbol.value, self.name, unwrap(args)))


def _refusing(what: str) -> Callable[..., Any]:
    def refused(self: Symbol, *_: object) -> Any:
        self.refuse(what)

    return refused


_CONTROL = "its truth, and the program would go one way or another"
for _names, _what in {
    "__bool__": _CONTROL,
    "__len__": "its length",
    "__iter__ __next__ __reversed__": "its items one by one",
    "__contains__": "what it contains",
    "__eq__ __ne__ __lt__ __le__ __gt__ __ge__": "a comparison",
    "__hash__": "its hash",
    "__int__ __float__ __index__ __complex__ __round__ __trunc__ __floor__ __ceil__": "a number",
    "__call__": "a call",
    "__enter__ __exit__": "a context",
    "__setitem__ __delitem__": "a change",
    "__sub__ __rsub__ __mul__ __rmul__ __truediv__ __rtruediv__ __floordiv__ __rfloordiv__ __mod__ "
    "__rmod__ __pow__ __rpow__ __and__ __rand__ __or__ __ror__ __xor__ __rxor__ __lshift__ "
    "__rlshift__ __rshift__ __rrshift__ __neg__ __pos__ __abs__ __invert__ __divmod__ "
    "__rdivmod__ __matmul__ __rmatmul__": "arithmetic",
}.items():
    for _name in _names.split():
        setattr(Symbol, _name, _refusing(_what))


def symbols_in(value: Any) -> list[Symbol]:
    """The symbols in a value and in the containers that it is made of."""
    if isinstance(value, Symbol):
        return [value]
    found: list[Symbol] = []
    over(value, lambda part: found.extend(symbols_in(part)))
    return found


def unwrap(value: Any) -> Operand:
    """A value with symbols in it as an operand."""
    return value.value if isinstance(value, Symbol) else over(value, unwrap)


def text_of(parts: tuple[Any, ...]) -> Any:
    """What an f-string is: a text, or a symbol where a part of it is not known."""
    pieces: list[Any] = []
    for part in parts:
        if isinstance(part, str):
            pieces.append(part)
            continue
        value, conversion, spec = part
        seen = symbols_in((value, spec))
        if seen:
            pieces.append(seen[0].over(Format(unwrap(value), conversion, unwrap(spec))))
        else:
            pieces.append(evaluate(Format(value, conversion, spec), _no_leaf))
    known = [piece for piece in pieces if isinstance(piece, Symbol)]
    if not known:
        return "".join(pieces)
    return known[0] if len(pieces) == 1 else known[0].over(Joined(tuple(map(unwrap, pieces))))


def _no_leaf(value: object) -> NoReturn:
    raise AssertionError(f"{value!r} was taken for known")


def _parts(symbol: Symbol) -> tuple[Operand, ...]:
    """What was added up so far, from left to right."""
    return symbol.value.parts if isinstance(symbol.value, Joined) else (symbol.value,)
