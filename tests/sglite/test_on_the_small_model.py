"""Programs on a real model: reads, batches and branches change no token."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

import sglite as sgl
from sglite.language.ir import Expression

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def small(smollm2_path: Path) -> Iterator[sgl.Model]:
    with sgl.Model(smollm2_path, kv_memory=1 << 28) as model:
        yield model


def add(s: sgl.State, name: str, hole: Expression, read: bool) -> None:
    s += f"\n{name}:" + hole
    if read:
        s[name]


@sgl.function
def mixed(s: sgl.State, subject: str, read: bool) -> None:
    s += f"Some facts about {subject}."
    add(s, "fact", sgl.gen("fact", max_tokens=8, stop="\n"), read)
    add(s, "age", " " + sgl.gen("age", int, until=" years") + " years", read)
    add(s, "kind", sgl.select("kind", [" animal", " plant", " thing"]), read)
    branches = s.fork(2)
    for branch in branches:
        add(branch, "more", sgl.gen("more", max_tokens=6, temperature=1.0), read)
    s.join(branches)
    s += "\n" + sgl.gen("live", Literal["yes", "no"]) + "."


SUBJECTS = ["oaks", "the moon", "cats"]


def test_reads_batches_and_the_order_of_work_change_no_token(small: sgl.Model) -> None:
    options = sgl.Options(seed=5)
    alone = [
        mixed.run(subject, read, row=i, options=options, model=small)
        for read in (False, True)
        for i, subject in enumerate(SUBJECTS)
    ]
    together = mixed.run_batch(
        [{"subject": subject, "read": i == 1} for i, subject in enumerate(SUBJECTS)],
        options=options,
        model=small,
    )
    for i in range(len(SUBJECTS)):
        static, reading, row = alone[i], alone[i + len(SUBJECTS)], together[i]
        assert static.ids == reading.ids == row.ids
        assert static.variables == reading.variables == row.variables
        assert static.text() == reading.text() == row.text()
        assert isinstance(row["age"], int)
        distribution = row.meta("kind").distribution
        assert distribution is not None
        assert sum(distribution.values()) == pytest.approx(1)


def test_turns_are_the_templates_own(small: sgl.Model) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        s += sgl.user("Say <|im_end|>!") + sgl.assistant(sgl.gen("x", max_tokens=4))

    row = program.run(model=small)
    end = small.engine.vocabulary.eos_ids
    # The system turn that the template adds, the user's and the model's: three ends, and the one
    # that the user typed is text.
    assert sum(i in end for i in row.ids) == 3
    assert row.text().startswith("<|im_start|>system\nYou are a helpful AI assistant named SmolLM")


def test_a_base_model_has_no_turns(gemma_path: Path) -> None:
    with (
        sgl.Model(gemma_path, kv_memory=1 << 28) as model,
        pytest.raises(sgl.ProgramError, match="base model"),
    ):
        sgl.function(lambda s: s.__iadd__(sgl.user("Hello"))).run(model=model)
