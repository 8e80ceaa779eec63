"""What a program writes: `gen`, `select`, turns of a chat, and special tokens.

Each of these only describes; nothing runs before a state records it with `s += ...`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from sglite import ir
from sglite.grammars import compose
from sglite.options import Options
from sglite.runtime.segment import Constraint
from sglite.suggestions import names_unknown_arguments
from sglite.tool_formats import ToolChoice, ToolUse
from sglite.tools import Tool, tool_tuple
from sglite.types import ValueType, json_type, schema_type, value_type


@names_unknown_arguments(choices="to pick one of several texts write sgl.select(name, choices)")
def gen(
    name: str | None = None,
    type: Any = None,
    *,
    regex: str | None = None,
    json: Any = None,
    grammar: str | Path | compose.Part | Constraint | None = None,
    max_tokens: int | None = None,
    stop: str | Sequence[str] = (),
    stop_ids: Sequence[int] = (),
    until: str | Sequence[str] = (),
    temperature: float | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    min_p: float | None = None,
    ignore_eos: bool = False,
    tools: Sequence[Tool] | None = None,
    tool_choice: ToolChoice = "auto",
    parallel: bool = False,
) -> ir.Gen:
    """A hole that the model fills; its value is `s[name]` and `row[name]`.

    At most one of these says what may be written:

    - `type`: `str` (free text), `int`, `float`, `bool`, `Literal[...]`, an Enum, `date`, `time`,
      `datetime`, `UUID`, `Decimal` as plain text; dataclasses, TypedDicts, pydantic models, lists,
      dicts, tuples and unions as JSON. The value is an object of that type. Before one that is
      plain text the model may write a space, where the text before the hole does not end in one.
    - `regex`: a pattern that the whole value matches.
    - `json`: a JSON Schema as a dict, bool or text (the value is plain data), or a type, as JSON.
    - `grammar`: a grammar text in GBNF; the path of a file, `.gbnf` or `.lark`; a part made with
      `sglite.grammars.compose`; or a `Constraint`. The value is the text.
    - `tools`: functions with `@sgl.tool` that the model may call. The value is text or a `ToolCall`
      (with `parallel` a list of them). `tool_choice`: "auto", "required", "none", a tool's name.

    The hole ends at the end of its constraint, before a text of `stop` or `until`, at a token of
    `stop_ids`, where the model ends its turn (unless `ignore_eos`), or after `max_tokens`: by
    default 128 tokens, 512 for JSON and calls. `stop` texts end free text. `until` texts are what
    the program writes next, so that a value which could go on (`int`) knows where to end. None of
    them becomes part of the value or of the state.

    What sampling leaves open comes from the run's `Options`; without those it is greedy. A hole
    without a name gets one of its own; a name used again keeps every value (`row.all(name)`).

    Raises TypeError for a wrong argument and ValueError for one out of range.
    """
    _check_name("gen", name)
    said = {"type": type, "regex": regex, "json": json, "grammar": grammar, "tools": tools}
    constraints = [key for key, value in said.items() if value is not None]
    if len(constraints) > 1:
        raise TypeError(
            f"gen({name!r}) names {len(constraints)} constraints ({', '.join(constraints)}); "
            "a hole takes one"
        )
    try:
        use = None
        if tools is not None:
            use = ToolUse(tool_tuple("gen", tools), tool_choice, bool(parallel))
        value = _value_type(type, regex, json, grammar)
    except (TypeError, ValueError) as error:
        raise _same_kind(error)(f"gen({name!r}): {error}") from error
    return ir.Gen(
        name,
        value.constraint,
        _options(max_tokens, temperature, top_p, top_k, min_p),
        _texts("stop", stop),
        tuple(stop_ids),
        _texts("until", until),
        ignore_eos,
        value.parse,
        value.spaced,
        value.origin,
        use,
    )


@names_unknown_arguments()
def select(
    name: str | None,
    choices: Sequence[str],
    *,
    temperature: float | None = None,
) -> ir.Select:
    """A hole that picks one of `choices` by the probability that the model gives each of them.

    Greedy by default: the most probable choice, the first of equal ones; with a temperature it is
    drawn. `row.meta(name).distribution` has the probability of every choice.
    """
    _check_name("select", name)
    if (
        isinstance(choices, str)
        or not isinstance(choices, Collection)
        or not all(isinstance(choice, str) for choice in choices)
    ):
        raise TypeError(f"select({name!r}): choices is a list of texts, got {choices!r}")
    for choice in choices:
        ir.check_text("a choice", choice)
    if not choices or "" in choices or len(set(choices)) != len(choices):
        raise ValueError(
            f"select({name!r}) takes one or more different, non-empty choices, got {choices!r}"
        )
    return ir.Select(name, tuple(choices), _options(None, temperature, None, None, None))


def role(name: str, *content: str | ir.Expression, tools: Sequence[Tool] | None = None) -> ir.Turn:
    """A whole turn of a chat by the role `name`, in the form of the model's own template.

    `tools`, in the first turn: the model is told of them, as its template does it.
    """
    for part in content:
        if not isinstance(part, str | ir.Expression):
            raise TypeError(
                f"{name}() takes text, holes and their sums, got {part.__class__.__name__}"
            )
    return ir.Turn(name, content, () if tools is None else tool_tuple(name, tools))


def system(*content: str | ir.Expression, tools: Sequence[Tool] | None = None) -> ir.Turn:
    """A whole system turn: `s += sgl.system("You are terse.")`; `tools` as in `role`."""
    return role("system", *content, tools=tools)


def user(*content: str | ir.Expression, tools: Sequence[Tool] | None = None) -> ir.Turn:
    """A whole user turn: `s += sgl.user("Why is the sky blue?")`; `tools` as in `role`."""
    return role("user", *content, tools=tools)


def assistant(*content: str | ir.Expression) -> ir.Turn:
    """A whole assistant turn: `s += sgl.assistant(sgl.gen("answer"))`."""
    return role("assistant", *content)


def special(text: str) -> ir.Special:
    """One special token of the model, by its text: `sgl.special("<|im_end|>")`."""
    if not isinstance(text, str) or not text:
        raise TypeError(f"special() takes the text of a special token, got {text!r}")
    return ir.Special(text)


def _value_type(type: Any, regex: Any, json: Any, grammar: Any) -> ValueType:
    if type is not None:
        return value_type(type)
    if regex is not None:
        if not isinstance(regex, str):
            raise TypeError(f"regex= takes the text of a pattern, got {regex!r}")
        return ValueType(Constraint("regex", regex), None)
    if json is not None:
        if isinstance(json, dict | str):
            return schema_type(json)
        if isinstance(json, list):
            raise TypeError(
                f"json= takes a JSON Schema (a dict, a bool or text) or a type, got {json!r}"
            )
        return json_type(json)
    if isinstance(grammar, Constraint):
        return ValueType(grammar, None)
    if isinstance(grammar, str):
        return ValueType(Constraint("grammar", grammar), None)
    if isinstance(grammar, Path):
        return ValueType(Constraint("parts", compose.grammar(grammar)), None)
    if isinstance(grammar, compose.Part):
        return ValueType(Constraint("parts", grammar), None)
    if grammar is not None:
        raise TypeError(
            "grammar= takes a grammar text, a path, a part of sglite.grammars.compose or a "
            f"Constraint, got {grammar!r}"
        )
    return ValueType(None, None)


def _options(
    max_tokens: int | None,
    temperature: float | None,
    top_p: float | None,
    top_k: int | None,
    min_p: float | None,
) -> Options:
    options = Options(max_tokens, temperature, top_p, top_k, min_p)
    options.sampling()  # a value out of range is reported where it was written
    return options


def _texts(argument: str, value: str | Sequence[str]) -> tuple[str, ...]:
    if not isinstance(value, str | Collection):
        raise TypeError(f"{argument}= takes a text or a list of texts, got {value!r}")
    texts = (value,) if isinstance(value, str) else tuple(value)
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"{argument}= takes a text or a list of texts, got {text!r} in it")
        if not text:
            raise ValueError(f"{argument}= takes texts that are not empty, got {value!r}")
        ir.check_text(f"{argument}=", text)
    return texts


def _check_name(primitive: str, name: object) -> None:
    if name is not None and (not isinstance(name, str) or not name):
        raise TypeError(f"the first argument of {primitive}() is a variable's name, got {name!r}")


def _same_kind(error: TypeError | ValueError) -> type[TypeError] | type[ValueError]:
    return TypeError if isinstance(error, TypeError) else ValueError
