"""The native model refuses tensors and plans that do not fit, by name and without a crash."""

from __future__ import annotations

import contextlib
import math
from dataclasses import replace

import cpu_models as models
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sglite.errors import ModelError
from sglite.kernels import _cpu
from sglite.runtime.backends.cpu import CpuBackend
from sglite.runtime.models.config import Experts, LayerConfig
from sglite.runtime.models.ggml_types import GGMLType
from sglite.runtime.models.gguf import TensorInfo
from sglite.runtime.models.rope import Rope
from sglite.runtime.plan import StepPlan

PAGES = 8


def small_file() -> models.FakeFile:
    return models.random_file(models.llama(), GGMLType.Q4_1, np.random.default_rng(3))


def load(file: models.FakeFile, **changes: object) -> CpuBackend:
    config = replace(models.llama(), **changes)  # type: ignore[arg-type]
    return CpuBackend(file, config, threads=1, pages=PAGES)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def backend() -> CpuBackend:
    return load(small_file())


def test_missing_tensor() -> None:
    file = small_file()
    del file.tensors["blk.1.ffn_up.weight"]
    with pytest.raises(
        ModelError, match=r"random\.gguf: tensor 'blk\.1\.ffn_up\.weight' is missing"
    ):
        load(file)


def test_tensor_without_a_place() -> None:
    file = small_file()
    info = file.tensors["output_norm.weight"]
    file.tensors["blk.0.attn_q.bias"] = replace(info, name="blk.0.attn_q.bias")
    file.bytes_of["blk.0.attn_q.bias"] = file.data("output_norm.weight")
    with pytest.raises(ModelError, match=r"'blk\.0\.attn_q\.bias' has no place"):
        load(file)


def test_wrong_shape() -> None:
    file = small_file()
    name = "blk.0.ffn_down.weight"
    file.tensors[name] = replace(file.tensors[name], shape=(96, 64))
    with pytest.raises(ModelError, match=r"blk\.0\.ffn_down\.weight' has shape \[96, 64\]"):
        load(file)


@pytest.mark.parametrize("name", ["token_embd.weight", "blk.0.attn_k.weight", "output_norm.weight"])
@pytest.mark.parametrize("cut", [1, 20, None])
def test_short_data(name: str, cut: int | None) -> None:
    file = small_file()
    file.bytes_of[name] = file.data(name)[: -cut if cut else 0]
    with pytest.raises(ModelError, match=f"{name}' has [0-9]+ bytes of data"):
        load(file)


def test_unsupported_type() -> None:
    file = small_file()
    name = "blk.0.attn_v.weight"
    info = file.tensors[name]
    file.tensors[name] = TensorInfo(name, GGMLType.IQ2_S, info.shape, 0, info.nbytes)
    with pytest.raises(ModelError, match=r"attn_v\.weight' has ggml type 22"):
        load(file)


@pytest.mark.parametrize(
    "changes",
    [
        {"width": 48},
        {"heads": 5},
        {"head_dim": 15},
        {"kv_heads": 0},
        {"vocab_size": 1 << 40},
        {"ff_width": -32},
        {"layers": ()},
        {"activation": "relu"},
        {"experts": Experts(2000, 2, True)},
        {"experts": Experts(4, 5, True)},
        {"experts": Experts(4, 0, True)},
        {"experts": Experts(1 << 62, 1 << 62, True)},
        {"attention_cap": -1.0},
        {"logit_cap": math.nan},
        {"layers": (LayerConfig(None, Rope((1.0,) * 9)),) * 2},
        {"layers": (LayerConfig(None, Rope((1.0, math.inf))),) * 2},
        {"layers": (LayerConfig(None, Rope((1.0,), 1e39)),) * 2},
        {"layers": (LayerConfig(None, Rope((1.0,))), LayerConfig(None, Rope((1.0, 0.5))))},
    ],
    ids=str,
)
def test_impossible_config(changes: dict[str, object]) -> None:
    with pytest.raises(ModelError, match=r"random\.gguf: "):
        load(small_file(), **changes)


def test_every_tensor_of_experts_is_checked() -> None:
    config = models.experts()
    for part in ("gate_inp", "gate_exps", "up_exps", "down_exps"):
        name = f"blk.1.ffn_{part}.weight"
        for wrong in ("shape", "data"):
            file = models.random_file(config, GGMLType.Q4_1, np.random.default_rng(3))
            info, data = file.tensors[name], file.data(name)
            if wrong == "shape":
                file.tensors[name] = replace(info, shape=(info.shape[0] - 1, *info.shape[1:]))
            else:
                file.bytes_of[name] = data[: len(data) // info.shape[0] * (info.shape[0] - 1)]
            with pytest.raises(ModelError, match=f"{name}' has .*{wrong}"):
                CpuBackend(file, config, threads=1, pages=PAGES)  # type: ignore[arg-type]


@pytest.mark.parametrize("isa", _cpu.available_isas())
def test_experts_of_what_is_no_number(monkeypatch: pytest.MonkeyPatch, isa: str) -> None:
    """Logits of routers that cannot be compared choose some experts, and spoil no other token."""
    monkeypatch.setenv("SGLITE_ISA", isa)
    config = models.experts()
    file = models.random_file(config, GGMLType.F32, np.random.default_rng())
    file.bytes_of["token_embd.weight"].view(np.float32)[: config.width] = np.nan
    backend = CpuBackend(file, config, threads=2, pages=PAGES)  # type: ignore[arg-type]
    expected = backend.forward(models.make_plan([models.Row([5, 6], 0, [1], 2)])).copy()
    rows = [models.Row([0] * 7, 0, [0], 7), models.Row([5, 6], 0, [1], 2)]
    logits = backend.forward(models.make_plan(rows))
    assert np.isnan(logits[:7]).all()
    assert np.array_equal(logits[7:], expected)


def good_plan() -> StepPlan:
    return models.make_plan([models.Row([1, 2, 3], 14, [0, 1], 2), models.Row([4], 16, [0, 2], 1)])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tokens": [1, 2, 77, 4]}, r"tokens\[2\] is 77"),
        ({"tokens": [1, 2, -1, 4]}, r"tokens\[2\] is -1"),
        ({"tokens": []}, "number of tokens is 0"),
        ({"pages": [0, 1, 8, 2]}, r"pages\[2\] is 8, there are 8 pages"),
        ({"pages": [0, 1, -1, 2]}, r"pages\[2\] is -1"),
        ({"pages": [0, 1, 2]}, "page_start must ascend"),
        ({"page_start": [0, 1, 4]}, "row 0 has 1 pages and needs 2"),
        ({"page_start": [0, 4]}, "page_start must ascend"),
        ({"query_start": [0, 5, 4]}, "query_start must ascend"),
        ({"query_start": [1, 3, 4]}, "query_start must ascend"),
        ({"context_start": [-1, 16]}, "row 0 reaches position"),
        ({"context_start": [14, 640]}, "row 1 reaches position 641, the context holds 640"),
        ({"logit_tokens": [1, 1, 3]}, "logit_tokens must ascend"),
        ({"logit_tokens": [1, 2, 4]}, "logit_tokens must ascend"),
        ({"logit_tokens": [-1, 2, 3]}, "logit_tokens must ascend"),
        ({"logit_mask": [0, 0, 0, 1]}, "head_panels must ascend within 0..4"),
    ],
    ids=str,
)
def test_bad_plan(backend: CpuBackend, change: dict[str, list[int]], message: str) -> None:
    arrays = {name: np.array(value, np.int32) for name, value in change.items()}
    with pytest.raises(ValueError, match=message):
        backend.forward(replace(good_plan(), **arrays))
    assert backend.forward(good_plan()).shape == (3, 77)


def test_wrong_dtype(backend: CpuBackend) -> None:
    with pytest.raises(TypeError):
        backend.forward(replace(good_plan(), tokens=np.array([1, 2, 3, 4], np.int64)))


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_any_plan_is_run_or_refused(backend: CpuBackend, data: st.DataObject) -> None:
    plan = good_plan()
    name = data.draw(st.sampled_from(StepPlan.__slots__))
    number = st.integers(-3, 20) | st.integers(-(2**31), 2**31 - 1)
    value = np.array(data.draw(st.lists(number, max_size=6)), np.int32)
    with contextlib.suppress(ValueError):
        backend.forward(replace(plan, **{name: value}))
    assert np.isfinite(backend.forward(plan)).all()


@pytest.mark.parametrize("pairs", [[[0, 8]], [[-1, 0]], [[3, 4], [2**31 - 1, 1]]])
def test_bad_copy(backend: CpuBackend, pairs: list[list[int]]) -> None:
    with pytest.raises(ValueError, match="there are 8 pages"):
        backend.copy_pages(np.array(pairs, np.int32))
