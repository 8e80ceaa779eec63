"""Retries on a real model: the same tokens where nothing is refused, and nothing computed twice."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel, Field

import sglite as sgl

pytestmark = pytest.mark.model

TEXT = "The board of the harbour meets on Monday from nine to eleven, in the old house. " * 4


@pytest.fixture(scope="module")
def small(smollm2_path: Path) -> Iterator[sgl.Model]:
    with sgl.Model(smollm2_path, kv_memory=1 << 26, prefix_cache=False) as model, sgl.use(model):
        yield model


class Refusing:
    """Refuses its first values."""

    def __init__(self, times: int) -> None:
        self.times = times

    def __call__(self, value: Any) -> Any:
        if self.times > 0:
            self.times -= 1
            raise ValueError("this is not what was asked for")
        return value


class Meeting(BaseModel):
    place: str = Field(max_length=24)
    start: int = Field(ge=0, le=24)


Program = Callable[[int, int], sgl.Function]


def in_lines(times: int, retries: int) -> sgl.Function:
    kind = Annotated[Meeting, AfterValidator(Refusing(times))]

    @sgl.function
    def program(s: sgl.State) -> None:
        s += f"{TEXT}\nAs JSON: " + sgl.gen("x", kind, retries=retries)
        s += "\nWho meets?" + sgl.gen("y", max_tokens=8)

    return program


def in_turns(times: int, retries: int) -> sgl.Function:
    kind = Annotated[Meeting, AfterValidator(Refusing(times))]

    @sgl.function
    def program(s: sgl.State) -> None:
        s += sgl.user(f"{TEXT}\nWrite that as JSON.")
        s += sgl.assistant("Here it is: " + sgl.gen("x", kind, retries=retries))
        s += sgl.user("Who meets?")
        s += sgl.assistant(sgl.gen("y", max_tokens=8))

    return program


OPTIONS = sgl.Options(temperature=0.8, seed=5)


@pytest.mark.parametrize("program", [in_lines, in_turns])
def test_a_first_value_that_is_taken_changes_no_token(small: sgl.Model, program: Program) -> None:
    plain = program(0, 0).run(options=OPTIONS)
    tried = program(0, 3).run(options=OPTIONS)
    assert (tried.ids, tried.text(), tried.usage) == (plain.ids, plain.text(), plain.usage)
    rows = program(0, 3).run_batch([{}] * 3, options=OPTIONS)
    assert rows[0].ids == plain.ids


@pytest.mark.parametrize("program", [in_lines, in_turns])
def test_what_was_wrong_is_gone_when_a_value_is_taken(small: sgl.Model, program: Program) -> None:
    row = program(2, 2).run(options=OPTIONS)
    plain = program(0, 0).run(options=OPTIONS)
    attempts = row.meta("x").attempts
    assert [attempt.errors for attempt in attempts] == [
        ("this is not what was asked for",),
        ("this is not what was asked for",),
        (),
    ]
    assert attempts[0].text == plain.meta("x").text, "the first is that of any hole"
    assert row.meta("x").text == attempts[-1].text
    text = row.text()
    before, after = text.split(attempts[-1].text)
    assert text.count("not accepted") == 0
    assert plain.text().startswith(before)
    tokens, value = small.vocabulary.tokens, row.meta("x").ids
    assert b"".join(tokens[i] for i in value).decode() == attempts[-1].text
    at = next(i for i in range(len(row.ids)) if row.ids[i : i + len(value)] == value)
    assert row.ids[: at - 1] == plain.ids[: at - 1]
    assert b"".join(tokens[i] for i in row.ids).decode().endswith(after)
    again = program(2, 2).run(options=OPTIONS)
    assert (again.ids, again.meta("x").attempts) == (row.ids, attempts)


@pytest.mark.parametrize("program", [in_lines, in_turns])
def test_the_prompt_is_computed_once(small: sgl.Model, program: Program) -> None:
    def computed(times: int) -> tuple[int, sgl.Result]:
        before = small.stats()["computed_tokens"]
        row = program(times, 2).run(options=OPTIONS)
        return small.stats()["computed_tokens"] - before, row

    without, plain = computed(0)
    prompt = plain.meta("x").attempts[0].usage.prompt_tokens
    assert prompt > 60
    needed, row = computed(2)
    attempts = row.meta("x").attempts
    written = [a.usage.decoded_tokens + a.usage.forced_tokens for a in attempts]
    told = sum(attempt.usage.prompt_tokens for attempt in attempts[1:])
    # The value that is taken is computed once more, where the prompt ends; each step anew begins
    # with the last id of what was there.
    least = sum(written) + told + written[-1] + prompt + (without - prompt - written[0])
    assert needed < least + 20 < least + prompt


def _by_three(value: int) -> int:
    if value % 3:
        raise ValueError(f"{value} is no multiple of three")
    return value


def test_rows_are_the_same_alone_and_together(small: sgl.Model) -> None:
    kind = Annotated[int, Field(ge=1, le=99), AfterValidator(_by_three)]

    @sgl.function
    def program(s: sgl.State, note: str) -> None:
        s += f"Lot {note}. Numbers from 1 to 99.\nNumber: " + sgl.gen("x", kind, retries=9)
        left, right = s.fork(2)
        left += "\nIn short:" + sgl.gen("y", max_tokens=6)
        right += "\nAnother: " + sgl.gen("x", kind, retries=9)
        s.join([left, right])

    notes = [{"note": f"number {number}"} for number in range(6)]
    options = sgl.Options(temperature=1.5, seed=5)
    rows = program.run_batch(notes, options=options, errors="return")
    good = [row for row in rows if row.error is None]
    assert {len(meta.attempts) for row in good for meta in row.metas("x")} > {1}
    for row in good:
        again = program.run(**notes[row.row], options=options, row=row.row)
        assert [meta.ids for meta in again.metas("x")] == [meta.ids for meta in row.metas("x")]
        assert (again.text(), again["y"], again.usage.decoded_tokens) == (
            row.text(),
            row["y"],
            row.usage.decoded_tokens,
        )


def test_a_model_is_not_held_up_by_a_slow_validator(small: sgl.Model) -> None:
    def slow(value: int) -> int:
        time.sleep(0.3)
        return value

    @sgl.function
    def program(s: sgl.State) -> None:
        s += "One plus one is" + sgl.gen("x", Annotated[int, AfterValidator(slow)], retries=1)

    started = time.monotonic()
    program.run_batch([{}] * 20)
    assert time.monotonic() - started < 3, "they are judged side by side"
