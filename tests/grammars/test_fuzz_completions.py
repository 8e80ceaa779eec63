"""A small run of `fuzz_completions.py`, with a seed of its own each time."""

from __future__ import annotations

import random

import pytest
from fuzz_completions import SAMPLE, load_schemas, real_vocabulary, run
from limits import examples

pytestmark = [
    pytest.mark.model,
    pytest.mark.skipif(not SAMPLE.exists(), reason=f"no sample of MaskBench at {SAMPLE}"),
]


def test_completions_of_real_schemas_are_valid() -> None:
    seed = random.randrange(2**32)
    count = examples(30)
    totals = run(count, seed, real_vocabulary(), load_schemas(SAMPLE))
    assert totals.violations == []
    assert totals.completions >= count * 0.9, totals.refused
