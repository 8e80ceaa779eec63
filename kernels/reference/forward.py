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


class Layer(Protocol):
    """What may differ from layer to layer."""

    @property
    def window(self) -> int | None: ...
    @property
    def rope_base(self) -> float: ...


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
    def qk_norm(self) -> bool: ...
    @property
    def post_norms(self) -> bool: ...
    @property
    def embedding_scale(self) -> float: ...
    @property
    def attention_scale(self) -> float: ...
    @property
    def tied_output(self) -> bool: ...
    @property
    def layers(self) -> Sequence[Layer]: ...


_ACTIVATIONS = {"silu": ops.silu, "gelu_tanh": ops.gelu_tanh}


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
    return np.concatenate(parts, axis=1)


def _attend(
    config: Config, layer: Layer, weights: Mapping[str, Float], prefix: str, x: Float64
) -> Float64:
    h = ops.rms_norm(x, weights[f"{prefix}attn_norm.weight"], config.norm_epsilon)
    q, k, v = (
        (h @ _wide(weights[f"{prefix}attn_{part}.weight"]).T).reshape(len(x), -1, config.head_dim)
        for part in "qkv"
    )
    if config.qk_norm:
        q = ops.rms_norm(q, weights[f"{prefix}attn_q_norm.weight"], config.norm_epsilon)
        k = ops.rms_norm(k, weights[f"{prefix}attn_k_norm.weight"], config.norm_epsilon)
    positions = np.arange(len(x))
    q = ops.rope(q, positions, layer.rope_base, config.rope_interleaved)
    k = ops.rope(k, positions, layer.rope_base, config.rope_interleaved)
    mixed = ops.attention(q, k, v, 0, config.attention_scale, layer.window)
    out: Float64 = mixed.reshape(len(x), -1) @ _wide(weights[f"{prefix}attn_output.weight"]).T
    return _post(config, weights, f"{prefix}post_attention_norm.weight", out)


def _feed_forward(config: Config, weights: Mapping[str, Float], prefix: str, x: Float64) -> Float64:
    h = ops.rms_norm(x, weights[f"{prefix}ffn_norm.weight"], config.norm_epsilon)
    gate = _ACTIVATIONS[config.activation](h @ _wide(weights[f"{prefix}ffn_gate.weight"]).T)
    up = h @ _wide(weights[f"{prefix}ffn_up.weight"]).T
    out: Float64 = (gate * up) @ _wide(weights[f"{prefix}ffn_down.weight"]).T
    return _post(config, weights, f"{prefix}post_ffw_norm.weight", out)


def _post(config: Config, weights: Mapping[str, Float], name: str, out: Float64) -> Float64:
    return ops.rms_norm(out, weights[name], config.norm_epsilon) if config.post_norms else out


def _wide(matrix: Float) -> Float64:
    return matrix.astype(np.float64)
