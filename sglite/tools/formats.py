"""How a model writes the call of a tool: the constraint of such a hole, and its text read again.

Families of models have forms of their own, which a model shows by its chat template:

    hermes        <tool_call>\\n{"name": "f", "arguments": {...}}\\n</tool_call>
    llama3        {"name": "f", "parameters": {...}}        the whole turn, <|python_tag|> before it
    mistral       [TOOL_CALLS] [{"name": "f", "arguments": {...}}]
    mistral-args  [TOOL_CALLS]f[ARGS]{...}

A model with none of them gets the first, and is told about it in the system turn.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from hashlib import blake2b
from typing import Any, Literal

from pydantic_core import to_jsonable_python

from sglite.grammars import compose
from sglite.language import ir
from sglite.options import Options
from sglite.running.lowering import DEFAULT_JSON_MAX_TOKENS
from sglite.runtime.segment import Constraint
from sglite.tools.declared import Tool, ToolCall, call_of

MOST_CALLS = 16
"""Calls in one turn with `parallel=True`."""

ToolChoice = Literal["auto", "required", "none"] | str


@dataclass(frozen=True, slots=True)
class ToolFormat:
    """`begin` (head name middle arguments tail) (between head name ... tail)* `end`.

    `marker` begins every call and stands in no other text: nowhere in it, or, where a call is the
    `whole` turn, not at its start. `special`: texts of it that are special tokens on some models;
    `optional` is one that may stand before it.
    """

    name: str
    marker: str
    head: str
    middle: str
    tail: str
    begin: str = ""
    between: str = ""
    end: str = ""
    special: tuple[str, ...] = ()
    optional: str = ""
    whole: bool = False
    several: bool = True


HERMES = ToolFormat(
    name="hermes",
    marker="<tool_call>",
    head='<tool_call>\n{"name": "',
    middle='", "arguments": ',
    tail="}\n</tool_call>",
    between="\n",
    special=("<tool_call>", "</tool_call>"),
)
LLAMA3 = ToolFormat(
    name="llama3",
    marker='{"name": "',
    head='{"name": "',
    middle='", "parameters": ',
    tail="}",
    special=("<|python_tag|>",),
    optional="<|python_tag|>",
    whole=True,
    several=False,
)
MISTRAL = ToolFormat(
    name="mistral",
    marker="[TOOL_CALLS]",
    begin="[TOOL_CALLS] [",
    head='{"name": "',
    middle='", "arguments": ',
    tail="}",
    between=", ",
    end="]",
    special=("[TOOL_CALLS]",),
)
MISTRAL_ARGS = ToolFormat(
    name="mistral-args",
    marker="[TOOL_CALLS]",
    head="[TOOL_CALLS]",
    middle="[ARGS]",
    tail="",
    special=("[TOOL_CALLS]", "[ARGS]"),
)


def format_of(template: str) -> ToolFormat | None:
    """The format that a chat template shows, or None."""
    if "[TOOL_CALLS]" in template:
        if "[ARGS]" in template:
            return MISTRAL_ARGS
        spaced = "[TOOL_CALLS] [" in template
        return MISTRAL if spaced else replace(MISTRAL, begin="[TOOL_CALLS][")
    if "<tool_call>" in template and "<function=" not in template:
        return HERMES
    if "<|python_tag|>" in template:
        return LLAMA3
    return None


@dataclass(frozen=True, slots=True)
class ToolUse:
    """What a hole says of tools: which, whether one has to be called, and whether several may."""

    tools: tuple[Tool, ...]
    choice: ToolChoice = "auto"
    parallel: bool = False

    def __post_init__(self) -> None:
        names = [tool.name for tool in self.tools]
        if self.choice not in ("auto", "required", "none", *names):
            raise ValueError(
                f"tool_choice= takes 'auto', 'required', 'none' or the name of a tool "
                f"({', '.join(names)}), got {self.choice!r}"
            )


def with_tools(node: ir.Gen, use: ToolUse, form: ToolFormat, key: int, defaults: Options) -> ir.Gen:
    """The hole with its constraint, in the format of the model that it meets. `key` is that of the
    hole; the ids of its calls come from it. `defaults` are those of the run."""
    options = (("special_texts", form.special),)
    constraint = Constraint("parts", constraint_of(use, form), options)
    said = node.options
    most = said.max_tokens or defaults.max_tokens or DEFAULT_JSON_MAX_TOKENS
    return replace(
        node,
        options=replace(said, max_tokens=most),
        constraint=constraint,
        parse=partial(_read, use, form, key),
    )


def format_of_hole(node: ir.Gen) -> ToolFormat:
    """The format of a hole that `with_tools` has made."""
    assert isinstance(node.parse, partial)
    form: ToolFormat = node.parse.args[1]
    return form


@lru_cache(maxsize=256)
def constraint_of(use: ToolUse, form: ToolFormat) -> compose.Part:
    """What may be written: text, text and calls, or calls alone."""
    nowhere = "|".join(map(re.escape, form.special if form.whole else (form.marker, *form.special)))
    at_start = f"(?!{re.escape(form.marker)})" if form.whole else ""
    text = compose.regex(rf"(?s){at_start}(?!.*({nowhere})).*")
    if use.choice == "none":
        return text
    named = [tool for tool in use.tools if tool.name == use.choice]
    calls = _calls(named or list(use.tools), form, parallel=use.parallel and form.several)
    optional = compose.choice("", form.optional) if form.optional else ""
    required = compose.sequence(optional, form.marker, calls)
    if use.choice != "auto":
        return required
    return compose.choice(text, required if form.whole else compose.sequence(text, required))


def _calls(tools: list[Tool], form: ToolFormat, *, parallel: bool) -> compose.Part:
    """What comes after the first marker."""
    call = compose.choice(
        *(
            compose.sequence(tool.name + form.middle, compose.json_schema(tool.parameters))
            for tool in tools
        )
    )
    first = (form.begin + form.head).removeprefix(form.marker)
    if not parallel:
        return compose.sequence(first, call, form.tail + form.end)
    more = compose.sequence(form.between + form.head, call, form.tail)
    rest = compose.repeat(more, 0, MOST_CALLS - 1)
    return compose.sequence(first, call, form.tail, rest, form.end)


def _read(use: ToolUse, form: ToolFormat, key: int, text: str) -> str | ToolCall | list[ToolCall]:
    """The value of a hole with tools. Not a closure: rows can be pickled."""
    tools = {tool.name: tool for tool in use.tools}
    calls = [
        call_of(tools[name], arguments, _call_id(key, number))
        for number, (name, arguments) in enumerate(calls_in(text, form))
    ]
    if not calls:
        return text
    return calls if use.parallel else calls[0]


def calls_in(text: str, form: ToolFormat) -> Iterator[tuple[str, dict[str, Any]]]:
    """Names and arguments of the calls in a text that the constraint of the format has let pass."""
    if form.whole:
        text = text.removeprefix(form.optional)
        at = 0 if text.startswith(form.marker) else -1
    else:
        at = text.find(form.marker)
    if at < 0:
        return
    decoder = json.JSONDecoder()
    rest = text[at:].removeprefix(form.begin)
    while rest.startswith(form.head):
        name, _, rest = rest.removeprefix(form.head).partition(form.middle)
        arguments, end = decoder.raw_decode(rest)
        yield name, arguments
        rest = rest[end:].removeprefix(form.tail).removeprefix(form.between)


def text_before_calls(text: str, form: ToolFormat) -> str:
    """What of a text that is still being written is certainly no part of a call."""
    if form.whole:
        begins = (form.marker, form.optional + form.marker)
        is_call = any(text.startswith(begin) or begin.startswith(text) for begin in begins)
        return "" if is_call else text
    before, marker, _ = text.partition(form.marker)
    if marker:
        return before
    sizes = range(len(form.marker) - 1, 0, -1)
    begun = next((size for size in sizes if text.endswith(form.marker[:size])), 0)
    return text[: len(text) - begun]


def write_calls(calls: list[ToolCall], form: ToolFormat) -> str:
    """The text of calls, as a model writes it."""
    written = [
        f"{form.head}{call.name}{form.middle}"
        f"{json.dumps(call.arguments, ensure_ascii=False, default=str)}{form.tail}"
        for call in calls
    ]
    return form.begin + form.between.join(written) + form.end


def script_of(script: Mapping[str, Any]) -> dict[str, Any]:
    """A script for an engine without a model: calls as text, objects as the data that JSON has."""
    return {name: _answers(answer) for name, answer in script.items()}


def _answers(answer: Any) -> Any:
    if isinstance(answer, list | tuple):
        return [_answer(each) for each in answer]
    if callable(answer) and not isinstance(answer, type):
        return lambda so_far: _answer(answer(so_far))
    return _answer(answer)


def _answer(answer: Any) -> Any:
    calls = [answer] if isinstance(answer, ToolCall) else answer
    if isinstance(calls, list | tuple) and calls and all(isinstance(c, ToolCall) for c in calls):
        return write_calls([*calls], HERMES)
    return answer if isinstance(answer, str | Exception) else to_jsonable_python(answer)


def _call_id(key: int, number: int) -> str:
    """Nine letters and digits, which every template takes; the same in every run of the row."""
    return blake2b(f"{key} {number}".encode(), digest_size=5).hexdigest()[:9]
