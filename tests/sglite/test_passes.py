"""No pass changes a token, and each does what it is for."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recorder import MakeScripted, Scripted

import sglite as sgl
from sglite.graphs.passes import PASSES
from sglite.language import ir


@sgl.function
def program(s: sgl.State, a: str, b: Any) -> Any:
    s += "x" + sgl.gen("first", int) + "" + "y" + "z" + a + sgl.gen("first", int)
    left, right = s.fork(2)
    left += "l" + "m" + sgl.gen("side") + "tail"
    right += f"{b}" + sgl.gen(stop="\n") + sgl.gen()
    s.join([left, right])
    third, fourth = s.fork(2)
    third += sgl.gen("deep", max_tokens=3)
    fourth += f"{third['deep']}!" + sgl.gen("late") + sgl.select("pick", ["a", f"{a}b"])
    with s.user():
        s += a
        s += "" + b
    s += sgl.assistant(s["side"][0], sgl.gen("end"))
    return fourth["late"]


def played(model: Scripted, what: Any, arguments: dict[str, Any]) -> tuple[Any, ...]:
    engine = model.engine
    for calls in (engine.segments, engine.opened):
        calls.clear()
    options = sgl.Options(seed=5, temperature=0.5)
    row = what.run(**arguments, options=options, model=model)
    steps = [engine.steps(sequence) for sequence in engine.opened]
    return steps, row.variables, row.text(), row.ids, row.returned, row.messages()


@settings(deadline=None)
@given(st.sets(st.sampled_from(PASSES)), st.text(max_size=4), st.sampled_from(["", "b", "é "]))
def test_no_pass_changes_a_token(passes: set[str], a: str, b: str) -> None:
    with Scripted(None) as model:
        arguments = {"a": a, "b": b}
        wanted = played(model, program, arguments)
        graph = program.compile(passes=passes)
        assert graph.passes == tuple(name for name in PASSES if name in passes)
        assert played(model, graph, arguments) == wanted
        assert played(model, sgl.Graph.from_json(graph.to_json()), arguments) == wanted
        assert played(model, pickle.loads(pickle.dumps(graph)), arguments) == wanted


def test_an_argument_may_be_an_expression(scripted: MakeScripted) -> None:
    scripted()
    program = sgl.function(lambda s, x: s.__iadd__("a" + x).__iadd__(x))
    for passes in (PASSES, ()):
        row = program.compile(passes=passes).run(sgl.gen("g") + "b")
        assert row.text() == "a<g>b<g>b"


def test_fold_joins_the_texts_of_a_branch(scripted: MakeScripted) -> None:
    @sgl.function
    def texts(s: sgl.State) -> None:
        s += "a" + "b"
        branch = s.fork(1)[0]
        s += "c"
        branch += "d"
        s += "e"
        branch += "f" + sgl.gen("x")

    def literals(graph: sgl.Graph) -> list[tuple[int, str]]:
        return [(b, n.text) for b, n in graph.steps if isinstance(n, ir.Literal)]

    assert literals(texts.compile()) == [(0, "ab"), (0, "ce"), (1, "df")]
    assert len(literals(texts.compile(passes=["plan"]))) == 5


def test_release_closes_a_branch_after_its_last_use(scripted: MakeScripted) -> None:
    graph = program.compile(passes=["release"])
    released = [branch for branch, node in graph.steps if isinstance(node, ir.Release)]
    assert released == [1, 2, 3]  # 4 is read by what is returned
    engine = scripted()
    graph.run(a="a", b="b")
    root, *branches = engine.opened
    assert {*engine.closed[:3]} == {*branches[:3]}
    assert engine.closed[3:] == [root, branches[3]]


def test_a_released_branch_that_is_still_running_is_not_cut_off(scripted: MakeScripted) -> None:
    @sgl.function
    def slow(s: sgl.State) -> None:
        branches = s.fork(3)
        for branch in branches:
            branch += "a" + sgl.gen("x")
        s.join(branches)
        s += sgl.gen("y")

    scripted(delay=0.01)
    assert slow.compile().run()["x"] == ["<x>"] * 3


def test_passes_have_names() -> None:
    with pytest.raises(ValueError, match="unknown pass 'inline'; there are fold, release, plan"):
        program.compile(passes=["inline"])
    assert program.compile(passes="fold").passes == ("fold",)
