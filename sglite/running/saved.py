"""A result as plain data, and back.

Kept are texts, ids, turns, usage, everything that is known of a hole, and values as far as JSON
allows: an object of a type comes back as plain data. Not kept are the graph, and a value or a
`returned` that JSON cannot write.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, fields
from typing import Any

from pydantic_core import PydanticSerializationError, to_jsonable_python

from sglite.errors import ProgramError
from sglite.language import ir
from sglite.options import Options
from sglite.running.attempts import restored_attempts
from sglite.running.record import Gathered, Record, Slot, Taken, Turn, Variable
from sglite.running.result import Past, Result
from sglite.runtime.segment import HoleResult, Usage
from sglite.tools.declared import Tool, ToolCall, ToolResult


def dumped(result: Result) -> dict[str, Any]:
    """The result as data that `json` can write."""
    record = result._record
    slots = list(record.slots())
    numbers = {slot: number for number, slot in enumerate(slots)}
    timing = result.timing
    line: dict[str, Any] = {
        "seed": result.seed,
        "values": {name: plain(value) for name, value in result.variables.items()},
        "parts": [part if isinstance(part, str) else numbers[part] for part in record.parts],
        "turns": [[turn.role, turn.start, turn.end] for turn in record.turns],
        "variables": {
            name: [_numbered(each, numbers) for each in every]
            for name, every in record.variables.items()
        },
        "holes": [_hole(slot) for slot in slots],
        "tools": [_tool_result(each) for each in result.tool_results],
        "ids": list(result._ids),
        "started_at": timing.started_at,
        "finished_at": timing.finished_at,
    }
    if "fallback_from" in result.model:
        line["model"] = result.model
    if result.error is None:
        line["returned"] = plain(result.returned)
    else:
        error = result.error
        line["error"] = {
            "message": str(error),
            "node": error.node,
            "filename": error.filename,
            "line": error.line,
        }
    return line


def restored(line: dict[str, Any], options: Options, model: dict[str, Any]) -> Result:
    """The result that was dumped, of a run with these options on this model or its fallback."""
    slots = [_slot(hole) for hole in line["holes"]]
    record = Record(
        parts=[part if isinstance(part, str) else slots[part] for part in line["parts"]],
        turns=tuple(Turn(*turn) for turn in line["turns"]),
        variables={
            name: [_variable(each, slots) for each in every]
            for name, every in line["variables"].items()
        },
        tool_results=tuple(_restored_tool_result(said) for said in line["tools"]),
    )
    inside = {id(part) for part in record.parts}
    # Holes of branches, so that they count; where the branches left is not kept.
    apart = [slot for slot in slots if id(slot) not in inside]
    if apart:
        record.forks = ([Record(path=(0, 0), parts=[*apart])],)
    return Result(
        Past(
            record,
            line.get("returned"),
            options,
            line.get("model", model),
            _error(line["error"]) if "error" in line else None,
            tuple(line["ids"]),
            line["seed"],
            line["row"],
            line["started_at"],
            line["finished_at"],
        )
    )


def _tool_result(result: ToolResult) -> dict[str, Any]:
    return {
        "call": plain(result.call),
        "text": result.text,
        "value": plain(result.value),
        "failed": result.error is not None,
        "duration": result.duration,
    }


def _restored_tool_result(said: dict[str, Any]) -> ToolResult:
    call = ToolCall(**{**said["call"], "tool": None})
    error = RuntimeError(said["text"]) if said["failed"] else None
    return ToolResult(call, said["text"], said["value"], error, said["duration"])


def _hole(slot: Slot) -> dict[str, Any]:
    said: dict[str, Any] = {"name": slot.name}
    result = slot.result
    if result is None:
        return said
    try:
        value, captures = slot.value, slot.captures
    except ProgramError:
        value, captures = result.text, {}
    if value != result.text:
        said["value"] = plain(value)
    if captures:
        said["parts"] = {name: plain(part) for name, part in captures.items()}
    if not slot.node.shown:
        said["shown"] = False
    for field in fields(HoleResult):
        kept = getattr(result, field.name)
        if field.name in ("name", "usage") or kept == field.default:
            continue
        said[field.name] = plain(kept)
    counted = {f.name: getattr(result.usage, f.name) for f in fields(Usage)}
    said["usage"] = {name: count for name, count in counted.items() if count}
    return said


def _slot(said: dict[str, Any]) -> Slot:
    slot = Slot(ir.Gen(said["name"], shown=said.get("shown", True)), said["name"])
    if "text" not in said:
        return slot
    known: dict[str, Any] = {"usage": Usage(**said["usage"])}
    for field in fields(HoleResult):
        if field.name in said and field.name != "usage":
            known[field.name] = _like(said[field.name], field.default)
    if known.get("top_logprobs"):
        known["top_logprobs"] = tuple(
            {int(token): logprob for token, logprob in each.items()}
            for each in known["top_logprobs"]
        )
    known["attempts"] = restored_attempts(known.get("attempts", ()))
    known.setdefault("ids", ())
    slot.result = HoleResult(**known)
    slot.keep(said.get("value", slot.result.text), said.get("parts", {}))
    return slot


def _like(value: Any, default: Any) -> Any:
    """JSON has lists where a result has tuples: `ids`, and what is a tuple by default."""
    if isinstance(value, list) and (default is MISSING or isinstance(default, tuple)):
        return tuple(value)
    return value


def _numbered(variable: Variable | None, numbers: dict[Slot, int]) -> Any:
    if variable is None:
        return None
    if isinstance(variable, Slot):
        return numbers[variable]
    if isinstance(variable, Taken):
        return {"hole": numbers[variable.slot], "part": variable.captured.name}
    branches = [_numbered(each, numbers) for each in variable.branches]
    return {"branches": branches, "keys": variable.keys}


def _variable(said: Any, slots: Sequence[Slot]) -> Variable:
    if isinstance(said, int):
        return slots[said]
    if "part" in said:
        return Taken(slots[said["hole"]], ir.Captured(said["part"]))
    branches = (None if each is None else _variable(each, slots) for each in said["branches"])
    return Gathered(tuple(branches), tuple(said["keys"]))


def _error(said: dict[str, Any]) -> ProgramError:
    error = ProgramError(said["message"], node=said["node"])
    error.filename, error.line = said["filename"], said["line"]
    return error


def plain(value: Any) -> Any:
    """`value` as JSON has it, None for what it cannot write."""
    try:
        return to_jsonable_python(value, inf_nan_mode="constants", fallback=_plain_tool)
    except (PydanticSerializationError, ValueError, RecursionError):
        return None


def _plain_tool(value: Any) -> str:
    if isinstance(value, Tool):
        return value.name
    raise PydanticSerializationError(f"{type(value).__name__} is not data")
