"""What goes wrong in other front ends for structured generation, and does not here."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from recorder import MakeScripted

import sglite as sgl
from sglite.runtime.segment import Gen


def test_an_error_is_raised_where_the_program_is_run(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        s += sgl.gen("x")
        raise KeyError("mine")

    scripted()
    with pytest.raises(sgl.ProgramError, match="mine") as error:
        program.run()
    assert isinstance(error.value.__cause__, KeyError)


def test_a_read_after_a_failure_raises_and_does_not_wait(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        s += sgl.gen("x")
        for _ in range(2):
            with pytest.raises(sgl.ProgramError, match="only 0 answers"):
                s["x"]
        with pytest.raises(sgl.ProgramError, match="only 0 answers"):
            s += "more" + sgl.gen("y")

    scripted({"x": []})
    with pytest.raises(sgl.ProgramError, match="only 0 answers"):
        program.run()


def test_unnamed_holes_are_different_holes(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        s += sgl.gen() + sgl.gen()
        for branch in s.fork(2):
            branch += sgl.gen() + sgl.gen("x")

    engine = scripted()
    program.run()
    keys = [step.key for _, segment in engine.segments for step in segment.steps
            if isinstance(step, Gen)]  # fmt: skip
    assert len(keys) == len(set(keys)) == 6


def test_join_keeps_the_parents_variable_and_the_order(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        s += sgl.gen("x")
        branches = s.fork(3)
        branches[2] += sgl.gen("x") + sgl.gen("y")
        branches[0] += sgl.gen("y")
        s.join(branches)

    scripted({"x": ["parent", "third"], "y": ["first", "third"]})
    row = program.run()
    assert row["x"] == [None, None, "third"]
    assert row["y"] == ["first", None, "third"]
    assert row.all("x") == ["parent", "third"]


def test_arguments_may_have_the_names_of_options(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State, n: int, stop: str, temperature: str) -> None:
        s += f"{n}{stop}{temperature}"

    scripted()
    assert program.run(n=1, stop="!", temperature="hot").text() == "1!hot"
    assert program.compile().run(1, "!", temperature="hot").text() == "1!hot"


def test_a_body_runs_once_for_each_row_and_once_to_compile(scripted: MakeScripted) -> None:
    calls = []

    @sgl.function
    def program(s: sgl.State, x: str) -> None:
        calls.append(1)
        s += "prefix " + x + sgl.gen("y")

    scripted()
    program.run_batch([{"x": "a"}] * 5)
    assert len(calls) == 5
    graph = program.compile()
    graph.run_batch([{"x": "a"}] * 5)
    assert len(calls) == 6


def test_an_exception_closes_the_turns_that_it_leaves(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        for turn in (s.system, s.user, s.assistant, s.tool_result):
            try:
                with turn():
                    s += "begun"
                    raise ValueError("mine")
            except ValueError:
                pass
        s += sgl.user("next") + sgl.tool_result("found")
        with s.role("tool"):
            s += "more"

    scripted()
    roles = [message["role"] for message in program.run().messages()]
    assert roles == ["system", "user", "assistant", "tool", "user", "tool", "tool"]


def test_an_exception_in_a_branch_closes_everything(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        s += "a" + sgl.gen("x")
        for i, branch in enumerate(s.fork(3)):
            inner = branch.fork(["p", "q"])
            inner["p"] += sgl.gen("y")
            if i == 1:
                raise ValueError("mine")

    engine = scripted()
    with pytest.raises(sgl.ProgramError, match="mine"):
        program.run()
    assert len(engine.opened) == 1 + 3 + 2 + 2


def test_a_failing_row_loses_no_other(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State, x: int) -> None:
        s += f"{1 / x}" + sgl.gen("y")

    scripted()
    rows = program.run_batch([{"x": 1}, {"x": 0}, {"x": 2}], errors="return")
    assert [row.error is None for row in rows] == [True, False, True]
    compiled = program.compile(x=2).run_batch([{}, {}])
    assert [row.text() for row in compiled] == ["0.5<y>", "0.5<y>"]


def test_graphs_hold_no_threads(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        for branch in s.fork(8):
            branch += sgl.gen("x")

    scripted(delay=0.001)
    before = threading.active_count()
    most = []
    rows: Any = ({} for _ in range(20) if not most.append(threading.active_count()))  # type: ignore[func-returns-value]
    program.compile().run_batch(rows)
    assert max(most) <= before + 1  # the engine's own


@pytest.mark.parametrize("names", [[], ["a", "a"], "ab", [1], 0, True, 1.5, None])
def test_fork_takes_numbers_and_names(scripted: MakeScripted, names: Any) -> None:
    scripted()
    with pytest.raises(sgl.ProgramError, match="number of branches, at least 1, or different"):
        sgl.function(lambda s: s.fork(names)).run()


def test_what_a_program_can_ask_about_itself(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        s += sgl.user("q")
        with s.assistant():
            s += sgl.gen("x")
        assert s.messages() == [
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": "<x>"},
        ]
        meta = s.meta("x")
        assert (meta.tokens, meta.cached, meta.forced, meta.finish) == (3, 0, 0, "eos")
        assert len(meta.logprobs) == 3
        assert 0 <= meta.seconds < 5

    scripted()
    program.run()
