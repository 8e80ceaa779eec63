"""What rows leave behind: no reference cycles, so that memory goes when the results go."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator

import pytest

import sglite as sgl


@sgl.function
def static(s: sgl.State, doc: str) -> None:
    s += doc + sgl.gen("a") + "\n" + sgl.gen("b") + sgl.gen("c")


@sgl.function
def reading(s: sgl.State, doc: str) -> None:
    s += doc + sgl.gen("a")
    s += s["a"] + sgl.gen("b")


@sgl.function
def branching(s: sgl.State, doc: str) -> None:
    s += sgl.user(doc)
    one, other = s.fork(2)
    for branch in (one, other):
        branch += sgl.assistant(sgl.gen("a"))
    s.join([one, other])


@sgl.function
async def waiting(s: sgl.State, doc: str) -> None:
    s += doc + sgl.gen("a")
    s += await s.read("a") + sgl.gen("b")


@pytest.fixture(autouse=True)
def model() -> Iterator[None]:
    with sgl.use(sgl.Model("scripted", backend="scripted")):
        yield


@pytest.fixture
def no_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def ours() -> Counter[str]:
    """How many objects of this package's classes there are."""
    every = (type(each) for each in gc.get_objects())
    # A class may have anything under that name.
    return Counter(k.__qualname__ for k in every if str(k.__module__).startswith("sglite"))


@pytest.mark.usefixtures("no_collection")
@pytest.mark.parametrize("program", [static, reading, branching, waiting])
def test_the_memory_of_a_row_goes_with_its_result(
    program: sgl.Function,
) -> None:
    rows = [{"doc": f"d{i}"} for i in range(20)]
    program.run_batch(rows)  # what is remembered of the program itself
    before = ours()
    results = program.run_batch(rows)
    assert ours() - before
    del results
    left = ours() - before
    assert not {kind: count for kind, count in left.items() if count >= len(rows)}
    assert not {"Run", "State"} & left.keys()


def test_what_a_finished_row_keeps_is_little() -> None:
    """The collector walks all results again and again: its time goes with their objects."""
    rows = [{"doc": f"d{i}"} for i in range(200)]
    static.run_batch(rows[:10])
    gc.collect()
    before = len(gc.get_objects())
    results = static.run_batch(rows)
    gc.collect()
    kept = (len(gc.get_objects()) - before) / len(results)
    # Three holes, each with a slot, a result, its usage and its variable; and the record of them.
    assert kept <= 20
