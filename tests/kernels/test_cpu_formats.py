"""How weights are packed: every value to the bit, whatever the bytes say, in little space."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import cpu_models as models
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sglite.errors import ModelError
from sglite.kernels import _cpu
from sglite.kernels.reference.formats import dequantise
from sglite.runtime.backends.cpu import CpuBackend
from sglite.runtime.models.ggml_types import GGMLType
from sglite.runtime.models.gguf import TensorInfo

CONFIG = models.llama(width=256, ff_width=256, heads=8, head_dim=32)
PLAN = models.make_plan([models.Row([1, 2, 3, 4, 5], 0, [0], 5)])

QUANTISED = [kind for kind in models.TYPES if kind in models.SCALES]


def logits(file: models.FakeFile, activations: str) -> np.ndarray:
    backend = CpuBackend(
        file,  # type: ignore[arg-type]
        CONFIG,
        threads=1,
        pages=1,
        kv_dtype="f32",
        activations=activations,
    )
    return backend.forward(PLAN).copy()


def _zeros(raw: np.ndarray, rng: np.random.Generator) -> None:
    raw[:] = 0


def _ones(raw: np.ndarray, rng: np.random.Generator) -> None:
    raw[:] = 255


def _random(raw: np.ndarray, rng: np.random.Generator) -> None:
    raw[:] = rng.integers(0, 256, raw.size, np.uint8)


@pytest.mark.parametrize("isa", _cpu.available_isas())
@pytest.mark.parametrize("kind", models.TYPES, ids=lambda kind: kind.name)
@pytest.mark.parametrize("fill", [_zeros, _ones, _random])
def test_any_bytes_load_and_run(
    monkeypatch: pytest.MonkeyPatch,
    isa: str,
    kind: GGMLType,
    fill: Callable[[np.ndarray, np.random.Generator], None],
) -> None:
    """Scales that are NaN or infinite give logits that say so; they harm nothing else."""
    monkeypatch.setenv("SGLITE_ISA", isa)
    rng = np.random.default_rng()
    file = models.random_file(CONFIG, kind, rng)
    for name, raw in file.bytes_of.items():
        if file.tensors[name].type == kind and len(file.tensors[name].shape) == 2:
            fill(raw, rng)
    for activations in ("int8", "f32"):
        out = logits(file, activations)
        assert out.shape == (5, CONFIG.vocab_size)
        if fill is _zeros:
            assert not out.any()


@pytest.mark.parametrize("isa", _cpu.available_isas())
@pytest.mark.parametrize("kind", QUANTISED, ids=lambda kind: kind.name)
def test_extreme_codes_and_scales(
    monkeypatch: pytest.MonkeyPatch, isa: str, kind: GGMLType
) -> None:
    """Blocks of all lowest and all highest codes, under the scales at the ends of f16."""
    monkeypatch.setenv("SGLITE_ISA", isa)
    rng = np.random.default_rng()
    file = models.random_file(CONFIG, kind, rng)
    raw = file.bytes_of["output.weight"].reshape(-1, kind.block[1])
    raw[:] = rng.choice(np.array([0, 255], np.uint8), (len(raw), 1))
    halves = np.array([2.0**-24, -(2.0**-24), 2.0**-14, 0.0, -0.0, 1.0, 15.0], np.float16)
    for at in models.SCALES[kind]:
        raw[:, at : at + 2] = rng.choice(halves, len(raw))[:, None].view(np.uint8)
    expected = models.reference_logits(file, CONFIG, PLAN.tokens.tolist())
    out = logits(file, "f32")
    # Every row of the output matrix has a size of its own, so each is held to its own.
    sizes = np.abs(models.weights(file, "output.weight")).sum(axis=1)
    assert (np.abs(out - expected) <= 1e-4 * sizes).all()
    assert np.linalg.norm(out - expected) <= 1e-4 * np.linalg.norm(expected)


@pytest.mark.parametrize("kind", models.TYPES, ids=lambda kind: kind.name)
def test_the_embedding_is_read_to_the_bit(kind: GGMLType) -> None:
    """The rows of the embedding, which are not packed, through the reference and the kernels."""
    file = models.random_file(CONFIG, kind, np.random.default_rng())
    rows = file.data("token_embd.weight").reshape(CONFIG.vocab_size, -1)
    values = dequantise(rows, kind.name)
    plain = models.FakeFile(file.path, dict(file.tensors), dict(file.bytes_of))
    info = file.tensors["token_embd.weight"]
    plain.tensors[info.name] = TensorInfo(info.name, GGMLType.F32, info.shape, 0, 0)
    plain.bytes_of[info.name] = values.reshape(-1).view(np.uint8)
    assert np.array_equal(logits(file, "int8"), logits(plain, "int8"))


@pytest.mark.parametrize("kind", models.TYPES, ids=lambda kind: kind.name)
def test_packed_size(kind: GGMLType) -> None:
    _, packed = _cpu.panel_formats()[int(kind)]
    length, size = kind.block
    assert packed <= 1.05 * (16 * 256 // length * size)


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_types_that_the_bytes_do_not_have(data: st.DataObject) -> None:
    """A type and a number of bytes are run together or refused by the tensor's name."""
    rng = np.random.default_rng(3)
    file = models.random_file(CONFIG, data.draw(st.sampled_from(models.TYPES)), rng)
    name = data.draw(st.sampled_from(sorted(file.tensors)))
    kind = data.draw(st.sampled_from(GGMLType))
    info = file.tensors[name]
    length, size = kind.block
    right = math.prod(info.shape) // length * size
    nbytes = right + data.draw(st.sampled_from([0, 0, -1, 1, -size, size, 16 * size, -right]))
    file.tensors[name] = TensorInfo(name, kind, info.shape, 0, nbytes)
    file.bytes_of[name] = rng.integers(0, 256, nbytes, np.uint8)
    whole = info.shape[-1] % length == 0
    if nbytes == right and whole and kind in models.TYPES:
        assert logits(file, "int8").shape == (5, CONFIG.vocab_size)
    else:
        with pytest.raises(ModelError, match=re.escape(repr(name))):
            logits(file, "int8")
