"""What a row tells about its run."""

from __future__ import annotations

import json

import pytest
from recorder import MakeScripted

import sglite as sgl


def test_a_name_used_again_keeps_every_value(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        for _ in range(3):
            s += sgl.gen("x") + " "

    scripted({"x": ["a", "b", "c"]})
    row = program.run()
    assert (row["x"], row.all("x")) == ("c", ["a", "b", "c"])
    assert [meta.text for meta in row.metas("x")] == ["a", "b", "c"]


def test_unnamed_holes_get_names_of_their_own(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        s += sgl.gen(stop="\n") + sgl.gen() + sgl.gen("#1")

    scripted({"#1": ["one\n", "mine"], "#2": "two"})
    row = program.run()
    assert row.text() == "onetwomine"
    assert row.all("#1") == ["one", "mine"]
    assert row["#2"] == "two"


def test_select_keeps_the_distribution(scripted: MakeScripted) -> None:
    program = sgl.function(lambda s: s.__iadd__(sgl.select("label", ["spam", "ham", "eggs"])))
    scripted({"label": {"ham": 3, "eggs": 1}})
    row = program.run()
    assert row["label"] == "ham"
    assert row.meta("label").distribution == {"spam": 0.0, "ham": 0.75, "eggs": 0.25}


def test_usage_timing_and_meta(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        s += "four" + sgl.gen("x", stop="!") + "five5"
        for branch in s.fork(2):
            branch += sgl.gen("y")

    engine = scripted({"x": "ab!c"}, delay=0.01)
    row = program.run()
    assert (row.usage.prompt_tokens, row.usage.decoded_tokens) == (4 + 2 * 5, 2 + 2 * 3)
    meta = row.meta("x")
    assert (meta.finish, meta.stop, meta.ids) == ("stop", "!", (97, 98))
    assert 0.01 <= row.timing.time_to_first_token < row.timing.total
    assert row.timing.total >= 0.03
    stats = engine.stats()
    assert (stats["prompt_tokens"], stats["decoded_tokens"], stats["steps"]) == (14, 8, 3)


def test_a_row_without_that_variable_says_what_it_has(scripted: MakeScripted) -> None:
    program = sgl.function(lambda s: s.__iadd__(sgl.gen("known")))
    scripted()
    row = program.run()
    assert "known" in row
    assert "other" not in row
    for read in (row.__getitem__, row.all, row.meta):
        with pytest.raises(KeyError, match="'known'"):
            read("other")
    assert repr(row) == "<Result row=0 known='<known>'>"


def test_a_failed_row_keeps_what_there_was_and_raises_for_the_rest(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State, ok: bool) -> None:
        s += "ab" + sgl.gen("x")
        s["x"]
        if not ok:
            raise ValueError("no")

    scripted()
    row = program.run_batch([{"ok": False}], errors="return")[0]
    assert "no" in repr(row)
    assert row.text() == "ab<x>"
    assert row.variables == {"x": row["x"]} == {"x": "<x>"}
    assert [row.meta("x")] == row.metas("x")
    for read in (lambda: row["other"], lambda: row.returned, lambda: row.ids):
        with pytest.raises(sgl.ProgramError, match="ValueError: no"):
            read()
    assert row.usage.prompt_tokens == 2  # what was computed was computed
    assert [type(node).__name__ for node in row.graph.nodes] == ["Literal", "Gen"]


def test_a_failed_row_has_the_holes_before_the_failure(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        s += sgl.user("Q:" + sgl.gen("a"))
        s += sgl.assistant("n" + sgl.gen("n", int) + "," + sgl.gen("n", int) + sgl.gen("late"))
        s += sgl.user("more")

    scripted({"n": ["1", "x"]})
    row = program.run_batch([{}], errors="return")[0]
    assert row.variables == {"a": "<a>"}
    assert (row.all("n"), [meta.text for meta in row.metas("n")]) == ([1], ["1"])
    assert row.text().endswith("assistant\nn1,")
    assert row.messages() == [
        {"role": "user", "content": "Q:<a>"},
        {"role": "assistant", "content": "n1,"},
    ]
    assert row.metas("late") == []
    for read in (lambda: row["n"], lambda: row.meta("n"), lambda: row["late"]):
        with pytest.raises(sgl.ProgramError, match="does not match") as caught:
            read()
        assert caught.value is row.error


def test_a_failed_row_has_what_its_branches_wrote(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        branches = s.fork(2)
        for branch in branches:
            branch += sgl.gen("x", int)
        s.join(branches)

    scripted({"x": ["1", "no"]})
    row = program.run_batch([{}], errors="return")[0]
    assert row.all("x") == [1]
    assert row.variables == {}
    with pytest.raises(sgl.ProgramError, match="does not match"):
        row["x"]


def test_a_hole_is_shown_shortly(scripted: MakeScripted) -> None:
    program = sgl.function(lambda s: s.__iadd__(sgl.gen("x") + sgl.gen("y")))
    scripted({"x": "long " * 20, "y": "1"})
    row = program.run()
    shown = f"{'long ' * 9}..."
    assert repr(row.meta("x")) == f"<hole 'x' {shown!r} finish='eos' 100 tokens>"
    assert repr(row.meta("y")) == "<hole 'y' '1' finish='eos' 1 token>"


def test_results_outlive_their_model(scripted: MakeScripted) -> None:
    program = sgl.function(lambda s: s.__iadd__("a" + sgl.gen("x")))
    engine = scripted()
    row = program.run()
    engine.shutdown()
    assert row.text() == "a<x>"
    with pytest.raises(sgl.ModelError):
        engine.open()


def test_the_graph_prints_as_a_tree_and_is_json(scripted: MakeScripted) -> None:
    @sgl.function
    def other(s: sgl.State) -> None:
        s += sgl.special("<|im_end|>")

    @sgl.function
    def program(s: sgl.State) -> None:
        s += "Long " * 20 + sgl.gen("n", int, max_tokens=4)
        with s.user():
            s += sgl.select("l", ["a", "b"])
        s += other()
        branches = s.fork(2)
        branches[0] += sgl.gen("x")
        s.join(branches)

    scripted()
    graph = program.run().graph
    lines = [line.split("  (line")[0] for line in str(graph).splitlines()]
    assert lines == [
        "text 'Long Long Long Long Long Long Long Long Long ...'",
        "gen('n'): regex '-?(0|[1-9][0-9]{0,17})'",
        "user()",
        "  select('l'): 'a, b'",
        "call of other",
        "  special('<|im_end|>')",
        "fork(2)",
        "├ branch 0",
        "│ gen('x')",
        "├ branch 1",
        "join: x",
    ]
    plain = json.loads(graph.to_json())
    assert plain["version"] == 1
    gen = plain["nodes"][1]
    assert (gen["node"], gen["name"], gen["options"]["max_tokens"]) == ("Gen", "n", 4)
    assert gen["place"][0] == __file__
    assert plain["nodes"][-2]["branch"] == 1
