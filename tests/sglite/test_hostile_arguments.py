"""Arguments of the wrong kind are named where they were written."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import pytest
from recorder import MakeScripted

import sglite as sgl


@pytest.mark.parametrize("value", [1.5, "5", True])
def test_max_tokens_is_a_whole_number(value: Any) -> None:
    with pytest.raises(TypeError, match="max_tokens must be a whole number"):
        sgl.gen("x", max_tokens=value)
    with pytest.raises(TypeError, match="max_tokens must be a whole number"):
        sgl.Options(max_tokens=value)


@pytest.mark.parametrize("value", [0, -1])
def test_max_tokens_is_at_least_one(value: int) -> None:
    with pytest.raises(ValueError, match=f"max_tokens must be at least 1, got {value}"):
        sgl.gen("x", max_tokens=value)
    with pytest.raises(ValueError, match=f"max_tokens must be at least 1, got {value}"):
        sgl.Options(max_tokens=value)


def test_choices_are_a_list() -> None:
    for choices in ((c for c in "ab"), 5, "ab"):
        with pytest.raises(TypeError, match="choices is a list of texts"):
            sgl.select("x", choices)  # type: ignore[arg-type]


def test_lone_surrogates_are_refused_with_the_line(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State, text: str) -> None:
        s += sgl.user(text)  # here
        s += sgl.assistant(sgl.gen("x"))

    scripted()
    with pytest.raises(sgl.ProgramError, match=r"surrogate '\\udcff' at character 1") as caught:
        program.run(text="a\udcff")
    lines, start = inspect.getsourcelines(program.body)
    assert caught.value.line == start + next(i for i, t in enumerate(lines) if "# here" in t)
    for make in (
        lambda: sgl.gen("x", stop="\ud800"),
        lambda: sgl.gen("x", until=["a", "\ud800"]),
        lambda: sgl.select("x", ["a", "\ud800"]),
    ):
        with pytest.raises(ValueError, match="lone surrogate"):
            make()


def test_errors_of_batches_can_be_pickled(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State, n: int) -> None:
        s += "a" + sgl.gen("x")
        1 // n

    scripted()
    with pytest.raises(sgl.BatchError) as caught:
        program.run_batch([{"n": 1}, {"n": 0}])
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value)
    assert copy.rows[0]["x"] == caught.value.rows[0]["x"]
    assert copy.line == caught.value.line
