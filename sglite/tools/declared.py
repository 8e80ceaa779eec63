"""Tools: typed functions that a model may call.

A `Tool` knows its name, what it does, and the JSON Schema of its arguments, all taken from the
function. It knows nothing of templates, holes or programs.
"""

from __future__ import annotations

import inspect
import json
import re
import typing
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import update_wrapper
from typing import Annotated, Any, overload

import typing_extensions
from pydantic import Field, ValidationError

from sglite.language.types import json_type

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_SPHINX = re.compile(r"^\s*:param\s+(?:[^:]*\s)?(\w+):\s*(.*)$")
_SECTION = re.compile(r"^(\s*)(Args|Arguments|Parameters|Returns?|Raises|Yields|Examples?):\s*$")
_ARGUMENT = re.compile(r"^\s*(\w+)\s*(?:\([^)]*\))?:\s*(.*)$")


class Tool:
    """A function that a model may call; for everybody else it stays the function that it was.

    `parameters` is the JSON Schema of its arguments, an object that takes no others.
    """

    def __init__(
        self, function: Callable[..., Any], name: str | None = None, description: str | None = None
    ) -> None:
        if not callable(function):
            raise TypeError(f"@tool goes above a def, got {function!r}")
        self.name: str = name or getattr(function, "__name__", None) or type(function).__name__
        if not _NAME.fullmatch(self.name):
            raise ValueError(
                f"a tool's name has letters, digits, _ and - and at most 64 of them, got "
                f"{self.name!r}; write @sgl.tool(name=...)"
            )
        said, arguments = read_docstring(inspect.getdoc(function) or "")
        self.description = said if description is None else description
        self.is_async = inspect.iscoroutinefunction(function)
        value = json_type(_arguments_type(self.name, function, arguments))
        assert value.constraint is not None
        assert value.parse is not None
        self.parameters: dict[str, Any] = json.loads(str(value.constraint.source))
        self._parse = value.parse
        self._function = function
        update_wrapper(self, function)

    __name__: str
    __qualname__: str

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function itself."""
        return self._function(*args, **kwargs)

    def validated(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Arguments as JSON data made into values of the annotated types. Raises ValueError."""
        validated: dict[str, Any] = self._parse(json.dumps(arguments))
        return validated

    def described(self) -> dict[str, Any]:
        """What a model is told, in the form that chat templates take."""
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": _without_titles(self.parameters),
        }
        return {"type": "function", "function": function}

    def __repr__(self) -> str:
        return f"<tool {self.name}{inspect.signature(self._function)}>"

    def __reduce__(self) -> str:
        return self.__qualname__  # pickled by name, as functions are


@overload
def tool(function: Callable[..., Any]) -> Tool: ...


@overload
def tool(
    *, name: str | None = None, description: str | None = None
) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(
    function: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    description: str | None = None,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Let a model call this function: `@sgl.tool`.

    The annotations of its parameters say what the model may write, its docstring what it is told:
    the text of it, and from a section `Args:` (or from `:param x:`, or `Annotated[int, "..."]`) a
    line about each parameter. It may be an `async def`.

    Raises TypeError for a parameter without a type or with one that has no JSON form.
    """
    if function is not None:
        return Tool(function, name, description)
    return lambda function: Tool(function, name, description)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that a model wrote. `arguments` are values of the annotated types.

    `refused` says why a validator of yours does not take the arguments, which are then plain data;
    running such a call tells the model the same.
    """

    name: str
    arguments: dict[str, Any]
    id: str = ""
    refused: str | None = None
    tool: Tool | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What came of a call: `value`, or the `error` that it raised; `text` is what the model reads.

    `duration` in seconds.
    """

    call: ToolCall
    text: str
    value: Any = None
    error: Exception | None = None
    duration: float = 0.0


def call_of(tool: Tool, arguments: dict[str, Any], call_id: str) -> ToolCall:
    """A call with its arguments validated."""
    try:
        return ToolCall(tool.name, tool.validated(arguments), call_id, tool=tool)
    except ValidationError as error:
        reasons = (f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        return ToolCall(tool.name, arguments, call_id, "; ".join(reasons), tool)


def tool_tuple(where: str, tools: Iterable[Tool | Callable[..., Any]]) -> tuple[Tool, ...]:
    """The tools that were given as an argument. Raises TypeError for what is none, ValueError for
    none at all or two of one name.

    `where` begins the message: "use_tools: ", or nothing where the caller says it."""
    if isinstance(tools, str | Tool) or not isinstance(tools, Iterable):
        raise TypeError(f"{where}tools= takes a list of tools, got {tools!r}")
    found = tuple(tools)
    for each in found:
        if not isinstance(each, Tool):
            name = getattr(each, "__name__", None)
            hint = f"; write @sgl.tool above {name}()" if name else ""
            raise TypeError(f"{where}tools= takes tools, got {each!r}{hint}")
    names = [each.name for each in found if isinstance(each, Tool)]
    if not names:
        raise ValueError(f"{where}tools= has no tools")
    if len({*names}) < len(names):
        raise ValueError(f"{where}two tools have one name: {names}; write @sgl.tool(name=...)")
    return typing.cast("tuple[Tool, ...]", found)


def read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """What a docstring says of the function, and of each parameter."""
    about: list[str] = []
    arguments: dict[str, str] = {}
    section, last, deep = "", "", 0
    for line in text.splitlines():
        heading = _SECTION.match(line)
        if heading:
            section, last = heading[2], ""
        elif found := _SPHINX.match(line):
            arguments[found[1]] = found[2].strip()
        elif line.lstrip().startswith(":") and not section:
            continue
        elif section and line and not line[0].isspace():
            section = ""
            about.append(line)
        elif section in ("Args", "Arguments", "Parameters"):
            indent = len(line) - len(line.lstrip())
            if (found := _ARGUMENT.match(line)) and (not last or indent <= deep):
                last, deep = found[1], indent
                arguments[last] = found[2].strip()
            elif last and line.strip():
                arguments[last] = f"{arguments[last]} {line.strip()}".strip()
        elif not section:
            about.append(line)
    return "\n".join(about).strip(), arguments


def _arguments_type(name: str, function: Callable[..., Any], said: dict[str, str]) -> Any:
    """A TypedDict of the parameters, so that a validated value is the dict of arguments."""
    target = function if inspect.isroutine(function) else type(function).__call__
    try:
        hints = typing.get_type_hints(target, include_extras=True)
    except NameError as error:
        raise TypeError(
            f"tool {name}: {error}; types of a tool's parameters are defined at the top of a module"
        ) from error
    fields: dict[str, Any] = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(
                f"tool {name}: a model cannot fill {str(parameter)!r}; arguments are passed by name"
            )
        if parameter.name not in hints:
            raise TypeError(
                f"tool {name}: parameter {parameter.name!r} has no type; write "
                f"{parameter.name}: str, or whatever it takes"
            )
        hint = hints[parameter.name]
        about = said.get(parameter.name)
        for extra in getattr(hint, "__metadata__", ()):
            about = extra if isinstance(extra, str) else about
        if about:
            hint = Annotated[hint, Field(description=about)]
        if parameter.default is not parameter.empty:
            hint = typing_extensions.NotRequired[hint]
        fields[parameter.name] = hint
    make: Any = typing_extensions.TypedDict
    return make(name, fields)


def _without_titles(schema: Any) -> Any:
    """The schema without what says nothing to a model."""
    if isinstance(schema, list):
        return [_without_titles(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {}
    for key, part in schema.items():
        if key in ("properties", "$defs") and isinstance(part, dict):
            kept[key] = {name: _without_titles(inner) for name, inner in part.items()}
        elif key not in ("title", "additionalProperties") or isinstance(part, dict):
            kept[key] = _without_titles(part)
    return kept
