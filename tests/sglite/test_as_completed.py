"""Rows as they are completed: lazily, within the window, and never more than that in memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from recorder import MakeScripted

import sglite as sgl
from sglite.running import workers as workers_module


@sgl.function
def static(s: sgl.State, doc: str) -> None:
    s += doc + sgl.gen("x")


@sgl.function
def reading(s: sgl.State, doc: str) -> None:
    s += doc + sgl.gen("x")
    s["x"]


@sgl.function
async def coroutine(s: sgl.State, doc: str) -> None:
    s += doc + sgl.gen("x")
    await s.read("x")


PROGRAMS = pytest.mark.parametrize(
    "program", [static, reading, coroutine], ids=["static", "reading", "coroutine"]
)


@PROGRAMS
def test_rows_are_taken_as_results_are(scripted: MakeScripted, program: sgl.Function) -> None:
    asked = 0

    def rows() -> Iterator[dict[str, str]]:
        nonlocal asked
        while True:  # endless: whoever takes too many does not end
            yield {"doc": f"d{asked}"}
            asked += 1

    scripted()
    results = program.run_batch(rows(), order="completed", window=8)
    assert asked == 0
    seen = [next(results).row for _ in range(50)]
    assert len(set(seen)) == 50
    assert asked <= 50 + 8
    results.close()  # type: ignore[attr-defined]
    time.sleep(0.02)
    asked_then = asked
    time.sleep(0.02)
    assert asked == asked_then


def test_what_is_done_first_comes_first(scripted: MakeScripted) -> None:
    go_on = threading.Event()

    @sgl.function
    def program(s: sgl.State, n: int) -> None:
        s += sgl.gen("x")
        if s["x"] and n == 0:
            inner.run()

    @sgl.function
    def inner(s: sgl.State) -> None:
        s += sgl.gen("y")
        s["y"]
        assert go_on.wait(10)

    scripted()
    results = program.run_batch(({"n": n} for n in range(20)), order="completed", window=20)
    assert next(results).row in range(20)
    go_on.set()
    assert len([*results]) == 19


def test_a_row_that_waits_holds_nobody_up(scripted: MakeScripted) -> None:
    go_on = threading.Event()

    @sgl.function
    def program(s: sgl.State, n: int) -> None:
        s += sgl.gen("x")
        s["x"]
        if n == 0:
            assert go_on.wait(10)

    scripted(delay=0.001)
    results = program.run_batch([{"n": n} for n in range(10)], order="completed", window=10)
    # While the body of row 0 computes nobody else begins; those that wait go on.
    first = next(results).row
    go_on.set()
    assert sorted([first, *(row.row for row in results)]) == list(range(10))


@PROGRAMS
def test_failures_are_kept_to_the_end(scripted: MakeScripted, program: sgl.Function) -> None:
    def answer(text: str) -> str:
        if text in ("d2", "d4"):
            raise ValueError("no")
        return "x"

    scripted({"x": answer})
    rows = [{"doc": f"d{i}"} for i in range(6)]
    results = program.run_batch(rows, order="completed")
    assert sorted(next(results).row for _ in range(4)) == [0, 1, 3, 5]
    with pytest.raises(sgl.BatchError, match="2 of 6 rows failed") as caught:
        next(results)
    assert sorted(row.row for row in caught.value.rows) == [2, 4]
    returned = program.run_batch(rows, order="completed", errors="return")
    assert sorted(row.row for row in returned if row.error) == [2, 4]


@PROGRAMS
def test_progress_says_rate_reuse_and_time_left(
    scripted: MakeScripted, capsys: pytest.CaptureFixture[str], program: sgl.Function
) -> None:
    scripted()
    program.run_batch([{"doc": "d"}] * 30, progress=True)
    shown = capsys.readouterr().err
    assert f"{program.__name__}: 100%" in shown
    assert "30/30" in shown
    assert "row/s" in shown
    assert "reused=0%" in shown


def test_reading_rows_use_a_bounded_number_of_threads(scripted: MakeScripted) -> None:
    most = 0

    @sgl.function
    def program(s: sgl.State, doc: str) -> None:
        nonlocal most
        s += doc + sgl.gen("x")
        s["x"]
        most = max(most, threading.active_count())

    scripted(delay=0.0001)
    before = threading.active_count()
    rows = program.run_batch([{"doc": "d"}] * 1000, window=1000)
    assert len(rows) == 1000
    assert most <= before + workers_module.MAX_WORKERS + 1


def test_wrong_settings_are_refused(scripted: MakeScripted) -> None:
    scripted()
    with pytest.raises(ValueError, match="order"):
        static.run_batch([], order="random")  # type: ignore[call-overload]
    assert [*static.run_batch([], order="completed")] == []
