"""The CPU backend computes what the config defines, for every weight type and instruction set."""

from __future__ import annotations

import cpu_models as models
import numpy as np
import pytest

from sglite.kernels import _cpu
from sglite.runtime.backends.cpu import CpuBackend
from sglite.runtime.models.config import ModelConfig
from sglite.runtime.models.ggml_types import GGMLType

FAMILIES = {
    "llama": models.llama,
    "gemma": models.gemma,
    "capped": models.capped,
    "experts": models.experts,
}


# Every type in one family, and every family in types of some kinds of panels.
CASES = [("llama", kind) for kind in models.TYPES]
CASES += [
    (family, kind)
    for family in ("gemma", "capped", "experts")
    for kind in (GGMLType.F16, GGMLType.Q4_1, GGMLType.Q5_0, GGMLType.Q4_K, GGMLType.Q6_K)
]


def config_for(kind: GGMLType, family: str) -> ModelConfig:
    """Small widths, or the 256 that a K type needs."""
    make = FAMILIES[family]
    if kind.block[0] == 256:
        return make(width=256, ff_width=256, heads=8, head_dim=32)
    return make()


def relative_error(config: ModelConfig, kind: GGMLType, activations: str, kv_dtype: str) -> float:
    seed = int(np.random.SeedSequence().generate_state(1)[0])
    print("seed", seed)
    rng = np.random.default_rng(seed)
    file = models.random_file(config, kind, rng)
    tokens = rng.integers(0, config.vocab_size, 45).tolist()
    backend = CpuBackend(
        file,  # type: ignore[arg-type]
        config,
        threads=2,
        pages=3,
        kv_dtype=kv_dtype,  # type: ignore[arg-type]
        activations=activations,  # type: ignore[arg-type]
    )
    logits = backend.forward(models.make_plan([models.Row(tokens, 0, [2, 0, 1], 45)]))
    backend.close()
    expected = models.reference_logits(file, config, tokens)
    return float(np.linalg.norm(logits - expected) / np.linalg.norm(expected))


@pytest.mark.parametrize("isa", _cpu.available_isas())
@pytest.mark.parametrize(("family", "kind"), CASES, ids=str)
def test_float_path(monkeypatch: pytest.MonkeyPatch, isa: str, family: str, kind: GGMLType) -> None:
    monkeypatch.setenv("SGLITE_ISA", isa)
    assert relative_error(config_for(kind, family), kind, "f32", "f32") < 1e-5


@pytest.mark.parametrize("isa", _cpu.available_isas())
@pytest.mark.parametrize(("family", "kind"), CASES, ids=str)
def test_shipped_path(
    monkeypatch: pytest.MonkeyPatch, isa: str, family: str, kind: GGMLType
) -> None:
    monkeypatch.setenv("SGLITE_ISA", isa)
    assert relative_error(config_for(kind, family), kind, "int8", "f16") < 0.1


@pytest.mark.parametrize("isa", _cpu.available_isas())
@pytest.mark.parametrize("family", ["llama", "gemma", "capped"])
def test_a_cache_of_codes(monkeypatch: pytest.MonkeyPatch, isa: str, family: str) -> None:
    """Each vector of K and V is off by at most half a step of its largest value in 127."""
    monkeypatch.setenv("SGLITE_ISA", isa)
    config = config_for(GGMLType.F32, family)
    assert 1e-5 < relative_error(config, GGMLType.F32, "f32", "int8") < 0.05


@pytest.mark.parametrize("isa", _cpu.available_isas())
def test_tiny_activations_keep_their_signs(monkeypatch: pytest.MonkeyPatch, isa: str) -> None:
    """So small that 127 over their peak is infinite: coarse, but not the other way round."""
    monkeypatch.setenv("SGLITE_ISA", isa)
    config = models.llama()
    file = models.random_file(config, GGMLType.Q8_0, np.random.default_rng())
    norm = file.bytes_of["output_norm.weight"].view(np.float32)
    norm *= np.float32(5e-38)
    tokens = list(range(20))
    backend = CpuBackend(file, config, threads=2, pages=2)  # type: ignore[arg-type]
    logits = backend.forward(models.make_plan([models.Row(tokens, 0, [1, 0], 20)]))
    expected = models.reference_logits(file, config, tokens)
    got = logits.astype(np.float64) * 1e38
    expected = expected * 1e38
    cosine = (got * expected).sum() / np.linalg.norm(got) / np.linalg.norm(expected)
    assert cosine > 0.6
