"""Types of holes: exactly the texts of a type match, and their values come back."""

from __future__ import annotations

import enum
import json
import random
import re
import typing
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, Optional
from uuid import UUID, uuid4

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

import sglite as sgl
from sglite.language.types import json_type, quote, schema_type, value_type


class Colour(enum.Enum):
    RED = "red"
    DARK = "dark (grey)"
    NUMBER = 3


class Inner(BaseModel):
    when: date
    tags: list[str] = []


@dataclass
class Record:
    name: str
    inner: Inner
    size: int | None


class Typed(TypedDict):
    a: int
    b: Literal["x", "y"]


def pattern_of(annotation: Any) -> str:
    constraint = value_type(annotation).constraint
    assert constraint is not None
    assert constraint.kind == "regex"
    return constraint.source


def matches(annotation: Any, text: str) -> bool:
    return re.fullmatch(pattern_of(annotation), text) is not None


def parsed(annotation: Any, text: str) -> Any:
    parse = value_type(annotation).parse
    assert parse is not None
    assert matches(annotation, text)
    return parse(text)


@pytest.mark.parametrize(
    ("annotation", "strategy", "write"),
    [
        (int, st.integers(1 - 10**18, 10**18 - 1), str),
        (float, st.floats(allow_nan=False, allow_infinity=False), "{:.16e}".format),
        (bool, st.booleans(), lambda b: str(b).lower()),
        (date, st.dates(min_value=date(1000, 1, 1)), date.isoformat),
        (time, st.times().map(lambda t: t.replace(microsecond=0)), time.isoformat),
        (
            datetime,
            st.datetimes(min_value=datetime(1000, 1, 1)).map(lambda t: t.replace(microsecond=0)),
            datetime.isoformat,
        ),
        (UUID, st.uuids(), str),
        (Decimal, st.decimals(-(10**9), 10**9, places=3), lambda d: f"{d:f}"),
        (Colour, st.sampled_from(Colour), lambda c: str(c.value)),
        (Literal["a|b", "c", 4], st.sampled_from(["a|b", "c", 4]), str),
    ],
    ids=["int", "float", "bool", "date", "time", "datetime", "uuid", "decimal", "enum", "literal"],
)
def test_values_survive_text(annotation: Any, strategy: Any, write: Any) -> None:
    @given(strategy)
    def check(value: Any) -> None:
        assert parsed(annotation, write(value)) == value

    check()


@pytest.mark.parametrize(
    ("annotation", "texts"),
    [
        (int, ["", "01", "+1", "1.0", "-", " 1", "1e3", "1" * 19]),
        (float, ["", ".5", "5.", "1e", "nan", "inf", "--1", "1" * 18, "0." + "1" * 18, "1e0000"]),
        (Decimal, ["1e3", "1" * 18, "0." + "1" * 18]),
        (bool, ["True", "yes", ""]),
        (time, ["24:00:00", "7:00:00", "07:60:00"]),
        (UUID, [str(uuid4()).upper() + "0"]),
        (Colour, ["RED", "dark grey", ""]),
        (Literal["a.c"], ["abc", ""]),
    ],
)
def test_what_is_no_such_value_does_not_match(annotation: Any, texts: list[str]) -> None:
    assert not [text for text in texts if matches(annotation, text)]


def test_the_pattern_of_dates_is_exactly_the_calendar() -> None:
    pattern = re.compile(pattern_of(date))
    rng = random.Random(seed := random.randrange(2**32))
    print(f"seed {seed}")
    years = [
        1000,
        1100,
        1200,
        1900,
        2000,
        2023,
        2024,
        2100,
        9999,
        *rng.sample(range(1000, 9999), 20),
    ]
    for year in years:
        days = [date(year, 1, 1) + timedelta(n) for n in range(365)] + [date(year, 12, 31)]
        real = {day.isoformat() for day in days}
        written = [f"{year}-{m:02}-{d:02}" for m in range(14) for d in range(33)]
        assert {text for text in written if pattern.fullmatch(text)} == real


@given(st.text(), st.text())
def test_quoted_text_matches_itself_alone(text: str, other: str) -> None:
    assert re.fullmatch(quote(text), text)
    assert bool(re.fullmatch(quote(text), other)) == (text == other)


@pytest.mark.parametrize(
    ("annotation", "text", "value"),
    [
        (Inner, '{"when": "2024-02-29", "tags": ["a"]}', Inner(when=date(2024, 2, 29), tags=["a"])),
        (
            Record,
            '{"name": "n", "inner": {"when": "2024-02-29"}, "size": null}',
            Record("n", Inner(when=date(2024, 2, 29)), None),
        ),
        (Typed, '{"a": 1, "b": "x"}', {"a": 1, "b": "x"}),
        (list[int], "[1, 2]", [1, 2]),
        (dict[str, bool], '{"k": true}', {"k": True}),
        (tuple[int, str], '[1, "a"]', (1, "a")),
        (int | None, "null", None),
        (Optional[Colour], '"red"', Colour.RED),  # noqa: UP045 (users write it)
        (Annotated[int, Field(ge=3)], "3", 3),
    ],
)
def test_structures_are_json(annotation: Any, text: str, value: Any) -> None:
    made = value_type(annotation)
    assert made.constraint is not None
    assert made.parse is not None
    assert made.constraint.kind == "json_schema"
    jsonschema.validate(json.loads(text), json.loads(made.constraint.source))
    assert made.parse(text) == value
    assert made is value_type(annotation)  # derived once


class Base(typing.TypedDict, total=False):
    a: typing.Required[int]
    b: str


class Derived(Base):
    c: typing.NotRequired[list[Base]]
    d: Base | None
    e: Optional[dict[str, Derived]]  # noqa: UP045 (users write it)


@pytest.mark.parametrize("written_in", [Derived, list[Derived], Annotated[Derived, "x"]])
def test_typed_dicts_of_typing_keep_what_is_required(written_in: Any) -> None:
    made = value_type(written_in)
    assert made.constraint is not None
    assert made.parse is not None
    validator = jsonschema.Draft202012Validator(json.loads(made.constraint.source))
    base = {"a": 1, "b": "x"}
    good: list[dict[str, Any]] = [
        {"a": 1, "d": None, "e": None},
        {"a": 1, "b": "x", "c": [base, {"a": 2}], "d": base, "e": None},
        {"a": 1, "d": {"a": 3}, "e": {"k": {"a": 4, "d": None, "e": {}}}},
    ]
    bad: list[dict[str, Any]] = [
        {"d": None, "e": None},
        {"a": 1, "e": None},
        {"a": 1, "d": {"b": "x"}, "e": None},
        {"a": 1, "d": None, "e": {"k": {"a": 4}}},
        {"a": 1, "d": None, "e": None, "f": 1},
    ]
    many = written_in == list[Derived]
    for value in good:
        whole = [value] if many else value
        assert validator.is_valid(whole)
        assert made.parse(json.dumps(whole)) == whole
    for value in bad:
        assert not validator.is_valid([value] if many else value)


def test_properties_keep_the_order_in_which_they_were_declared() -> None:
    class Order(BaseModel):
        zebra: int
        apple: int

    made = value_type(Order)
    assert made.constraint is not None
    assert list(json.loads(made.constraint.source)["properties"]) == ["zebra", "apple"]


def test_a_type_leaves_no_room_for_other_properties() -> None:
    class Leaf(BaseModel):
        properties: int  # a field of that name is no keyword

    class Open(BaseModel, extra="allow"):
        leaves: dict[str, Leaf]

    class Tree(BaseModel):
        either: Leaf | Open
        many: list[Leaf]
        pair: tuple[Leaf, Leaf]
        again: Tree | None = None

    made = value_type(Tree)
    assert made.constraint is not None
    schema = json.loads(made.constraint.source)
    leaf = {"properties": 1}
    good = {
        "either": {"leaves": {"any": leaf}, "more": 1},
        "many": [leaf],
        "pair": [leaf, leaf],
        "again": {"either": leaf, "many": [], "pair": [leaf, leaf]},
    }
    validator = jsonschema.Draft202012Validator(schema)
    assert validator.is_valid(good)
    more = {"properties": 1, "more": 2}
    for bad in (
        {**good, "more": 1},
        {**good, "many": [more]},
        {**good, "pair": [leaf, more]},
        {**good, "either": {"leaves": {"any": more}}},
        {**good, "again": {**good, "more": 1}},
    ):
        assert not validator.is_valid(bad), bad


def test_text_is_free() -> None:
    assert value_type(str).constraint is None
    assert value_type(str).parse is None


def test_json_takes_types_and_schemas() -> None:
    assert json_type(int).constraint == json_type(int).constraint
    assert json_type(str).constraint is not None
    schema = {"type": "integer"}
    assert schema_type(schema).constraint == schema_type(json.dumps(schema)).constraint
    with pytest.raises(ValueError, match="not a JSON Schema"):
        schema_type("{")


class Unwritable(enum.Enum):
    A = (1, 2)


class Alike(enum.Enum):
    A = "1"
    B = 1


class Empty(enum.Enum):
    pass


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        ("a text", "not a type"),
        (3, "not a type"),
        (Unwritable, "no plain text form"),
        (Alike, "written alike"),
        (Empty, "no members"),
        (object(), "not a type"),
        (type("Plain", (), {}), "cannot be the type of a hole"),
        (Callable[[int], int], "cannot be the type of a hole: [^\n]*$"),
        (complex, r"complex cannot .* use tuple\[float, float\]"),
    ],
)
def test_what_is_no_type_is_refused_by_name(annotation: Any, message: str) -> None:
    with pytest.raises(TypeError, match=rf"gen\('x'\): .*{message}"):
        sgl.gen("x", annotation)
