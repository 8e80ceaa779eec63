"""sglite: structured generation in one package.

    import sglite as sgl

    @sgl.function
    def capital(s, country):
        s += f"The capital of {country} is" + sgl.gen("city", max_tokens=4, stop=".")

    sgl.use(sgl.Model("smollm2"))
    print(capital.run("France")["city"])

Programs    function, Function, State, Options
Holes       gen, select, Constraint
Patterns    one_of, many, optional, regex, typed, capture: what a hole may write
Chats       system, user, assistant, tool_result, role, special
Tools       tool, Tool, ToolCall, ToolResult
Models      Model, use, current_model
Results     Result, Usage, Graph, replay; Started; of a stream: Text, Partial, Filled, Failed, End
Errors      SgliteError and its kinds: ProgramError (BatchError), GrammarError, ModelError,
            CapacityError, DeadlineError, CancelledError, JournalError, GraphBreak

`help(sglite.gen)` tells about one of them. Names are loaded when they are first used, so that
`import sglite.grammars` loads neither the language nor the runtime.
"""

from __future__ import annotations

from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
from os.path import exists
from pkgutil import extend_path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sglite.composition import capture as capture
    from sglite.composition import many as many
    from sglite.composition import one_of as one_of
    from sglite.composition import optional as optional
    from sglite.composition import regex as regex
    from sglite.composition import typed as typed
    from sglite.errors import CancelledError as CancelledError
    from sglite.errors import CapacityError as CapacityError
    from sglite.errors import DeadlineError as DeadlineError
    from sglite.errors import GrammarError as GrammarError
    from sglite.errors import GraphBreak as GraphBreak
    from sglite.errors import ModelError as ModelError
    from sglite.errors import ProgramError as ProgramError
    from sglite.errors import SgliteError as SgliteError
    from sglite.graph import Graph as Graph
    from sglite.handle import Started as Started
    from sglite.journal import JournalError as JournalError
    from sglite.model import Model as Model
    from sglite.model import current_model as current_model
    from sglite.model import use as use
    from sglite.options import Options as Options
    from sglite.primitives import assistant as assistant
    from sglite.primitives import gen as gen
    from sglite.primitives import role as role
    from sglite.primitives import select as select
    from sglite.primitives import special as special
    from sglite.primitives import system as system
    from sglite.primitives import tool_result as tool_result
    from sglite.primitives import user as user
    from sglite.program import Function as Function
    from sglite.program import function as function
    from sglite.replaying import replay as replay
    from sglite.result import BatchError as BatchError
    from sglite.result import Result as Result
    from sglite.runtime.segment import Constraint as Constraint
    from sglite.runtime.segment import Usage as Usage
    from sglite.state import State as State
    from sglite.stream import End as End
    from sglite.stream import Failed as Failed
    from sglite.stream import Filled as Filled
    from sglite.stream import Partial as Partial
    from sglite.stream import Text as Text
    from sglite.tools import Tool as Tool
    from sglite.tools import ToolCall as ToolCall
    from sglite.tools import ToolResult as ToolResult
    from sglite.tools import tool as tool


def _is_built(folder: str) -> bool:
    return any(exists(f"{folder}/kernels/_cpu{suffix}") for suffix in EXTENSION_SUFFIXES)


if not any(map(_is_built, __path__)):
    # Python run in a checkout finds this folder, which has no native parts, before an installed
    # package, which has: then that one holds every module.
    __path__ = sorted(extend_path(__path__, __name__), key=_is_built, reverse=True)

_ERRORS = "CancelledError CapacityError DeadlineError GrammarError GraphBreak ModelError"
_HOMES = {
    "sglite.composition": "capture many one_of optional regex typed",
    "sglite.errors": f"{_ERRORS} ProgramError SgliteError",
    "sglite.graph": "Graph",
    "sglite.handle": "Started",
    "sglite.journal": "JournalError",
    "sglite.model": "Model current_model use",
    "sglite.options": "Options",
    "sglite.primitives": "assistant gen role select special system tool_result user",
    "sglite.program": "Function function",
    "sglite.replaying": "replay",
    "sglite.result": "BatchError Result",
    "sglite.runtime.segment": "Constraint Usage",
    "sglite.state": "State",
    "sglite.stream": "End Failed Filled Partial Text",
    "sglite.tools": "Tool ToolCall ToolResult tool",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}
__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("sglite")
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'sglite' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__]
