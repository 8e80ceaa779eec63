"""Small random models for the tests of the CPU backend, and their definition in float64.

The definition reads the bytes of a tensor through the published gguf package, so that it shares no
code with the kernels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt
from gguf.quants import dequantize

from sglite.kernels.reference.forward import forward
from sglite.runtime.models.config import Experts, LayerConfig, ModelConfig
from sglite.runtime.models.ggml_types import GGMLType
from sglite.runtime.models.gguf import TensorInfo
from sglite.runtime.models.rope import Rope, plain
from sglite.runtime.models.tensors import tensor_shapes
from sglite.runtime.plan import PAGE_SIZE, StepPlan

Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FakeFile:
    """The part of a GGUFFile that a backend reads."""

    path: Path
    tensors: dict[str, TensorInfo]
    bytes_of: dict[str, npt.NDArray[np.uint8]]

    @property
    def files(self) -> list[Path]:
        return []

    def data(self, name: str) -> npt.NDArray[np.uint8]:
        return self.bytes_of[name]


def llama(**changes: Any) -> ModelConfig:
    """A Llama with three query heads to a KV head and untied output."""
    fields: dict[str, Any] = {
        "architecture": "llama",
        "vocab_size": 77,
        "context_length": 640,
        "width": 64,
        "ff_width": 96,
        "heads": 6,
        "kv_heads": 2,
        "head_dim": 16,
        "norm_epsilon": 1e-5,
        "activation": "silu",
        "rope_interleaved": True,
        "qk_norm": False,
        "post_norms": False,
        "embedding_scale": 1.0,
        "attention_scale": 0.25,
        "tied_output": False,
    }
    fields |= changes
    fields.setdefault("layers", (LayerConfig(None, plain(10_000.0, fields["head_dim"])),) * 2)
    return ModelConfig(**fields)


def gemma(**changes: Any) -> ModelConfig:
    """A Gemma 3 with a window shorter than a chunk of attention, and one longer."""
    head_dim = changes.get("head_dim", 32)
    near, far = plain(10_000.0, head_dim), plain(1e6, head_dim)
    layers = (LayerConfig(40, near), LayerConfig(300, near), LayerConfig(None, far))
    return llama(
        **{
            "architecture": "gemma3",
            "heads": 4,
            "kv_heads": 1,
            "head_dim": 32,
            "activation": "gelu_tanh",
            "rope_interleaved": False,
            "qk_norm": True,
            "post_norms": True,
            "embedding_scale": 8.0,
            "attention_scale": 0.2,
            "tied_output": True,
            "layers": layers,
            **changes,
        }
    )


def capped(**changes: Any) -> ModelConfig:
    """What neither of these has: biases, soft caps, half a head rotated and longer, and a layer
    without rotation."""
    half = Rope(plain(10_000.0, changes.get("head_dim", 16) // 2).frequencies, 1.25)
    return llama(
        **{
            "rope_interleaved": False,
            "qkv_bias": True,
            "attention_cap": 2.0,
            "logit_cap": 1.5,
            "layers": (LayerConfig(40, half), LayerConfig(None, None), LayerConfig(None, half)),
            **changes,
        }
    )


def experts(**changes: Any) -> ModelConfig:
    """A Qwen 3 with experts."""
    return llama(
        **{
            "rope_interleaved": False,
            "qk_norm": True,
            "experts": Experts(count=11, used=3, normalised=True),
            **changes,
        }
    )


def random_file(config: ModelConfig, kind: GGMLType, rng: np.random.Generator) -> FakeFile:
    """A file whose matrices have type `kind`; norms, biases and routers are F32."""
    infos, data = {}, {}
    for name, shape in tensor_shapes(config).items():
        if len(shape) == 1:
            values = rng.uniform(0.5, 1.5, shape).astype(np.float32)
            values -= name.endswith(".bias")
            type_, raw = GGMLType.F32, values.view(np.uint8)
        else:
            type_ = GGMLType.F32 if "ffn_gate_inp" in name else kind
            raw = random_rows(type_, shape, rng)
        infos[name] = TensorInfo(name, type_, shape, 0, raw.size)
        data[name] = raw.reshape(-1)
    return FakeFile(Path("random.gguf"), infos, data)


TYPES = [
    GGMLType.F32,
    GGMLType.F16,
    GGMLType.BF16,
    GGMLType.Q4_0,
    GGMLType.Q4_1,
    GGMLType.Q5_0,
    GGMLType.Q5_1,
    GGMLType.Q8_0,
    GGMLType.Q2_K,
    GGMLType.Q3_K,
    GGMLType.Q4_K,
    GGMLType.Q5_K,
    GGMLType.Q6_K,
    GGMLType.IQ4_NL,
    GGMLType.IQ4_XS,
]
"""Every type that the backend multiplies with."""

SCALES = {
    GGMLType.Q4_0: {0: 8},
    GGMLType.Q4_1: {0: 8, 2: 1},
    GGMLType.Q5_0: {0: 16},
    GGMLType.Q5_1: {0: 16, 2: 1},
    GGMLType.Q8_0: {0: 128},
    GGMLType.Q2_K: {80: 15 * 2, 82: 15},
    GGMLType.Q3_K: {108: 32 * 4},
    GGMLType.Q4_K: {0: 63 * 8, 2: 63},
    GGMLType.Q5_K: {0: 63 * 16, 2: 63},
    GGMLType.Q6_K: {208: 128 * 32},
    GGMLType.IQ4_NL: {0: 127},
    GGMLType.IQ4_XS: {0: 32 * 127},
}
"""Where the f16 scales of a block lie, and the largest code that they multiply."""


def random_rows(
    kind: GGMLType, shape: tuple[int, ...], rng: np.random.Generator
) -> npt.NDArray[np.uint8]:
    """Random codes with scales that give values of about 1 / sqrt(columns)."""
    rows, cols = math.prod(shape[:-1]), shape[-1]
    if kind in (GGMLType.F32, GGMLType.F16, GGMLType.BF16):
        values = rng.normal(0, cols**-0.5, shape).astype(np.float32)
        if kind == GGMLType.BF16:
            return (values.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8)
        return values.astype(np.float32 if kind == GGMLType.F32 else np.float16).view(np.uint8)
    length, size = kind.block
    blocks = rng.integers(0, 256, (rows, cols // length, size), np.uint8)
    for at, most in SCALES[kind].items():
        scale = rng.uniform(-1, 1, blocks.shape[:2]) * cols**-0.5 / most
        blocks[:, :, at : at + 2] = scale.astype(np.float16)[..., None].view(np.uint8)
    return blocks


def weights(file: FakeFile, name: str) -> Float64:
    """The values of a tensor as the gguf package reads them."""
    info = file.tensors[name]
    rows = file.data(name).reshape(math.prod(info.shape[:-1]), -1)
    kind = gguf.GGMLQuantizationType(int(info.type))
    return dequantize(rows, kind).astype(np.float64).reshape(info.shape)


def reference_logits(file: FakeFile, config: ModelConfig, tokens: list[int]) -> Float64:
    """Logits float64 [T, V] of every token of one sequence, after the definition of the config."""
    return forward(config, {name: weights(file, name) for name in file.tensors}, tokens)


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a plan: `tokens` at positions `context` and on, logits for the last `logits`."""

    tokens: list[int]
    context: int
    pages: list[int]
    logits: int


def make_plan(rows: list[Row]) -> StepPlan:
    """The StepPlan of these rows, in their order."""

    def starts(lengths: list[int]) -> npt.NDArray[np.int32]:
        return np.cumsum([0, *lengths]).astype(np.int32)

    query_start = starts([len(row.tokens) for row in rows])
    logits = [
        np.arange(end - row.logits, end) for row, end in zip(rows, query_start[1:], strict=True)
    ]
    return StepPlan(
        tokens=np.concatenate([row.tokens for row in rows]).astype(np.int32),
        query_start=query_start,
        context_start=np.array([row.context for row in rows], np.int32),
        pages=np.concatenate([row.pages for row in rows]).astype(np.int32),
        page_start=starts([len(row.pages) for row in rows]),
        logit_tokens=np.concatenate(logits).astype(np.int32),
    )


ARRAYS = [name for name in StepPlan.__slots__ if name != "logit_mask"]
"""The fields of a plan that the native model takes, in its order."""


def pages_for(tokens: int) -> int:
    """Pages that hold so many tokens."""
    return -(-tokens // PAGE_SIZE)
