"""What a model is told of tools and their results where its template has no words of its own."""

from __future__ import annotations

import json
from collections.abc import Sequence

from sglite.tools.declared import Tool, ToolCall, ToolResult
from sglite.tools.formats import ToolFormat, write_calls


def block(tools: Sequence[Tool], form: ToolFormat) -> str:
    """The part of a system turn that describes the tools and the form of a call."""
    lines = [
        json.dumps(tool.described()["function"], ensure_ascii=False, default=str) for tool in tools
    ]
    example = write_calls([ToolCall("NAME", {"ARGUMENT": "VALUE"})], form)
    return (
        "You can use tools. Each line describes one, with a JSON Schema of its arguments:\n"
        + "\n".join(lines)
        + "\n\nTo use a tool, answer in this form and in no other:\n"
        + example
        + "\nThe result comes back in <tool_response>. When you know the answer, write it as text."
    )


def response(results: Sequence[ToolResult]) -> str:
    """A user turn with the results of calls, for a template without a role for them."""
    return "\n".join(f"<tool_response>\n{result.text}\n</tool_response>" for result in results)
