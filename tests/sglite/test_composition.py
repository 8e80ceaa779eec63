"""Patterns: put together, written by holes, and their parts as variables."""

from __future__ import annotations

import pickle
import re
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recorder import MakeScripted

import sglite as sgl
from sglite.grammars import Vocabulary, compose
from sglite.grammars.compose import compile_parts

BYTES = Vocabulary.from_tokens([bytes([b]) for b in range(256)] + [b"<end>"], [256], [256])


def takes(pattern: Any, text: str) -> bool:
    hole = sgl.gen("x", grammar=pattern)
    assert hole.constraint is not None
    matcher = compile_parts(hole.constraint.source, BYTES).matcher()
    return matcher.accept_tokens(list(text.encode())) and matcher.is_complete


@dataclass
class Point:
    x: int
    y: int


@settings(deadline=None)
@given(st.text("yno ,", max_size=9))
def test_patterns_take_what_regular_expressions_take(text: str) -> None:
    pairs = {
        "yes|no+": sgl.one_of("yes", sgl.regex("no+")),
        "(y|n)(,(y|n))*": sgl.many(sgl.one_of("y", "n"), 1, separator=","),
        "((y|n)(,(y|n)){1,2})?": sgl.optional(sgl.many(sgl.one_of("y", "n"), 2, 3, separator=",")),
        "(y|n){0,3}": sgl.many(sgl.regex("[yn]"), 0, 3),
        "((y)(, y){0,1})?": sgl.many("y", 0, 2, separator=", "),
        "yn?o": "y" + sgl.optional("n") + "o",
        "": sgl.many("y", 0, 0, separator=","),
    }
    for expression, pattern in pairs.items():
        assert takes(pattern, text) == bool(re.fullmatch(expression, text)), expression


def test_parts_become_variables(scripted: MakeScripted) -> None:
    vote = sgl.one_of("yes", "no", name="vote") + sgl.optional(
        " because " + sgl.regex("[a-z]+", name="why")
    )

    @sgl.function
    def program(s: sgl.State) -> Any:
        for _ in range(2):
            s += "Shall we? " + sgl.gen("answer", grammar=vote) + ";"
        s += sgl.many(sgl.typed(Point, name="point"), 1, separator=", ")
        s += sgl.gen("when", grammar="in " + sgl.typed(int, name="year") + sgl.typed(Literal["!"]))
        return s["why"]

    script = {
        "answer": ["yes because so", "no"],
        "#1": '{"x": 1, "y": 2}, {"x": 3, "y": 4}',
        "when": "in 1905!",
    }
    scripted(script)
    row = program.run()
    assert row.returned is None
    assert (row["answer"], row.all("answer")) == ("no", ["yes because so", "no"])
    assert (row["vote"], row.all("vote")) == ("no", ["yes", "no"])
    assert row.all("why") == ["so", None]
    assert row["point"] == [Point(1, 2), Point(3, 4)]
    assert row["year"] == 1905
    assert row.meta("vote").text == "no"
    assert row.meta("year").text == "in 1905!"
    assert pickle.loads(pickle.dumps(row)).variables == row.variables
    for graph in (program.compile(), sgl.Graph.from_json(program.compile().to_json())):
        scripted(script)
        again = graph.run()
        assert again.returned is None
        assert again.all("vote") == ["yes", "no"]
        assert again["year"] == 1905
    assert again["point"] == [{"x": 1, "y": 2}, {"x": 3, "y": 4}]


def test_parts_in_branches_are_joined(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        branches = s.fork(["a", "b", "c"])
        for branch in (branches["a"], branches["c"]):
            branch += sgl.gen("x", grammar="<" + sgl.regex("[0-9]", name="n") + ">")
        s.join(branches)

    scripted({"x": ["<1>", "<2>"]})
    row = program.run()
    assert row["n"] == {"a": "1", "b": None, "c": "2"}
    assert row.all("n") == ["1", "2"]
    assert row["x"] == {"a": "<1>", "b": None, "c": "<2>"}


def test_the_same_name_in_several_places() -> None:
    one = sgl.one_of(sgl.regex("a", name="x"), sgl.regex("b", name="x"))
    assert [(c.name, c.many) for c in one.captures] == [("x", False)]
    two = sgl.capture("all", sgl.regex("a", name="x"), sgl.regex("b", name="x"))
    assert [(c.name, c.many) for c in two.captures] == [("all", False), ("x", True)]
    with pytest.raises(ValueError, match="'x' are of different types"):
        sgl.one_of(sgl.typed(int, name="x"), sgl.typed(bool, name="x"))
    with pytest.raises(ValueError, match="inside of the part"):
        sgl.capture("x", sgl.regex("a", name="x"))
    with pytest.raises(ValueError, match="has the name of the hole"):
        sgl.gen("x", grammar=sgl.regex("a", name="x"))


def test_parts_of_the_constraints_are_patterns(scripted: MakeScripted) -> None:
    think = compose.sequence(compose.text_until("</t>", name="thoughts"), "!")
    scripted({"x": "hm</t>!."})
    program = sgl.function(lambda s: s.__iadd__(sgl.gen("x", grammar=sgl.one_of(think) + ".")))
    assert program.run()["thoughts"] == "hm"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: sgl.one_of(3), "int cannot be part of a pattern"),
        (lambda: sgl.one_of("a", sgl.gen("x")), r"gen\('x'\) cannot be part of a pattern"),
        (lambda: sgl.typed(str), "free text"),
        (lambda: sgl.typed(3), "is not a type"),
        (lambda: sgl.regex(3), "got int"),  # type: ignore[arg-type]
        (lambda: sgl.regex("a", name=3), "name of a variable"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_pattern(wrong: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        wrong()
    with pytest.raises(ValueError, match="at least one"):
        sgl.one_of()
