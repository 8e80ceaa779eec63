"""A number in the middle of a line ends where the number ends, on both models, whatever follows."""

from __future__ import annotations

from pathlib import Path

import pytest

import sglite as sgl

pytestmark = pytest.mark.model

LINES = ["The answer to 6*7 is ", "Age: ", "He paid $", "The train leaves at platform "]
ENDS = [(), "\n", ".", "!", " dollars", ";"]


@sgl.function
def line(s, before, until):
    s += before + sgl.gen("n", int, until=until, max_tokens=40)
    s += ", and that is that" + sgl.gen("rest", max_tokens=3)


@pytest.fixture(scope="module", params=["smollm2_path", "gemma_path"])
def model(request: pytest.FixtureRequest) -> sgl.Model:
    path: Path = request.getfixturevalue(request.param)
    with sgl.Model(path) as model:
        yield model


def test_a_number_ends_where_the_model_goes_on_with_something_else(model: sgl.Model) -> None:
    rows = line.run_batch(
        [{"before": before, "until": until} for before in LINES for until in ENDS], model=model
    )
    for row in rows:
        hole = row.meta("n")
        assert hole.finish in ("eos", "until")
        assert abs(row["n"]) < 10**6, hole.text
