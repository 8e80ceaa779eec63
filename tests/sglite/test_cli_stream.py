"""What `sglite run --stream` prints of the events of a run."""

from __future__ import annotations

import pytest

import sglite as sgl
from sglite.cli.shown import show_stream
from sglite.running.stream import Filled, Retried, Switched, Text
from sglite.testing.plugin import MakeScripted


def test_lines_of_holes_at_the_same_time(capsys: pytest.CaptureFixture[str]) -> None:
    one, other = ("a", (0,)), ("b", (1,))
    show_stream(
        [
            Text(one[0], "  first ", one[1]),
            Text(other[0], "second", other[1]),
            Text(one[0], "  goes on \n", one[1]),
            Filled(other[0], "second", other[1]),
            Filled(one[0], "  first   goes on \n", one[1]),
            Filled("hidden", [1, "ä"]),
            Text("typed", "4"),
            Filled("typed", 4),
        ]
    )
    assert capsys.readouterr().out == 'a: first   goes on\nb: second\nhidden: [1, "ä"]\ntyped: 4\n'


def test_what_is_void(capsys: pytest.CaptureFixture[str]) -> None:
    show_stream(
        [
            Text("a", "5"),
            Retried("a", ("too small",)),
            Text("a", "6"),
            Switched("other", "it does not fit"),
            Text("a", "7"),
            Filled("a", 7),
        ]
    )
    shown = capsys.readouterr()
    assert shown.out == "a: 5 (refused)\na: 6\na: 7\n"
    assert shown.err == "it does not fit; other begins anew\n"


def test_a_program(sgl_scripted: MakeScripted, capsys: pytest.CaptureFixture[str]) -> None:
    @sgl.function
    def f(s):
        s += "x" + sgl.gen("n", int) + sgl.select("label", ["yes", "no"])
        s += sgl.capture("whole", sgl.typed(int, name="part"), " parts")
        return s["n"] + 1

    sgl_scripted({"n": 41, "label": "no", "whole": "3 parts"}, strict=False)
    show_stream(f.stream())
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["n: 41", "label: no"]
    assert lines[-1] == "returned: 42"
    assert {line.partition(":")[0] for line in lines} >= {"whole", "part"}


def test_an_error_ends_the_line(
    sgl_scripted: MakeScripted, capsys: pytest.CaptureFixture[str]
) -> None:
    @sgl.function
    def f(s):
        s += "x" + sgl.gen("a")
        s["a"]
        raise LookupError("nothing")

    sgl_scripted({"a": "text"})
    with pytest.raises(sgl.ProgramError, match="nothing"):
        show_stream(f.stream())
    assert capsys.readouterr().out == "a: text\n"
