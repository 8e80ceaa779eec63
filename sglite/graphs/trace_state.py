"""The state of a trace: a `State` whose run has no engine. It records symbols and never waits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from sglite.chat import Fragments
from sglite.errors import GraphBreak
from sglite.graphs.symbol import Symbol, graph_break, symbols_in, unwrap
from sglite.graphs.values import Leaf, Operand, Reading, substitute
from sglite.language import ir
from sglite.language.state import State
from sglite.language.thinking import THOUGHT
from sglite.options import Options
from sglite.running.record import Record, Slot

if TYPE_CHECKING:
    from sglite.graphs.trace import Tracer


class Recording:
    """A run that only records."""

    def __init__(self) -> None:
        self.record = Record()
        self.options = Options()
        self.seed = 0
        self.row = 0

    def check(self) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        raise graph_break(f"a compiled program cannot ask its run for {name!r}")


def _thinks(node: ir.Gen | ir.Select | ir.Late) -> bool:
    """Whether the hole has a thought before it, in the same branch."""
    if isinstance(node, ir.Late):
        said = dict(node.arguments)
        return said.get("think", False) is not False and said.get("n") is None
    return isinstance(node, ir.Gen) and node.think is not None and node.samples is None


class _NoTemplate:
    def fragments(self, roles: Sequence[str], tools: Sequence[Any] = ()) -> Fragments:
        return Fragments("", "")

    def __getattr__(self, name: str) -> Any:
        raise graph_break(f"a compiled program cannot ask the model's template for its {name!r}")


NO_TEMPLATE = _NoTemplate()


class TraceState(State):
    """A state that records symbols, and hands nothing over."""

    __slots__ = ("_tracer",)

    _tracer: Tracer

    def __getitem__(self, name: str) -> Any:
        self._awaited(name)
        index = len(self._record.variables[name]) - 1
        return self._tracer.symbol(Reading(self._record.number, name, index))

    def text(self) -> str:
        raise self._refused("text()")

    def messages(self) -> list[dict[str, str]]:
        raise self._refused("messages()")

    def meta(self, name: str) -> Any:
        raise self._refused("meta()")

    def _refused(self, what: str) -> GraphBreak:
        return self._tracer.refuse(
            f"a compiled program cannot read {what}; read a variable with s[name], or run the "
            "program without compiling it"
        )

    @property
    def on_overflow(self) -> Any:
        raise self._refused("on_overflow")

    @on_overflow.setter
    def on_overflow(self, policy: Any) -> None:
        raise self._refused("on_overflow; give it in the options of the run")

    def _flush(self, *, text_too: bool = False) -> None:
        pass

    def _awaited(self, name: str, index: int = -1) -> Any:
        for symbol in symbols_in(name):
            symbol.refuse("the name of a variable")
        variables = self._record.variables.get(name)
        return super()._awaited(name) if variables is None else variables[index]

    def _read(self, name: str, index: int) -> Any:
        return self._tracer.symbol(Reading(self._record.number, name, index))

    def _compute(self, operand: Operand, leaf: Leaf) -> Any:
        return self._tracer.lift(substitute(operand, lambda value: unwrap(leaf(value))))

    def _branch(self, fork: int, number: int, sequence: int | None) -> Self:
        branch = super()._branch(fork, number, sequence)
        branch._tracer = self._tracer
        return branch

    def _add(self, content: object, place: ir.Place) -> None:
        if isinstance(content, Symbol):
            self._record.note(ir.Insert(content.value, place=place))
        elif isinstance(content, ir.Late) or (isinstance(content, ir.Gen) and _thinks(content)):
            self._add_hole(content.at(place), place)
        else:
            super()._add(content, place)

    def _add_hole(self, node: Any, place: ir.Place) -> None:
        for name in getattr(node, "__dataclass_fields__", ()):
            for symbol in symbols_in(getattr(node, name)):
                symbol.refuse(f"the {name} of a hole in code without a source")
        name = node.name or self._unnamed_hole()
        slot = Slot(node, name)
        if _thinks(node):  # two holes, once the model is there
            self._record.variables.setdefault(f"{name}{THOUGHT}", []).append(slot)
        self._record.variables.setdefault(name, []).append(slot)
        self._record.take(slot)
        self._record.note(node)

    def _open_turn(
        self,
        role: str,
        place: ir.Place,
        tools: tuple[Any, ...] = (),
        verbatim: str | None = None,
    ) -> None:
        for symbol in symbols_in(role):
            symbol.refuse("the role of a turn")
        if tools:
            raise self._refused("what tools a model is told of")
        super()._open_turn(role, place, verbatim=verbatim)

    def _release(self) -> None:
        self._record.note(ir.Release())

    def _invoke(self, call: ir.Invoke, place: ir.Place) -> Any:
        body = self._tracer.seen(call.body)
        return super()._invoke(ir.Invoke(call.name, body, call.args, call.kwargs), place)
