"""The tensors of a model: which a config needs, and where they lie among those of a file.

A file may keep several matrices below each other in one tensor; they are taken apart here, so that
nothing behind this knows. It knows nothing of the bytes of a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from sglite.errors import ModelError
from sglite.runtime.models.config import ModelConfig
from sglite.runtime.models.ggml_types import GGMLType
from sglite.runtime.models.gguf import TensorInfo

ROPE_FACTORS = ("rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight")
"""Tensors that became part of the config."""

Shape = tuple[int, ...]


class TensorFile(Protocol):
    """Tensors under their names in GGUF."""

    @property
    def path(self) -> Path: ...
    @property
    def files(self) -> Sequence[Path]:
        """All that their bytes depend on."""
        ...

    @property
    def tensors(self) -> Mapping[str, TensorInfo]: ...
    def data(self, name: str) -> npt.NDArray[np.uint8]: ...


def tensor_shapes(config: ModelConfig) -> dict[str, Shape]:
    """Every tensor that the model needs, by its name in GGUF: shape in numpy order."""
    width, ff_width = config.width, config.ff_width
    q_width, kv_width = config.heads * config.head_dim, config.kv_heads * config.head_dim
    layer: dict[str, Shape] = {
        "attn_norm.weight": (width,),
        "attn_q.weight": (q_width, width),
        "attn_k.weight": (kv_width, width),
        "attn_v.weight": (kv_width, width),
        "attn_output.weight": (width, q_width),
        "ffn_norm.weight": (width,),
    }
    if config.experts is None:
        layer |= {
            "ffn_gate.weight": (ff_width, width),
            "ffn_up.weight": (ff_width, width),
            "ffn_down.weight": (width, ff_width),
        }
    else:
        count = config.experts.count
        layer |= {
            "ffn_gate_inp.weight": (count, width),
            "ffn_gate_exps.weight": (count, ff_width, width),
            "ffn_up_exps.weight": (count, ff_width, width),
            "ffn_down_exps.weight": (count, width, ff_width),
        }
    if config.qkv_bias:
        layer |= {"attn_q.bias": (q_width,), "attn_k.bias": (kv_width,), "attn_v.bias": (kv_width,)}
    if config.qk_norm:
        layer |= {
            "attn_q_norm.weight": (config.head_dim,),
            "attn_k_norm.weight": (config.head_dim,),
        }
    if config.post_norms:
        layer |= {"post_attention_norm.weight": (width,), "post_ffw_norm.weight": (width,)}
    shapes: dict[str, Shape] = {
        "token_embd.weight": (config.vocab_size, width),
        "output_norm.weight": (width,),
    }
    if not config.tied_output:
        shapes["output.weight"] = (config.vocab_size, width)
    for index in range(len(config.layers)):
        shapes |= {f"blk.{index}.{name}": shape for name, shape in layer.items()}
    return shapes


def parts_of(config: ModelConfig, name: str, shape: Shape) -> dict[str, Shape]:
    """The tensors that the tensor `name` of a file holds one below the other; mostly itself."""
    fused = re.fullmatch(r"(blk\.\d+\.)(attn_qkv|ffn_up)\.(weight|bias)", name)
    if fused is None or not shape:
        return {name: shape}
    layer, what, kind = fused.groups()
    kv_width = config.kv_heads * config.head_dim
    if what == "attn_qkv":
        rows = {"attn_q": config.heads * config.head_dim, "attn_k": kv_width, "attn_v": kv_width}
    else:
        rows = {"ffn_gate": config.ff_width, "ffn_up": config.ff_width}
    if sum(rows.values()) != shape[0]:
        return {name: shape}
    return {f"{layer}{part}.{kind}": (count, *shape[1:]) for part, count in rows.items()}


def check_tensors(file: TensorFile, config: ModelConfig) -> None:
    """Raises ModelError for a tensor that is missing, has another shape or no place."""
    shapes = tensor_shapes(config)
    found: dict[str, str] = {}
    for name, info in file.tensors.items():
        if name in ROPE_FACTORS:
            continue
        for part, shape in parts_of(config, name, info.shape).items():
            if part not in shapes:
                raise ModelError(
                    f"{file.path}: tensor {part!r} has no place in this {config.architecture} "
                    f"model; leaving it out would change what the model computes "
                    f"(byte {info.offset})"
                )
            if shape != shapes[part]:
                raise ModelError(
                    f"{file.path}: tensor {part!r} has the shape {shape}, not {shapes[part]} "
                    f"(byte {info.offset})"
                )
            if part in found:
                raise ModelError(
                    f"{file.path}: tensor {part!r} is in {found[part]!r} and in {name!r}"
                )
            found[part] = name
    for name, shape in shapes.items():
        if name not in found:
            raise ModelError(f"{file.path}: tensor {name!r} {shape} is missing")


def model_tensors(
    file: TensorFile, config: ModelConfig
) -> Iterator[tuple[str, GGMLType, Shape, npt.NDArray[np.uint8]]]:
    """Name, type, shape and data of all tensors, those that a file keeps in one taken apart."""
    for name, info in file.tensors.items():
        if name in ROPE_FACTORS:
            continue
        data = file.data(name)
        parts = parts_of(config, name, info.shape)
        start, row = 0, len(data) // max(1, sum(shape[0] for shape in parts.values()))
        for part, shape in parts.items():
            end = start + row * shape[0] if len(parts) > 1 else len(data)
            yield part, info.type, shape, data[start:end]
            start = end
