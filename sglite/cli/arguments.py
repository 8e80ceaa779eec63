"""The parameters of a program as options of the command line, and as fields of a row.

A text is taken as it stands, numbers, dates, paths and the like as they are written, one of several
values as a choice, a list of these by repeating the option; everything else is JSON. Whatever was
read is then validated by pydantic against the whole annotation.
"""

from __future__ import annotations

import inspect
import json
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import click
from pydantic import PydanticUserError, TypeAdapter, ValidationError

from sglite.language.program import Function
from sglite.tools.declared import read_docstring

_PLAIN = {"string", "number", "integer", "boolean"}
_LISTS = (list, set, frozenset, tuple, SequenceOf, Iterable)
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Value(click.ParamType[Any]):
    """How one value is written on the command line: `read` makes it of the text.

    `is_whole`: what it reads has been validated against the annotation.
    """

    def __init__(
        self,
        name: str,
        read: Callable[[str], Any],
        *,
        is_json: bool = False,
        is_whole: bool = False,
    ) -> None:
        self.name = name
        self.read = read
        self.is_json = is_json
        self.is_whole = is_whole

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return self.read(value)
        except ValueError as error:
            return self.fail(reasons(error), param, ctx)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return self.name


@dataclass(frozen=True)
class Argument:
    """One parameter of a program."""

    name: str
    kind: Any  # the annotation, or what the default says; None: anything
    default: Any
    by_name: bool
    about: str

    @property
    def required(self) -> bool:
        """Whether a run needs it: what may be None and has no default is None."""
        return self.default is inspect.Parameter.empty and not self._is_optional

    @property
    def absent(self) -> dict[str, Any]:
        """What a run is given of it where nothing was said."""
        return {self.name: None} if self.default is inspect.Parameter.empty else {}

    @cached_property
    def option(self) -> click.Option:
        """The option of the command line: `--max-words` for `max_words`."""
        name = self.name.rstrip("_") or self.name
        flag = "--" + name[: len(name) - len(name.lstrip("_"))] + name.lstrip("_").replace("_", "-")
        how: dict[str, Any] = {"help": self._help or None, "default": None}
        if _without_none(self.kind) is bool:
            return click.Option([self.name, f"{flag}/--no-{flag[2:]}"], **how)
        return click.Option([self.name, flag], type=self._value, multiple=self._is_list, **how)

    def checked(self, value: Any) -> Any:
        """A value that was read on the command line. Raises ValueError."""
        if self._adapter is None or self._value.is_whole:
            return value
        return self._adapter.validate_python([*value] if isinstance(value, tuple) else value)

    def from_json(self, value: Any) -> Any:
        """A value of a row of JSON. Raises ValueError."""
        if self._adapter is None or (type(value) is str and self.kind is str):
            return value
        return self._adapter.validate_json(json.dumps(value))

    def from_cell(self, text: str) -> Any:
        """A cell of a row of CSV. Raises ValueError."""
        if self._is_list:
            return self.from_json(json.loads(text))
        return self.checked(self._value.read(text))

    @property
    def is_text(self) -> bool:
        """Whether an empty text is a value of it, and no absence."""
        return self._value.name == "TEXT" and not self._is_list

    @property
    def _is_list(self) -> bool:
        """Whether the command line repeats it, once for each element."""
        return _element(self.kind) is not None

    @cached_property
    def _value(self) -> Value:
        """How it is written, or each of its elements."""
        return _element(self.kind) or _value(self.kind)

    @property
    def _is_optional(self) -> bool:
        return type(None) in get_args(self.kind) or self.kind is type(None)

    @cached_property
    def _adapter(self) -> TypeAdapter[Any] | None:
        return None if self.kind is None else _adapter(self.kind)

    @property
    def _help(self) -> str:
        if self.default is inspect.Parameter.empty:
            note = "[required]" if self.required else ""
        else:
            shown = self.default.value if isinstance(self.default, Enum) else self.default
            says = shown is not None and shown is not False and shown not in ("", (), [], {})
            note = f"[default: {shown}]" if says else ""
        return f"{self.about}  {note}".strip()


def arguments_of(program: Function) -> dict[str, Argument]:
    """What a program takes, by name. `*args` and `**kwargs` have no place on a command line."""
    _, about = read_docstring(inspect.getdoc(program.body) or "")
    found = {}
    for parameter in program.signature.parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        kind = _hint(program, parameter)
        described = [each for each in getattr(kind, "__metadata__", ()) if isinstance(each, str)]
        found[parameter.name] = Argument(
            parameter.name,
            _of_default(parameter.default) if kind is None else kind,
            parameter.default,
            parameter.kind in _BY_NAME,
            " ".join([about.get(parameter.name, ""), *described]).strip(),
        )
    return found


def reasons(error: ValueError) -> str:
    """What was wrong with a value, in one line."""
    if not isinstance(error, ValidationError):
        return str(error)
    return "; ".join(
        f"{'.'.join(map(str, each['loc']))}: {each['msg']}" if each["loc"] else each["msg"]
        for each in error.errors(include_url=False)
    )


def _hint(program: Function, parameter: inspect.Parameter) -> Any:
    """The annotation of a parameter; None for one that is not there, or names what is not."""
    if parameter.annotation is parameter.empty:
        return None
    holder = types.SimpleNamespace(__annotations__={parameter.name: parameter.annotation})
    scope = getattr(inspect.unwrap(program.body), "__globals__", {})
    try:
        kind = typing.get_type_hints(holder, scope, include_extras=True)[parameter.name]
    except NameError:  # imported for type checkers alone, or local to a function
        return None
    return None if kind is Any else kind


def _of_default(default: Any) -> Any:
    """What is meant where only a default tells of the type."""
    if isinstance(default, list | tuple) and default and {*map(type, default)} <= {str, int, float}:
        kinds = {*map(type, default)}
        element: Any = kinds.pop() if len(kinds) == 1 else Any
        return list[element] if isinstance(default, list) else tuple[element, ...]
    return type(default) if isinstance(default, bool | int | float | dict | list | tuple) else None


def _without_none(kind: Any) -> Any:
    """`X` of `Optional[X]` and `Annotated[X, ...]`."""
    if get_origin(kind) is Annotated:
        return _without_none(get_args(kind)[0])
    if get_origin(kind) in (Union, types.UnionType):
        others = [each for each in get_args(kind) if each is not type(None)]
        return _without_none(others[0]) if len(others) == 1 else Union[tuple(others)]  # noqa: UP007
    return kind


def _element(kind: Any) -> Value | None:
    """How the elements of a list are written, if it is one of plain values."""
    kind = _without_none(kind)
    of = get_args(kind)
    if get_origin(kind) not in _LISTS or not of or (len(of) > 1 and of[1] is not Ellipsis):
        return None
    element = _value(of[0])
    return None if element.is_json else element


def _value(kind: Any) -> Value:
    """How one value of this type is written."""
    bare = _without_none(kind)
    if bare in (None, str, Any):
        return Value("TEXT", str)
    if get_origin(bare) is Literal:
        return _choice({_spelled(each): each for each in get_args(bare)})
    if isinstance(bare, type) and issubclass(bare, Enum):
        return _choice({_spelled(member.value): member for member in bare})
    inner, whole = _adapter(bare), _adapter(kind)
    if inner is None or whole is None:
        return Value("OBJECT", _refuse)
    if _is_plain(inner):
        name = "|".join(_name(each) for each in get_args(bare) or (bare,))
        return Value(name, whole.validate_strings, is_whole=True)
    return Value("JSON", whole.validate_json, is_json=True, is_whole=True)


def _choice(values: Mapping[str, Any]) -> Value:
    def read(text: str) -> Any:
        if text not in values:
            raise ValueError(f"{text!r} is none of {', '.join(map(repr, values))}")
        return values[text]

    return Value(f"[{'|'.join(values)}]", read)


def _refuse(text: str) -> Any:
    raise ValueError("a value of this type cannot be written; run the program from Python")


def _spelled(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _name(kind: Any) -> str:
    return getattr(kind, "__name__", "value").upper()


def _adapter(kind: Any) -> TypeAdapter[Any] | None:
    try:
        return TypeAdapter(kind)
    except PydanticUserError:  # a class of the user's that pydantic knows nothing of
        return None


def _is_plain(adapter: TypeAdapter[Any]) -> bool:
    """Whether a text says one value without the quotes of JSON."""
    try:
        schema = adapter.json_schema()
    except PydanticUserError:
        return False
    return all(each.get("type") in _PLAIN for each in schema.get("anyOf", [schema]))
