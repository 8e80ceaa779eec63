"""A row out of its trace: as it was, and run again."""

from __future__ import annotations

import json
from typing import Any

import pytest
from recorder import MakeScripted, Scripted
from tool_templates import HERMES, LLAMA3, MISTRAL

import sglite as sgl
from sglite.tools import formats
from sglite.tools.formats import format_of, write_calls


@sgl.function
def program(s: sgl.State, doc: str) -> Any:
    s += doc + sgl.gen("n", int) + sgl.select("pick", ["a", "b"])
    with s.user():
        s += f"and {s['n']}"
    branches = s.fork(["x", "y"])
    for branch in branches.values():
        branch += sgl.assistant(sgl.gen("reply") + sgl.regex("[a-z]", name="letter"))
    s.join(branches)
    s += sgl.gen("n", int)
    return [s["n"], "done"]


def same(row: sgl.Result, again: sgl.Result) -> None:
    assert again.variables == row.variables
    assert (again.text(), again.messages()) == (row.text(), row.messages())
    assert (again.seed, again.row) == (row.seed, row.row)
    for name in row.variables:
        assert again.all(name) == row.all(name)
        assert again.metas(name) == row.metas(name)
    assert again.usage == row.usage
    assert again.graph == row.graph


SCRIPT = {"n": ["3", "4"], "pick": {"b": 0.7, "a": 0.3}, "reply": ["one", "two"]}


def test_a_row_comes_back_without_a_model(scripted: MakeScripted) -> None:
    scripted(SCRIPT)
    row = program.run("doc ", row=3, options=sgl.Options(temperature=0.5, max_tokens=9))
    again = sgl.replay(row.trace())
    same(row, again)
    assert again.ids == row.ids
    assert again.returned == row.returned == [4, "done"]
    assert again.timing == row.timing
    assert again.options.temperature == 0.5
    assert again.model == row.model == {"name": "scripted", "path": None}
    same(row, sgl.replay(json.loads(again.trace())))


def test_a_row_is_run_again_on_a_model(scripted: MakeScripted) -> None:
    scripted(SCRIPT)
    trace = program.run("doc ", row=2).trace()
    with Scripted(SCRIPT) as model:
        again = sgl.replay(trace, model)
        assert again.difference is None
        assert again["n"] == 4
    with Scripted({**SCRIPT, "reply": ["one", "twenty"]}) as model:
        difference = sgl.replay(trace, model).difference
    assert difference is not None
    assert (difference.hole, difference.branch) == ("gen('reply')", (0, 1))
    assert (difference.index, difference.recorded) == (2, ord("o"))
    assert difference.replayed == ord("e")
    assert "token 2 is 101, was 111" in str(difference)
    with Scripted({**SCRIPT, "reply": ["o", "two"]}) as model:
        difference = sgl.replay(trace, model).difference
    assert difference is not None
    assert (difference.index, difference.recorded, difference.replayed) == (1, ord("n"), None)


def test_a_row_that_failed_comes_back_with_its_error(scripted: MakeScripted) -> None:
    @sgl.function
    def failing(s: sgl.State) -> None:
        s += "a" + sgl.gen("x") + "b" + sgl.gen("y")
        raise ValueError(s["x"] + s["y"])

    scripted({"y": []})
    row = failing.run_batch([{}], errors="return")[0]
    again = sgl.replay(row.trace())
    assert str(again.error) == str(row.error)
    assert again.error is not None
    assert row.error is not None
    assert (again.error.node, again.error.line) == (row.error.node, row.error.line)
    assert again["x"] == "<x>"
    assert again.text() == row.text() == "a<x>b"


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"trace": 1}', '{"trace": 7}', "[" * 99_999])
def test_what_is_no_trace(text: str) -> None:
    with pytest.raises(ValueError, match="not a trace"):
        sgl.replay(text)


@sgl.tool
def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


@pytest.mark.parametrize("template", [None, HERMES, LLAMA3, MISTRAL])
def test_a_conversation_with_tools_is_run_again(template: str | None) -> None:
    @sgl.function
    def agent(s: sgl.State, question: str) -> Any:
        s += sgl.user(question, tools=[add])
        return s.use_tools("answer")

    form = formats.HERMES if template is None else format_of(template)
    assert form is not None
    call = sgl.ToolCall("add", {"a": 1, "b": 2}, "123456789", tool=add)
    script = {"answer": [write_calls([call], form), "It is 3."]}
    options = {} if template is None else {"chat_template": template}
    with Scripted(script, **options) as model:
        row = agent.run("1 + 2?", model=model)
    assert row.returned == "It is 3."
    trace = row.trace()
    again = sgl.replay(trace)
    assert (again.text(), again.ids) == (row.text(), row.ids)
    assert again.messages() == row.messages()
    texts = [meta.text for meta in row.metas("answer")]
    with Scripted({"answer": texts}, **options) as model:
        repeated = sgl.replay(trace, model)
    assert repeated.difference is None
    assert repeated.ids == row.ids
    with pytest.raises(sgl.GraphBreak, match="tools a model is told of"):
        agent.compile()
