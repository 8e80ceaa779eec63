"""A slip that is common gets an error that says what to write."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, ConfigDict, Field
from recorder import MakeScripted

import sglite as sgl


@sgl.function
def letter_of(s: sgl.State, letter: str, size: int = 1) -> None:
    s += letter * size + sgl.gen("x")


@pytest.mark.parametrize(
    "part",
    [
        sgl.gen("y"),
        sgl.select("y", ["a"]),
        sgl.user("u"),
        sgl.special("<|im_end|>"),
        "a" + sgl.gen("y"),
        letter_of("a"),
    ],
    ids=lambda part: type(part).__name__,
)
def test_what_is_no_text_is_kept_out_of_texts(part: Any) -> None:
    for spell in (str, format, "x {} z".format, lambda p: f"x {p} z", lambda p: f"{p:>10}"):
        with pytest.raises(TypeError, match=r"f-string.*write s \+= 'before ' \+ sgl\.gen"):
            spell(part)
    assert repr(part) in f"{part!r}"


def test_an_f_string_in_a_program_names_the_line(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        s += f"x {sgl.gen('y')} z"

    scripted()
    with pytest.raises(sgl.ProgramError, match="f-string") as caught:
        program.run()
    assert caught.value.line == inspect.getsourcelines(program.body)[1] + 2


CALLS: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: letter_of.run("a", options={"temperature": 1}),  # type: ignore[arg-type]
        r"options= takes an Options, got {.*write options=sgl\.Options\(",
    ),
    (
        lambda: letter_of.run_batch([{"letter": "a"}], options=3),  # type: ignore[arg-type]
        r"options= takes an Options, got 3",
    ),
    (lambda: letter_of.run("a", model="smollm2"), r"model= takes a Model"),  # type: ignore[arg-type]
    (
        lambda: letter_of.run("a", temperature=0.4),
        r"'temperature'; pass options=sgl\.Options\(temperature=\.\.\.\)$",
    ),
    (
        lambda: letter_of.run(leter="x"),
        r"missing.*'letter'; there is no argument 'leter', did you mean 'letter'\?$",
    ),
    (lambda: letter_of(sise=2, letter="a"), r"no argument 'sise', did you mean 'size'\?$"),
    (lambda: sgl.gen("x", choices=["a"]), r"gen\(\).*'choices'; .*sgl\.select\("),  # type: ignore[call-arg]
    (lambda: sgl.gen("x", temprature=1), r"'temprature', did you mean 'temperature'\?"),  # type: ignore[call-arg]
    (lambda: sgl.select("x", ["a"], temp=1), r"select\(\) .*'temp'"),  # type: ignore[call-arg]
    (lambda: sgl.gen("x", stop=3), r"^stop= takes a text or a list of texts, got 3$"),  # type: ignore[arg-type]
    (lambda: sgl.gen("x", until=["a", 3]), r"^until= .* got 3 in it$"),  # type: ignore[list-item]
    (lambda: sgl.gen("x", json=3), r"gen\('x'\): 3 is not a type"),
    (lambda: sgl.gen("x", json=[{}]), r"takes a JSON Schema \(a dict, a bool or text\) or a type"),
]


@pytest.mark.parametrize(("call", "message"), CALLS)
def test_a_wrong_argument_is_named_with_what_to_write(
    scripted: MakeScripted, call: Callable[[], Any], message: str
) -> None:
    scripted()
    with pytest.raises(TypeError, match=message):
        call()


SLIPS: list[tuple[Callable[[sgl.State], Any], str]] = [
    (lambda s: s + "a", r"write s \+= "),
    (lambda s: "a" + s, r"write s \+= "),
    (lambda s: s + sgl.gen("x"), r"write s \+= "),
    (lambda s: s.__iadd__(sgl.gen("e") + s["e"]), r"'e'.*so far.*after the statement"),
    (lambda s: s.__iadd__(letter_of), r"not called; write s \+= letter_of\("),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("slip", "message"), SLIPS)
def test_a_slip_in_a_program_is_named_with_what_to_write(
    scripted: MakeScripted, slip: Callable[[sgl.State], Any], message: str
) -> None:
    scripted()
    with pytest.raises(sgl.ProgramError, match=message) as caught:
        sgl.function(lambda s: slip(s)).run()
    assert caught.value.filename == __file__


def test_a_row_with_a_wrong_argument_says_so(scripted: MakeScripted) -> None:
    scripted()
    good, bad = letter_of.run_batch([{"letter": "a"}, {"leter": "a"}], errors="return")
    assert good["x"] == "<x>"
    assert "no argument 'leter', did you mean 'letter'?" in str(bad.error)


def test_the_decorator_may_have_parentheses(scripted: MakeScripted) -> None:
    @sgl.function()
    def program(s: sgl.State) -> None:
        s += sgl.gen("x")

    scripted()
    assert program.run()["x"] == "<x>"


def test_a_call_outside_of_a_program_says_what_it_is() -> None:
    assert repr(letter_of("a", size=2)) == (
        "<call letter_of('a', size=2): s += letter_of(...) in a program runs it, "
        "letter_of.run(...) alone>"
    )


Fine = Annotated[float, Field(multiple_of=0.000001234567)]


class Page(BaseModel):
    model_config = ConfigDict(regex_engine="python-re")

    title: str
    twice: Annotated[str, Field(pattern=r"^(a|b)\1$")]


@dataclass
class Album:
    pages: list[Page]


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (list[Fine], [r"states", r"type list\[.*Annotated\[float, .*\]\]$"]),
        (Page, [r"a backreference", r"/properties/twice/pattern", r"type Page$"]),
        (Album, [r"a backreference", r"/\$defs/Page/properties/twice", r"type Album$"]),
        (list[Page] | None, [r"a backreference", r"type .*list\[.*Page\] \| None$"]),
    ],
)
def test_a_schema_that_is_refused_names_the_type_that_it_came_from(
    scripted: MakeScripted, kind: Any, says: list[str]
) -> None:
    scripted()
    with pytest.raises(sgl.ProgramError) as caught:
        sgl.function(lambda s: s.__iadd__(sgl.gen("x", kind))).run()
    message = str(caught.value).rpartition(" (")[0]  # without the place
    assert not [part for part in says if not re.search(part, message)], message
