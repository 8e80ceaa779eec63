"""Products by themselves: the same bits for any number of tokens, near the definition."""

from __future__ import annotations

import cpu_models as models
import numpy as np
import pytest

from sglite.kernels import _cpu
from sglite.kernels.reference.formats import dequantise
from sglite.runtime.models.ggml_types import GGMLType

ROWS, COLS = 16 * 5 + 7, 768  # an odd number of panels, the last one not full; some runs of blocks
QUANTISED = [kind for kind in models.TYPES if kind in models.SCALES]


def product(probe: _cpu.Probe, x: np.ndarray) -> np.ndarray:
    out = np.full((len(x), ROWS), np.nan, np.float32)
    assert probe.multiply(x, out) > 0
    return out


@pytest.mark.parametrize("isa", _cpu.available_isas())
@pytest.mark.parametrize("kind", models.TYPES, ids=lambda kind: kind.name)
def test_a_token_has_the_same_bits_in_any_number(isa: str, kind: GGMLType) -> None:
    rng = np.random.default_rng()
    raw = models.random_rows(kind, (ROWS, COLS), rng).reshape(-1)
    x = rng.normal(0, rng.uniform(0, 3, (70, 1)), (70, COLS)).astype(np.float32)
    for threads in (1, 2):
        probe = _cpu.Probe(int(kind), raw, ROWS, COLS, threads=threads, isa=isa)
        alone = np.concatenate([product(probe, x[i : i + 1]) for i in range(len(x))])
        for count in (*range(2, 20), 31, 64, 70):
            assert np.array_equal(product(probe, x[:count]), alone[:count]), count


@pytest.mark.parametrize("isa", _cpu.available_isas())
@pytest.mark.parametrize("kind", QUANTISED, ids=lambda kind: kind.name)
def test_near_the_definition(isa: str, kind: GGMLType) -> None:
    rng = np.random.default_rng()
    raw = models.random_rows(kind, (ROWS, COLS), rng).reshape(ROWS, -1)
    x = rng.normal(size=(33, COLS)).astype(np.float32)
    probe = _cpu.Probe(int(kind), raw.reshape(-1), ROWS, COLS, threads=2, isa=isa)
    expected = x.astype(np.float64) @ dequantise(raw, kind.name).astype(np.float64).T
    error = np.linalg.norm(product(probe, x) - expected) / np.linalg.norm(expected)
    assert error < 0.01


def test_rates_are_those_of_the_machine() -> None:
    raw = models.random_rows(GGMLType.Q4_0, (64, COLS), np.random.default_rng()).reshape(-1)
    probe = _cpu.Probe(int(GGMLType.Q4_0), raw, 64, COLS, threads=2)
    assert probe.size == raw.size
    assert probe.read_rate() > 0
    assert probe.dot_rate() > 0


def test_what_does_not_fit_is_refused() -> None:
    raw = np.zeros(18 * 2 * 16, np.uint8)
    with pytest.raises(ValueError, match="'matrix'"):
        _cpu.Probe(int(GGMLType.Q4_0), raw, 17, 64, threads=1)
    with pytest.raises(ValueError, match="threads"):
        _cpu.Probe(int(GGMLType.Q4_0), raw, 16, 64, threads=0)
    with pytest.raises(ValueError, match="columns"):
        _cpu.Probe(int(GGMLType.Q4_0), raw, 16, 65, threads=1)
    probe = _cpu.Probe(int(GGMLType.Q4_0), raw, 16, 64, threads=1)
    with pytest.raises(ValueError, match="tokens"):
        probe.multiply(np.zeros((2, 64), np.float32), np.zeros((2, 17), np.float32))
