"""Graphs as JSON: they run without their source, and loading one trusts nothing of it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from recorder import MakeScripted

import sglite as sgl


@sgl.function
def ask(s: sgl.State, question: str) -> str:
    s += f"Q: {question}\nA:" + sgl.gen("answer", max_tokens=9, stop=f"\n{question[:2]}")
    value: str = s["answer"].strip()
    return value


@dataclass
class Visit:
    guest: str
    nights: int


@sgl.function
def visits(s: sgl.State, note: str) -> Any:
    s += note + sgl.gen("visit", Visit) + sgl.gen("schema", json={"type": "integer"})
    s += sgl.gen("kind", Literal[1, "b"]) + sgl.gen("yes", bool) + sgl.gen("any", json=bool)
    return s["visit"]


def test_types_of_a_loaded_graph(scripted: MakeScripted) -> None:
    script = {"visit": {"guest": "Ada", "nights": 2}, "schema": "7", "kind": "1", "yes": "true"}
    scripted(script)
    graph = visits.compile()
    assert graph.run("a")["visit"] == Visit("Ada", 2)
    text = graph.to_json()
    plain = sgl.Graph.from_json(text).run("a")
    assert plain["visit"] == {"guest": "Ada", "nights": 2} == plain.returned
    assert (plain["schema"], plain["kind"], plain["yes"]) == (7, 1, True)
    named = sgl.Graph.from_json(text, types={"Visit": Visit}).run("a")
    assert named["visit"] == Visit("Ada", 2)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d.update(version=99), "version 99"),
        (lambda d: d.pop("nodes"), "no nodes"),
        (lambda d: d["nodes"].append({"node": "System"}), "unknown node 'System'"),
        (lambda d: d["nodes"].append({"node": "Literal", "branch": 4, "text": "a"}), "branch 4"),
        (lambda d: d["nodes"].append({"node": "Literal", "text": 4}), "4 is no text"),
        (lambda d: d["nodes"].append({"node": "Literal", "txt": "a"}), "no 'txt'"),
        (lambda d: d["nodes"].append({"node": "Fork", "branches": 2, "first": 9}), "in order"),
        (
            lambda d: d["nodes"].append(
                {"node": "Insert", "value": {"Method": ["a", "format", {"tuple": []}]}}
            ),
            "unknown method of a text 'format'",
        ),
        (lambda d: d["nodes"].append({"node": "Insert", "value": {"Argument": ["q"]}}), "'q'"),
        (
            lambda d: d["nodes"].append(
                {"node": "Late", "primitive": "open", "name": "a", "arguments": []}
            ),
            "unknown primitive 'open'",
        ),
        (lambda d: d["nodes"].append({"node": "Gen", "name": "a", "parse": "os"}), "parser 'os'"),
        (lambda d: d["nodes"].append({"node": "RoleClose", "role": "user"}), "of its kind"),
        (lambda d: d["nodes"].append({"node": "Fork", "branches": 10**9}), "more than 100000"),
        (lambda d: d["nodes"].append({"node": "Insert", "value": {"Eval": ["1"]}}), "'Eval'"),
    ],
)
def test_a_text_that_is_no_graph(change: Any, said: str) -> None:
    data = json.loads(ask.compile().to_json())
    change(data)
    with pytest.raises(ValueError, match=said):
        sgl.Graph.from_json(json.dumps(data))


@sgl.function
def late(s: sgl.State, n: int, most: int = 5) -> Any:
    s += sgl.gen("a", int, max_tokens=n) + sgl.gen("b", Visit, max_tokens=most)
    s += sgl.gen("c", Literal["x", "y"], until=f"{n}")
    s += sgl.gen("d", grammar=sgl.one_of("x", sgl.regex("[0-9]", name="digit")), max_tokens=n)
    return s["a"]


def test_types_of_holes_with_late_options(scripted: MakeScripted) -> None:
    scripted({"d": "4", "b": {"guest": "Ada", "nights": 2}})
    graph = late.compile()
    row = late.run(4)
    with pytest.raises(ValueError, match="the type 'Visit' is not there"):
        sgl.Graph.from_json(graph.to_json())
    for each in (graph, sgl.Graph.from_json(graph.to_json(), types={"Visit": Visit})):
        again = each.run(4)
        assert again.text() == row.text()
        assert (again["a"], again["b"]) == (row["a"], Visit("Ada", 2))


def test_a_small_graph_makes_no_huge_text(scripted: MakeScripted) -> None:
    scripted()
    data = json.loads(ask.compile().to_json())
    doubled: Any = "aaaaaaaaaa"
    for _ in range(60):
        doubled = {"Method": [doubled, "replace", {"tuple": ["a", "aa"]}]}
    quoted: Any = "\\" * 100
    for _ in range(60):
        quoted = {"Format": [quoted, "r", ""]}
    for value in (
        doubled,
        quoted,
        {"Method": ["a", "ljust", {"tuple": [10**12]}]},
        {"Format": [1, "", ">1000000000000"]},
    ):
        data["nodes"] = [{"node": "Insert", "value": value}]
        with pytest.raises(sgl.ProgramError, match="long"):
            sgl.Graph.from_json(json.dumps(data)).run("q")


def test_texts_that_are_no_json_at_all() -> None:
    for text in ("", "[]", "[" * 100_000, '{"version": 1}', "3"):
        with pytest.raises(ValueError, match="not a graph"):
            sgl.Graph.from_json(text)
