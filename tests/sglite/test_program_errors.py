"""A failing program says what, where and why, and leaves nothing open."""

from __future__ import annotations

import inspect
import threading
from typing import Any

import pytest
from recorder import MakeScripted

import sglite as sgl
from sglite.errors import CancelledError


def line_of(program: sgl.Function, text: str) -> int:
    """The line of the source of `program` that contains `text`."""
    lines, start = inspect.getsourcelines(program.body)
    return start + next(i for i, line in enumerate(lines) if text in line)


def boom(text: str) -> str:
    raise KeyError("the tool broke")


def test_a_failing_hole_is_named_with_its_line(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        s += "first" + sgl.gen("a")
        s += "then" + sgl.gen("b")  # here
        s += sgl.gen("c")

    scripted({"b": boom})
    with pytest.raises(sgl.ProgramError, match=r"gen\('b'\).*the tool broke") as caught:
        program.run()
    assert caught.value.node == "gen('b')"
    assert caught.value.filename == __file__
    assert caught.value.line == line_of(program, "# here")
    assert isinstance(caught.value.__cause__, KeyError)


def test_a_read_raises_instead_of_hanging(scripted: MakeScripted) -> None:
    reached: list[str] = []

    @sgl.function
    def program(s: sgl.State) -> None:
        s += sgl.gen("a") + sgl.gen("b")
        reached.append(s["a"])
        s["b"]
        reached.append("after")

    scripted({"b": boom})
    with pytest.raises(sgl.ProgramError, match=r"gen\('b'\)"):
        program.run()
    assert reached == ["<a>"]


def test_a_swallowed_failure_still_fails_the_run(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        s += sgl.gen("a")
        try:
            s["a"]
        except sgl.ProgramError:
            s += "never mind"

    scripted({"a": boom})
    with pytest.raises(sgl.ProgramError, match="the tool broke"):
        program.run()


@pytest.mark.parametrize("reads", [False, True])
def test_an_exception_of_the_body_closes_every_sequence(
    scripted: MakeScripted, reads: bool
) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        s += "a" + sgl.gen("x")
        branches = s.fork(3)
        for branch in branches:
            branch += sgl.gen("y")
            if reads:
                branch["y"]
        raise ZeroDivisionError("of the user")  # here

    engine = scripted()
    with pytest.raises(sgl.ProgramError, match="ZeroDivisionError: of the user") as caught:
        program.run()
    assert caught.value.line == line_of(program, "# here")
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert len(engine.opened) == 4
    assert sorted(engine.closed) == sorted(engine.opened)


def test_the_line_is_the_users_also_below_our_frames(scripted: MakeScripted) -> None:
    def helper(s: sgl.State) -> None:
        s += 3  # type: ignore[arg-type]

    program = sgl.function(lambda s: helper(s))
    scripted()
    with pytest.raises(sgl.ProgramError, match=r"cannot add int.*str\(\)") as caught:
        program.run()
    assert caught.value.line == inspect.getsourcelines(helper)[1] + 1
    assert isinstance(caught.value.__cause__, TypeError)


def test_an_exception_inside_a_turn_closes_the_turn(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        try:
            with s.user():
                s += "half"
                raise RuntimeError("oops")
        except RuntimeError:
            s += sgl.assistant(sgl.gen("x"))

    scripted()
    row = program.run()
    assert row.messages() == [
        {"role": "user", "content": "half"},
        {"role": "assistant", "content": "<x>"},
    ]


def test_interrupting_a_run_closes_its_sequences(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        s += sgl.gen("x")
        s["x"]
        raise KeyboardInterrupt

    engine = scripted()
    with pytest.raises(KeyboardInterrupt):
        program.run()
    assert engine.closed == engine.opened != []


def test_a_dead_engine_fails_the_read(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        s += sgl.gen("a")
        s["a"]
        threading.Thread(target=engine.shutdown).start()
        s += sgl.gen("wait") + sgl.gen("never")
        s["never"]

    engine = scripted({"wait": lambda _: threading.Event().wait(0.05) or "x"})
    with pytest.raises(sgl.ProgramError) as caught:
        program.run()
    assert isinstance(caught.value.__cause__, CancelledError | sgl.ModelError)


def test_a_refused_segment_names_the_hole(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        s += "x" + sgl.gen("free") + sgl.gen("good", regex="a")
        s += sgl.gen("bad", regex="(")  # here
        s += sgl.gen("after", regex="b")

    scripted()
    with pytest.raises(sgl.ProgramError, match=r"^gen\('bad'\) was refused: a group") as caught:
        program.run()
    assert caught.value.line == line_of(program, "# here")
    assert isinstance(caught.value.__cause__, sgl.GrammarError)


@pytest.mark.parametrize("forked", [False, True])
def test_an_unknown_special_token_is_named_with_its_line(
    scripted: MakeScripted, forked: bool
) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        s += sgl.special("<|im_end|>") + sgl.gen("x") + sgl.special("<|im_start|>")
        branch = s.fork(1)[0] if forked else s
        branch += sgl.special("<|foo|>")  # here
        branch += sgl.gen("y", regex="a")

    scripted()
    with pytest.raises(sgl.ProgramError, match=r"special\('<\|foo\|>'\) was refused") as caught:
        program.run()
    assert caught.value.line == line_of(program, "# here")


def test_a_value_that_its_type_refuses_is_an_error(scripted: MakeScripted) -> None:
    from pydantic import BaseModel, field_validator

    class Even(BaseModel):
        number: int

        @field_validator("number")
        @classmethod
        def even(cls, value: int) -> int:
            if value % 2:
                raise ValueError("odd")
            return value

    program = sgl.function(lambda s: s.__iadd__(sgl.gen("n", Even)))
    scripted({"n": ['{"number": 4}', '{"number": 5}']})
    assert program.run()["n"].number == 4
    with pytest.raises(sgl.ProgramError, match="odd"):
        program.run()


def test_an_unknown_variable_is_named(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        s += sgl.gen("known")
        s["unknown"]

    scripted()
    with pytest.raises(sgl.ProgramError, match=r"no variable 'unknown'.*'known'"):
        program.run()


def test_a_state_is_dead_after_its_run(scripted: MakeScripted) -> None:
    kept: list[sgl.State] = []

    @sgl.function
    def program(s: sgl.State) -> None:
        s += sgl.gen("x")
        kept.append(s)

    scripted()
    program.run()
    assert kept[0]["x"] == "<x>"
    with pytest.raises(sgl.ProgramError, match="has ended"):
        kept[0] += "more"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (lambda: None, "needs a first parameter"),
        (lambda *args: None, "needs a first parameter"),
        (lambda s, model: None, "'model'"),
        (lambda s, *, options: None, "'options'"),
        (lambda s, errors=None: None, "'errors'"),
        (3, "above a def"),
    ],
)
def test_what_cannot_be_a_program_is_refused_at_once(body: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        sgl.function(body)


def test_generators_are_refused() -> None:
    def generator(s: sgl.State) -> Any:
        yield

    async def generator_of_a_loop(s: sgl.State) -> Any:
        yield

    for body in (generator, generator_of_a_loop):
        with pytest.raises(TypeError, match="without yield"):
            sgl.function(body)


def test_arguments_of_the_user_are_not_swallowed(scripted: MakeScripted) -> None:
    @sgl.function
    def program(state: sgl.State, n: int, stop: str, *, temperature: float, **rest: int) -> None:
        state += f"{n} {stop} {temperature} {rest}" + sgl.gen("x")

    engine = scripted()
    program.run(3, stop="s", temperature=1.5, max_tokens=7)
    assert engine.texts() == ["3 s 1.5 {'max_tokens': 7}"]
    with pytest.raises(TypeError, match=r"program\(\): missing a required argument: 'n'"):
        program.run(stop="s", temperature=1)


def test_no_model_in_use_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sglite.model._latest", None)
    with pytest.raises(sgl.ModelError, match=r"sgl\.use"):
        sgl.function(lambda s: None).run()
