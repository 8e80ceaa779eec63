"""The whole forward of one sequence, by its plain definition; the oracle of the backends.

Weights are float arrays under the names of GGUF; all arithmetic is float64. It knows nothing of
files, batches or quantisation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from sglite.kernels.reference import ops

Float = npt.NDArray[np.floating]
Float64 = npt.NDArray[np.float64]


class Rope(Protocol):
    """How queries and keys turn with their position."""

    @property
    def frequencies(self) -> Sequence[float]: ...
    @property
    def magnitude(self) -> float: ...


class Layer(Protocol):
    """What may differ from layer to layer."""

    @property
    def window(self) -> int | None: ...
    @property
    def rope(self) -> Rope | None: ...


class Experts(Protocol):
    """The feed-forwards of which each token takes some."""

    @property
    def used(self) -> int: ...
    @property
    def normalised(self) -> bool: ...


class Config(Protocol):
    """The description of a model, as in `runtime.models.config.ModelConfig`."""

    @property
    def heads(self) -> int: ...
    @property
    def kv_heads(self) -> int: ...
    @property
    def head_dim(self) -> int: ...
    @property
    def norm_epsilon(self) -> float: ...
    @property
    def activation(self) -> str: ...
    @property
    def rope_interleaved(self) -> bool: ...
    @property
    def qkv_bias(self) -> bool: ...
    @property
    def qk_norm(self) -> bool: ...
    @property
    def post_norms(self) -> bool: ...
    @property
    def embedding_scale(self) -> float: ...
    @property
    def attention_scale(self) -> float: ...
    @property
    def attention_cap(self) -> float | None: ...
    @property
    def logit_cap(self) -> float | None: ...
    @property
    def experts(self) -> Experts | None: ...
    @property
    def tied_output(self) -> bool: ...
    @property
    def layers(self) -> Sequence[Layer]: ...


_ACTIVATIONS = {"silu": ops.silu, "gelu_tanh": ops.gelu_tanh}


_PARTS = ("gate", "up", "down")

_HEAD_ROWS = 16384  # rows of the output matrix that are widened at once, to bound the memory


def forward(
    config: Config, weights: Mapping[str, Float], tokens: Sequence[int], last: int | None = None
) -> Float64:
    """Logits float64 [T, V] of all positions of `tokens`, which start at position 0.

    `weights` holds every tensor under its GGUF name, matrices as [out, in]. With `last`, only the
    logits of that many positions at the end are computed.
    """
    embedding = weights["token_embd.weight"]
    x = embedding[np.asarray(tokens)].astype(np.float64) * config.embedding_scale
    for index, layer in enumerate(config.layers):
        x = x + _attend(config, layer, weights, f"blk.{index}.", x)
        x = x + _feed_forward(config, weights, f"blk.{index}.", x)
    x = x if last is None else x[max(0, len(x) - last) :]
    x = ops.rms_norm(x, weights["output_norm.weight"], config.norm_epsilon)
    head = embedding if config.tied_output else weights["output.weight"]
    parts = [x @ _wide(head[i : i + _HEAD_ROWS]).T for i in range(0, len(head), _HEAD_ROWS)]
    return ops.soft_cap(np.concatenate(parts, axis=1), config.logit_cap)


def _attend(
    config: Config, layer: Layer, weights: Mapping[str, Float], prefix: str, x: Float64
) -> Float64:
    h = ops.rms_norm(x, weights[f"{prefix}attn_norm.weight"], config.norm_epsilon)

    def project(part: str) -> Float64:
        out: Float64 = h @ _wide(weights[f"{prefix}attn_{part}.weight"]).T
        if config.qkv_bias:
            out = out + weights[f"{prefix}attn_{part}.bias"]
        return out.reshape(len(x), -1, config.head_dim)

    q, k, v = map(project, "qkv")
    if config.qk_norm:
        q = ops.rms_norm(q, weights[f"{prefix}attn_q_norm.weight"], config.norm_epsilon)
        k = ops.rms_norm(k, weights[f"{prefix}attn_k_norm.weight"], config.norm_epsilon)
    positions = np.arange(len(x))
    if layer.rope is not None:
        rope, interleaved = layer.rope, config.rope_interleaved
        q = ops.rope(q, positions, rope.frequencies, interleaved, rope.magnitude)
        k = ops.rope(k, positions, rope.frequencies, interleaved, rope.magnitude)
    mixed = ops.attention(q, k, v, 0, config.attention_scale, layer.window, config.attention_cap)
    out: Float64 = mixed.reshape(len(x), -1) @ _wide(weights[f"{prefix}attn_output.weight"]).T
    return _post(config, weights, f"{prefix}post_attention_norm.weight", out)


def _feed_forward(config: Config, weights: Mapping[str, Float], prefix: str, x: Float64) -> Float64:
    h = ops.rms_norm(x, weights[f"{prefix}ffn_norm.weight"], config.norm_epsilon)
    if config.experts is None:
        matrices = (weights[f"{prefix}ffn_{part}.weight"] for part in _PARTS)
        out = _gated(config, h, *matrices)
    else:
        out = _experts(config, config.experts, weights, prefix, h)
    return _post(config, weights, f"{prefix}post_ffw_norm.weight", out)


def _gated(config: Config, h: Float64, gate: Float, up: Float, down: Float) -> Float64:
    activated = _ACTIVATIONS[config.activation](h @ _wide(gate).T)
    out: Float64 = (activated * (h @ _wide(up).T)) @ _wide(down).T
    return out


def _experts(
    config: Config, experts: Experts, weights: Mapping[str, Float], prefix: str, h: Float64
) -> Float64:
    shares = ops.softmax(h @ _wide(weights[f"{prefix}ffn_gate_inp.weight"]).T)
    chosen = np.argsort(-shares, axis=1, kind="stable")[:, : experts.used]
    kept = np.zeros_like(shares)
    np.put_along_axis(kept, chosen, np.take_along_axis(shares, chosen, axis=1), axis=1)
    if experts.normalised:
        kept /= kept.sum(axis=1, keepdims=True)
    out = np.zeros_like(h)
    for expert in np.unique(chosen):
        rows = np.flatnonzero((chosen == expert).any(axis=1))
        matrices = (weights[f"{prefix}ffn_{part}_exps.weight"][expert] for part in _PARTS)
        out[rows] += kept[rows, expert, None] * _gated(config, h[rows], *matrices)
    return out


def _post(config: Config, weights: Mapping[str, Float], name: str, out: Float64) -> Float64:
    return ops.rms_norm(out, weights[name], config.norm_epsilon) if config.post_norms else out


def _wide(matrix: Float) -> Float64:
    return matrix.astype(np.float64)
