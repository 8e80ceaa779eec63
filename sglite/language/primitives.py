"""What a program writes: `gen`, `select`, turns of a chat, and special tokens.

Each of these only describes; nothing runs before a state records it with `s += ...`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from sglite.grammars import compose
from sglite.grammars.quotes import Quote
from sglite.language import ir
from sglite.language.arguments import (
    biases,
    check_name,
    check_number,
    check_retries,
    texts,
    thought,
)
from sglite.language.composition import pattern
from sglite.language.suggestions import did_you_mean, names_unknown_arguments, remembers
from sglite.language.types import ValueType, json_type, quote_type, schema_type, value_type
from sglite.options import Options
from sglite.runtime.segment import DEFAULT_METHOD, Constraint, SelectMethod
from sglite.tools.declared import Tool, tool_tuple
from sglite.tools.formats import ToolChoice, ToolUse


@remembers
@names_unknown_arguments(choices="to pick one of several texts write sgl.select(name, choices)")
def gen(
    name: str | None = None,
    type: Any = None,
    *,
    regex: str | None = None,
    json: Any = None,
    grammar: str | Path | compose.Part | ir.Expression | Constraint | None = None,
    max_tokens: int | None = None,
    min_tokens: int = 0,
    stop: str | Sequence[str] = (),
    stop_ids: Sequence[int] = (),
    stop_regex: str | Sequence[str] = (),
    until: str | Sequence[str] = (),
    ignore_eos: bool = False,
    temperature: float | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    min_p: float | None = None,
    repetition_penalty: float | None = None,
    presence_penalty: float | None = None,
    frequency_penalty: float | None = None,
    logit_bias: Mapping[int | str, float] | None = None,
    seed: int | None = None,
    n: int | None = None,
    logprobs: int = 0,
    hidden: bool = False,
    retries: int = 0,
    think: bool | str | tuple[str, str] = False,
    think_tokens: int = 1024,
    hide_thought: bool = False,
    tools: Sequence[Tool] | None = None,
    tool_choice: ToolChoice = "auto",
    parallel: bool = False,
) -> ir.Gen:
    """A hole that the model fills; its value is `s[name]` and `row[name]`.

    At most one of these says what may be written:

    - `type`: `str` (free text), `int`, `float`, `bool`, `Literal[...]`, an Enum, `date`, `time`,
      `datetime`, `UUID`, `Decimal` as plain text; dataclasses, TypedDicts, pydantic models, lists,
      dicts, tuples and unions as JSON. The value is an object of that type; or a pattern, such as
      `sgl.quote(document)`: the value is text out of the document. Before one that is
      plain text the model may write a space, where the text before the hole does not end in one.
    - `regex`: a pattern that the whole value matches.
    - `json`: a JSON Schema as a dict, bool or text (the value is plain data), or a type, as JSON.
    - `grammar`: a grammar text in GBNF; the path of a file, `.gbnf` or `.lark`; a part made with
      `sglite.grammars.compose`; a pattern (`sgl.one_of(...)` and the like), whose parts with names
      become variables; or a `Constraint`. The value is the text.
    - `tools`: functions with `@sgl.tool` that the model may call. The value is text or a `ToolCall`
      (with `parallel` a list of them). `tool_choice`: "auto", "required", "none", a tool's name.

    The hole ends at the end of its constraint, before a text of `stop` or `until` or a match of
    `stop_regex`, at a token of `stop_ids`, where the model ends its turn (unless `ignore_eos`), or
    after `max_tokens`: by default 128 tokens, 512 for JSON and calls. `stop` texts end free text;
    one that is a special token of the model ends it at that token. `until` texts are what the
    program writes next, so that a value which could go on (`int`) knows where to end. None of them
    becomes part of the value or of the state. Within the first `min_tokens` nothing ends it that
    leaves a choice.

    What sampling leaves open comes from the run's `Options`; without those it is greedy.
    `logit_bias` maps ids, or texts of one token, to what is added to their logits (`-inf` forbids
    one). `seed` is the hole's own instead of the run's. `logprobs`: `meta(name).top_logprobs` has
    so many of the most probable outcomes for each token.

    `n`: so many samples, each in a branch of its own; the value is their list, and none of them
    enters the text. `hidden`: the value is kept, its text leaves the prompt. `retries`: a value
    that matches the constraint and that a validator of its type refuses is tried again, at most so
    many times; the model reads what the validator said. `think`: free text
    before the value, at most `think_tokens`, up to a closing mark: a text, an opening and a closing
    one, or True for those of the model's template. It is the variable `name.thought`; with
    `hide_thought` it leaves the prompt when the value is there.

    A hole without a name gets one of its own; a name used again keeps every value
    (`row.all(name)`).

    Raises TypeError for a wrong argument and ValueError for one out of range.
    """
    check_name("gen", name)
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
            use = ToolUse(tool_tuple("", tools), tool_choice, bool(parallel))
        value = _value_type(type, regex, json, grammar)
    except (TypeError, ValueError) as error:
        raise _same_kind(error)(f"gen({name!r}): {error}") from error
    whole = {"min_tokens": min_tokens, "logprobs": logprobs, "think_tokens": think_tokens}
    for argument, number in whole.items():
        check_number("gen", name, argument, number, 1 if argument == "think_tokens" else 0)
    check_number("gen", name, "retries", retries, 0)
    if n is not None:
        check_number("gen", name, "n", n, 1)
    options = Options(
        max_tokens=max_tokens,
        temperature=temperature,
        top_p=top_p,
        top_k=top_k,
        min_p=min_p,
        repetition_penalty=repetition_penalty,
        presence_penalty=presence_penalty,
        frequency_penalty=frequency_penalty,
        seed=seed,
    )
    options.sampling()  # a value out of range is reported where it was written
    if max_tokens is not None and min_tokens > max_tokens:
        raise ValueError(f"gen({name!r}): min_tokens={min_tokens} is above max_tokens={max_tokens}")
    if retries:
        check_retries(name, value, tools is not None, hide_thought)
    if any(captured.name == name for captured in value.captures):
        raise ValueError(f"gen({name!r}): a part of the pattern has the name of the hole")
    return ir.Gen(
        name,
        value.constraint,
        options,
        texts("stop", stop),
        tuple(stop_ids),
        texts("until", until),
        ignore_eos,
        value.parse,
        value.spaced,
        value.origin,
        min_tokens=min_tokens,
        stop_regex=texts("stop_regex", stop_regex),
        logit_bias=biases(name, logit_bias),
        top_logprobs=logprobs,
        hidden=hidden,
        shown=not hidden,
        think=thought(name, think, think_tokens, hide_thought),
        samples=n,
        captures=value.captures,
        retries=retries,
        tools=use,
    )


METHODS: Mapping[str, SelectMethod] = {
    "prob": "prob",
    "mean": "mean",
    "greedy": "greedy",
    "pmi": "pmi",
    "token_length_normalized": "mean",
    "greedy_token_selection": "greedy",
    "unconditional_likelihood_normalized": "pmi",
}
"""The methods of `select`, also by the names that SGLang gives them."""


@remembers
@names_unknown_arguments()
def select(
    name: str | None,
    choices: Sequence[str],
    *,
    method: str = DEFAULT_METHOD,
    until: str | Sequence[str] = (),
    temperature: float | None = None,
    seed: int | None = None,
    hidden: bool = False,
) -> ir.Select:
    """A hole that picks one of `choices` by what the model thinks of each of them.

    `method` says what a choice scores:

    - `prob`: its probability. A choice that begins another one also counts that of not going on;
      with `until`, each one counts the probability of such a text, or the end of the turn, next.
    - `mean`: the mean log probability of its tokens, so that long choices do not lose by length.
    - `greedy`: token by token, as if the model could write nothing but the choices.
    - `pmi`: its log probability less that of the choice without the prompt, so that choices which
      are common anywhere do not win by that.

    Greedy by default: the best choice, the first of equal ones; with a temperature it is drawn from
    `row.meta(name).distribution`, which has the probability of every choice;
    `row.meta(name).scores` has their scores. `seed` and `hidden` as for `gen`.
    """
    check_name("select", name)
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
    if method not in METHODS:
        raise ValueError(
            f"select({name!r}): method= is one of {', '.join(METHODS)}, got {method!r}"
            + did_you_mean(str(method), METHODS)
        )
    ends = texts("until", until)
    if ends and METHODS[method] not in ("prob", "greedy"):
        raise ValueError(
            f"select({name!r}): until= goes with method='prob' or 'greedy'; {method!r} does not "
            "look at what follows a choice"
        )
    options = Options(temperature=temperature, seed=seed)
    options.sampling()
    return ir.Select(name, tuple(choices), options, METHODS[method], ends, hidden)


def role(name: str, *content: str | ir.Expression, tools: Sequence[Tool] | None = None) -> ir.Turn:
    """A whole turn of a chat by the role `name`, in the form of the model's own template.

    `tools`, in the first turn: the model is told of them, as its template does it.
    """
    for part in content:
        if not isinstance(part, ir.Expression | str):
            raise TypeError(
                f"{name}() takes text, holes and their sums, got {part.__class__.__name__}"
            )
    return ir.Turn(name, content, () if tools is None else tool_tuple(f"{name}: ", tools))


def system(*content: str | ir.Expression, tools: Sequence[Tool] | None = None) -> ir.Turn:
    """A whole system turn: `s += sgl.system("You are terse.")`; `tools` as in `role`."""
    return role("system", *content, tools=tools)


def user(*content: str | ir.Expression, tools: Sequence[Tool] | None = None) -> ir.Turn:
    """A whole user turn: `s += sgl.user("Why is the sky blue?")`; `tools` as in `role`."""
    return role("user", *content, tools=tools)


def assistant(*content: str | ir.Expression) -> ir.Turn:
    """A whole assistant turn: `s += sgl.assistant(sgl.gen("answer"))`."""
    return role("assistant", *content)


def tool_result(*content: str | ir.Expression) -> ir.Turn:
    """A whole turn with what a tool gave back, by the role `tool` of the model's template."""
    return role("tool", *content)


def special(text: str) -> ir.Special:
    """One special token of the model, by its text: `sgl.special("<|im_end|>")`."""
    if not isinstance(text, str) or not text:
        raise TypeError(f"special() takes the text of a special token, got {text!r}")
    return ir.Special(text)


def _value_type(type: Any, regex: Any, json: Any, grammar: Any) -> ValueType:
    if isinstance(type, ir.Expression):
        return _pattern_type(type)
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
    if isinstance(grammar, compose.Part | ir.Expression):
        return _pattern_type(grammar)
    if grammar is not None:
        raise TypeError(
            "grammar= takes a grammar text, a path, a part of sglite.grammars.compose or a "
            f"Constraint, got {grammar!r}"
        )
    return ValueType(None, None)


def _pattern_type(content: compose.Part | ir.Expression) -> ValueType:
    found = pattern(content)
    if isinstance(found.part, Quote):
        return quote_type(found.part)
    return ValueType(found.constraint, None, captures=found.captures)


def _same_kind(error: TypeError | ValueError) -> type[TypeError] | type[ValueError]:
    return TypeError if isinstance(error, TypeError) else ValueError
