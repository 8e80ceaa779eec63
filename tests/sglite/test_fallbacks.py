"""A run that its model cannot do begins anew on the fallback, and says so."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from recorder import Recorder, Scripted

import sglite as sgl
from sglite.runtime.engines.base import EventSink, SequenceId
from sglite.runtime.segment import Segment, SegmentFailed
from sglite.tools.formats import script_of


@sgl.function
def ask(s: sgl.State, text: str, reads: bool = False) -> str:
    s += text + sgl.gen("first")
    if reads:
        s["first"]
    s += " and " + sgl.gen("second")
    return "done"


@pytest.fixture
def there() -> Iterator[Scripted]:
    """The fallback: it answers everything."""
    with Scripted({"first": "far", "second": "away"}, name="there") as model:
        yield model
        assert sorted(model.engine.opened) == sorted(model.engine.closed)


@pytest.fixture
def here(there: Scripted) -> Iterator[Scripted]:
    """A small model with a fallback."""
    with Scripted({"first": "near", "second": "by"}, name="here", capacity=40) as model:
        model._fallback = there
        yield model
        assert sorted(model.engine.opened) == sorted(model.engine.closed)


def reason_of(row: sgl.Result) -> str:
    return str(row.model["fallback_from"]["reason"])


@pytest.mark.parametrize("reads", [False, True])
def test_what_fits_stays_and_what_does_not_goes(
    here: Scripted, reads: bool, caplog: pytest.LogCaptureFixture
) -> None:
    row = ask.run("short", reads, model=here)
    assert (row["first"], row.model) == ("near", {"name": "here", "path": None})
    assert not caplog.records
    long = "x" * 50
    row = ask.run(long, reads, model=here)
    assert row["first"] == "far"
    assert row["second"] == "away"
    assert row.returned == "done"
    assert row.text() == f"{long}far and away"
    assert row.model["name"] == "there"
    assert row.model["fallback_from"]["name"] == "here"
    assert "CapacityError" in reason_of(row)
    assert "holds 40" in reason_of(row)
    assert row.usage.prompt_tokens == len(long) + len(" and ")
    (record,) = caplog.records
    assert record.name == "sglite.fallback"
    assert record.levelno == logging.WARNING
    said = record.getMessage()
    assert "ask(), row 0, is run again on there: here cannot do it" in said
    assert "holds 40" in said


def test_every_way_to_run(here: Scripted) -> None:
    long = "x" * 50
    texts = ["short", long, "small", long]
    rows = [{"text": text, "reads": i > 1} for i, text in enumerate(texts)]
    expected = ["here", "there", "here", "there"]

    def names(results: Any) -> list[str]:
        return [row.model["name"] for row in sorted(results, key=lambda row: row.row)]

    assert names(ask.run_batch(rows, model=here)) == expected
    assert names(ask.run_batch(rows, model=here, order="completed", window=2)) == expected
    assert ask.start(long, model=here).result(5).model["name"] == "there"
    graph = ask.compile(reads=False)
    assert graph.run(long, model=here).text() == f"{long}far and away"
    assert sgl.Graph.from_json(graph.to_json()).run(long, model=here)["first"] == "far"

    @sgl.function
    async def ask_async(s: sgl.State, text: str, reads: bool) -> None:
        s += text + sgl.gen("first")
        if reads:
            assert await s.read("first") in ("far", "near")
        s += sgl.gen("second")

    async def main() -> None:
        for program in (ask, ask_async):
            assert (await program.arun(long, True, model=here)).model["name"] == "there"
            assert (await program.arun(long, False, model=here)).model["name"] == "there"
            assert names(await program.arun_batch(rows, model=here)) == expected

    asyncio.run(main())
    assert ask_async.run(long, True, model=here).model["name"] == "there"
    assert names(ask_async.run_batch(rows, model=here)) == expected


def test_many_rows_at_once(here: Scripted) -> None:
    rows = ask.run_batch([{"text": "x" * (10 + i % 80)} for i in range(300)], model=here)
    for i, row in enumerate(rows):
        fits = 10 + i % 80 + len("near and ") <= 40
        assert row.row == i
        assert row.model["name"] == ("here" if fits else "there")
        assert row["second"] == ("by" if fits else "away")


def test_branches_go_with_their_run(here: Scripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        s += "ask" + sgl.gen("first")
        branches = s.fork(3)
        for i, branch in enumerate(branches):
            branch += "x" * 40 * (i == 1) + sgl.gen("second")
        s.join(branches)

    row = program.run(model=here)
    assert row["first"] == "far"
    assert row["second"] == ["away"] * 3
    assert row.model["name"] == "there"


class Broken(Recorder):
    """An engine that fails while it works."""

    failure: Exception = RuntimeError("the accelerator is gone")

    def submit(self, sequence: SequenceId, segment: Segment, sink: EventSink) -> None:
        sink(SegmentFailed(0, self.failure))


def broken(failure: Exception, fallback: sgl.Model) -> sgl.Model:
    model = sgl.Model("broken", backend="scripted")
    model.close()
    model._adopt(Broken(name="broken"))
    model.engine.failure = failure  # type: ignore[attr-defined]
    model.closed = False
    model._fallback = fallback
    return model


class BothBroken(Recorder):
    """An engine in whose step two sequences fail."""

    def submit(self, sequence: SequenceId, segment: Segment, sink: EventSink) -> None:
        self.sinks = [*getattr(self, "sinks", []), sink]
        if len(self.sinks) == 2:
            for number, each in enumerate(self.sinks):
                each(SegmentFailed(0, sgl.CapacityError(f"no room for {number}")))


def test_branches_that_fail_side_by_side(there: Scripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        branches = s.fork(2)
        for branch in branches:
            branch += sgl.gen("first")
        s.join(branches)
        s["first"]

    with Scripted({}) as model:
        model._adopt(BothBroken(name="both"))
        model._fallback = there
        row = program.run(model=model)
        assert row["first"] == ["far", "far"]
        assert "no room for 0" in reason_of(row)


def test_an_engine_that_fails(there: Scripted) -> None:
    for failure in (RuntimeError("gone"), sgl.ModelError("gone"), MemoryError("gone")):
        with broken(failure, there) as model:
            row = ask.run("x", model=model)
            assert row["first"] == "far"
            assert "gone" in reason_of(row)
    with sgl.Model("ended", backend="scripted") as model:
        model._fallback = there
        model.engine.shutdown()
        assert ask.run("x", model=model)["first"] == "far"


def test_a_model_that_does_not_load(there: Scripted, caplog: pytest.LogCaptureFixture) -> None:
    calls = []

    @sgl.function
    def program(s: sgl.State) -> None:
        calls.append(sgl.current_model().name)
        s += sgl.user("hello") + sgl.assistant(sgl.gen("first", think="</a>"))

    with sgl.Model("/no/such.gguf", fallback=there) as model:
        assert "/no/such.gguf does not load, there answers" in caplog.text
        row = program.run(model=model)
        assert row["first"] == "far"
        assert "does not load" in reason_of(row)
        assert calls == ["there"], "the body is not executed for a model that is not there"
        assert model.stats() == {}
        with pytest.raises(sgl.ModelError, match="does not load"):
            model.vocabulary  # noqa: B018
    with pytest.raises(ValueError, match="threads"):
        sgl.Model("smollm2", threads=-1, fallback=there)
    with pytest.raises(TypeError, match="fallback= takes a Model"):
        sgl.Model("smollm2", fallback="gpt")  # type: ignore[arg-type]


def test_a_model_without_turns(there: Scripted) -> None:
    with Scripted({}, name="base", chat_template=None) as base:
        base._fallback = there
        row = sgl.function(lambda s: s.__iadd__(sgl.user("hello"))).run(model=base)
        assert row.model["name"] == "there"
        assert row.messages() == [{"role": "user", "content": "hello"}]


def test_what_is_the_programs_own_stays(here: Scripted, there: Scripted) -> None:
    def fails(s: sgl.State) -> None:
        s += sgl.gen("first")
        raise KeyError("mine")

    def own_capacity(s: sgl.State) -> None:
        raise sgl.CapacityError("mine")

    def another_run(s: sgl.State) -> None:
        with Scripted({}, name="tiny", capacity=3) as tiny:
            ask.run("long", model=tiny)

    bodies = [
        (fails, "mine"),
        (own_capacity, "mine"),
        (another_run, "holds 3"),
        (lambda s: s.__iadd__(sgl.gen("x", regex="(")), "never closed|group"),
        (lambda s: s.__iadd__(sgl.gen("first", int)), "first"),
        (lambda s: s["nothing"], "no variable"),
        (lambda s: s.__iadd__(sgl.gen("x", temperature=-1.0)), "temperature"),
    ]
    for body, message in bodies:
        with pytest.raises(sgl.ProgramError, match=message):
            sgl.function(body).run(model=here)
    assert not there.engine.opened


@pytest.mark.parametrize("reads", [False, True])
def test_deadlines_and_cancellation_hold_for_both(here: Scripted, reads: bool) -> None:
    held = threading.Event()
    there = Scripted({"first": lambda _: held.wait(5) or "x"}, name="slow")
    here._fallback = there
    with pytest.raises(sgl.DeadlineError):
        ask.run("x" * 50, reads, model=here, timeout=0.2)
    run = ask.start("x" * 50, reads, model=here)
    while not there.engine.opened:
        pass
    run.cancel()
    with pytest.raises(sgl.CancelledError):
        run.result(5)
    held.set()
    there.close()
    with pytest.raises(sgl.DeadlineError):
        sgl.function(lambda s: threading.Event().wait(0.2) or s["x"]).run(model=here, timeout=0.1)


def test_a_cancelled_run_does_not_begin_anew(here: Scripted, there: Scripted) -> None:
    failed, cancelled = threading.Event(), threading.Event()

    @sgl.function
    def program(s: sgl.State) -> None:
        s += "x" * 50 + sgl.gen("first")
        try:
            s["first"]
        except sgl.ProgramError:
            failed.set()
            cancelled.wait(5)
            raise

    run = program.start(model=here)
    assert failed.wait(5)
    run.cancel()
    cancelled.set()
    with pytest.raises(sgl.CancelledError):
        run.result(5)
    assert not there.engine.opened


def test_tools_do_not_run_twice(here: Scripted, there: Scripted) -> None:
    ran = []

    @sgl.tool
    def pay(amount: int) -> str:
        """Pays."""
        ran.append(amount)
        return "x" * 400

    @sgl.function
    def program(s: sgl.State) -> None:
        s += sgl.user("Pay!", tools=[pay])
        s += sgl.assistant(sgl.gen("call", tools=[pay], tool_choice="required"))
        s.run_tools(s["call"])
        s += sgl.assistant(sgl.gen("first"))

    here.engine._capacity = 800
    here.engine._script = {"call": script_of({"call": sgl.ToolCall("pay", {"amount": 3})})["call"]}
    with pytest.raises(sgl.ProgramError, match="holds 800") as caught:
        program.run(model=here)
    assert ran == [3]
    assert not there.engine.opened
    assert "not run again on there: its tools have done something" in caught.value.__notes__[0]


def test_a_fallback_of_a_fallback(here: Scripted, caplog: pytest.LogCaptureFixture) -> None:
    with Scripted({}, name="middle", capacity=60) as middle, Scripted({}, name="last") as last:
        here._fallback, middle._fallback = middle, last
        assert ask.run("x" * 45, model=here).model["name"] == "middle"
        caplog.clear()
        row = ask.run("x" * 100, model=here)
        assert row.model["name"] == "last"
        assert row.model["fallback_from"]["name"] == "middle"
        assert row.model["fallback_from"]["fallback_from"]["name"] == "here"
        assert len(caplog.records) == 2
        last.engine._capacity = 70
        with pytest.raises(sgl.ProgramError, match="holds 70") as caught:
            ask.run("x" * 100, model=here)
        assert any("run on last, as middle could not" in note for note in caught.value.__notes__)
        (row,) = ask.run_batch([{"text": "x" * 100}], model=here, errors="return")
        assert row.error is not None
        assert row.model["name"] == "last"
        last.close()
        with pytest.raises(sgl.ProgramError, match="holds 60") as caught:
            ask.run("x" * 100, model=here)
        assert "not run again on last: that model is closed" in caught.value.__notes__[0]


def test_programs_in_a_body_take_the_fallback(here: Scripted) -> None:
    @sgl.function
    def outer(s: sgl.State) -> list[str]:
        s += "x" * 50 + sgl.gen("first")
        return [sgl.current_model().name, ask.run("y" * 50).model["name"]]

    assert outer.run(model=here).returned == ["there", "there"]

    @sgl.function
    def calls(s: sgl.State) -> str:
        return str(ask.run("y" * 50).model["name"])

    row = calls.run(model=here)
    assert row.returned == "there"
    assert row.model["name"] == "here"


def test_traces_and_journals_keep_who_answered(here: Scripted, tmp_path: Path) -> None:
    row = ask.run("x" * 50, model=here)
    assert sgl.replay(row.trace()).model == row.model
    path = tmp_path / "journal.jsonl"
    rows: list[dict[str, Any]] = [{"text": "short"}, {"text": "x" * 50}]
    models = [row.model for row in ask.run_batch(rows, model=here, journal=path)]
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert "model" not in lines[1]
    assert lines[2]["model"] == models[1]
    opened = len(here.engine.opened)
    again = ask.run_batch(rows, model=here, journal=path)
    assert [row.model for row in again] == models
    assert len(here.engine.opened) == opened, "rows of a fallback are done"


def test_a_journal_may_get_another_fallback(
    here: Scripted, there: Scripted, tmp_path: Path
) -> None:
    path = tmp_path / "journal.jsonl"
    rows = [{"text": "short"}, {"text": "x" * 50}]
    here._fallback = None
    first = ask.run_batch(rows, model=here, journal=path, errors="return")
    assert [row.error is None for row in first] == [True, False]
    here._fallback = there
    again = ask.run_batch(rows, model=here, journal=path)
    assert [row.model["name"] for row in again] == ["here", "there"]


def test_cancelling_a_task_ends_what_goes_on_in_it(here: Scripted) -> None:
    ended = []

    @sgl.function
    async def program(s: sgl.State) -> None:
        s += "x" * 50 + sgl.gen("first")
        try:
            await s.read("first")
        finally:
            ended.append(sgl.current_model().name)

    async def main() -> None:
        for run in (program.arun(model=here), ask.arun("x" * 50, True, model=here)):
            begun = len(slow.engine.opened)
            task = asyncio.create_task(run)
            while len(slow.engine.opened) == begun:
                await asyncio.sleep(0.001)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    held = threading.Event()
    with Scripted({"first": lambda _: held.wait(5) or "x"}, name="slow") as slow:
        here._fallback = slow
        asyncio.run(main())
        held.set()
    assert ended == ["here", "slow"]
    assert sorted(slow.engine.opened) == sorted(slow.engine.closed)


@pytest.mark.model
def test_a_real_model_whose_pages_do_not_hold_a_prompt(smollm2_path: Path) -> None:
    @sgl.function
    def count(s: sgl.State, n: int) -> None:
        s += " ".join(map(str, range(n))) + sgl.gen("next", max_tokens=4)

    with (
        sgl.Model(smollm2_path, kv_memory=1 << 28) as big,
        sgl.Model(smollm2_path, kv_memory=4 << 20, fallback=big) as small,
    ):
        rows = count.run_batch([{"n": n} for n in (3, 150, 5)], model=small)
        assert ["fallback_from" in row.model for row in rows] == [False, True, False]
        assert "tokens" in reason_of(rows[1])
        assert rows[1].ids == count.run(150, model=big).ids


def test_a_journal_of_a_model_that_does_not_load(there: Scripted, tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with sgl.Model("/no/such.gguf", fallback=there) as model:
        first = ask.run_batch([{"text": "a"}], model=model, journal=path)
        opened = len(there.engine.opened)
        again = ask.run_batch([{"text": "a"}, {"text": "b"}], model=model, journal=path)
        assert len(there.engine.opened) == opened + 1
        assert [row.model for row in again] == [first[0].model] * 2
    with pytest.raises(sgl.JournalError, match="name"):
        ask.run_batch([{"text": "a"}], model=there, journal=path)


def test_successors_with_threads_of_their_own_starve_no_batch(there: Scripted) -> None:
    """Bodies that wait on the fallback, while others of the batch wait on the first model."""
    with broken(RuntimeError("late"), there) as model:

        @sgl.function
        def program(s: sgl.State, i: int) -> str:
            s += f"{i}" + sgl.gen("first")
            if sgl.current_model() is there:
                s["first"]
            return sgl.current_model().name

        rows = program.run_batch([{"i": i} for i in range(200)], model=model)
        assert {row.returned for row in rows} == {"there"}
        assert [row.text() for row in rows] == [f"{i}far" for i in range(200)]


@sgl.function
def mixed(s: sgl.State, text: str, reads: int, forks: int) -> str:
    s += text + sgl.gen("first")
    if reads:
        s["first"]
    branches = s.fork(forks)
    for i, branch in enumerate(branches):
        branch += "z" * (i * 17) + sgl.gen("second")
        if reads > 1:
            branch["second"]
    s.join(branches)
    s += "e" + sgl.gen("third")
    return sgl.current_model().name


def test_a_random_mix_is_answered_by_the_first_that_can() -> None:
    rng = random.Random(seed := random.randrange(2**32))
    print(f"seed {seed}")
    for _ in range(5):
        sizes = [rng.randint(20, 80), rng.randint(40, 120), 1 << 20]
        with (
            Scripted({}, name="last") as last,
            Scripted({}, name="middle", capacity=sizes[1]) as middle,
            Scripted({}, name="first", capacity=sizes[0]) as first,
        ):
            middle._fallback, first._fallback = last, middle
            rows = [
                {"text": "x" * rng.randint(1, 90), "reads": rng.randint(0, 2), "forks": 3}
                for _ in range(rng.randint(1, 60))
            ]
            for row, asked in zip(mixed.run_batch(rows, model=first), rows, strict=True):
                text = str(asked["text"])
                root, longest = len(f"{text}<first>e"), len(f"{text}<first>") + 2 * 17
                fits = [max(root, longest) <= size for size in sizes]
                name = ("first", "middle", "last")[fits.index(True)]
                assert row.model["name"] == row.returned == name
                assert row.text() == f"{text}<first>e<third>"
                assert row["second"] == ["<second>"] * 3
        for model in (first, middle, last):
            assert sorted(model.engine.opened) == sorted(model.engine.closed)
