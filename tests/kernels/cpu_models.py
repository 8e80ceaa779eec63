"""Small random models for the tests of the CPU backend, and their definition in float64.

The definition reads the bytes of a tensor through the published gguf package, so that it shares no
code with the kernels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np
import numpy.typing as npt
from gguf.quants import dequantize

from sglite.runtime.models.config import LayerConfig, ModelConfig
from sglite.runtime.models.families import tensor_shapes
from sglite.runtime.models.ggml_types import GGMLType
from sglite.runtime.models.gguf import TensorInfo
from sglite.runtime.plan import PAGE_SIZE, StepPlan

Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FakeFile:
    """The part of a GGUFFile that a backend reads."""

    path: Path
    tensors: dict[str, TensorInfo]
    bytes_of: dict[str, npt.NDArray[np.uint8]]

    def data(self, name: str) -> npt.NDArray[np.uint8]:
        return self.bytes_of[name]


def llama(**changes: object) -> ModelConfig:
    """A Llama with three query heads to a KV head and untied output."""
    fields: dict[str, object] = {
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
        "layers": (LayerConfig(None, 10_000.0),) * 2,
    }
    return ModelConfig(**(fields | changes))  # type: ignore[arg-type]


def gemma(**changes: object) -> ModelConfig:
    """A Gemma 3 with a window shorter than a chunk of attention, and one longer."""
    layers = (LayerConfig(40, 10_000.0), LayerConfig(300, 10_000.0), LayerConfig(None, 1e6))
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


def random_file(config: ModelConfig, kind: GGMLType, rng: np.random.Generator) -> FakeFile:
    """A file whose matrices all have type `kind` and whose norms are F32."""
    infos, data = {}, {}
    for name, shape in tensor_shapes(config).items():
        if len(shape) == 1:
            values = rng.uniform(0.5, 1.5, shape).astype(np.float32)
            type_, raw = GGMLType.F32, values.view(np.uint8)
        else:
            type_, raw = kind, random_rows(kind, shape, rng)
        infos[name] = TensorInfo(name, type_, shape, 0, raw.size)
        data[name] = raw.reshape(-1)
    return FakeFile(Path("random.gguf"), infos, data)


def random_rows(
    kind: GGMLType, shape: tuple[int, ...], rng: np.random.Generator
) -> npt.NDArray[np.uint8]:
    """Random codes with scales that give values of about 1 / sqrt(columns)."""
    rows, cols = shape
    if kind in (GGMLType.F32, GGMLType.F16):
        values = rng.normal(0, cols**-0.5, shape)
        return values.astype(np.float32 if kind == GGMLType.F32 else np.float16).view(np.uint8)
    length, size = kind.block
    blocks = rng.integers(0, 256, (rows, cols // length, size), np.uint8)
    # Where the f16 scales of a block lie, and the largest code that they multiply.
    scales = {
        GGMLType.Q4_0: {0: 8},
        GGMLType.Q4_1: {0: 8, 2: 1},
        GGMLType.Q5_0: {0: 16},
        GGMLType.Q8_0: {0: 128},
        GGMLType.Q4_K: {0: 63 * 8, 2: 63},
        GGMLType.Q6_K: {208: 128 * 32},
    }[kind]
    for at, most in scales.items():
        scale = rng.uniform(-1, 1, blocks.shape[:2]) * cols**-0.5 / most
        blocks[:, :, at : at + 2] = scale.astype(np.float16)[..., None].view(np.uint8)
    return blocks


def weights(file: FakeFile, name: str) -> Float64:
    """The values of a tensor as the gguf package reads them."""
    info = file.tensors[name]
    rows = file.data(name).reshape(info.shape[0] if len(info.shape) == 2 else 1, -1)
    kind = gguf.GGMLQuantizationType(int(info.type))
    return dequantize(rows, kind).astype(np.float64).reshape(info.shape)


def reference_logits(file: FakeFile, config: ModelConfig, tokens: list[int]) -> Float64:
    """Logits float64 [T, V] of every token of one sequence, after the definition of the config."""

    def norm(x: Float64, name: str) -> Float64:
        factor = np.sqrt((x * x).mean(-1, keepdims=True) + config.norm_epsilon)
        return x / factor * weights(file, name + ".weight")

    embedding = weights(file, "token_embd.weight")
    x = embedding[tokens] * config.embedding_scale
    distance = np.arange(len(tokens))[:, None] - np.arange(len(tokens))[None]
    for index, layer in enumerate(config.layers):
        name = f"blk.{index}."

        def project(x: Float64, matrix: str, name: str = name) -> Float64:
            return x @ weights(file, f"{name}{matrix}.weight").T

        h = norm(x, name + "attn_norm")
        q, k, v = (
            project(h, f"attn_{part}").reshape(len(tokens), -1, config.head_dim) for part in "qkv"
        )
        if config.qk_norm:
            q, k = norm(q, name + "attn_q_norm"), norm(k, name + "attn_k_norm")
        q, k = (_rotate(part, layer.rope_base, config.rope_interleaved) for part in (q, k))
        k, v = (np.repeat(part, config.heads // config.kv_heads, axis=1) for part in (k, v))
        scores = np.einsum("qhd,khd->hqk", q, k) * config.attention_scale
        seen = (distance >= 0) & (distance < (layer.window or len(tokens)))
        scores = np.where(seen, scores, -np.inf)
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        scores /= scores.sum(-1, keepdims=True)
        h = np.einsum("hqk,khd->qhd", scores, v).reshape(len(tokens), -1)
        h = project(h, "attn_output")
        x = x + (norm(h, name + "post_attention_norm") if config.post_norms else h)
        h = norm(x, name + "ffn_norm")
        h = project(_activate(config, project(h, "ffn_gate")) * project(h, "ffn_up"), "ffn_down")
        x = x + (norm(h, name + "post_ffw_norm") if config.post_norms else h)
    head = embedding if config.tied_output else weights(file, "output.weight")
    return norm(x, "output_norm") @ head.T


def _rotate(x: Float64, base: float, interleaved: bool) -> Float64:
    half = x.shape[-1] // 2
    angles = np.arange(len(x))[:, None] * base ** (-np.arange(half) / half)
    turn = np.exp(1j * angles)[:, None]
    first, second = (
        (slice(0, None, 2), slice(1, None, 2))
        if interleaved
        else (
            slice(0, half),
            slice(half, None),
        )
    )
    turned = (x[..., first] + 1j * x[..., second]) * turn
    out = np.empty_like(x)
    out[..., first], out[..., second] = turned.real, turned.imag
    return out


def _activate(config: ModelConfig, x: Float64) -> Float64:
    if config.activation == "silu":
        return x / (1 + np.exp(-x))
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


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


def pages_for(tokens: int) -> int:
    """Pages that hold so many tokens."""
    return -(-tokens // PAGE_SIZE)
