"""A typed value in running text may have one space before it, which is not part of the value."""

from __future__ import annotations

import enum
import pickle
import re
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

import pytest
from recorder import MakeScripted

import sglite as sgl
from sglite.runtime.segment import Gen


class Size(enum.Enum):
    SMALL = "small"
    LARGE = "large"


VALUES = [
    (int, "-4", -4),
    (float, "1.5e3", 1500.0),
    (bool, "false", False),
    (Decimal, "0.10", Decimal("0.10")),
    (date, "2026-11-30", date(2026, 11, 30)),
    (UUID, "0" * 8 + "-0000-0000-0000-" + "0" * 12, UUID(int=0)),
    (Size, "large", Size.LARGE),
    (Literal["a", 3], "3", 3),
]


@pytest.mark.parametrize("space", ["", " "])
@pytest.mark.parametrize(("kind", "written", "value"), VALUES)
def test_the_space_is_allowed_and_no_part_of_the_value(
    scripted: MakeScripted, kind: Any, written: str, value: object, space: str
) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        s += "It is" + sgl.gen("x", kind) + "!"

    scripted({"x": space + written})
    row = program.run()
    assert row["x"] == value
    assert type(row["x"]) is type(value)
    assert row.text() == f"It is{space}{written}!"
    assert pickle.loads(pickle.dumps(row))["x"] == value


def may_have_space(scripted: MakeScripted, program: sgl.Function) -> bool:
    engine = scripted()
    program.run()
    hole = next(step for step in engine.steps() if isinstance(step, Gen) and step.name == "x")
    assert hole.constraint is not None
    return re.fullmatch(hole.constraint.source, " a") is not None


LETTER = sgl.gen("x", Literal["a", "b"])


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("word" + LETTER, True),
        ("one " + sgl.gen("y") + ":" + LETTER, True),
        (sgl.assistant("Answer:" + LETTER), True),
        ("word " + LETTER, False),
        ("word\n" + LETTER, False),
        ("" + LETTER, False),
        ("word" + sgl.gen("y") + LETTER, False),
        (sgl.assistant(LETTER), False),
        (sgl.special("<|im_end|>") + LETTER, False),
        ("word" + sgl.gen("x", Literal["a", " b"]), False),  # here a space is part of a value
        ("word" + sgl.gen("x", regex="a"), False),
    ],
)
def test_where_a_space_may_come(scripted: MakeScripted, content: Any, expected: bool) -> None:
    assert may_have_space(scripted, sgl.function(lambda s: s.__iadd__(content))) == expected


def test_reads_and_branches_do_not_change_it(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State, read: bool) -> None:
        s += sgl.gen("y") + "so"
        if read:
            s["y"]
        s += " it is"
        for branch in s.fork(2):
            if read:
                s["y"]
            branch += sgl.gen("x", int)
        s += sgl.gen("x", int)

    constraints = []
    for read in (False, True):
        engine = scripted()
        program.run(read=read)
        steps = [step for _, segment in engine.segments for step in segment.steps]
        constraints.append([s.constraint for s in steps if isinstance(s, Gen) and s.name == "x"])
    assert constraints[0] == constraints[1]
    assert [c.source[:2] for c in constraints[0] if c is not None] == [" ?"] * 3


@pytest.fixture(scope="module")
def small(smollm2_path: Path) -> Iterator[sgl.Model]:
    with sgl.Model(smollm2_path, kv_memory=1 << 28) as model:
        yield model


@pytest.mark.model
def test_the_small_model_writes_the_space(small: sgl.Model) -> None:
    program = sgl.function(lambda s: s.__iadd__("Two plus two equals" + sgl.gen("x", int)))
    row = program.run(model=small)
    assert row["x"] >= 0  # without the space it has to begin with something that needs none
    assert row.text() == f"Two plus two equals {row['x']}"
