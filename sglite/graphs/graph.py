"""Graphs: what a program recorded, as a value that can be shown, written as JSON, and run again.

A graph is a program itself. It has all that programs have: `run`, `run_batch`, `stream`, and
`s += graph(...)`. `Function.compile` makes one out of a program; `row.graph` is what a row did.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from sglite.errors import SgliteError
from sglite.graphs.passes import PASSES, chosen
from sglite.graphs.plan import Op, op_of
from sglite.graphs.symbol import symbols_in, unwrap
from sglite.graphs.values import Argument, Branch, Leaf, Operand, Reading
from sglite.language import ir, primitives
from sglite.language.program import Function
from sglite.language.state import State
from sglite.options import ERROR
from sglite.running.record import Record, program_error

_PRIMITIVES: dict[str, Callable[..., ir.Hole]] = {
    "gen": primitives.gen,
    "select": primitives.select,
}


class Graph(Function):
    """A program made of nodes.

    `steps` are the nodes of all branches in the order of the program, `parameters` what it takes
    beside the state, `returned` what it returns, `passes` what was done to make it run faster.
    """

    def __init__(
        self,
        steps: Sequence[ir.Step],
        name: str = "graph",
        parameters: Sequence[inspect.Parameter] = (),
        returned: Operand = None,
        passes: Iterable[str] = PASSES,
    ) -> None:
        self.passes = chosen(passes)
        self.steps = tuple(steps)
        self.parameters = tuple(parameters)
        self.returned = returned
        super().__init__(_body(self, name))

    @classmethod
    def of_record(cls, record: Record) -> Graph:
        """The graph of what a run recorded, which takes no arguments."""
        return cls(record.log.steps)

    @property
    def nodes(self) -> tuple[ir.Node, ...]:
        """The nodes of all branches, in the order of the program."""
        return tuple(node for _, node in self.steps)

    def show(self) -> str:
        """The nodes as a tree, with their lines."""
        taken = ", ".join(map(str, self.parameters))
        return "\n".join([f"{self.__name__}({taken})", *(f"  {line}" for line in self._tree())])

    def svg(self) -> str:
        """The graph as a picture, in a text of SVG that needs nothing else."""
        from sglite.graphs.svg import svg

        return svg(self)

    def _repr_html_(self) -> str:
        return self.svg()

    def __str__(self) -> str:
        return "\n".join(self._tree())

    def to_json(self) -> str:
        """The graph as JSON text, which runs without the source of the program.

        Raises ValueError for a hole that cannot be written.
        """
        from sglite.graphs.graph_json import dump

        return dump(self)

    @classmethod
    def from_json(cls, text: str, *, types: Mapping[str, Any] | None = None) -> Graph:
        """The graph of a JSON text; nothing of it is executed. Raises ValueError.

        `types`: the types of values by their names. Without its type a value is plain data.
        """
        from sglite.graphs.graph_json import load

        return load(text, types or {})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graph):
            return NotImplemented
        return (self.steps, self.parameters, self.returned) == (
            other.steps,
            other.parameters,
            other.returned,
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<graph {self.__name__}{self.signature} of {len(self.steps)} nodes>"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (
            self.steps,
            self.__name__,
            self.parameters,
            self.returned,
            self.passes,
        )

    @cached_property
    def _ops(self) -> list[Op | None]:
        """For each step what records it, where the plan has that."""
        if "plan" not in self.passes:
            return [None] * len(self.steps)
        return [op_of(node) for node in self.nodes]

    def _tree(self) -> Iterator[str]:
        branches: dict[int, list[ir.Node]] = {}
        for branch, node in self.steps:
            branches.setdefault(branch, []).append(node)
        return _lines(branches, 0, "")


def _body(graph: Graph, name: str) -> Any:
    def body(s: State, *args: Any, **kwargs: Any) -> Any:
        bound = graph.signature.bind(s, *args, **kwargs)
        bound.apply_defaults()
        return execute(graph, s, bound.arguments)

    body.__name__ = body.__qualname__ = name
    body.__doc__ = None
    free = {parameter.name for parameter in graph.parameters}
    state = inspect.Parameter(
        next(n for n in ("s", "state", "_s", "_state") if n not in free),
        inspect.Parameter.POSITIONAL_ONLY,
    )
    # Arguments that became constants may have stood before others.
    order = sorted(graph.parameters, key=lambda p: (p.kind, p.default is not p.empty))
    body.__signature__ = inspect.Signature([state, *order])  # type: ignore[attr-defined]
    return body


def execute(graph: Graph, state: State, arguments: Mapping[str, Any]) -> Any:
    """Record the graph on `state`; returns what the graph returns."""
    states = [state]
    earlier = {name: len(every) for name, every in state._record.variables.items()}

    def leaf(value: Argument | Reading | Branch) -> Any:
        if isinstance(value, Argument):
            return arguments[value.name]
        if isinstance(value, Branch):
            return states[value.number]
        index = earlier.get(value.name, 0) + value.index
        return states[value.branch]._read(value.name, index)

    planned = type(state) is State and state.on_overflow == ERROR
    for (branch, node), op in zip(graph.steps, graph._ops, strict=True):
        try:
            if planned and op is not None:
                op(states[branch], leaf)
            else:
                _step(states, states[branch], node, leaf)
        except SgliteError:
            raise
        except Exception as error:
            message = f"{graph.__name__}() failed: {type(error).__name__}: {error}"
            raise program_error(message, node) from error
    return state._compute(graph.returned, leaf)


def _step(states: list[State], state: State, node: ir.Node, leaf: Leaf) -> None:
    place = node.place or ir.NOWHERE
    match node:
        case ir.Literal(text=text):
            state._add(text, place)
        case ir.Insert(value=value):
            state._add(state._compute(value, leaf), place)
        case ir.Late():
            state._add(_call(node, state, leaf), place)
        case ir.RoleOpen(role=role):
            state._open_turn(role, place, verbatim=node.text if node.verbatim else None)
        case ir.RoleClose():
            state._close_turn(place, node.text if node.verbatim else None)
        case ir.Fork():
            states.extend(state._fork(node.branches, node.names, place))
        case ir.Join():
            state._join([states[number] for number in node.branches], node.keys, place)
        case ir.Release():
            state._release()
        case ir.CallOpen() | ir.CallClose():
            state._record.note(node)
        case _:
            state._add(node, place)


def _call(node: ir.Late, state: State, leaf: Leaf) -> ir.Expression:
    arguments = {name: state._compute(operand, leaf) for name, operand in node.arguments}
    if symbols_in(arguments):
        return ir.Late(node.primitive, node.name, tuple(unwrap(arguments).items()))
    return _PRIMITIVES[node.primitive](**arguments)


def _lines(branches: dict[int, list[ir.Node]], number: int, indent: str) -> Iterator[str]:
    depth = 0
    for node in branches.get(number, ()):
        if isinstance(node, ir.RoleClose | ir.CallClose):
            depth = max(0, depth - 1)
            continue
        place = f"  (line {node.place.line})" if node.place else ""
        yield f"{indent}{'  ' * depth}{node.describe()}{ir.details(node)}{place}"
        if isinstance(node, ir.RoleOpen | ir.CallOpen):
            depth += 1
        elif isinstance(node, ir.Fork):
            for i in range(node.branches):
                inner = f"{indent}{'  ' * depth}"
                yield f"{inner}├ branch {node.names[i] if node.names else i}"
                yield from _lines(branches, node.first + i, f"{inner}│ ")
