"""What JSON that is still being written says so far, as an object of its type where it has one.

Nothing is validated as a whole before it is whole: what has the type of its field is converted,
what is missing is the field's default or None.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import lru_cache
from typing import Any, get_args, get_origin, get_type_hints

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import from_json

from sglite.language import ir

NOTHING = object()
"""There is nothing to say yet."""


def partial_value(node: ir.Hole, text: str) -> Any:
    """The value of a JSON hole of which `text` is the beginning; NOTHING if there is none yet."""
    try:
        data = from_json(text, allow_partial="trailing-strings")
    except ValueError:
        return NOTHING
    adapter = getattr(getattr(node, "parse", None), "__self__", None)
    if not isinstance(adapter, TypeAdapter):
        return data
    return _shaped(adapter._type, data)


def _shaped(kind: Any, data: Any) -> Any:
    """`data` as far as it can be an object of type `kind`."""
    origin, args = get_origin(kind), get_args(kind)
    if origin is typing.Annotated:
        return _shaped(args[0], data)
    if isinstance(data, Mapping):
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            return _model(kind, data)
        if isinstance(kind, type) and is_dataclass(kind):
            return _dataclass(kind, data)
        if origin is dict:
            return {key: _shaped(args[1], value) for key, value in data.items()}
    if isinstance(data, list) and origin is list:
        return [_shaped(args[0], value) for value in data]
    if origin in (typing.Union, types.UnionType):
        return _one_of(args, data)
    try:
        return _adapter(kind).validate_python(data)
    except (ValidationError, TypeError):
        return data if isinstance(data, Mapping | list) else None


def _one_of(kinds: tuple[Any, ...], data: Any) -> Any:
    """The first member of a union that takes the data as it is, or that has such fields."""
    for kind in kinds:
        if isinstance(data, Mapping) and isinstance(kind, type) and issubclass(kind, BaseModel):
            if data.keys() <= {f.alias or name for name, f in kind.model_fields.items()}:
                return _model(kind, data)
            continue
        try:
            return _adapter(kind).validate_python(data)
        except (ValidationError, TypeError):
            continue
    return data if isinstance(data, Mapping | list) else None


def _model(kind: type[BaseModel], data: Mapping[str, Any]) -> BaseModel:
    values: dict[str, Any] = {}
    there = set()
    for name, field in kind.model_fields.items():
        key = field.alias or name
        if key in data:
            there.add(name)
            values[name] = _shaped(field.annotation, data[key])
        elif field.is_required():
            values[name] = None
    # By attribute: model_construct takes what it is given by alias, and this has the names.
    made = kind.model_construct(_fields_set=there)
    for name, value in values.items():
        made.__dict__[name] = value
    return made


def _dataclass(kind: type, data: Mapping[str, Any]) -> Any:
    made: Any = object.__new__(kind)
    hints = get_type_hints(kind)
    for field in fields(kind):
        value: Any = None
        if field.name in data:
            value = _shaped(hints[field.name], data[field.name])
        elif field.default is not MISSING:
            value = field.default
        elif field.default_factory is not MISSING:
            value = field.default_factory()
        object.__setattr__(made, field.name, value)
    return made


@lru_cache(maxsize=512)
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
