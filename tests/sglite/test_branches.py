"""Forks and joins: branches stand on their own, and nothing of the parent is lost."""

from __future__ import annotations

import pytest
from recorder import MakeScripted

import sglite as sgl


def test_branches_share_the_text_and_part_ways(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        s += "Tips" + sgl.gen("plan") + ":"
        branches = s.fork(2)
        for i, branch in enumerate(branches):
            branch += f" {i} " + sgl.gen("tip")
        assert [branch["tip"] for branch in branches] == ["one", "two"]
        assert branches[1].text() == "Tips<plan>: 1 two"
        assert branches[0]["plan"] == "<plan>"
        s += " end"

    engine = scripted({"tip": ["one", "two"]})
    row = program.run()
    root, first, second = engine.opened
    assert engine.forked == [(root, first), (root, second)]
    assert row.text() == "Tips<plan>: end"
    assert "tip" not in row


def test_fork_before_any_text(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        a, b = s.fork(2)
        a += "a" + sgl.gen("x")
        b += "b" + sgl.gen("x")
        s.join([a, b])

    engine = scripted({"x": ["1", "2"]})
    assert program.run()["x"] == ["1", "2"]
    assert engine.forked == []
    assert len(engine.opened) == 2


def test_branches_that_nobody_reads_are_run_all_the_same(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        for branch in s.fork(3):
            inner = branch.fork(1)[0]
            inner += sgl.gen("deep")

    scripted()
    assert program.run().usage.decoded_tokens == 3 * len("<deep>")


def test_join_aligns_and_keeps_what_the_parent_had(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        s += sgl.gen("x")
        branches = s.fork(3)
        branches[0] += sgl.gen("x") + sgl.gen("only")
        branches[2] += sgl.gen("x") + sgl.gen("x")
        assert s["x"] == "parent"
        s.join(branches)
        assert s["x"] == ["b0", None, "b2 again"]
        s += sgl.gen("after")

    scripted({"x": ["parent", "b0", "b2", "b2 again"]})
    row = program.run()
    assert row["x"] == ["b0", None, "b2 again"]
    assert row["only"] == ["<only>", None, None]
    assert row.all("x") == ["parent", "b0", "b2 again"]
    assert row.variables == {
        "x": ["b0", None, "b2 again"],
        "only": ["<only>", None, None],
        "after": "<after>",
    }
    assert row.meta("only").name == "only"


def test_joins_inside_of_branches_come_along(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        branches = s.fork(2)
        inner = branches[0].fork(2)
        for branch in inner:
            branch += sgl.gen("x")
        branches[0].join(inner)
        branches[1] += sgl.gen("x")
        s.join(branches)
        assert s["x"] == [["1", "2"], "3"]

    scripted({"x": ["1", "2", "3"]})
    row = program.run()
    assert row["x"] == [["1", "2"], "3"]
    assert row.all("x") == ["1", "2", "3"]


def test_join_refuses_foreign_branches(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        branch = s.fork(1)[0]
        s.join([branch.fork(1)[0]])

    scripted()
    with pytest.raises(sgl.ProgramError, match="this same state"):
        program.run()


@pytest.mark.parametrize("n", [0, -1, "two"])
def test_fork_takes_a_number_of_branches(scripted: MakeScripted, n: int) -> None:
    scripted()
    with pytest.raises(sgl.ProgramError, match="at least 1"):
        sgl.function(lambda s: s.fork(n)).run()


def test_fork_inside_of_a_turn(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        s += sgl.user("go")
        with s.assistant():
            branches = s.fork(2)
            for branch in branches:
                branch += sgl.gen("draft")
            s += "none"
        branches[0] += sgl.user("again") + sgl.assistant(sgl.gen("reply"))
        with pytest.raises(sgl.ProgramError, match=r"inside of user\(\)"), branches[1].user():
            branches[1] += sgl.assistant("no")
        texts.append(branches[0].text())

    texts: list[str] = []
    scripted()
    row = program.run()
    assert row.messages()[1] == {"role": "assistant", "content": "none"}
    assert texts == [
        "<|im_start|>user\ngo<|im_end|>\n<|im_start|>assistant\n<draft><|im_end|>\n"
        "<|im_start|>user\nagain<|im_end|>\n<|im_start|>assistant\n<reply><|im_end|>\n"
    ]


def test_programs_inside_of_programs(scripted: MakeScripted) -> None:
    @sgl.function
    def ask(s: sgl.State, what: str) -> str:
        s += f"{what}?" + sgl.gen("answer")
        value: str = s["answer"]
        return value.upper()

    @sgl.function
    def program(s: sgl.State) -> list[str]:
        s += "Q: " + ask("why") + "!"
        return [ask(s, "who"), s.call(ask, what="when")]

    engine = scripted({"answer": ["a", "b", "c"]})
    row = program.run()
    assert row.text() == "Q: why?a!who?bwhen?c"
    assert row.returned == ["B", "C"]
    assert row.all("answer") == ["a", "b", "c"]
    assert len(engine.opened) == 1
    with pytest.raises(TypeError, match="what"):
        ask()
