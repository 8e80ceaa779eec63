"""The pieces of a program, before anything runs."""

from __future__ import annotations

from typing import Any

import pytest

import sglite as sgl
from sglite.language import ir
from sglite.runtime.segment import Constraint


def test_texts_and_holes_add_up_from_both_sides() -> None:
    hole = sgl.gen("x")
    assert ("a" + hole + "b").parts == ("a", hole, "b")
    assert (hole + hole).parts == (hole, hole)
    assert ("a" + (hole + "b") + ("c" + sgl.user("u"))).parts == (
        "a",
        hole,
        "b",
        "c",
        sgl.user("u"),
    )
    for wrong in (3, None, ["a"]):
        with pytest.raises(TypeError, match="cannot add"):
            hole + wrong
        with pytest.raises(TypeError, match="cannot add"):
            wrong + hole


def test_a_hole_takes_one_constraint() -> None:
    assert sgl.gen("x", int).constraint == Constraint("regex", r"-?(0|[1-9][0-9]{0,17})")
    assert sgl.gen("x", regex="a+").constraint == Constraint("regex", "a+")
    assert sgl.gen("x", json={"type": "null"}).constraint == Constraint(
        "json_schema", '{"type": "null"}'
    )
    assert sgl.gen("x", grammar='root ::= "a"').constraint == Constraint("grammar", 'root ::= "a"')
    lark = Constraint("grammar", 'start: "a"', (("format", "lark"), ("start", "start")))
    assert sgl.gen("x", grammar=lark).constraint == lark
    with pytest.raises(TypeError, match=r"2 constraints \(type, regex\)"):
        sgl.gen("x", int, regex="a")
    with pytest.raises(TypeError, match=r"2 constraints \(json, grammar\)"):
        sgl.gen("x", json={}, grammar="a")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"temperature": -1}, ValueError, "temperature"),
        ({"top_p": 0}, ValueError, "top_p"),
        ({"top_k": -1}, ValueError, "top_k"),
        ({"min_p": 2}, ValueError, "min_p"),
        ({"max_tokens": 0}, ValueError, "max_tokens"),
        ({"stop": ""}, ValueError, "stop="),
        ({"until": ["a", ""]}, ValueError, "until="),
        ({"regex": 3}, TypeError, "regex="),
        ({"grammar": 3}, TypeError, "grammar="),
        ({"json": "{"}, ValueError, "JSON Schema"),
        ({"json": [1]}, TypeError, "json= takes"),
        ({"name": 3}, TypeError, "name"),
        ({"name": ""}, TypeError, "name"),
        ({"max_new_tokens": 3}, TypeError, "max_new_tokens"),
    ],
)
def test_wrong_arguments_are_refused_where_they_are_written(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        sgl.gen(**{"name": "x", **arguments})


@pytest.mark.parametrize("choices", ["abc", [1, 2], [], ["a", "a"], ["a", ""]])
def test_select_takes_different_texts(choices: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"select\('l'\)"):
        sgl.select("l", choices)


def test_stops_may_be_one_or_many() -> None:
    assert sgl.gen("x", stop="\n", until=["a", "b"]).stop == ("\n",)
    assert sgl.gen("x", stop="\n", until=["a", "b"]).until == ("a", "b")
    assert sgl.gen("x", stop_ids=[1, 2]).stop_ids == (1, 2)


def test_turns_take_texts_and_holes() -> None:
    assert sgl.user("a", sgl.gen("x")) == ir.Turn("user", ("a", sgl.gen("x")))
    for turn in (sgl.user, sgl.system, sgl.assistant):
        with pytest.raises(TypeError, match="takes text"):
            turn(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="special token"):
        sgl.special("")


def test_a_hole_with_lists_is_made_once_as_long_as_they_say_the_same() -> None:
    choices = ["red", "blue"]
    one = sgl.select("color", choices)
    assert sgl.select("color", ["red", "blue"]) is one
    choices.append("green")
    assert sgl.select("color", choices).choices == ("red", "blue", "green")
    assert one.choices == ("red", "blue")
    assert sgl.gen("x", stop=["."]) is sgl.gen("x", stop=["."])
    assert sgl.gen("x", stop=["."]) is not sgl.gen("x", until=["."])
    assert sgl.gen("x", stop_ids=[1]) == sgl.gen("x", stop_ids=(1,))
