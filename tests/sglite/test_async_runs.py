"""Runs in an event loop: the same values, no thread for each program, cancelled at once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from recorder import MakeScripted

import sglite as sgl


@sgl.function
def sync(s: sgl.State, doc: str) -> str:
    s += doc + ":" + sgl.gen("a")
    first = s["a"]
    s += sgl.gen("b")
    return f"{doc} {first} {s['b']}"


@sgl.function
async def coroutine(s: sgl.State, doc: str) -> str:
    s += doc + ":" + sgl.gen("a")
    first = await s.read("a")
    s += sgl.gen("b")
    return f"{doc} {first} {await s.read('b')}"


def rows_of(n: int) -> list[dict[str, str]]:
    return [{"doc": f"d{i}"} for i in range(n)]


@pytest.mark.parametrize("program", [sync, coroutine], ids=["sync", "async"])
def test_every_way_gives_the_same(scripted: MakeScripted, program: sgl.Function) -> None:
    scripted()
    rows = [*program.run_batch(rows_of(20))]
    expected = [(f"d{i}:<a><b>", f"d{i} <a> <b>", i) for i in range(20)]

    def seen(rows: list[sgl.Result]) -> list[Any]:
        return sorted(((r.text(), r.returned, r.row) for r in rows), key=lambda r: r[2])

    assert seen(rows) == expected
    assert seen([*program.run_batch(rows_of(20), order="completed")]) == expected
    assert program.run("d0").returned == "d0 <a> <b>"
    assert program.start("d0").result().returned == "d0 <a> <b>"

    async def generated() -> AsyncIterator[dict[str, str]]:
        for row in rows_of(20):
            await asyncio.sleep(0)
            yield row

    async def main() -> None:
        assert (await program.arun("d0")).returned == "d0 <a> <b>"
        assert seen(await program.arun_batch(rows_of(20), window=3)) == expected
        assert seen(await program.arun_batch(iter(rows_of(20)))) == expected
        assert seen(await program.arun_batch(generated())) == expected
        completed = program.arun_batch(generated(), order="completed", window=2)
        assert seen([row async for row in completed]) == expected
        alone = [event async for event in program.astream("d0")]
        assert isinstance(alone[-1], sgl.End)
        assert alone[-1].row.text() == "d0:<a><b>"
        assert [e for e in alone if isinstance(e, sgl.Filled)] == [
            sgl.Filled("a", "<a>"),
            sgl.Filled("b", "<b>"),
        ]

    asyncio.run(main())
    events = [*program.stream("d0")]
    assert [e.text for e in events if isinstance(e, sgl.Text)] == ["<a>", "<b>"]


def test_a_thousand_waiting_coroutines_hold_no_thread(scripted: MakeScripted) -> None:
    most = 0
    together = 0
    all_there = asyncio.Event()

    @sgl.function
    async def program(s: sgl.State, doc: str) -> None:
        nonlocal most, together
        s += doc + sgl.gen("x")
        together += 1
        if together == 1000:
            all_there.set()
        await all_there.wait()
        await s.read("x")
        most = max(most, threading.active_count())

    scripted()
    before = threading.active_count()
    rows = asyncio.run(program.arun_batch(rows_of(1000), window=1000))  # type: ignore[arg-type]
    assert len(rows) == 1000
    assert most <= before + 1  # the engine's


def test_a_read_without_await_is_an_error_that_says_so(scripted: MakeScripted) -> None:
    @sgl.function
    async def program(s: sgl.State) -> None:
        s += sgl.gen("x")
        s["x"]

    @sgl.function
    def inner(s: sgl.State) -> str:
        s += sgl.gen("y")
        return str(s["y"])

    @sgl.function
    async def outer(s: sgl.State) -> None:
        s += inner()

    scripted()
    with pytest.raises(sgl.ProgramError, match=r"await s\.read\('x'\)") as caught:
        program.run()
    assert caught.value.filename == __file__
    with pytest.raises(sgl.ProgramError, match=r"await s\.read\('y'\)"):
        outer.run()
    for read in (lambda s: s.read("x"), lambda s: s.wait()):

        @sgl.function
        def plain(s: sgl.State, read: Any) -> None:
            s += sgl.gen("x")
            read(s)

        with pytest.raises(sgl.ProgramError, match="plain def, which does not await"):
            plain.run(read)


def test_after_a_wait_everything_can_be_read(scripted: MakeScripted) -> None:
    @sgl.function
    async def program(s: sgl.State) -> tuple[Any, ...]:
        s += "t" + sgl.gen("x")
        branches = s.fork(2)
        for branch in branches:
            branch += sgl.gen("y")
        s.join(branches)
        await s.wait()
        return s["x"], s["y"], s.text(), s.meta("x").text

    scripted()
    assert program.run().returned == ("<x>", ["<y>", "<y>"], "t<x>", "<x>")


def test_programs_call_each_other_where_it_makes_sense(scripted: MakeScripted) -> None:
    @sgl.function
    def records(s: sgl.State) -> None:
        s += "r" + sgl.gen("r")

    @sgl.function
    async def asks(s: sgl.State, what: str) -> str:
        s += what + sgl.gen("a")
        return str(await s.read("a"))

    @sgl.function
    async def outer(s: sgl.State) -> str:
        s += records()
        return str(await asks(s, "q"))

    @sgl.function
    async def adds(s: sgl.State) -> None:
        s += asks("q")

    @sgl.function
    def calls(s: sgl.State) -> None:
        asks(s, "q")

    scripted()
    row = outer.run()
    assert (row.text(), row.returned) == ("r<r>q<a>", "<a>")
    with pytest.raises(sgl.ProgramError, match=r"write await asks\(s, \.\.\.\)"):
        adds.run()
    with pytest.raises(sgl.ProgramError, match="make the caller an async def"):
        calls.run()


def test_waiting_for_a_coroutine_inside_of_a_loop_is_refused(scripted: MakeScripted) -> None:
    scripted()

    async def main() -> None:
        with pytest.raises(TypeError, match=r"await coroutine\.arun\("):
            coroutine.run("d")
        with pytest.raises(TypeError, match=r"await coroutine\.arun_batch\("):
            coroutine.run_batch(rows_of(2))
        assert sync.run("d").returned == "d <a> <b>"  # blocks, as it says
        assert coroutine.start("d").result().returned == "d <a> <b>"

    asyncio.run(main())


@pytest.mark.parametrize("plain", [True, False])
def test_cancelling_the_task_cancels_the_run(scripted: MakeScripted, plain: bool) -> None:
    ended: list[BaseException] = []

    @sgl.function
    def endless(s: sgl.State) -> None:
        try:
            while True:
                s += sgl.gen("x")
                s["x"]
        except BaseException as error:
            ended.append(error)
            raise

    @sgl.function
    async def endless_too(s: sgl.State) -> None:
        try:
            while True:
                s += sgl.gen("x")
                await s.read("x")
        except BaseException as error:
            ended.append(error)
            raise

    engine = scripted(delay=0.001)
    program = endless if plain else endless_too

    async def main() -> None:
        task = asyncio.create_task(program.arun())
        while len(engine.segments) < 3:
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert engine.closed == engine.opened
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await program.arun()
        async for event in program.astream():
            assert isinstance(event, sgl.Text)
            break
        rows = program.arun_batch([{}] * 50, order="completed", window=5)
        task = asyncio.create_task(anext(rows))  # type: ignore[arg-type]
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert ended


def test_a_failing_row_loses_no_other(scripted: MakeScripted) -> None:
    @sgl.function
    async def program(s: sgl.State, doc: str) -> None:
        s += doc + sgl.gen("x")
        if doc == "d3":
            raise LookupError("of the user")
        if doc == "d5":
            raise asyncio.CancelledError
        await s.read("x")

    scripted()

    async def main() -> None:
        rows = await program.arun_batch([*rows_of(8), 3], errors="return")  # type: ignore[list-item]
        assert [row.row for row in rows if row.error] == [3, 5, 8]
        with pytest.raises(sgl.BatchError, match="2 of 8 rows failed, first row 3") as caught:
            await program.arun_batch(rows_of(8))
        assert len(caught.value.rows) == 8
        results = program.arun_batch(rows_of(8), order="completed")
        assert {(await anext(results)).row for _ in range(6)} == {0, 1, 2, 4, 6, 7}
        with pytest.raises(sgl.BatchError, match="2 of 8 rows failed"):
            await anext(results)

    asyncio.run(main())


def test_rows_that_fail_raise_their_own_error(scripted: MakeScripted) -> None:
    def rows() -> Iterator[dict[str, str]]:
        yield {"doc": "a"}
        raise OSError("disk gone")

    scripted()
    for program in (sync, coroutine):
        with pytest.raises(OSError, match="disk gone"):
            asyncio.run(program.arun_batch(rows()))  # type: ignore[arg-type]
    with pytest.raises(OSError, match="disk gone"):
        coroutine.run_batch(rows())


def test_the_model_in_use_is_that_of_the_submission(scripted: MakeScripted) -> None:
    scripted({"x": "inner"})

    @sgl.function
    async def inner(s: sgl.State) -> None:
        s += sgl.gen("x")

    @sgl.function
    async def outer(s: sgl.State) -> str:
        row = await inner.arun()
        return str(row["x"])

    outside = sgl.Model("scripted", backend="scripted", script={"x": "outer"})
    with outside:
        assert outer.run(model=outside).returned == "outer"
    assert outer.run().returned == "inner"
