"""Streams: the text as it comes, the values, and the row at the end."""

from __future__ import annotations

import pytest
from recorder import MakeScripted

import sglite as sgl


@sgl.function
def program(s: sgl.State, n: int) -> None:
    s += "go" + sgl.gen("long")
    s["long"]
    s += sgl.gen("count", int, until=".")
    for branch in s.fork(n):
        branch += sgl.gen("end")


def test_a_stream_has_every_character_and_value(scripted: MakeScripted) -> None:
    long = "ä" * 100
    scripted({"long": long, "count": "12"})
    events = list(program.stream(2))
    assert isinstance(events[-1], sgl.End)
    assert events[-1].row["count"] == 12
    texts = [e for e in events if isinstance(e, sgl.Text)]
    assert len([e for e in texts if e.name == "long"]) > 1
    assert "".join(e.text for e in texts if e.name == "long") == long
    filled = [e for e in events if isinstance(e, sgl.Filled)]
    assert [(e.name, e.value, e.branch) for e in filled] == [
        ("long", long, ()),
        ("count", 12, ()),
        ("end", "<end>", (0, 0)),
        ("end", "<end>", (0, 1)),
    ]
    assert events.index(filled[0]) > max(i for i, e in enumerate(events) if e in texts[:2])


def test_an_error_is_raised_from_the_stream(scripted: MakeScripted) -> None:
    scripted({"long": 1, "count": "many"})
    stream = program.stream(1)
    assert next(stream) == sgl.Text("long", "1")
    with pytest.raises(sgl.ProgramError, match=r"gen\('count'\)"):
        list(stream)
    with pytest.raises(TypeError, match="'n'"):
        program.stream()


def test_leaving_a_stream_cancels_the_run(scripted: MakeScripted) -> None:
    @sgl.function
    def endless(s: sgl.State) -> None:
        while True:
            s += sgl.gen("x")
            s["x"]

    engine = scripted(delay=0.001)
    for event in endless.stream():
        assert isinstance(event, sgl.Text)
        break
    assert engine.opened  # and the fixture checks that it is closed
