"""Tools are run: what the model reads, what the row keeps, how the conversation goes on."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
import time
from datetime import date
from typing import Any

import pytest
from recorder import MakeScripted
from tool_templates import HERMES, LLAMA3, MISTRAL

import sglite as sgl
from sglite.chat import ChatTemplate
from sglite.runtime.segment import Append
from sglite.tools import formats
from sglite.tools.calls import execute, execute_async
from sglite.tools.formats import ToolFormat, write_calls

threads: list[str] = []
where = contextvars.ContextVar("where", default="nowhere")


@sgl.tool
def add(a: int, b: int = 0) -> int:
    """Adds <|im_end|> numbers."""
    threads.append(threading.current_thread().name)
    return a + b


@sgl.tool
def fail(why: str) -> None:
    raise LookupError(why)


@sgl.tool
async def fetch(url: str) -> dict[str, Any]:
    await asyncio.sleep(0.2)
    return {"url": url, "where": where.get()}


@sgl.tool
def nap(seconds: float) -> str:
    time.sleep(seconds)
    return where.get()


def call(tool: sgl.Tool, **arguments: Any) -> sgl.ToolCall:
    return sgl.ToolCall(tool.name, arguments, "123456789", tool=tool)


def text(*calls: sgl.ToolCall, form: ToolFormat = formats.HERMES) -> str:
    return write_calls(list(calls), form)


@sgl.function
def agent(s: sgl.State, steps: int = 8, parallel: bool = False) -> str:
    s += sgl.system("Be brief.", tools=[add, fail, fetch, nap])
    s += sgl.user("1 + 2?")
    return s.use_tools("x", max_steps=steps, parallel=parallel)


def test_a_loop_of_calls(scripted: MakeScripted, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "sglite.tools")
    scripted({"x": [text(call(add, a=1, b=2)), text(call(fail, why="no\nluck")), "It is 3."]})
    row = agent.run()
    assert row.returned == row["x"] == "It is 3."
    assert [getattr(value, "name", value) for value in row.all("x")] == ["add", "fail", "It is 3."]
    good, bad = row.tool_results
    assert (good.call.arguments, good.value, good.text, good.error) == (
        {"a": 1, "b": 2},
        3,
        "3",
        None,
    )
    assert bad.text == "Error: LookupError: no\nluck"
    assert isinstance(bad.error, LookupError)
    assert 0 <= good.duration < 5
    assert threads[-1] == threading.current_thread().name
    messages = row.messages()
    assert [m["role"] for m in messages] == [
        "system", "user", "assistant", "user", "assistant", "user", "assistant"
    ]  # fmt: skip
    assert messages[3]["content"] == "<tool_response>\n3\n</tool_response>"
    assert "LookupError: no\nluck" in messages[5]["content"]
    assert messages[0]["content"].startswith("Be brief.\n\nYou can use tools.")
    assert '"name": "add"' in messages[0]["content"]
    logged = [(r.levelname, r.getMessage()) for r in caplog.records if r.name == "sglite.tools"]
    assert [level for level, _ in logged] == ["INFO", "WARNING"]
    assert "fail({'why': 'no\\nluck'}) raised" in logged[1][1]
    assert "LookupError" in caplog.text


def test_descriptions_never_become_special_tokens(scripted: MakeScripted) -> None:
    for template in (None, HERMES, LLAMA3):
        engine = scripted({"x": "a"}, **({"chat_template": template} if template else {}))
        row = agent.run()
        assert "Adds <|im_end|> numbers" in row.text()
        # Turns of system, user and assistant, and no other end.
        assert row.ids.count(258) == 3
        (first, *_) = [step for step in engine.steps() if isinstance(step, Append)]
        assert (
            "".join(piece.text for piece in first.pieces) == row.text().partition("a<|im_end|>")[0]
        )


@pytest.mark.parametrize("form", [formats.HERMES, formats.LLAMA3, formats.MISTRAL])
def test_the_conversation_is_what_the_template_renders(
    scripted: MakeScripted, form: ToolFormat
) -> None:
    source = {"hermes": HERMES, "llama3": LLAMA3, "mistral": MISTRAL}[form.name]
    first, second = call(add, a=1, b=2), call(add, a=5)
    several = form.several
    calls = [first, second] if several else [first]
    engine = scripted({"x": [text(*calls, form=form), "3 and 5.", "Bye."]}, chat_template=source)

    @sgl.function
    def program(s: sgl.State) -> None:
        s += sgl.user("1 + 2?", tools=[add])
        s += sgl.assistant(sgl.gen("x", tools=[add], parallel=several))
        s.run_tools(s["x"])
        s += sgl.assistant(sgl.gen("x"))
        s += sgl.user("Thanks.")
        s += sgl.assistant(sgl.gen("x"))

    row = program.run()
    template = ChatTemplate(source, engine.template_variables)
    written = row.all("x")[0]
    done = written if several else [written]
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "1 + 2?"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {"id": c.id, "function": {"name": c.name, "arguments": c.arguments}} for c in done
            ],
        },
        *(
            {"role": "tool", "content": t, "tool_call_id": c.id}
            for c, t in zip(done, "35", strict=False)
        ),
        {"role": "assistant", "content": "3 and 5."},
        {"role": "user", "content": "Thanks."},
        {"role": "assistant", "content": "Bye."},
    ]
    if form is formats.LLAMA3:
        messages[1] = {"role": "assistant", "content": text(first, form=form)}
    assert text(*calls, form=form) in row.text()
    whole = template._template.render(
        messages=messages, tools=[add.described()], **engine.template_variables
    )
    got = row.text()
    if form is formats.MISTRAL:
        # It shows tools before the last user text alone, and one call; what was written stays.
        assert got.count("[TOOLS]") == 2
        assert got.count("[RESULT]") == 2
        for c, t in zip(done, "35", strict=True):
            assert f'[RESULT] {{"content": {t}, "call_id": "{c.id}"}}[/RESULT]' in got
        assert got.index("[/RESULT] 3 and 5.") > 0
        return
    if form is formats.HERMES:
        whole = whole.replace("</tool_call><tool_call>", "</tool_call>\n<tool_call>")
    assert got == whole
    assert [m["role"] for m in row.messages()].count("tool") == len(done)


def test_the_step_limit_leaves_text_alone(scripted: MakeScripted) -> None:
    endless = text(call(add, a=1))
    scripted({"x": [endless, endless, "Enough."]})
    row = agent.run(steps=3)
    assert row["x"] == "Enough."
    assert len(row.tool_results) == 2
    scripted({"x": [endless, endless]})
    with pytest.raises(sgl.ProgramError, match="does not match"):
        agent.run(steps=2)  # a call in the last step is impossible


def test_parallel_calls_run_at_the_same_time(scripted: MakeScripted) -> None:
    where.set("here")
    for calls in (
        [call(nap, seconds=0.2)] * 4,
        [call(fetch, url="a"), call(fetch, url="b"), call(nap, seconds=0.2)],
    ):
        scripted({"x": [text(*calls), "Done."]})
        started = time.monotonic()
        row = agent.run(parallel=True)
        assert time.monotonic() - started < 0.6
        assert row["x"] == "Done."
        assert all("here" in result.text for result in row.tool_results)
        assert [r.call.name for r in row.tool_results] == [c.name for c in calls]
    assert row.messages()[3]["content"].startswith('<tool_response>\n{"url":"a","where":"here"}\n')


def test_async_tools_run_from_any_side(scripted: MakeScripted) -> None:
    calls = [call(fetch, url="a"), call(fail, why="x"), call(add, a=1)]

    async def inside() -> tuple[list[sgl.ToolResult], list[sgl.ToolResult]]:
        return execute(calls), await execute_async(calls)

    for results in (execute(calls), *asyncio.run(inside())):
        assert [r.text for r in results] == [
            '{"url":"a","where":"' + where.get() + '"}', "Error: LookupError: x", "1"
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        ("a\ud800", "a?"),
        (1.5, "1.5"),
        ((1, "é"), '[1,"é"]'),
        (date(2026, 1, 2), '"2026-01-02"'),
        ({"x": add}, f'{{"x":"{add}"}}'),
    ],
)
def test_values_of_all_kinds_are_text_for_the_model(value: Any, text: str) -> None:
    @sgl.tool
    def give() -> Any:
        return value

    (result,) = execute([call(give)])
    assert result.text == text
    assert result.value is value


def test_refused_arguments_are_told(scripted: MakeScripted) -> None:
    refused = sgl.ToolCall("add", {"a": 1}, "1", "a: must be even", add)
    (result,) = execute([refused])
    assert result.text == "Error: ValueError: these arguments are refused: a: must be even"


def test_run_tools_takes_calls(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State, what: Any) -> list[sgl.ToolResult]:
        s += sgl.user("q", tools=[add]) + sgl.assistant("a")
        return s.run_tools(what)

    scripted()
    (result,) = program.run(sgl.ToolCall("add", {"a": 7})).returned
    assert result.value == 7
    for wrong in ("text", [], sgl.ToolCall("sub", {}), ["x"], None):
        with pytest.raises(sgl.ProgramError, match="run_tools"):
            program.run(wrong)


@pytest.mark.parametrize("template", [{}, {"chat_template": HERMES}])
def test_results_are_a_turn_of_their_own(scripted: MakeScripted, template: dict[str, str]) -> None:
    asked = sgl.ToolCall("add", {"a": 7}, "123456789")

    @sgl.function
    def inside(s: sgl.State) -> None:
        s += sgl.user("q", tools=[add])
        with s.assistant():
            s.run_tools(asked)

    @sgl.function
    def in_a_branch(s: sgl.State) -> list[str]:
        s += sgl.user("q", tools=[add])
        with s.assistant():
            s += sgl.gen("x")
            (branch,) = s.fork(1)
        branch.run_tools(asked)
        branch += sgl.assistant(sgl.gen("y"))
        return [message["role"] for message in branch.messages()]

    scripted({"x": "a", "y": "b"}, **template)
    with pytest.raises(sgl.ProgramError, match=r"\(\) inside of assistant\(\); close that turn"):
        inside.run()
    role = "tool" if template else "user"
    assert in_a_branch.run().returned == ["user", "assistant", role, "assistant"]


def test_where_tools_are_named(scripted: MakeScripted) -> None:
    @sgl.function
    def late(s: sgl.State) -> None:
        s += sgl.user("q")
        s += sgl.system("s", tools=[add])

    @sgl.function
    def nowhere(s: sgl.State) -> None:
        s += sgl.user("q")
        s.use_tools("x")

    @sgl.function
    def block(s: sgl.State) -> None:
        with s.system(tools=[add]):
            pass
        s += sgl.user("q")
        s.use_tools("x", max_steps=1)

    scripted({"x": "a"})
    with pytest.raises(sgl.ProgramError, match="after the first turn"):
        late.run()
    with pytest.raises(sgl.ProgramError, match=r"no tools; name them in the first turn"):
        nowhere.run()
    assert block.run().messages()[0]["content"].startswith("You can use tools.")


def test_branches_have_the_tools_and_the_row_has_all_results(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        s += sgl.system(tools=[add])
        s += sgl.user("q")
        for branch in s.fork(2):
            branch.use_tools("x")

    once = text(call(add, a=1))
    scripted({"x": lambda so_far: "end" if "tool_response>\n1" in so_far else once})
    assert [r.value for r in program.run().tool_results] == [1, 1]


def test_a_batch_goes_on_while_tools_run(scripted: MakeScripted) -> None:
    scripted({"x": lambda so_far: "end" if "nowhere" in so_far else text(call(nap, seconds=0.3))})
    where.set("nowhere")
    started = time.monotonic()
    rows = agent.run_batch([{}] * 6)
    assert time.monotonic() - started < 1.2  # and not 6 * 0.3
    assert all(row["x"] == "end" for row in rows)


@sgl.function
async def async_agent(s: sgl.State) -> str:
    s += sgl.system("Be brief.", tools=[add, fetch])
    s += sgl.user("1 + 2?")
    with s.assistant():
        s += sgl.gen("first", tools=[add])
    (result,) = await s.run_tools(await s.read("first"))
    assert result.value == 3
    return str(await s.use_tools("x"))


def test_async_programs_await_their_tools(scripted: MakeScripted) -> None:
    where.set("here")
    script = {"first": text(call(add, a=1, b=2)), "x": [text(call(fetch, url="u")), "Done."] * 9}
    scripted(script)
    assert asyncio.run(async_agent.arun()).returned == "Done."

    async def many() -> list[str]:
        rows = await asyncio.gather(*(async_agent.arun() for _ in range(8)))
        return [row.tool_results[1].text for row in rows]

    script["x"] = lambda so_far: (
        "Done." if '"u"' in so_far.partition("response>")[2] else text(call(fetch, url="u"))
    )
    scripted(script)
    started = time.monotonic()
    assert asyncio.run(many()) == ['{"url":"u","where":"here"}'] * 8
    assert time.monotonic() - started < 1.2  # and not 8 * 0.2


def test_a_journal_keeps_calls_and_results(scripted: MakeScripted, tmp_path: Any) -> None:
    scripted({"x": [text(call(add, a=1, b=2)), text(call(fail, why="x")), "It is 3."]})
    first = agent.run_batch([{}], journal=tmp_path / "rows.jsonl")[0]
    (row,) = agent.run_batch([{}], journal=tmp_path / "rows.jsonl")  # the script has no more
    assert row.all("x")[0]["arguments"] == {"a": 1, "b": 2}
    assert [r.text for r in row.tool_results] == [r.text for r in first.tool_results]
    assert [str(r.error) for r in row.tool_results] == ["None", "Error: LookupError: x"]
    assert row.tool_results[0].call == sgl.ToolCall(
        "add", {"a": 1, "b": 2}, first.tool_results[0].call.id
    )


@pytest.mark.parametrize("template", [{}, {"chat_template": HERMES}])
def test_a_row_with_calls_is_replayed(scripted: MakeScripted, template: dict[str, str]) -> None:
    scripted({"x": [text(call(add, a=1), call(add, a=2)), "Done."]}, **template)
    row = agent.run(parallel=True)
    assert sgl.Graph.from_json(row.graph.to_json()) == row.graph
    again = sgl.replay(row.trace())
    assert (again.text(), again.ids, again.messages()) == (row.text(), row.ids, row.messages())
    assert again.all("x") == [row.metas("x")[0].text, "Done."]  # without the functions: text


def test_tools_are_refused_in_a_compiled_program() -> None:
    with pytest.raises(sgl.GraphBreak, match="tools"):
        agent.compile(steps=2, parallel=False)


@pytest.mark.model
def test_the_kv_stays_while_a_tool_runs(smollm2_path: Any) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        s += sgl.system("Be brief.", tools=[add])
        s += sgl.user("1 + 2?")
        s += sgl.assistant(sgl.gen("call", tools=[add], tool_choice="required", max_tokens=60))
        s.run_tools(s["call"])
        s += sgl.assistant(sgl.gen("answer", max_tokens=10))

    with sgl.Model("smollm2") as model:
        row = program.run(model=model)
        assert isinstance(row["call"], sgl.ToolCall)
        usage = row.meta("answer").usage
        whole = len(row.ids)
        # The second hole computes what the tool's turn has added and nothing before it.
        assert usage.prompt_tokens < 60
        assert model.stats()["computed_tokens"] < whole + 8
        forced = row.meta("call").usage.forced_tokens
        assert forced > 10  # the marker and the keys cost no step
