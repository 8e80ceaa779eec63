"""The options of holes on a real model: scores of separate passes, rows that share a batch."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sglite as sgl
from sglite.runtime.backends.cpu import CpuBackend
from sglite.runtime.models.config import ModelConfig
from sglite.runtime.models.gguf import GGUFFile
from sglite.runtime.models.tokenizer import Tokenizer
from sglite.runtime.plan import PlanRow, flatten

pytestmark = pytest.mark.model

CHOICES = [" Paris", " London", " Paris, France", " the", " Rio de Janeiro"]
PROMPT = "The capital of France is"


@pytest.fixture(scope="module")
def small(smollm2_path: Path) -> Iterator[sgl.Model]:
    with sgl.Model(smollm2_path, kv_memory=1 << 28) as model:
        yield model


class Plain:
    """Log probabilities of ids after a prompt, each choice in a pass of its own."""

    def __init__(self, path: Path) -> None:
        gguf = GGUFFile.open(path)
        self.tokenizer = Tokenizer.from_gguf(gguf)
        self.backend = CpuBackend(gguf, ModelConfig.from_gguf(gguf), pages=8)

    def logprobs(self, prompt: Sequence[int], choice: str) -> list[float]:
        ids = self.tokenizer.encode(choice)
        tokens = array("i", [*prompt, *ids])
        plan = flatten([PlanRow(tokens, 0, array("i", range(8)), len(ids) + 1)])
        logits = self.backend.forward(plan).astype(np.float64)
        logits -= logits.max(axis=1, keepdims=True)
        table = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        return [float(table[at][token]) for at, token in enumerate(ids)]


@sgl.function
def pick(s: sgl.State, method: str) -> None:
    s += PROMPT + sgl.select("c", CHOICES, method=method)


def test_scores_are_those_of_separate_passes(small: sgl.Model, smollm2_path: Path) -> None:
    plain = Plain(smollm2_path)
    prompt = plain.tokenizer.encode(PROMPT)
    assert not plain.tokenizer.add_bos, "its texts stand behind <|endoftext|>"
    start = small.vocabulary.eos_ids[0]
    after = {c: plain.logprobs(prompt, c) for c in CHOICES}
    alone = {c: plain.logprobs([start], c) for c in CHOICES}
    with sgl.use(small):
        scores = {method: pick.run(method).meta("c").scores for method in ("prob", "mean", "pmi")}
    for choice in CHOICES:
        total = sum(after[choice])
        mean = total / len(after[choice])
        assert scores["mean"][choice] == pytest.approx(mean, abs=1e-4)
        assert scores["pmi"][choice] == pytest.approx(total - sum(alone[choice]), abs=1e-4)
        if choice != " Paris":  # begins another one
            assert scores["prob"][choice] == pytest.approx(total, abs=1e-4)
    longer = sum(after[" Paris, France"][:2]) - after[" Paris"][0]
    expected = after[" Paris"][0] + math.log1p(-math.exp(longer))
    assert scores["prob"][" Paris"] == pytest.approx(expected, abs=1e-4)


@sgl.function
def shaped(s: sgl.State, subject: str, shape: bool) -> None:
    options: dict[str, Any] = {"temperature": 0.9}
    if shape:
        options |= {"repetition_penalty": 1.3, "frequency_penalty": 0.4}
        options |= {"logit_bias": {" the": -3.0, " is": float("-inf")}, "logprobs": 2}
    s += f"A few words about {subject}:"
    s += sgl.gen("hidden", max_tokens=6, hidden=True, **options)
    s += sgl.gen("x", max_tokens=10, min_tokens=4, stop_regex=r"[.!?,]\s", **options)
    s += sgl.select("c", [" Good", " Bad", " Good and bad"], method="greedy", temperature=1.0)


def test_rows_are_the_same_alone_and_in_a_batch(small: sgl.Model) -> None:
    options = sgl.Options(seed=11)
    arguments = [{"subject": f"the number {n}", "shape": n % 2 == 0} for n in range(6)]
    with sgl.use(small):
        together = shaped.run_batch(arguments, options=options)
        for number, row in enumerate(together):
            alone = shaped.run(**arguments[number], options=options, row=number)
            assert alone.ids == row.ids
            assert alone.variables == row.variables
            assert len(row.meta("x").ids) >= 4
            if arguments[number]["shape"]:
                (forbidden,) = small.vocabulary.encode(b" is")
                assert forbidden not in row.meta("x").ids + row.meta("hidden").ids
                assert all(len(top) == 2 for top in row.meta("x").top_logprobs)


def test_the_first_thing_of_an_answer_may_be_a_choice_or_samples(small: sgl.Model) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        s += sgl.user("Is the sky blue on a clear day? Answer with one word.")
        with s.assistant():
            s += sgl.gen("guess", n=3, max_tokens=4, temperature=1.0)
            s += sgl.select("answer", ["Yes", "No"])

    row = program.run(model=small, options=sgl.Options(seed=1))
    assert row.messages()[-1]["content"] == row["answer"]
    assert len(row["guess"]) == 3
    assert abs(sum(row.meta("answer").distribution.values()) - 1) < 1e-9
    again = program.run(model=small, options=sgl.Options(seed=1))
    assert again["guess"] == row["guess"]


def test_a_thousand_choices(small: sgl.Model) -> None:
    @sgl.function
    def many(s: sgl.State) -> None:
        s += "My favourite word is" + sgl.select("c", words, method="prob")

    tokens = (small.vocabulary.token(i).decode("utf-8", "replace") for i in range(2000, 30000))
    words = [t for t in tokens if t[:1] == " " and t[1:].isalpha() and t.isascii()][:1000]
    row = many.run(model=small)
    assert len(row.meta("c").distribution) == 1000
    assert sum(row.meta("c").distribution.values()) == pytest.approx(1)
    assert row.timing.total < 5
