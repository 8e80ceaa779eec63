"""Reads are invisible: they change when steps are handed over, never what the steps are."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from recorder import MakeScripted, Recorder, user

import sglite as sgl
from sglite.running.lowering import hole_key
from sglite.runtime.segment import Append, Gen, Piece, Select

Action = tuple[str, str]

actions = st.lists(
    st.one_of(
        st.tuples(st.just("text"), st.text(max_size=5)),
        st.tuples(st.just("gen"), st.sampled_from("abc")),
        st.tuples(st.just("select"), st.sampled_from("abc")),
        st.tuples(st.just("special"), st.just("<|im_end|>")),
        st.tuples(st.just("turn"), st.sampled_from(["user", "assistant"])),
        st.tuples(st.just("fork"), st.sampled_from("ab")),
        st.tuples(st.just("read"), st.just("")),
    ),
    max_size=14,
)


def play(todo: list[Action], *, reads: bool) -> Callable[[sgl.State], None]:
    """A program that does what the list says; without reads it leaves them out."""

    def body(s: sgl.State) -> None:
        for what, argument in todo:
            if what == "text":
                s += argument
            elif what == "gen":
                s += sgl.gen(argument, max_tokens=3)
            elif what == "select":
                s += sgl.select(argument, ["x", "y"])
            elif what == "special":
                s += sgl.special(argument)
            elif what == "turn":
                s += sgl.role(argument, "said: ", sgl.gen("turn"))
                if reads:
                    s["turn"]
            elif what == "fork":
                for branch in s.fork(2):
                    branch += "in" + sgl.gen(argument)
                    if reads:
                        branch[argument]
            elif reads:
                for name in "abc":
                    if name in s:
                        s[name]

    return body


@given(actions)
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_reads_change_no_step(scripted: MakeScripted, todo: list[Action]) -> None:
    options = sgl.Options(seed=3)
    with_reads, without = scripted(), None
    row = sgl.function(play(todo, reads=True)).run(options=options)
    without = scripted()
    plain = sgl.function(play(todo, reads=False)).run(options=options)
    assert {tuple(with_reads.steps(s)) for s in with_reads.opened} == {
        tuple(without.steps(s)) for s in without.opened
    }
    assert row.text() == plain.text()
    assert row.ids == plain.ids


def test_text_between_two_holes_is_one_append(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        s += "a"
        s += "b" + sgl.gen("x")
        s += "c"
        s["x"]
        s += "d"
        s["x"]
        s += "e" + sgl.gen("y")
        s += "f"

    engine = scripted()
    row = program.run(options=sgl.Options(seed=0))
    assert [s for s in engine.steps() if isinstance(s, Append)] == [
        user("ab"),
        user("cde"),
        user("f"),
    ]
    assert row.text() == "ab<x>cde<y>f"
    assert bytes(row.ids) == row.text().encode()


def test_a_read_hands_over_up_to_the_last_hole(scripted: MakeScripted) -> None:
    seen: list[int] = []
    engine: Recorder

    @sgl.function
    def program(s: sgl.State) -> None:
        s += "a" + sgl.gen("x") + "b"
        seen.append(len(engine.segments))
        s["x"]
        seen.append(len(engine.segments))
        s["x"]
        seen.append(len(engine.segments))

    engine = scripted()
    program.run()
    assert seen == [0, 1, 1]
    assert [len(segment.steps) for _, segment in engine.segments] == [2, 1]


def test_without_reads_there_is_one_submission(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        for name in "abc":
            s += name + ": " + sgl.gen(name) + "\n"

    engine = scripted()
    program.run()
    assert len(engine.segments) == 1


def test_branches_carry_pending_text(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        s += "a" + sgl.gen("x") + "b"
        first, second = s.fork(2)
        first += "c" + sgl.gen("y")
        second += sgl.gen("y")
        s += "d" + sgl.gen("y")

    engine = scripted()
    program.run()
    root, first, second = engine.opened
    assert engine.texts(root) == ["a", "bd"]
    assert engine.texts(first) == ["bc"]
    assert engine.texts(second) == ["b"]


def test_special_tokens_stay_apart_from_text(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        s += "<|im_end|>" + sgl.special("<|im_end|>") + sgl.special("<|im_end|>") + "x"

    engine = scripted()
    row = program.run()
    special = Piece("<|im_end|>", "special")
    assert engine.steps() == [Append((Piece("<|im_end|>"), special, special, Piece("x")))]
    assert row.ids == (*b"<|im_end|>", 258, 258, *b"x")


def test_empty_text_is_no_step(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        s += ""
        s += "" + sgl.gen("x") + ""

    engine = scripted()
    program.run()
    assert [type(step) for step in engine.steps()] == [Gen]


def test_keys_say_what_a_hole_is(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        s += sgl.gen("x") + sgl.gen("y") + sgl.gen("x") + sgl.select("l", ["a"])
        for branch in s.fork(2) + s.fork(1):
            branch += sgl.gen("x")
        s += sgl.gen("x")

    def keys(seed: int, row: int) -> list[int]:
        engine = scripted()
        program.run(options=sgl.Options(seed=seed), row=row)
        steps = [step for s in engine.opened for step in engine.steps(s)]
        return [step.key for step in steps if isinstance(step, Gen | Select)]

    first = keys(1, 0)
    assert len(set(first)) == len(first) == 8
    assert keys(1, 0) == first
    assert not set(first) & set(keys(2, 0))
    assert not set(first) & set(keys(1, 1))
    assert first[0] == hole_key(1, 0, (), "x", 0)
    assert first[2] == hole_key(1, 0, (), "x", 1)
    assert all(0 <= key < 2**64 for key in first)


def test_run_repeats_a_row_of_a_batch(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State, doc: str) -> None:
        s += doc + sgl.gen("x")

    engine = scripted()
    rows = program.run_batch([{"doc": d} for d in "abcd"])
    batch = {engine.texts(s)[0]: engine.steps(s)[-1] for s in engine.opened}
    engine = scripted()
    again = program.run("c", row=2, options=sgl.Options(seed=rows[0].seed))
    assert engine.steps()[-1] == batch["c"]
    assert again.row == 2


def test_a_seed_is_drawn_and_recorded(scripted: MakeScripted) -> None:
    program = sgl.function(lambda s: None)
    scripted()
    seeds = {program.run().seed for _ in range(4)}
    assert len(seeds) == 4
    assert program.run(options=sgl.Options(seed=11)).seed == 11


@pytest.mark.parametrize("temperature", [None, 0.7])
def test_options_reach_the_holes(scripted: MakeScripted, temperature: float | None) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        s += sgl.gen("x", temperature=temperature) + sgl.gen("y", max_tokens=9, min_p=0.1)
        s += sgl.gen("j", json={"type": "boolean"}) + sgl.select("l", ["a"], temperature=2)

    engine = scripted()
    options = sgl.Options(temperature=0.5, top_k=40, priority=3)
    program.run(options=options)
    x, y, j, select = engine.steps()
    assert isinstance(x, Gen)
    assert isinstance(y, Gen)
    assert isinstance(j, Gen)
    assert x.sampling.temperature == (0.5 if temperature is None else temperature)
    assert (x.sampling.top_k, x.max_tokens, y.max_tokens, j.max_tokens) == (40, 128, 9, 512)
    assert (y.sampling.min_p, x.sampling.min_p) == (0.1, 0)
    assert isinstance(select, Select)
    assert select.sampling.temperature == 2
    assert engine.priorities == [3]
