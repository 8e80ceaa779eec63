"""Streams: the text as it comes, the values, and the row at the end."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from recorder import MakeScripted, Scripted

import sglite as sgl
from sglite.tools.formats import (
    HERMES,
    LLAMA3,
    MISTRAL,
    MISTRAL_ARGS,
    script_of,
    text_before_calls,
    write_calls,
)


@sgl.function
def program(s: sgl.State, n: int) -> None:
    s += "go" + sgl.gen("long")
    s["long"]
    s += sgl.gen("count", int, until=".")
    for branch in s.fork(n):
        branch += sgl.gen("end")


def test_a_stream_has_every_character_and_value(scripted: MakeScripted) -> None:
    long = "ä" * 100
    scripted({"long": long, "count": "12"})
    events = list(program.stream(2))
    assert isinstance(events[-1], sgl.End)
    assert events[-1].row["count"] == 12
    texts = [e for e in events if isinstance(e, sgl.Text)]
    assert len([e for e in texts if e.name == "long"]) > 1
    assert "".join(e.text for e in texts if e.name == "long") == long
    filled = [e for e in events if isinstance(e, sgl.Filled)]
    assert [(e.name, e.value, e.branch) for e in filled] == [
        ("long", long, ()),
        ("count", 12, ()),
        ("end", "<end>", (0, 0)),
        ("end", "<end>", (0, 1)),
    ]
    assert events.index(filled[0]) > max(i for i, e in enumerate(events) if e in texts[:2])


def test_an_error_is_raised_from_the_stream(scripted: MakeScripted) -> None:
    scripted({"long": 1, "count": "many"})
    stream = program.stream(1)
    assert next(stream) == sgl.Text("long", "1")
    with pytest.raises(sgl.ProgramError, match=r"gen\('count'\)"):
        list(stream)
    with pytest.raises(TypeError, match="'n'"):
        program.stream()


def test_leaving_a_stream_cancels_the_run(scripted: MakeScripted) -> None:
    @sgl.function
    def endless(s: sgl.State) -> None:
        while True:
            s += sgl.gen("x")
            s["x"]

    engine = scripted(delay=0.001)
    for event in endless.stream():
        assert isinstance(event, sgl.Text)
        break
    assert engine.opened  # and the fixture checks that it is closed


def texts_of(events: list[object], kind: type) -> dict[str, str]:
    """The text of each hole, as the events of a kind have it."""
    texts: dict[str, str] = {}
    for event in events:
        if isinstance(event, kind):
            texts[event.name] = texts.get(event.name, "") + event.text  # type: ignore[attr-defined]
    return texts


def test_hidden_text_and_thoughts_are_events_of_their_own(scripted: MakeScripted) -> None:
    @sgl.function
    def thinks(s: sgl.State) -> None:
        s += sgl.gen("plan", hidden=True) + sgl.gen("answer", think="</t>")
        s += sgl.select("pick", ["a", "b"], hidden=True)
        s += sgl.gen(think="</t>") + sgl.gen("n", int, think="</t>", hide_thought=True)
        s += sgl.gen("record", dict[str, int], hidden=True)

    scripted({"plan": "secret", "answer": "open", "record": {"x": 1}, "#1": "unnamed", "#2": "v"})
    events = list(thinks.stream())
    texts = texts_of(events, sgl.Text)
    assert texts.pop("n").isdigit()
    assert texts == {"answer": "open", "#2": "v"}
    hidden = texts_of(events, sgl.Hidden)
    assert hidden.keys() == {"plan", "answer.thought", "pick", "#1", "n.thought", "record"}
    assert hidden["plan"] == "secret"
    assert hidden["#1"] == "unnamed"
    assert not any(isinstance(event, sgl.Partial) for event in events)
    filled = {event.name: event.value for event in events if isinstance(event, sgl.Filled)}
    assert filled["plan"] == "secret"
    assert filled["record"] == {"x": 1}


@sgl.tool
def add(a: int, b: int) -> int:
    """Adds."""
    if a < 0:
        raise ValueError("no")
    return a + b


@sgl.function
def agent(s: sgl.State) -> None:
    s += sgl.user("How much?", tools=[add])
    s.use_tools("step", parallel=True)


CALLS = [sgl.ToolCall("add", {"a": 1, "b": 2}), sgl.ToolCall("add", {"a": -1, "b": 2})]


def test_calls_and_results_are_events(scripted: MakeScripted) -> None:
    scripted(script_of({"step": [CALLS, CALLS[:1], "It is <tool 3."]}))
    events = list(agent.stream())
    kinds = [type(event).__name__ for event in events if not isinstance(event, sgl.Text)]
    called, answered = ["ToolCalled", "Filled", "ToolReturned"], ["Filled", "End"]
    both = ["ToolCalled", "ToolCalled", "Filled", "ToolReturned", "ToolReturned"]
    assert kinds == both + called + answered
    calls = [event for event in events if isinstance(event, sgl.ToolCalled)]
    assert [event.call for event in calls] == [
        replace(call, id=event.call.id)
        for call, event in zip([*CALLS, CALLS[0]], calls, strict=True)
    ]
    assert {event.name for event in calls} == {"step"}
    results = [event.result for event in events if isinstance(event, sgl.ToolReturned)]
    assert [result.value for result in results] == [3, None, 3]
    assert isinstance(results[1].error, ValueError)
    assert events[-1].row.tool_results == results  # type: ignore[union-attr]
    assert texts_of(events, sgl.Text) == {"step": "It is <tool 3."}


def test_async_programs_have_the_same_events(scripted: MakeScripted) -> None:
    @sgl.function
    async def program(s: sgl.State) -> None:
        s += sgl.user("How much?", tools=[add])
        await s.use_tools("step")

    async def kinds() -> list[str]:
        events = [event async for event in program.astream()]
        return [type(event).__name__ for event in events if not isinstance(event, sgl.Text)]

    scripted(script_of({"step": [CALLS[0], "3"]}))
    expected = ["ToolCalled", "Filled", "ToolReturned", "Filled", "End"]
    assert asyncio.run(kinds()) == expected


def test_text_before_a_call_is_shown_and_the_call_is_not(scripted: MakeScripted) -> None:
    said = "I <tool> look it up: <tool"
    for form in (HERMES, LLAMA3, MISTRAL, MISTRAL_ARGS):
        call = write_calls(CALLS[:1], form)
        before = "" if form.whole else said
        whole = before + call
        for end in range(len(whole) + 1):
            certain = text_before_calls(whole[:end], form)
            assert before.startswith(certain)
            assert end < len(whole) or certain == before
        assert text_before_calls(said, form) in (said, said.removesuffix("<tool"))
    assert text_before_calls("<|python_tag|>", LLAMA3) == ""
    assert text_before_calls("{ no call", LLAMA3) == "{ no call"


def test_a_stream_that_switches_says_so(scripted: MakeScripted) -> None:
    @sgl.function
    def grows(s: sgl.State) -> None:
        s += "go" + sgl.gen("long")
        s["long"]
        s += " on" + sgl.gen("count", int, until=".")

    async def read() -> list[Any]:
        return [event async for event in grows.astream()]

    scripted({"long": "a" * 40, "count": "1"}, capacity=30)
    with Scripted({"long": "b" * 40, "count": "2"}, name="big") as big:
        sgl.current_model()._fallback = big
        for events in (list(grows.stream()), asyncio.run(read())):
            (at,) = [i for i, event in enumerate(events) if isinstance(event, sgl.Switched)]
            assert events[at].model == "big"
            assert "holds 30" in events[at].reason
            # What was not yet read when the switch came is not told any more.
            assert ("a" * 40).startswith(texts_of(events[:at], sgl.Text).get("long", ""))
            assert texts_of(events[at:], sgl.Text) == {"long": "b" * 40, "count": "2"}
            assert events[-1].row["count"] == 2
            assert events[-1].row.model["name"] == "big"
