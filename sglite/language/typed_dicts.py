"""TypedDicts of `typing` as pydantic takes them.

Before Python 3.12 pydantic reads only those of `typing_extensions`, which know of `Required` and
`NotRequired` in every case; users write the others. The values are plain dicts either way.
"""

from __future__ import annotations

import types
import typing
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typing_extensions


def readable(annotation: Any) -> Any:
    """`annotation` with every TypedDict of `typing` in it, however deep, as one for pydantic.

    Raises NameError for a TypedDict that names a type which cannot be found from its module.
    """
    return _rebuilt(annotation, {})


def _rebuilt(annotation: Any, done: dict[Any, Any]) -> Any:
    if typing.is_typeddict(annotation) and type(annotation).__module__ == "typing":
        return done.get(annotation) or _typed_dict(annotation, done)
    origin = get_origin(annotation)
    if origin is None or origin is Literal:
        return annotation
    if origin is Annotated:
        inner = _rebuilt(annotation.__origin__, done)
        return Annotated[(inner, *annotation.__metadata__)]
    old = get_args(annotation)
    new = tuple(_rebuilt(argument, done) for argument in old)
    if all(a is b for a, b in zip(old, new, strict=True)):
        return annotation
    if origin in (Union, types.UnionType):
        return Union[new]  # noqa: UP007 (the members are known at run time only)
    if isinstance(annotation, types.GenericAlias):
        return types.GenericAlias(origin, new)
    return annotation.copy_with(new)


def _typed_dict(old: Any, done: dict[Any, Any]) -> Any:
    make: Any = typing_extensions.TypedDict  # type checkers take it for a form of its own
    new = make(old.__name__, {})
    done[old] = new  # first, since it may name itself
    required = set()
    for name, hint in typing.get_type_hints(old, include_extras=True).items():
        # `__required_keys__` takes an annotation that is still text for a plain one.
        said = get_origin(hint)
        if said is typing.Required or (
            said is not typing.NotRequired and name in old.__required_keys__
        ):
            required.add(name)
        inner = get_args(hint)[0] if said in (typing.Required, typing.NotRequired) else hint
        new.__annotations__[name] = _rebuilt(inner, done)
    new.__required_keys__ = frozenset(required)
    new.__optional_keys__ = frozenset(new.__annotations__) - new.__required_keys__
    for attribute in ("__module__", "__qualname__", "__doc__", "__pydantic_config__"):
        if hasattr(old, attribute):
            setattr(new, attribute, getattr(old, attribute))
    return new
