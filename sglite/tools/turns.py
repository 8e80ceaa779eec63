"""Tools in a conversation: the turns in which a model is told of them and reads their results."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any

from sglite.errors import ModelError
from sglite.language import ir
from sglite.running.record import program_error
from sglite.tools import prompts
from sglite.tools.calls import as_calls, execute, execute_async
from sglite.tools.declared import Tool, ToolCall, ToolResult, tool_tuple
from sglite.tools.formats import HERMES, ToolFormat

if TYPE_CHECKING:
    from sglite.chat import ChatTemplate
    from sglite.language.recorder import Recorder
    from sglite.language.state import State


def format_for(template: Callable[[], ChatTemplate]) -> ToolFormat:
    """How the model writes calls; a base model, which has no template, in the common form."""
    try:
        return template().format
    except ModelError:
        return HERMES


def describe(state: Recorder, place: ir.Place) -> None:
    """End the open turn with a description of the tools, for a template that has none."""
    turn = state._record.turns[-1]
    is_empty = turn.start == state._record.position
    text = prompts.block(state._tools, state._template().format)
    state._add(text if is_empty else f"\n\n{text}", place)


def write_results(state: State, results: Sequence[ToolResult], place: ir.Place) -> None:
    """Add results as turns of the role `tool`, or, where the template has no such role, together
    as one user turn."""
    record = state._record
    record.tool_results += tuple(results)
    for result in results:
        state._run.watcher.returned(result, record.path)
    template = state._template()
    if not template.has_results:
        with state._turn("user", place):
            record.turns[-1].answers = True
            state._add(prompts.response(results), place)
        return
    calls = [result.call for result in results]
    opening_node = ir.RoleOpen("tool", place=place)
    state._end_parents_turn(opening_node, place)
    try:
        around = template.results(record.roles(), calls, state._tools)
    except ModelError as error:
        raise program_error(str(error), opening_node) from error
    for result, (opening, closing) in zip(results, around, strict=True):
        state._begin_turn("tool", opening, place, verbatim=True)
        record.turns[-1].answers = True
        is_quoted = opening.endswith('"') and closing.startswith('"')
        text = json.dumps(result.text, ensure_ascii=False)[1:-1] if is_quoted else result.text
        state._add(text, place)
        state._close_turn(place, closing)


def run(state: State, calls: Sequence[ToolCall], place: ir.Place) -> list[ToolResult]:
    """`State.run_tools`."""
    with state._run.elsewhere():
        results = execute(calls)
    write_results(state, results, place)
    return results


async def run_in_task(state: State, calls: Sequence[ToolCall], place: ir.Place) -> list[ToolResult]:
    """`State.run_tools` of a coroutine."""
    results = await execute_async(calls)
    write_results(state, results, place)
    return results


Talk = Generator[list[ToolCall] | None, Any, str]
"""A loop of calls. It asks for the value of the hole (None) or for the results of calls, and ends
with the answer."""


def talk(
    state: State,
    name: str,
    tools: Sequence[Tool] | None,
    max_steps: int,
    parallel: bool,
    options: dict[str, Any],
    place: ir.Place,
) -> Talk:
    """What `State.use_tools` does, for `drive` or `drive_in_task`."""
    from sglite.language.primitives import gen

    if max_steps < 1:
        raise ValueError(f"use_tools({name!r}) takes at least one step, got max_steps={max_steps}")
    if tools is None and not state._tools:
        raise ValueError(
            f"use_tools({name!r}) has no tools; name them in the first turn, where the model is "
            "told of them: sgl.system(..., tools=[...])"
        )
    offered = state._tools if tools is None else tool_tuple("use_tools: ", tools)
    choice = options.pop("tool_choice", "auto")
    for step in range(max_steps):
        if step + 1 == max_steps:
            choice = "none"
        with state._turn("assistant", place):
            hole = gen(name, tools=offered, tool_choice=choice, parallel=parallel, **options)
            state._add(hole, place)
        value = yield None
        if isinstance(value, str):
            return value
        results = yield as_calls(value, offered)
        write_results(state, results, place)
        choice = "auto"
    raise AssertionError("the last step gives text")


def drive(state: State, name: str, talk: Talk) -> str:
    """Carry a talk to its end."""
    calls = next(talk)
    try:
        while True:
            if calls is None:
                calls = talk.send(state[name])
            else:
                with state._run.elsewhere():
                    results = execute(calls)
                calls = talk.send(results)
    except StopIteration as end:
        return str(end.value)


async def drive_in_task(state: State, name: str, talk: Talk) -> str:
    """`drive` of a coroutine."""
    calls = next(talk)
    try:
        while True:
            if calls is None:
                calls = talk.send(await state.read(name))
            else:
                calls = talk.send(await execute_async(calls))
    except StopIteration as end:
        return str(end.value)
