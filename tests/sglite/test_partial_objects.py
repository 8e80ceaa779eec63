"""Objects that are still being written, as their type has them."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from datetime import date
from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, BaseModel, Field
from recorder import MakeScripted

import sglite as sgl
from sglite.running.partial import NOTHING, partial_value


class Place(BaseModel):
    name: str
    kind: Literal["city", "town"]
    since: date | None = None


class Visit(BaseModel):
    guest: str
    nights: int
    places: list[Place]
    by_day: dict[str, Place] = Field(default_factory=dict)
    note: str = "none"


@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int = 7
    tags: list[str] = field(default_factory=list)


WHOLE = {
    "guest": 'Ma\u00fcra "Q"',
    "nights": 31,
    "places": [
        {"name": "Oslo", "kind": "city", "since": "1048-01-02"},
        {"name": "Voss", "kind": "town", "since": None},
    ],
    "by_day": {"mon": {"name": "Bergen", "kind": "city", "since": None}},
    "note": "n",
}


def node(kind: Any) -> Any:
    return sgl.gen("x", kind)


def test_every_prefix_of_a_record_is_typed() -> None:
    text = json.dumps(WHOLE)
    last = None
    for end in range(1, len(text) + 1):
        value = partial_value(node(Visit), text[:end])
        assert value is not NOTHING
        assert isinstance(value, Visit)
        assert value.nights is None or value.nights in (3, 31)
        assert value.note in ("none", "", "n")
        for place in value.places or ():
            assert isinstance(place, Place)
            assert place.kind in ("city", "town", None)
            assert place.since in (date(1048, 1, 2), None)
        assert all(isinstance(place, Place) for place in value.by_day.values())
        last = value
    assert last == Visit.model_validate(WHOLE)
    early = partial_value(node(Visit), '{"guest": "Ma')
    assert (early.guest, early.nights, early.places, early.by_day) == ("Ma", None, None, {})


def test_other_types() -> None:
    point = partial_value(node(Point), '{"x": 3, ')
    assert point == Point(3)
    assert partial_value(node(list[int]), "[1, 2, ")[:1] == [1]
    assert partial_value(sgl.gen("x", json={"type": "object"}), '{"a": {"b": "c') == {
        "a": {"b": "c"}
    }
    assert partial_value(node(Point | int), "4") == 4
    assert partial_value(node(Visit), "") is NOTHING


def test_random_data_is_cut_anywhere() -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    rng = random.Random(seed)

    def data(depth: int) -> Any:
        kind = rng.randrange(7 if depth < 3 else 5)
        if kind == 5:
            return [data(depth + 1) for _ in range(rng.randrange(4))]
        if kind == 6:
            return {f"k{i}": data(depth + 1) for i in range(rng.randrange(4))}
        return [None, True, rng.randrange(1000), 'a\u00e4\n"', 1.5][kind]

    for _ in range(30):
        whole = {"a": data(0), "b": data(0)}
        text = json.dumps(whole)
        plain = sgl.gen("x", json={"type": "object"})
        for end in range(1, len(text)):
            value = partial_value(plain, text[:end])
            assert value is NOTHING or set(value) <= {"a", "b"}
        assert partial_value(plain, text) == whole


def test_a_stream_shows_the_record_as_it_grows(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        s += "Visit: " + sgl.gen("visit", Visit) + sgl.gen("free")

    scripted({"visit": WHOLE, "free": "x"})
    events = list(program.stream())
    partial = [e for e in events if isinstance(e, sgl.Partial)]
    assert partial
    assert {e.name for e in partial} == {"visit"}
    assert partial[-1].value == Visit.model_validate(WHOLE)
    filled = next(e for e in events if isinstance(e, sgl.Filled))
    assert filled.value == partial[-1].value
    assert events.index(partial[-1]) < events.index(filled)


def test_errors_as_events(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        s += sgl.gen("a") + sgl.gen("n", int)

    scripted({"n": "many"})
    with pytest.raises(sgl.ProgramError, match=r"gen\('n'\)"):
        list(program.stream())
    events = list(program.stream(errors="return"))
    assert isinstance(events[-2], sgl.Failed)
    assert isinstance(events[-1], sgl.End)
    assert events[-1].row.error is events[-2].error
    assert events[-1].row["a"] == "<a>"


def test_a_value_that_its_type_refuses_is_an_event_too(scripted: MakeScripted) -> None:
    def refuse(value: int) -> int:
        raise ValueError("never")

    @sgl.function
    def program(s: sgl.State, reads: bool) -> None:
        s += sgl.gen("n", Annotated[int, AfterValidator(refuse)]) + sgl.gen("a")
        if reads:
            s["n"]

    scripted()
    for reads in (False, True):
        events = list(program.stream(reads, errors="return"))
        assert not any(isinstance(event, sgl.Filled) and event.name == "n" for event in events)
        assert isinstance(events[-2], sgl.Failed)
        assert "its type refuses" in str(events[-2].error)
        with pytest.raises(sgl.ProgramError, match="its type refuses"):
            list(program.stream(reads))
