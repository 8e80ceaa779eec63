"""Turns of a chat in the form of the model's own Jinja template.

A template renders a whole list of messages; a program needs the pieces between their contents. They
are found by rendering with sentinels in place of the contents: the text before a turn's content is
its opening, the text after it its closing. That holds as long as a longer list only appends to
what a shorter one renders, which is checked; a template that rewrites earlier turns is named once
in a warning, and what was written stays.
"""

from __future__ import annotations

import json
import threading
import warnings
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple, NoReturn

from jinja2 import Template, TemplateError, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

from sglite.errors import ModelError


class Fragments(NamedTuple):
    """The template's text around the content of one turn."""

    opening: str
    closing: str


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
        self._known: dict[tuple[str, ...], Fragments] = {}
        self._warned = False
        self._lock = threading.Lock()

    def fragments(self, roles: Sequence[str]) -> Fragments:
        """The text around the last of the turns whose roles are `roles`.

        Raises ModelError with the template's own words for turns that it refuses.
        """
        key = tuple(roles)
        with self._lock:
            known = self._known.get(key)
            if known is None:
                known = self._known[key] = self._derive(key)
            return known

    def _derive(self, roles: tuple[str, ...]) -> Fragments:
        last = len(roles) - 1
        split = self._split(roles, prompt=False)
        closing = split.tail if split is not None else ""
        if split is None:
            # Some templates move a turn into the next one (a system text into the first user turn).
            split = self._split((*roles, "user"), prompt=False)
            if split is None:
                raise ModelError(
                    f"the model's chat template shows no text of a {roles[-1]!r} turn after "
                    f"{list(roles[:-1])}; write the text into another turn"
                )
        opening = split.gaps[last]
        if last:
            written = self._known_closing(roles[:-1])
            if roles[-1] == "assistant":
                prompted = self._split(roles[:-1], prompt=True)
                # Not every template has a prompt for the answer.
                if prompted is not None and prompted.tail != written:
                    opening = prompted.tail
            if opening.startswith(written):
                opening = opening[len(written) :]
            else:
                self._warn()
                opening = opening[_common_prefix(opening, written) :]
        return Fragments(opening, closing)

    def _known_closing(self, roles: tuple[str, ...]) -> str:
        if roles not in self._known:
            self._known[roles] = self._derive(roles)
        return self._known[roles].closing

    def _split(self, roles: Sequence[str], *, prompt: bool) -> _Split | None:
        """The rendered text, cut at the contents; None if one of them is not shown in its place."""
        contents = [f"\N{WHITE SQUARE}{i}sentinel\N{WHITE SQUARE}" for i in range(len(roles))]
        messages = [{"role": r, "content": c} for r, c in zip(roles, contents, strict=True)]
        try:
            rest = self._template.render(
                messages=messages,
                add_generation_prompt=prompt,
                tools=None,
                documents=None,
                **self._variables,
            )
        except Exception as error:  # the template is code out of a model file
            raise ModelError(
                f"the model's chat template refuses the turns {list(roles)}: {error}"
            ) from error
        gaps = []
        for content in contents:
            gap, found, rest = rest.partition(content)
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
