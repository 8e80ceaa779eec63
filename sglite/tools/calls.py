"""Calls of tools are run, and what came of them is written into the conversation.

One call runs on the thread of the program's body. Several run at the same time: async tools on an
event loop, others on threads. Whatever a tool raises becomes text for the model, and is logged.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

from pydantic_core import to_json

from sglite.tools.declared import Tool, ToolCall, ToolResult

logger = logging.getLogger("sglite.tools")


def as_calls(calls: object, tools: Sequence[Tool]) -> list[ToolCall]:
    """A call or calls as a list, each with its tool. Raises TypeError for anything else."""
    found = [calls] if isinstance(calls, ToolCall) else calls
    if not isinstance(found, list | tuple) or not all(isinstance(c, ToolCall) for c in found):
        raise TypeError(
            f"run_tools() takes a ToolCall or a list of them, got {calls!r}; a hole with tools "
            "also gives text: ask isinstance(value, str) first"
        )
    if not found:
        raise ValueError("run_tools() got an empty list of calls")
    known = {tool.name: tool for tool in tools}
    whole = []
    for call in found:
        tool = call.tool or known.get(call.name)
        if tool is None:
            raise TypeError(
                f"run_tools() got a call of {call.name!r}, which is no tool of this conversation; "
                "name it in the first turn: sgl.system(..., tools=[...])"
            )
        whole.append(ToolCall(call.name, call.arguments, call.id, call.refused, tool))
    return whole


def execute(calls: Sequence[ToolCall]) -> list[ToolResult]:
    """Run the calls, several at the same time; results in their order."""
    if any(call.tool is not None and call.tool.is_async for call in calls):
        return _on_a_loop(calls)
    if len(calls) == 1:
        return [_run(calls[0])]
    with ThreadPoolExecutor(len(calls), thread_name_prefix="sglite-tool") as pool:
        running = [pool.submit(copy_context().run, _run, call) for call in calls]
        return [each.result() for each in running]


async def execute_async(calls: Sequence[ToolCall]) -> list[ToolResult]:
    """`execute` for a program that is a coroutine: async tools are awaited on its own loop."""
    return list(await asyncio.gather(*map(_run_async, calls)))


def _on_a_loop(calls: Sequence[ToolCall]) -> list[ToolResult]:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(execute_async(calls))
    # The body itself runs inside of a loop, as in a notebook, and must not wait for that one.
    with ThreadPoolExecutor(1, thread_name_prefix="sglite-tool") as pool:
        run = copy_context().run
        return pool.submit(run, asyncio.run, execute_async(calls)).result()


def _run(call: ToolCall) -> ToolResult:
    started = time.monotonic()
    try:
        return _result(call, _callable(call)(**call.arguments), None, started)
    except Exception as error:
        return _result(call, None, error, started)


async def _run_async(call: ToolCall) -> ToolResult:
    if call.tool is None or not call.tool.is_async:
        return await asyncio.to_thread(_run, call)
    started = time.monotonic()
    try:
        return _result(call, await _callable(call)(**call.arguments), None, started)
    except Exception as error:
        return _result(call, None, error, started)


def _callable(call: ToolCall) -> Callable[..., Any]:
    if call.refused is not None:
        raise ValueError(f"these arguments are refused: {call.refused}")
    assert call.tool is not None
    return call.tool


def _result(call: ToolCall, value: Any, error: Exception | None, started: float) -> ToolResult:
    duration = time.monotonic() - started
    if error is None:
        logger.info("%s(%s) took %.3f s", call.name, call.arguments, duration)
        return ToolResult(call, _text(value), value, None, duration)
    logger.warning("%s(%s) raised", call.name, call.arguments, exc_info=error)
    said = f"Error: {type(error).__name__}: {error}".rstrip(": ")
    return ToolResult(call, _text(said), None, error, duration)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value.encode(errors="replace").decode()  # a lone surrogate is text for nobody
    return to_json(value, fallback=str, serialize_unknown=True).decode(errors="replace")
