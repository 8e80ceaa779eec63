"""From a Python type to what the hole must match and how its text becomes a value.

Scalars are written as plain text (`42`, `true`, `2026-11-30`) and matched by a regular expression;
everything with a structure is JSON, described by the schema that pydantic derives and validated by
pydantic. Knows nothing of holes or programs.
"""

from __future__ import annotations

import json
import sys
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from functools import lru_cache, partial
from typing import Any, get_origin
from uuid import UUID

from pydantic import TypeAdapter
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUserError

from sglite.grammars import compose
from sglite.grammars.quotes import Quote
from sglite.language.ir import Captured
from sglite.language.type_schemas import DATE, NAIVE_DATETIME, TIME, json_schema_of
from sglite.language.typed_dicts import readable
from sglite.runtime.segment import Constraint

Parse = Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class ValueType:
    """`constraint` None is free text; `parse` None keeps the text as the value.

    `spaced`: one space may stand before the value where the text before does not end in one;
    `parse` takes the text with it or without it. `origin`: what the user calls a type that is
    described by a schema. `captures`: variables that are parts of the text.
    """

    constraint: Constraint | None
    parse: Parse | None
    spaced: bool = False
    origin: str | None = None
    captures: tuple[Captured, ...] = ()


# Bounded, since a small model that does not stop would fill the whole budget with digits.
_INT = r"-?(0|[1-9][0-9]{0,17})"
_DECIMAL = r"-?(0|[1-9][0-9]{0,16})(\.[0-9]{1,17})?"
_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"


def _bool(text: str) -> bool:
    return text == "true"


_SCALARS: dict[Any, tuple[str, Parse]] = {
    int: (_INT, int),
    float: (rf"{_DECIMAL}([eE][+-]?[0-9]{{1,3}})?", float),
    bool: (r"true|false", _bool),
    Decimal: (_DECIMAL, Decimal),
    date: (DATE, date.fromisoformat),
    time: (TIME, time.fromisoformat),
    datetime: (NAIVE_DATETIME, datetime.fromisoformat),
    UUID: (_UUID, UUID),
}


def value_type(annotation: Any) -> ValueType:
    """The constraint and the parser of a type.

    Raises TypeError for what is no type, or has no description as text or JSON.
    """
    return _remembered(_derive, annotation)


def json_type(annotation: Any) -> ValueType:
    """Like `value_type`, with everything written as JSON, scalars too."""
    return _remembered(_json, annotation)


def schema_type(schema: dict[str, Any] | str) -> ValueType:
    """The type of a JSON Schema, given as a dict or as JSON text; the value is plain JSON data."""
    if isinstance(schema, dict):
        source = json.dumps(schema, ensure_ascii=False)
    else:
        try:
            json.loads(schema)
        except ValueError as error:
            raise ValueError(f"json= got text that is not a JSON Schema: {error}") from error
        source = schema
    return ValueType(Constraint("json_schema", source), json.loads)


def _derive(annotation: Any) -> ValueType:
    if annotation is str:
        return ValueType(None, None)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return _choice([(_as_text(m.value), m) for m in annotation], annotation.__name__)
    if get_origin(annotation) is typing.Literal:
        values = typing.get_args(annotation)
        plain = [v.value if isinstance(v, Enum) else v for v in values]
        return _choice([(_as_text(p), v) for p, v in zip(plain, values, strict=True)], "Literal")
    if annotation in _SCALARS:
        pattern, parse = _SCALARS[annotation]
        return ValueType(Constraint("regex", pattern), _without_space(parse), spaced=True)
    return _json(annotation)


def _remembered(derive: Callable[[Any], ValueType], annotation: Any) -> ValueType:
    try:
        hash(annotation)
    except TypeError:
        return derive(annotation)
    return _derive_once(derive, annotation)


@lru_cache(maxsize=1024)
def _derive_once(derive: Callable[[Any], ValueType], annotation: Any) -> ValueType:
    return derive(annotation)


def _is_typing_form(annotation: Any) -> bool:
    alias = getattr(typing, "TypeAliasType", types.UnionType)  # since Python 3.12
    return get_origin(annotation) is not None or isinstance(annotation, types.UnionType | alias)


def _json(annotation: Any) -> ValueType:
    if not (isinstance(annotation, type) or _is_typing_form(annotation)):
        raise TypeError(
            f"{annotation!r} is not a type; give int, Literal[...], a dataclass, a pydantic model, "
            "..., or name the constraint: regex=, json=, grammar="
        )
    if annotation is complex:  # pydantic would take any text for one
        raise TypeError("complex cannot be the type of a hole; use tuple[float, float]")
    origin = annotation.__qualname__ if get_origin(annotation) is None else repr(annotation)
    try:
        if sys.version_info < (3, 12):
            annotation = readable(annotation)
        adapter: TypeAdapter[Any] = TypeAdapter(annotation)
        schema = json_schema_of(adapter)
    except (PydanticUserError, PydanticInvalidForJsonSchema, NameError) as error:
        reason = str(error).splitlines()[0]
        raise TypeError(f"{annotation!r} cannot be the type of a hole: {reason}") from error
    _close(schema)
    # Not sorted: the model writes the properties in the order in which they were declared.
    source = json.dumps(schema, ensure_ascii=False)
    return ValueType(Constraint("json_schema", source), adapter.validate_json, origin=origin)


def _close(schema: Any) -> None:
    """Leave no room for properties that a type does not have.

    Pydantic's schema says what it accepts, and it ignores unknown properties; a model that is free
    to write them does not stop.
    """
    if not isinstance(schema, dict):
        return
    if "properties" in schema:
        schema.setdefault("additionalProperties", False)
    for keyword in ("properties", "$defs"):
        for part in schema.get(keyword, {}).values():
            _close(part)
    for keyword in ("anyOf", "oneOf", "allOf", "prefixItems"):
        for part in schema.get(keyword, []):
            _close(part)
    for keyword in ("items", "additionalProperties"):
        _close(schema.get(keyword))


def _choice(pairs: list[tuple[str, Any]], owner: str) -> ValueType:
    values = dict(pairs)
    if not values:
        raise TypeError(f"{owner} has no members to choose from")
    if len(values) != len(pairs):
        raise TypeError(f"two members of {owner} are written alike: {[text for text, _ in pairs]}")
    pattern = "|".join(map(quote, values))
    constraint = Constraint("regex", pattern)
    if any(text[:1].isspace() for text in values):  # here a space is part of the value
        return ValueType(constraint, values.__getitem__)
    return ValueType(constraint, _without_space(values.__getitem__), spaced=True)


def quote_type(part: Quote) -> ValueType:
    """The type of a quote; one of whole words begins with no space of its own."""
    constraint = Constraint("parts", part)
    if not part.whole_words:
        return ValueType(constraint, None)
    return ValueType(constraint, _without_space(str), spaced=True)


def with_space(constraint: Constraint) -> Constraint:
    """The constraint of a `spaced` type with one optional space before it."""
    if constraint.kind == "parts":
        space = compose.repeat(" ", 0, 1)
        return replace(constraint, source=compose.sequence(space, constraint.source))
    return replace(constraint, source=f" ?({constraint.source})")


def _without_space(parse: Parse) -> Parse:
    return partial(_parse_without_space, parse)  # not a closure: rows can be pickled


def _parse_without_space(parse: Parse, text: str) -> Any:
    return parse(text.removeprefix(" "))


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, bool | int | float):
        return json.dumps(value)
    raise TypeError(f"{value!r} has no plain text form; use str, int, float, bool or None")


def quote(text: str) -> str:
    """`text` as a regular expression that matches exactly it."""
    return "".join(f"\\{c}" if c in r"\.^$*+?{}[]|()" else c for c in text)


# ---- parsers by name, for what is written down


def parser_name(parse: Parse | None, origin: str | None) -> Any:
    """A parser as plain data: by its name, its choices, or the type that it is of."""
    if isinstance(parse, partial) and parse.func is _parse_without_space:
        return {"spaced": parser_name(parse.args[0], origin)}
    for name, known in _PARSERS.items():
        if parse == known:
            return name
    choices = getattr(parse, "__self__", None)
    if isinstance(choices, dict) and all(_is_plain(value) for value in choices.values()):
        return {"choices": choices}
    return {"type": origin or "a choice"}


def parser_of(plain: Any) -> Parse | None:
    """The parser of plain data; of a type that is not there, the one that gives plain data.

    Raises ValueError.
    """
    match plain:
        case None:
            return None
        case str(name) if name in _PARSERS:
            return _PARSERS[name]
        case {"spaced": inner}:
            parse = parser_of(inner)
            return None if parse is None else _without_space(parse)
        case {"choices": dict(choices)} if all(map(_is_plain, choices.values())):
            return choices.__getitem__
        case {"type": "a choice"}:
            return str
        case {"type": str()}:
            return json.loads
    raise ValueError(f"unknown parser {plain!r}")


def _is_plain(value: Any) -> bool:
    return value is None or type(value) in (str, int, float, bool)


_PARSERS: dict[str, Parse | None] = {
    "json": json.loads,
    "bool": _bool,
    "str": str,
    **{kind.__name__: parse for kind, (_, parse) in _SCALARS.items()},
}
