"""Deadlines, cancellation, handles: whatever a body waits for, it ends, and closes everything."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest
from recorder import MakeScripted

import sglite as sgl
from sglite.running import handle as handle_module
from sglite.running.workers import Workers


@sgl.function
def endless(s: sgl.State) -> None:
    while True:
        s += sgl.gen("x")
        s["x"]


@sgl.function
def static(s: sgl.State, doc: str = "") -> None:
    s += doc + sgl.gen("x") + sgl.gen("y")


def test_a_deadline_ends_a_body_that_reads(scripted: MakeScripted) -> None:
    scripted(delay=0.001)
    started = time.monotonic()
    with pytest.raises(sgl.DeadlineError, match=r"timeout=0.05 seconds") as caught:
        endless.run(timeout=0.05)
    assert isinstance(caught.value, sgl.ProgramError)
    assert 0.04 < time.monotonic() - started < 2
    with pytest.raises(sgl.DeadlineError):
        endless.run(options=sgl.Options(timeout=0.02))
    with pytest.raises(sgl.DeadlineError):
        list(endless.stream(timeout=0.02))


def test_a_deadline_ends_what_waits_for_a_slow_hole(scripted: MakeScripted) -> None:
    held = threading.Event()

    @sgl.function
    def reads(s: sgl.State) -> None:
        s += sgl.gen("x")
        s["x"]

    scripted({"x": lambda _: held.wait(5) or "x"})
    for program in (reads, static):
        started = time.monotonic()
        with pytest.raises(sgl.DeadlineError, match=r"at gen\('x'\)"):
            program.run(timeout=0.05)
        assert time.monotonic() - started < 2
    rows = static.run_batch([{"doc": "a"}] * 5, errors="return", timeout=0.05)
    assert all(isinstance(row.error, sgl.DeadlineError) for row in rows)
    held.set()


def test_a_deadline_that_is_kept_changes_nothing(scripted: MakeScripted) -> None:
    scripted()
    assert static.run(timeout=30)["y"] == "<y>"
    for wrong in (0, -1, float("nan")):
        with pytest.raises(ValueError, match="timeout"):
            static.run(timeout=wrong)


def test_a_deadline_ends_an_async_body_that_waits_for_something_else(
    scripted: MakeScripted,
) -> None:
    @sgl.function
    async def program(s: sgl.State) -> None:
        s += sgl.gen("x")
        await asyncio.sleep(30)

    scripted()
    started = time.monotonic()
    with pytest.raises(sgl.DeadlineError):
        program.run(timeout=0.05)
    rows = program.run_batch([{}] * 3, errors="return", timeout=0.05)
    assert all(isinstance(row.error, sgl.DeadlineError) for row in rows)
    assert time.monotonic() - started < 5


def test_a_run_inside_of_a_run_ends_with_it(scripted: MakeScripted) -> None:
    @sgl.function
    def outer(s: sgl.State) -> None:
        endless.run()

    engine = scripted(delay=0.001)
    with pytest.raises(sgl.DeadlineError):
        outer.run(timeout=0.05)
    assert sorted(engine.closed) == sorted(engine.opened)


def test_a_started_run_has_a_result_and_can_be_cancelled(scripted: MakeScripted) -> None:
    engine = scripted(delay=0.001)
    run = static.start("doc ")
    assert run.result(timeout=5).text() == "doc <x><y>"
    assert run.done()
    assert run.result().text() == "doc <x><y>"
    run.cancel()  # of a run that has ended: nothing
    assert run.result()["x"] == "<x>"

    run = endless.start()
    with pytest.raises(TimeoutError, match="has not ended within"):
        run.result(timeout=0.02)
    assert not run.done()
    run.cancel()
    with pytest.raises(sgl.CancelledError):
        run.result(timeout=5)
    assert sorted(engine.closed) == sorted(engine.opened)
    with pytest.raises(TypeError, match="argument"):
        static.start(nonsense=1)


def test_more_runs_are_started_than_there_are_workers(
    scripted: MakeScripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handle_module, "workers", Workers(2))

    @sgl.function
    def nested(s: sgl.State, depth: int) -> int:
        s += sgl.gen("x")
        s["x"]
        if depth == 0:
            return 0
        return 1 + int(nested.start(depth - 1).result().returned)

    scripted(delay=0.0005)
    runs = [nested.start(4) for _ in range(6)]
    assert [run.result().returned for run in runs] == [4] * 6
    waiting = [endless.start() for _ in range(6)]
    for run in waiting:
        run.cancel()
    for run in waiting:
        with pytest.raises(sgl.CancelledError):
            run.result(timeout=5)


def test_an_interrupt_in_a_started_run_is_raised_where_it_is_asked_for(
    scripted: MakeScripted,
) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        s += sgl.gen("x")
        raise SystemExit(3)

    scripted()
    with pytest.raises(SystemExit):
        program.start().result()


def test_priority_is_an_argument_and_an_option(scripted: MakeScripted) -> None:
    engine = scripted()
    static.run(priority=3)
    static.run(options=sgl.Options(priority=2))
    static.run(options=sgl.Options(priority=2), priority=-1)
    static.run_batch([{}], priority=5)
    asyncio.run(static.arun(priority=6))
    assert engine.priorities == [3, 2, -1, 5, 6]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_in_a_batch_ends_all_of_it(
    scripted: MakeScripted, error: type[BaseException]
) -> None:
    @sgl.function
    def program(s: sgl.State, n: int) -> None:
        s += sgl.gen("x")
        branches = s.fork(2)
        for branch in branches:
            branch += sgl.gen("y")
            branch["y"]
        if n == 7:
            raise error

    engine = scripted(delay=0.0002)
    rows: Any
    for rows in (
        lambda: program.run_batch({"n": n} for n in range(500)),
        lambda: list(program.run_batch(({"n": n} for n in range(500)), order="completed")),
    ):
        with pytest.raises(error):
            rows()
        deadline = time.monotonic() + 5
        while len(engine.closed) < len(engine.opened) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert len(engine.opened) < 1000
