"""Turns of a chat in the form of the model's own Jinja template.

A template renders a whole list of messages; a program needs the pieces between their contents. They
are found by rendering with sentinels in place of the contents: the text before a turn's content is
its opening, the text after it its closing. That holds as long as a longer list only appends to
what a shorter one renders, which is checked; a template that rewrites earlier turns is named once
in a warning, and what was written stays.
"""

from __future__ import annotations

import json
import re
import threading
import warnings
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple, NoReturn

from jinja2 import Template, TemplateError, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

from sglite.errors import ModelError
from sglite.tools.declared import Tool, ToolCall
from sglite.tools.formats import HERMES, ToolFormat, format_of

_GUARDED = {"<": "\ue0d0", "[": "\ue0d1"}  # what special tokens begin with, inside of a description
_GUARDS = {guard: char for char, guard in _GUARDED.items()}
_RESULT_ROLE = re.compile(r"""['"](tool|ipython|tool_results)['"]""")


class Fragments(NamedTuple):
    """The template's text around the content of one turn.

    It may hold descriptions of tools, in which guards stand for the characters that special tokens
    begin with; `pieces` takes it apart.
    """

    opening: str
    closing: str


def pieces(fragment: str) -> Iterator[tuple[str, bool]]:
    """The fragment in parts: text, and whether it is the template's own."""
    for part in re.split(f"([{''.join(_GUARDS)}])", fragment):
        if part:
            yield _GUARDS.get(part, part), part not in _GUARDS


class _Turns(NamedTuple):
    """The roles of a conversation, and the tools that its model is told of."""

    roles: tuple[str, ...]
    tools: tuple[Tool, ...]

    def with_one_more(self, role: str) -> _Turns:
        return _Turns((*self.roles, role), self.tools)

    def without_last(self) -> _Turns:
        return _Turns(self.roles[:-1], self.tools)


class _Split(NamedTuple):
    gaps: tuple[str, ...]  # the text before each content
    tail: str


class ChatTemplate:
    """A model's template. `variables` are what it may use besides messages (`bos_token`, ...).

    Raises ModelError for a text that is no Jinja template.
    """

    def __init__(self, source: str, variables: dict[str, str] | None = None) -> None:
        try:
            self._template = _compile(source)
        except TemplateError as error:
            raise ModelError(f"the model's chat template cannot be read: {error}") from error
        self._variables = dict(variables or {})
        known = format_of(source)
        self.format: ToolFormat = known or HERMES
        """How the model writes calls of tools."""
        self.describes_tools = known is not None and re.search(r"\btools\b", source) is not None
        """Whether the template itself tells the model of tools."""
        self.has_results = known is not None and _RESULT_ROLE.search(source) is not None
        """Whether the template has a role for the results of tools."""
        self._known: dict[_Turns, Fragments] = {}
        self._closings: dict[_Turns, str] = {}
        self._warned = False
        self._lock = threading.Lock()

    def fragments(self, roles: Sequence[str], tools: tuple[Tool, ...] = ()) -> Fragments:
        """The text around the last of the turns whose roles are `roles`, in a conversation with
        these tools.

        Raises ModelError with the template's own words for turns that it refuses.
        """
        turns = _Turns(tuple(roles), tools if self.describes_tools else ())
        with self._lock:
            known = self._known.get(turns)
            if known is None:
                known = self._known[turns] = self._derive(turns)
            return known

    def results(
        self, roles: Sequence[str], calls: Sequence[ToolCall], tools: tuple[Tool, ...] = ()
    ) -> list[Fragments]:
        """The text around each of the tool turns that answer these calls after turns `roles`."""
        turns = _Turns((*roles, "tool"), tools if self.describes_tools else ())
        whole = _Turns((*roles, *("tool" for _ in calls)), turns.tools)
        with self._lock:
            split = self._split(whole, calls=calls)
            if split is None:
                raise ModelError(
                    f"the model's chat template shows no text of {len(calls)} tool turns"
                )
            opening = self._new_text(turns, split.gaps[len(roles)])
        closings = [*split.gaps[len(roles) + 1 :], split.tail]
        openings = [opening, *("" for _ in closings[1:])]
        return list(map(Fragments, openings, closings))

    def _closing(self, turns: _Turns) -> str:
        if turns not in self._closings:
            split = self._split(turns)
            self._closings[turns] = split.tail if split is not None else ""
        return self._closings[turns]

    def _derive(self, turns: _Turns) -> Fragments:
        roles = turns.roles
        split = self._split(turns)
        closing = self._closings[turns] = split.tail if split is not None else ""
        if split is None:
            # Some templates move a turn into the next one (a system text into the first user turn).
            split = self._split(turns.with_one_more("user"))
            if split is None:
                raise ModelError(
                    f"the model's chat template shows no text of a {roles[-1]!r} turn after "
                    f"{list(roles[:-1])}; write the text into another turn"
                )
        return Fragments(self._new_text(turns, split.gaps[len(roles) - 1]), closing)

    def _new_text(self, turns: _Turns, opening: str) -> str:
        """Of the text before the last content, what comes after the closing of the turn before."""
        earlier = turns.without_last()
        if not earlier.roles:
            return opening
        written = self._closing(earlier)
        if turns.roles[-1] == "assistant":
            prompted = self._split(earlier, prompt=True)
            # Not every template has a prompt for the answer.
            if prompted is not None and prompted.tail != written:
                opening = prompted.tail
        if opening.startswith(written):
            return opening[len(written) :]
        if turns.roles[-2:] == ("assistant", "tool") and written in opening:
            return opening.partition(written)[2]  # before it there is a call that stands for theirs
        self._warn()
        return opening[_common_prefix(opening, written) :]

    def _split(
        self, turns: _Turns, *, prompt: bool = False, calls: Sequence[ToolCall] = ()
    ) -> _Split | None:
        """The rendered text, cut at the contents; None if one of them is not shown in its place.

        `calls` are those that the last turns answer.
        """
        plain = _messages(turns.roles, calls)
        try:
            return self._render(plain, turns, prompt=prompt)
        except ModelError:
            # Some templates ask for the calls in an answer that results follow.
            with_calls = _messages(turns.roles, calls, as_calls=True)
            if with_calls == plain:
                raise
        return self._render(with_calls, turns, prompt=prompt)

    def _render(
        self, messages: list[dict[str, Any]], turns: _Turns, *, prompt: bool
    ) -> _Split | None:
        roles = list(turns.roles)
        tools = [_guarded(tool.described()) for tool in turns.tools]
        try:
            rest = self._template.render(
                messages=messages,
                add_generation_prompt=prompt,
                tools=tools or None,
                documents=None,
                **self._variables,
            )
        except Exception as error:  # the template is code out of a model file
            raise ModelError(
                f"the model's chat template refuses the turns {roles}: {error}"
            ) from error
        gaps = []
        for number in range(len(roles)):
            gap, found, rest = rest.partition(_sentinel(number))
            if not found:
                return None
            gaps.append(gap)
        return _Split(tuple(gaps), rest)

    def _warn(self) -> None:
        if not self._warned:
            self._warned = True
            warnings.warn(
                "the model's chat template rewrites earlier turns when new ones follow; "
                "the program keeps them as they were generated",
                stacklevel=2,
            )


def _sentinel(number: int) -> str:
    return f"\N{WHITE SQUARE}{number}sentinel\N{WHITE SQUARE}"


def _messages(
    roles: Sequence[str], calls: Sequence[ToolCall], *, as_calls: bool = False
) -> list[dict[str, Any]]:
    """Messages with sentinels as their contents. `as_calls`: answers that a tool turn follows have
    theirs in a call, as its name."""
    messages: list[dict[str, Any]] = []
    first = len(roles) - len(calls)
    for number, role in enumerate(roles):
        content = _sentinel(number)
        message: dict[str, Any] = {"role": role, "content": content}
        if role == "tool":
            call = calls[number - first] if number >= first else ToolCall("tool", {}, "000000000")
            message |= {"name": call.name, "tool_call_id": call.id}
        elif as_calls and role == "assistant" and roles[number + 1 : number + 2] == ("tool",):
            function = {"name": content, "arguments": {}}
            call_of_it = {"id": "000000000", "type": "function", "function": function}
            message = {"role": role, "content": "", "tool_calls": [call_of_it]}
        messages.append(message)
    return messages


def _guarded(value: Any) -> Any:
    """A description of a tool whose texts cannot be taken for special tokens."""
    if isinstance(value, str):
        return value.translate({ord(char): guard for char, guard in _GUARDED.items()})
    if isinstance(value, list):
        return [_guarded(part) for part in value]
    if isinstance(value, dict):
        return {_guarded(key): _guarded(part) for key, part in value.items()}
    return value


def _compile(source: str) -> Template:
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    return environment.from_string(source)


def _to_json(value: Any, indent: int | None = None) -> str:
    return json.dumps(
        None if isinstance(value, Undefined) else value, ensure_ascii=False, indent=indent
    )


def _raise_exception(message: str) -> NoReturn:
    raise TemplateError(message)


def _common_prefix(a: str, b: str) -> int:
    length = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        length += 1
    return length
