"""sglite: structured generation in one package.

    import sglite as sgl

    @sgl.function
    def capital(s, country):
        s += f"The capital of {country} is" + sgl.gen("city", max_tokens=4, stop=".")

    sgl.use(sgl.Model("smollm2"))
    print(capital.run("France")["city"])

Programs    function, Function, State, Options
Holes       gen, select, Constraint
Patterns    one_of, many, optional, regex, typed, capture, quote: what a hole may write
Chats       system, user, assistant, tool_result, role, special
Tools       tool, Tool, ToolCall, ToolResult
Models      Model, use, current_model
Documents   windows, Window: a long text in parts that fit
Results     Result, Usage, Attempt, Graph, replay; Started
Streams     Text, Hidden, Partial, Retried, Filled, ToolCalled, ToolReturned, Switched, Failed, End
Errors      SgliteError and its kinds: ProgramError (BatchError, RetryError), GrammarError,
            ModelError, CapacityError, DeadlineError, CancelledError, JournalError, GraphBreak

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
    from sglite.documents import Window as Window
    from sglite.documents import windows as windows
    from sglite.errors import CancelledError as CancelledError
    from sglite.errors import CapacityError as CapacityError
    from sglite.errors import DeadlineError as DeadlineError
    from sglite.errors import GrammarError as GrammarError
    from sglite.errors import GraphBreak as GraphBreak
    from sglite.errors import ModelError as ModelError
    from sglite.errors import ProgramError as ProgramError
    from sglite.errors import SgliteError as SgliteError
    from sglite.graphs.graph import Graph as Graph
    from sglite.language.composition import capture as capture
    from sglite.language.composition import many as many
    from sglite.language.composition import one_of as one_of
    from sglite.language.composition import optional as optional
    from sglite.language.composition import regex as regex
    from sglite.language.composition import typed as typed
    from sglite.language.primitives import assistant as assistant
    from sglite.language.primitives import gen as gen
    from sglite.language.primitives import role as role
    from sglite.language.primitives import select as select
    from sglite.language.primitives import special as special
    from sglite.language.primitives import system as system
    from sglite.language.primitives import tool_result as tool_result
    from sglite.language.primitives import user as user
    from sglite.language.program import Function as Function
    from sglite.language.program import function as function
    from sglite.language.quotes import quote as quote
    from sglite.language.state import State as State
    from sglite.model import Model as Model
    from sglite.model import current_model as current_model
    from sglite.model import use as use
    from sglite.options import Options as Options
    from sglite.running.attempts import RetryError as RetryError
    from sglite.running.handle import Started as Started
    from sglite.running.journal import JournalError as JournalError
    from sglite.running.replaying import replay as replay
    from sglite.running.result import BatchError as BatchError
    from sglite.running.result import Result as Result
    from sglite.running.stream import End as End
    from sglite.running.stream import Failed as Failed
    from sglite.running.stream import Filled as Filled
    from sglite.running.stream import Hidden as Hidden
    from sglite.running.stream import Partial as Partial
    from sglite.running.stream import Retried as Retried
    from sglite.running.stream import Switched as Switched
    from sglite.running.stream import Text as Text
    from sglite.running.stream import ToolCalled as ToolCalled
    from sglite.running.stream import ToolReturned as ToolReturned
    from sglite.runtime.segment import Attempt as Attempt
    from sglite.runtime.segment import Constraint as Constraint
    from sglite.runtime.segment import Usage as Usage
    from sglite.tools.declared import Tool as Tool
    from sglite.tools.declared import ToolCall as ToolCall
    from sglite.tools.declared import ToolResult as ToolResult
    from sglite.tools.declared import tool as tool


def _is_built(folder: str) -> bool:
    return any(exists(f"{folder}/kernels/_cpu{suffix}") for suffix in EXTENSION_SUFFIXES)


if not any(map(_is_built, __path__)):
    # Python run in a checkout finds this folder, which has no native parts, before an installed
    # package, which has: then that one holds every module.
    __path__ = sorted(extend_path(__path__, __name__), key=_is_built, reverse=True)

_EVENTS = "End Failed Filled Hidden Partial Retried Switched Text ToolCalled ToolReturned"
_ERRORS = "CancelledError CapacityError DeadlineError GrammarError GraphBreak ModelError"
_HOMES = {
    "sglite.language.composition": "capture many one_of optional regex typed",
    "sglite.documents": "Window windows",
    "sglite.errors": f"{_ERRORS} ProgramError SgliteError",
    "sglite.graphs.graph": "Graph",
    "sglite.running.attempts": "RetryError",
    "sglite.running.handle": "Started",
    "sglite.running.journal": "JournalError",
    "sglite.model": "Model current_model use",
    "sglite.options": "Options",
    "sglite.language.primitives": "assistant gen role select special system tool_result user",
    "sglite.language.program": "Function function",
    "sglite.running.replaying": "replay",
    "sglite.running.result": "BatchError Result",
    "sglite.runtime.segment": "Attempt Constraint Usage",
    "sglite.language.quotes": "quote",
    "sglite.language.state": "State",
    "sglite.running.stream": _EVENTS,
    "sglite.tools.declared": "Tool ToolCall ToolResult tool",
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
