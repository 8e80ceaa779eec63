"""What users of other front ends complain of, tried on a real model."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, NoReturn

import pytest
from pydantic import BaseModel, Field

import sglite as sgl

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def small(smollm2_path: Path) -> Iterator[sgl.Model]:
    with sgl.Model(smollm2_path, kv_memory=1 << 28) as model:
        yield model


EXAMPLES = {
    " food": "The soup needs more salt and a little lemon.",
    " politics at home and abroad": "The president met the minister about the treaty.",
    " science and technology": "A new chip doubles the speed of the computer.",
    " sport": "The home team lost by three goals on Saturday.",
}
SPORT = ["He won the tennis match in straight sets.", "She ran the marathon in two hours."]
FOOD = [
    "Bake the bread for forty minutes and let it cool.",
    "Slice the onions and fry them in oil.",
]


def test_a_long_label_is_not_picked_for_its_length(small: sgl.Model) -> None:
    """By the mean of its tokens it is: after its first words the rest is easy to foretell."""

    @sgl.function
    def topic(s: sgl.State, text: str, method: str) -> None:
        for label, example in EXAMPLES.items():
            s += f"Text: {example}\nTopic:{label}\n\n"
        s += f"Text: {text}\nTopic:" + sgl.select("topic", [*EXAMPLES], method=method)

    def picked(method: str) -> list[str]:
        rows = [{"text": text, "method": method} for text in SPORT + FOOD]
        return [row["topic"] for row in topic.run_batch(rows, model=small)]

    right = [" sport"] * len(SPORT) + [" food"] * len(FOOD)
    assert picked("prob") == right
    assert picked("mean") != right
    assert all(len(pick) >= len(label) for pick, label in zip(picked("mean"), right, strict=True))


def test_a_choice_that_begins_another_one_is_a_choice(small: sgl.Model) -> None:
    @sgl.function
    def ends(s: sgl.State, before: str, choices: list[str]) -> None:
        s += before + sgl.select("pick", choices)

    def pick(before: str, *choices: str) -> str:
        both = [ends.run(before, list(order), model=small) for order in (choices, choices[::-1])]
        assert both[0]["pick"] == both[1]["pick"]
        return str(both[0]["pick"])

    assert pick("The capital of Mexico is", " Mexico", " Mexico City") == " Mexico City"
    assert pick("Tacos come from a country that is called", " Mexico", " Mexico City") == " Mexico"


class Trip(BaseModel):
    traveller: str = Field(max_length=30)
    origin: str = Field(max_length=30)
    destination: str = Field(max_length=30)
    days: int = Field(ge=1, le=99)
    price: float = Field(ge=0, le=9999)
    means: Literal["train", "plane", "ship"]
    insured: bool
    notes: list[Annotated[str, Field(max_length=20)]] = Field(max_length=2)


def test_a_small_model_leaves_no_field_out(small: sgl.Model) -> None:
    @sgl.function
    def read(s: sgl.State, note: str) -> None:
        s += sgl.user(f"{note}\nWrite this as JSON.") + sgl.assistant(sgl.gen("trip", Trip))

    notes = ["Ada goes to Oslo by train.", "", "Nothing here is about a trip.", "{", '"]}'] * 2
    options = sgl.Options(temperature=1.5, seed=11)  # so that it writes whatever it may
    rows = read.run_batch([{"note": note} for note in notes], model=small, options=options)
    assert all(isinstance(row["trip"], Trip) for row in rows)
    assert all(Trip.model_validate_json(row.meta("trip").text) == row["trip"] for row in rows)


def test_no_server_no_socket_and_no_process(
    smollm2_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*args: object, **kwargs: object) -> NoReturn:
        raise AssertionError("a model of this process needs neither network nor processes")

    for name in ("connect", "bind", "listen"):
        monkeypatch.setattr(socket.socket, name, never)
    monkeypatch.setattr(subprocess, "Popen", never)

    @sgl.function
    def capital(s: sgl.State, country: str) -> None:
        s += f"The capital of {country} is" + sgl.gen("city", max_tokens=2)
        s += sgl.select("sure", [" certainly", " perhaps"])

    with sgl.Model(smollm2_path, kv_memory=1 << 26) as model:
        rows = capital.run_batch([{"country": "France"}, {"country": "Italy"}], model=model)
    assert "Paris" in rows[0]["city"]
    assert "Rome" in rows[1]["city"]
