"""Batches end, whatever happens: code runs once for each row, and no row waits for ever."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from typing import Any

import pytest
from recorder import MakeScripted

import sglite as sgl

executed: Counter[str] = Counter()


@sgl.function
def static(s: sgl.State, doc: str) -> None:
    executed[doc] += 1
    s += doc + sgl.gen("x") + sgl.gen("y")


@sgl.function
def reading(s: sgl.State, doc: str) -> None:
    executed[doc] += 1
    s += doc + sgl.gen("x")
    s["x"]
    branches = s.fork(2)
    for branch in branches:
        branch += sgl.gen("y")
        branch["y"]


@sgl.function
async def coroutine(s: sgl.State, doc: str) -> None:
    executed[doc] += 1
    s += doc + sgl.gen("x")
    await s.read("x")
    s += sgl.gen("y")


def at_once(program: sgl.Function, rows: Any) -> list[sgl.Result]:
    return program.run_batch(rows, errors="return", window=64)


def completed(program: sgl.Function, rows: Any) -> list[sgl.Result]:
    return [*program.run_batch(rows, errors="return", order="completed", window=64)]


def in_loop(program: sgl.Function, rows: Any) -> list[sgl.Result]:
    async def main() -> list[sgl.Result]:
        return await program.arun_batch(rows, errors="return", window=64)

    return asyncio.run(main())


WAYS = pytest.mark.parametrize("way", [at_once, completed, in_loop])
PROGRAMS = pytest.mark.parametrize("program", [static, reading, coroutine])


@WAYS
@PROGRAMS
def test_code_runs_exactly_once_for_each_row(
    scripted: MakeScripted, program: sgl.Function, way: Any
) -> None:
    scripted()
    executed.clear()
    rows = way(program, [{"doc": f"d{i}"} for i in range(150)])
    assert len(rows) == 150
    assert executed == Counter(f"d{i}" for i in range(150))


@WAYS
@PROGRAMS
def test_a_dead_engine_leaves_no_row_waiting(
    scripted: MakeScripted, program: sgl.Function, way: Any
) -> None:
    def answer(text: str) -> str:
        if text.startswith("d70"):
            threading.Thread(target=engine.shutdown).start()
            threading.Event().wait(0.05)
        return "x"

    engine = scripted({"x": answer})
    rows = way(program, [{"doc": f"d{i}"} for i in range(150)])
    assert len(rows) == 150
    failed = [row for row in rows if row.error is not None]
    assert len(failed) >= 70
    causes = {type(row.error.__cause__) for row in failed if row.error is not None}
    assert causes <= {sgl.CancelledError, sgl.ModelError}
