"""Graphs as JSON text, and back. Loading makes values and calls nothing that the text names.

    {"version": 1, "name": ..., "parameters": [{"name", "kind", "default"}], "returned": OPERAND,
     "passes": [NAME],
     "nodes": [{"node": "Gen", "branch": 0, "place": [FILE, LINE], ...fields that say something}]}

OPERAND: see `operand_json`. A type is written as its
schema or pattern and its name: what a loaded graph makes of such a value is said by `from_json`.
"""

from __future__ import annotations

import inspect
import json
from dataclasses import fields
from typing import Any

from sglite.grammars import plain_part, read_part
from sglite.graphs import values
from sglite.graphs.graph import Graph
from sglite.graphs.operand_json import (
    SCALARS,
    Types,
    plain_captures,
    plain_operand,
    read_captures,
    read_operand,
    read_parser,
)
from sglite.graphs.passes import chosen
from sglite.language import ir
from sglite.language.types import parser_name
from sglite.options import Options
from sglite.runtime.segment import Constraint

VERSION = 1

MAX_BRANCHES = 100_000
"""Of a graph that is read from a text."""

_NODES: dict[str, type[ir.Node]] = {
    kind.__name__: kind
    for kind in (
        ir.Literal,
        ir.Insert,
        ir.Special,
        ir.Gen,
        ir.Select,
        ir.Late,
        ir.RoleOpen,
        ir.RoleClose,
        ir.Fork,
        ir.Join,
        ir.CallOpen,
        ir.CallClose,
        ir.Release,
    )
}
_KINDS = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.KEYWORD_ONLY,
)
_CONSTRAINTS = ("json_schema", "regex", "grammar", "parts")


def dump(graph: Graph) -> str:
    """`Graph.to_json`."""
    return json.dumps(plain(graph), ensure_ascii=False)


def plain(graph: Graph) -> dict[str, Any]:
    """The graph as plain data. Raises ValueError for what cannot be written."""
    return {
        "version": VERSION,
        "name": graph.__name__,
        "parameters": [_parameter(p) for p in graph.parameters],
        "returned": plain_operand(graph.returned),
        "passes": list(graph.passes),
        "nodes": [_node(branch, node) for branch, node in graph.steps],
    }


def load(text: str, types: Types) -> Graph:
    """`Graph.from_json`."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the text is not a graph: {error}") from None
    return from_plain(data, types)


def from_plain(data: Any, types: Types) -> Graph:
    """The graph of plain data. Raises ValueError for data that is none."""
    if not isinstance(data, dict) or "nodes" not in data:
        raise ValueError("the text is not a graph: it has no nodes")
    if data.get("version") != VERSION:
        raise ValueError(
            f"the graph has version {data.get('version')!r}, this sglite reads version {VERSION}; "
            "compile the program again"
        )
    at = "the head"
    try:
        parameters = [_read_parameter(p, types) for p in data.get("parameters", [])]
        returned = read_operand(data.get("returned"), types)
        steps = []
        for number, entry in enumerate(data["nodes"]):
            at = f"node {number}"
            steps.append(_read_node(entry, types))
        at = "the order of the nodes"
        _check(steps, {p.name for p in parameters}, returned)
        passes = chosen(data.get("passes"))
        return Graph(steps, str(data.get("name", "graph")), parameters, returned, passes)
    except (TypeError, ValueError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError(f"the text is not a graph: {at}: {error}") from error


# ---- nodes


def _node(branch: int, node: ir.Node) -> dict[str, Any]:
    entry: dict[str, Any] = {"node": type(node).__name__}
    if branch:
        entry["branch"] = branch
    for each in fields(node):
        value = getattr(node, each.name)
        if each.name == "place":
            if value is not None:
                entry["place"] = list(value)
        elif each.name == "tools":
            if value is not None and node.constraint is None:  # type: ignore[attr-defined]
                raise ValueError(f"{node.describe()} cannot be written as JSON: it has tools")
            # What a run recorded has the constraint that they came to.
        elif value != each.default:
            try:
                entry[each.name] = _field(node, each.name, value)
            except (TypeError, ValueError) as error:
                raise ValueError(
                    f"{node.describe()} cannot be written as JSON: {each.name}: {error}"
                ) from error
    return entry


def _field(node: ir.Node, name: str, value: Any) -> Any:
    if name == "parse":
        return parser_name(value, getattr(node, "origin", None))
    if isinstance(value, Options):
        return {f.name: v for f in fields(value) if (v := getattr(value, f.name)) is not None}
    if isinstance(value, Constraint):
        source = value.source if isinstance(value.source, str) else plain_part(value.source)
        return {"kind": value.kind, "source": source, "options": [list(o) for o in value.options]}
    if name == "captures":
        return plain_captures(value)
    if name == "arguments":
        return [[key, plain_operand(operand)] for key, operand in value]
    return plain_operand(value) if isinstance(value, values.Value) else _data(value)


def _data(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_data(part) for part in value]
    if not isinstance(value, SCALARS):
        raise TypeError(f"{value!r} has no form in JSON")
    return value


def _read_node(entry: dict[str, Any], types: Types) -> ir.Step:
    kind = _NODES.get(entry["node"])
    if kind is None:
        raise ValueError(f"unknown node {entry['node']!r}; known: {', '.join(_NODES)}")
    known = {f.name for f in fields(kind)}
    said: dict[str, Any] = {}
    for name, value in entry.items():
        if name == "place":
            said[name] = ir.Place(_text(value[0]), int(value[1]))
        elif name in known:
            said[name] = _read_field(name, value, entry, types)
        elif name not in ("node", "branch"):
            raise ValueError(f"{entry['node']} has no {name!r}")
    if kind is ir.Late and said["primitive"] not in ("gen", "select"):
        raise ValueError(f"unknown primitive {said['primitive']!r}; known: gen, select")
    for each in fields(kind):
        if each.name in ("text", "name", "role") and said.get(each.name) is not None:
            _text(said[each.name])
    return ir.Step(int(entry.get("branch", 0)), kind(**said))


def _read_field(name: str, value: Any, entry: dict[str, Any], types: Types) -> Any:
    if name == "options":
        return Options(**value)
    if name == "constraint":
        if value["kind"] not in _CONSTRAINTS:
            raise ValueError(f"unknown constraint {value['kind']!r}")
        parts = not isinstance(value["source"], str)
        source = read_part(value["source"]) if parts else value["source"]
        return Constraint(value["kind"], source, _tuples(value.get("options", [])))
    if name == "parse":
        return read_parser(value, entry.get("origin"), types)
    if name == "captures":
        return read_captures(value, types)
    if name == "think":
        return ir.Thought(*value)
    if name == "value":
        return read_operand(value, types)
    if name == "arguments":
        return tuple((_text(key), read_operand(operand, types)) for key, operand in value)
    return _tuples(value)


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


# ---- parameters, and the whole


def _parameter(parameter: inspect.Parameter) -> dict[str, Any]:
    said: dict[str, Any] = {"name": parameter.name, "kind": parameter.kind.name}
    if parameter.default is not parameter.empty:
        try:
            said["default"] = plain_operand(parameter.default)
        except TypeError as error:
            raise ValueError(f"the default of {parameter.name!r}: {error}") from error
    return said


def _read_parameter(said: dict[str, Any], types: Types) -> inspect.Parameter:
    kinds = {kind.name: kind for kind in _KINDS}
    default: Any = inspect.Parameter.empty
    if "default" in said:
        default = read_operand(said["default"], types)
    return inspect.Parameter(said["name"], kinds[said["kind"]], default=default)


def _check(steps: list[ir.Step], arguments: set[str], returned: Any) -> None:
    """Every branch was forked before it is used, every turn opened before it is closed, and every
    argument is there."""
    branches = 1
    turns: dict[int, bool] = {}  # branch -> whether its turn is open

    def leaf(value: values.Argument | values.Reading | values.Branch) -> None:
        if isinstance(value, values.Argument):
            if value.name not in arguments:
                raise ValueError(f"the graph takes no argument {value.name!r}")
        elif isinstance(value, values.Branch):
            if not 0 <= value.number < branches:
                raise ValueError(f"branch {value.number} is not there")
        elif not (0 <= value.branch < branches and value.index >= 0):
            raise ValueError(f"branch {value.branch} is not there yet")

    for branch, node in steps:
        used = [branch, *(node.branches if isinstance(node, ir.Join) else ())]
        if not all(isinstance(number, int) and 0 <= number < branches for number in used):
            raise ValueError(f"branch {max(used)} is not there yet")
        if isinstance(node, ir.Fork):
            if (
                node.first != branches
                or node.branches < 1
                or (node.names and len({*node.names}) != node.branches)
            ):
                raise ValueError(f"{node.describe()} does not number its branches in order")
            numbers = range(branches, branches + min(node.branches, MAX_BRANCHES))
            turns.update(dict.fromkeys(numbers, turns.get(branch, False)))
            branches += node.branches
            if branches > MAX_BRANCHES:
                raise ValueError(f"the graph has more than {MAX_BRANCHES} branches")
        elif isinstance(node, ir.RoleOpen | ir.RoleClose):
            closes = isinstance(node, ir.RoleClose)
            if closes != turns.get(branch, False):
                raise ValueError(f"{node.describe()} comes after another one of its kind")
            turns[branch] = not closes
        elif isinstance(node, ir.Insert):
            values.substitute(node.value, leaf)
        elif isinstance(node, ir.Late):
            values.substitute([operand for _, operand in node.arguments], leaf)
    values.substitute(returned, leaf)
