"""Holes with tools: text or calls, in the format of the model, and nothing that is neither."""

from __future__ import annotations

import json
import random
from typing import Any, Literal

import pytest
from recorder import MakeScripted
from tool_templates import HERMES, LLAMA3, MISTRAL

import sglite as sgl
from sglite.grammars import Vocabulary, compose
from sglite.grammars.compose import compile_parts
from sglite.runtime.constraints import Constraints, reading_specials
from sglite.runtime.segment import Constraint
from sglite.tools import formats
from sglite.tools.formats import (
    ToolFormat,
    ToolUse,
    calls_in,
    constraint_of,
    format_of,
    write_calls,
)

ARGS = HERMES.replace("<tool_call>", "[TOOL_CALLS]").replace("</tool_call>", "[ARGS]")
FORMATS = [
    formats.HERMES,
    formats.LLAMA3,
    formats.MISTRAL,
    formats.MISTRAL_ARGS,
]
BYTES = Vocabulary.from_tokens([bytes([b]) for b in range(256)] + [b"<end>"], [256], [256])


@sgl.tool
def add(a: int, b: int = 0) -> int:
    """Adds."""
    return a + b


@sgl.tool
def say(text: str, how: Literal["loud", "low"]) -> str:
    return text


CALL = sgl.ToolCall("add", {"a": 1, "b": 2})
ODD = sgl.ToolCall("say", {"text": '"}\n</tool_call> [TOOL_CALLS] ,{é', "how": "low"})


def takes(use: ToolUse, form: ToolFormat, text: str) -> bool:
    matcher = compile_parts(constraint_of(use, form), BYTES).matcher()
    return matcher.accept_tokens(list(text.encode())) and matcher.is_complete


def test_formats_are_seen_in_templates() -> None:
    assert format_of(HERMES) == formats.HERMES
    assert format_of(LLAMA3) == formats.LLAMA3
    assert format_of(MISTRAL) == formats.MISTRAL
    assert format_of(ARGS) == formats.MISTRAL_ARGS
    tight = format_of(MISTRAL.replace("] [", "]["))
    assert tight is not None
    assert tight.begin == "[TOOL_CALLS]["
    assert format_of("{{ messages }}") is None
    assert format_of("<tool_call>\n<function=f>") is None  # a form with tags inside


@pytest.mark.parametrize("form", FORMATS, ids=lambda f: f.name)
def test_what_may_be_written(form: ToolFormat) -> None:
    tools = (add, say)
    one, odd = write_calls([CALL], form), write_calls([ODD], form)
    half = one[: len(form.marker) + 3]
    wrong = write_calls([sgl.ToolCall("add", {"a": "x"})], form)
    other = write_calls([sgl.ToolCall("sub", {"a": 1})], form)
    more = write_calls([sgl.ToolCall("add", {"a": 1, "c": 1})], form)
    bare = write_calls([sgl.ToolCall("add", {})], form)
    two = write_calls([CALL, ODD], form)
    cases = {
        # text: may it be written with "auto", "required", "none"?
        "": (True, False, True),
        "Hello, 1 < 2 [x] {": (True, False, True),
        one: (True, True, False),
        odd: (True, True, False),
        half: (False, False, False),
        wrong: (False, False, False),
        other: (False, False, False),
        more: (False, False, False),
        bare: (False, False, False),
        one + "x": (False, False, False),
        f"Well.\n{one}": (True, False, form.whole),
        f"Well.\n{half}": (form.whole, False, form.whole),
    }
    for text, expected in cases.items():
        for choice, may in zip(("auto", "required", "none"), expected, strict=True):
            assert takes(ToolUse(tools, choice), form, text) is may, (choice, text)
    assert takes(ToolUse(tools, "say"), form, odd)
    assert not takes(ToolUse(tools, "say"), form, one)
    if form.several:
        assert takes(ToolUse(tools, "auto", parallel=True), form, two)
        assert takes(ToolUse(tools, "required", parallel=True), form, two)
        assert takes(ToolUse(tools, "auto", parallel=True), form, one)
        assert not takes(ToolUse(tools), form, two)
        sixteen = write_calls([CALL] * 16, form)
        assert takes(ToolUse(tools, parallel=True), form, sixteen)
        assert not takes(ToolUse(tools, parallel=True), form, write_calls([CALL] * 17, form))


def test_a_call_may_follow_the_python_tag() -> None:
    form = formats.LLAMA3
    text = "<|python_tag|>" + write_calls([CALL], form)
    assert takes(ToolUse((add,)), form, text)
    assert [*calls_in(text, form)] == [("add", {"a": 1, "b": 2})]
    assert not takes(ToolUse((add,)), form, "<|python_tag|>import os")


@pytest.mark.parametrize("form", FORMATS, ids=lambda f: f.name)
def test_calls_are_read_as_they_were_written(form: ToolFormat) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    alphabet = ['"', "}", "{", "]", ", ", "\n", "é", "\\", form.tail, form.end, form.between]
    for _ in range(100):
        calls = [
            sgl.ToolCall(
                rng.choice(["a", "say-it"]),
                {"t": "".join(rng.choices(alphabet, k=4)), "n": [rng.random()]},
            )
            for _ in range(rng.randint(1, 4) if form.several else 1)
        ]
        text = ("" if form.whole else rng.choice(["", "Hm. "])) + write_calls(calls, form)
        assert [*calls_in(text, form)] == [(call.name, call.arguments) for call in calls]
    assert [*calls_in("only { text", form)] == []


def hole(**options: Any) -> sgl.Function:
    @sgl.function
    def program(s: sgl.State) -> Any:
        s += sgl.user("q") + sgl.assistant(sgl.gen("x", tools=[add, say], **options))
        return s["x"]

    return program


@pytest.mark.parametrize(
    ("template", "form"),
    [(HERMES, FORMATS[0]), (LLAMA3, FORMATS[1]), (MISTRAL, FORMATS[2]), (ARGS, FORMATS[3])],
)
def test_values(scripted: MakeScripted, template: str, form: ToolFormat) -> None:
    text = write_calls([CALL], form)
    script = {"x": [text, "Hello", f"Hm.\n{text}"[3 * form.whole + form.whole :]]}
    engine = scripted(script, chat_template=template)
    row = hole().run(options=sgl.Options(seed=1))
    call = row["x"]
    assert call == sgl.ToolCall("add", {"a": 1, "b": 2}, call.id)
    assert call.tool is add
    assert len(call.id) == 9
    assert call.id.isalnum()
    assert row.returned is call
    assert row.meta("x").text == text
    assert hole().run()["x"] == "Hello"
    again = hole().run(options=sgl.Options(seed=1))["x"]
    assert again == call  # the id, too, comes from the seed
    (gen, *_) = [step for step in engine.steps() if isinstance(step, sgl.runtime.segment.Gen)]
    assert gen.max_tokens == 512


def test_parallel_calls_are_a_list(scripted: MakeScripted) -> None:
    text = write_calls([CALL, ODD], formats.HERMES)
    scripted({"x": [text, write_calls([CALL], formats.HERMES), "no"]})
    first, second = hole(parallel=True).run()["x"]
    assert (first.name, second.arguments) == ("add", ODD.arguments)
    assert first.id != second.id
    assert [call.name for call in hole(parallel=True).run()["x"]] == ["add"]
    assert hole(parallel=True).run()["x"] == "no"


def test_without_an_answer_a_call_comes_if_it_must(scripted: MakeScripted) -> None:
    scripted()
    assert hole().run()["x"] == ""
    assert isinstance(hole(tool_choice="required").run()["x"], sgl.ToolCall)
    assert hole(tool_choice="say").run()["x"].name == "say"
    assert isinstance(hole(tool_choice="none").run()["x"], str)


def test_a_stream_has_the_call(scripted: MakeScripted) -> None:
    scripted({"x": write_calls([CALL], formats.HERMES)})
    filled = [event.value for event in hole().stream() if isinstance(event, sgl.Filled)]
    assert [call.arguments for call in filled] == [{"a": 1, "b": 2}]


def test_a_base_model_calls_in_the_common_form(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        s += "Add 1 and 2:" + sgl.gen("x", tools=[add])

    scripted({"x": write_calls([CALL], formats.HERMES)}, chat_template=None)
    row = program.run()
    assert row["x"].arguments == {"a": 1, "b": 2}
    assert "gen('x'): tools 'add'" in str(row.graph)
    json.loads(row.graph.to_json())


def test_a_script_may_have_calls() -> None:
    script = {
        "x": [CALL, "It is 3."],
        "two": [[CALL, ODD], "Done."],
        "by": lambda so_far: ODD if "now" in so_far else "Not yet.",
    }

    @sgl.function
    def program(s: sgl.State, name: str) -> Any:
        s += sgl.user("now")
        s += sgl.assistant(sgl.gen(name, tools=[add, say], parallel=name == "two"))
        return s[name]

    with sgl.Model("scripted", backend="scripted", script=script) as model:
        assert program.run("x", model=model).returned.arguments == CALL.arguments
        assert program.run("x", model=model).returned == "It is 3."
        assert [call.name for call in program.run("two", model=model).returned] == ["add", "say"]
        assert program.run("by", model=model).returned.arguments == ODD.arguments


@pytest.mark.model
def test_a_special_token_of_the_small_model_as_a_marker(smollm2_path: Any) -> None:
    part = compose.sequence(compose.text_until("<repo_name>"), compose.regex("[a-z]{3}"))
    options = (("special_texts", ("<repo_name>",)),)
    constraint = Constraint("parts", part, options)

    @sgl.function
    def program(s: sgl.State) -> None:
        s += "The name of the repository is:" + sgl.gen("x", grammar=constraint, max_tokens=8)

    with sgl.Model("smollm2") as model:
        row = program.run(model=model)
        special = [i for i in model.vocabulary.special_ids if i in row.meta("x").ids]
        assert [model.vocabulary.token(i) for i in special] == [b"<repo_name>"]
        assert row["x"].count("<repo_name>") == 1
        assert row["x"][-3:].isalpha()
        text = b"".join(model.vocabulary.token(i) for i in row.meta("x").ids).decode()
        assert text == row.meta("x").healed + row["x"]


def test_wrong_arguments() -> None:
    def plain() -> None: ...

    wrong: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"tools": add}, TypeError, "a list of tools"),
        ({"tools": [plain]}, TypeError, r"write @sgl.tool above plain\(\)"),
        ({"tools": []}, ValueError, "has no tools"),
        ({"tools": [add, add]}, ValueError, "one name"),
        ({"tools": [add], "tool_choice": "sub"}, ValueError, r"name of a tool \(add\), got 'sub'"),
        ({"tools": [add], "regex": "a"}, TypeError, r"2 constraints \(regex, tools\)"),
        ({"tools": [add], "type": int}, TypeError, r"2 constraints"),
    ]
    for options, kind, said in wrong:
        with pytest.raises(kind, match=said):
            sgl.gen("x", **options)


def test_special_tokens_can_be_markers() -> None:
    special = [b"[TOOL_CALLS]", b"[ARGS]", b"</s>"]
    tokens = [bytes([b]) for b in range(256)] + special
    vocabulary = Vocabulary.from_tokens(tokens, [258], [256, 257, 258], encode=list)
    form = formats.MISTRAL_ARGS
    part = constraint_of(ToolUse((add,), "required"), form)
    options = (("special_texts", (*form.special, "</s>")),)
    grammar = Constraints(vocabulary).compile(Constraint("parts", part, options))
    matcher = grammar.matcher()
    assert matcher.forced_tokens() == [
        256,
        *b"add",
        257,
        *b'{"a": ',
    ]  # the tokens, not their letters
    assert matcher.accept_tokens([256, *b"add", 257, *b'{"a": 1}'])
    assert matcher.is_finished
    assert grammar.matcher().accept_tokens([*b"[TOOL_CALLS]add[ARGS]{"])
    free = Constraints(vocabulary).compile(
        Constraint("parts", constraint_of(ToolUse((add,)), form), options)
    )
    matcher = free.matcher()
    assert not matcher.fork().accept(257)
    assert matcher.accept_tokens([*b"Hm. ", 256, *b"add", 257, *b'{"a": 1}'])
    assert matcher.is_finished
    # Elsewhere they stay special.
    assert reading_specials(vocabulary, ("<x>", "</s>")) is vocabulary
    plain = Constraints(vocabulary).compile(Constraint("parts", part))
    assert not plain.matcher().accept(256)
