"""Operands of compiled programs as plain data, and back.

A JSON scalar, or an object of one key that says what it is: `{"Argument": ["doc"]}`, `{"list":
[...]}`, `{"type": ["int"]}`. Reading one looks names up in tables and calls nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Literal, get_args, get_origin
from uuid import UUID

from sglite.grammars import plain_part, read_part
from sglite.graphs import values
from sglite.graphs.values import STR_METHODS
from sglite.language import ir
from sglite.language.composition import Pattern
from sglite.language.types import parser_name, parser_of, value_type

SCALARS = (str, int, float, bool, type(None))
_TYPES = {
    kind.__name__: kind
    for kind in (str, int, float, bool, Decimal, date, time, datetime, UUID, list, dict)
}
_VALUES = {kind.__name__: kind for kind in values.Value.__subclasses__()}

Types = Mapping[str, Any]
"""Types by the names that a text may use for them."""


def plain_operand(operand: Any) -> Any:
    """An operand as plain data. Raises TypeError for an object that has no form in JSON."""
    if isinstance(operand, SCALARS):
        return operand
    if isinstance(operand, list | tuple):
        return {type(operand).__name__: [plain_operand(part) for part in operand]}
    if isinstance(operand, dict):
        return {"dict": [[plain_operand(k), plain_operand(v)] for k, v in operand.items()]}
    if isinstance(operand, slice):
        ends = (operand.start, operand.stop, operand.step)
        return {"slice": [plain_operand(part) for part in ends]}
    if isinstance(operand, values.Value):
        said = [getattr(operand, f.name) for f in fields(operand)]  # type: ignore[arg-type]
        return {type(operand).__name__: [plain_operand(part) for part in said]}
    if isinstance(operand, Pattern):
        captures = plain_captures(operand.captures)
        return {"pattern": [plain_part(operand.part), captures]}
    if isinstance(operand, type):
        return {"type": [operand.__name__]}
    if get_origin(operand) is Literal:
        return {"literal": [plain_operand(part) for part in get_args(operand)]}
    raise TypeError(f"{operand!r} has no form in JSON")


def read_operand(data: Any, types: Types) -> Any:
    """The operand of plain data. Raises TypeError, ValueError, KeyError for data that is none."""
    if isinstance(data, SCALARS):
        return data
    ((kind, parts),) = data.items()
    if kind == "dict":
        return {read_operand(k, types): read_operand(v, types) for k, v in parts}
    if kind == "pattern":
        return Pattern(read_part(parts[0]), read_captures(parts[1], types))
    read = [read_operand(part, types) for part in parts]
    match kind:
        case "list":
            return read
        case "tuple":
            return tuple(read)
        case "slice":
            return slice(*read)
        case "literal":
            return Literal[tuple(read)]
        case "type":
            return _type(read[0], types)
    if kind not in _VALUES:
        raise ValueError(f"unknown value {kind!r}; known: {', '.join(_VALUES)}")
    value = _VALUES[kind](*read)
    if isinstance(value, values.Method) and value.name not in STR_METHODS:
        raise ValueError(f"unknown method of a text {value.name!r}")
    return value


def plain_captures(captures: tuple[ir.Captured, ...]) -> list[Any]:
    """The variables of a pattern as plain data."""
    return [[c.name, parser_name(c.parse, c.origin), c.many, c.origin] for c in captures]


def read_captures(data: list[Any], types: Types) -> tuple[ir.Captured, ...]:
    """The variables of a pattern out of plain data."""
    return tuple(
        ir.Captured(name, read_parser(parse, origin, types), bool(many), origin)
        for name, parse, many, origin in data
    )


def read_parser(data: Any, origin: str | None, types: Types) -> Any:
    """The parser of a value: that of its type, if it is there."""
    if origin is not None and origin in types:
        return value_type(types[origin]).parse
    return parser_of(data)


def _type(name: str, types: Types) -> Any:
    found = types.get(name, _TYPES.get(name))
    if found is None:
        raise ValueError(f"the type {name!r} is not there; pass types={{{name!r}: ...}}")
    return found
