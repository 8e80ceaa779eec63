"""A folder as transformers saves models: `config.json`, weights in safetensors, `tokenizer.json`.

Tensors appear under their names in GGUF, so that nothing behind this knows where they come from.
What differs from a GGUF file is undone here: experts of their own become one tensor, and Gemma's
norms, which are stored without the 1 that they add, get it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sglite.errors import ModelError
from sglite.runtime.models.config import ModelConfig
from sglite.runtime.models.config_json import config_from_json
from sglite.runtime.models.ggml_types import GGMLType
from sglite.runtime.models.gguf import TensorInfo
from sglite.runtime.models.quantise import QUANTISERS, to_float32
from sglite.runtime.models.safetensors import SafetensorsFile
from sglite.runtime.models.tensors import check_tensors

INDEX = "model.safetensors.index.json"
WHOLE = "model.safetensors"

_OUTSIDE = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}
_INSIDE = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.qkv_proj": "attn_qkv",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.gate_up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "mlp.gate": "ffn_gate_inp",
    "block_sparse_moe.gate": "ffn_gate_inp",
}
_LAYER = re.compile(r"model\.layers\.(\d{1,5})\.(.+)")
_EXPERT = re.compile(
    r"(?:mlp|block_sparse_moe)\.experts\.(\d{1,5})\.(gate_proj|up_proj|down_proj|w1|w2|w3)\.weight"
)
_EXPERTS = re.compile(r"mlp\.experts\.(gate_up_proj|down_proj)")
_EXPERT_PARTS = {
    "gate_proj": "ffn_gate_exps.weight",
    "up_proj": "ffn_up_exps.weight",
    "down_proj": "ffn_down_exps.weight",
    "w1": "ffn_gate_exps.weight",
    "w3": "ffn_up_exps.weight",
    "w2": "ffn_down_exps.weight",
}
_BUFFER = re.compile(r".*rotary_emb\.inv_freq")


@dataclass(frozen=True, slots=True)
class _Piece:
    """Rows [first, first + rows) of each matrix of a stored tensor, all of it where rows is 0."""

    file: SafetensorsFile
    name: str
    first: int = 0
    rows: int = 0


class ModelFolder:
    """An open folder. `weights`: None to take matrices as they are stored, or the type to quantise
    them to. Raises ModelError for whatever is wrong with it."""

    def __init__(self, path: Path, weights: str | None = None) -> None:
        if weights is not None and weights not in QUANTISERS:
            raise ValueError(f"weights must be one of {', '.join(QUANTISERS)}, got {weights!r}")
        self.path = path
        self._weights = weights
        self._shards = [SafetensorsFile(file) for file in _shard_paths(path)]
        self.files = (path / "config.json", *(shard.path for shard in self._shards))
        self._config = config_from_json(path / "config.json")
        self._pieces = self._find()
        self.tensors: Mapping[str, TensorInfo] = {
            name: self._describe(name, pieces) for name, pieces in self._pieces.items()
        }

    def config(self, context: int | None = None) -> ModelConfig:
        """The config, with every tensor present and of the right shape. Raises ModelError."""
        config = config_from_json(self.path / "config.json", context)
        check_tensors(self, config)
        return config

    def data(self, name: str) -> NDArray[np.uint8]:
        """The bytes of a tensor, uint8 [nbytes]: a view of a mapping where it lies there so."""
        info = self.tensors[name]
        stored = [_bytes_of(piece) for piece in self._pieces[name]]
        whole = stored[0] if len(stored) == 1 else np.concatenate(stored)
        kind = self._stored_type(name)
        if self._adds_one(name):
            return (to_float32(whole, kind) + np.float32(1)).view(np.uint8)
        if info.type == kind:
            return whole
        return QUANTISERS[str(self._weights)].quantise(whole, kind, info.shape[-1])

    def _stored_type(self, name: str) -> GGMLType:
        kinds = {piece.file.type_of(piece.name) for piece in self._pieces[name]}
        if len(kinds) > 1:
            raise self._error(f"the experts of {name!r} have different types")
        return kinds.pop()

    def _adds_one(self, name: str) -> bool:
        return self._config.architecture.startswith("gemma") and name.endswith("_norm.weight")

    def _describe(self, name: str, pieces: list[_Piece]) -> TensorInfo:
        first = pieces[0]
        stored = first.file.tensors[first.name]
        shapes = {piece.file.tensors[piece.name].shape for piece in pieces}
        if len(shapes) > 1:
            raise self._error(f"the experts of {name!r} have different shapes")
        shape = stored.shape
        if first.rows:
            shape = (shape[0], first.rows, *shape[2:])
        elif len(pieces) > 1 or name.endswith("_exps.weight"):
            shape = shape if len(shape) == 3 else (len(pieces), *shape)
        kind = self._stored_type(name)
        if self._adds_one(name):
            kind = GGMLType.F32
        elif self._weights and len(shape) > 1 and shape[-1] % 32 == 0:
            kind = QUANTISERS[self._weights].type
        length, size = kind.block
        return TensorInfo(name, kind, shape, stored.offset, prod(shape) // length * size)

    def _find(self) -> dict[str, list[_Piece]]:
        """The stored pieces of each tensor by its name in GGUF."""
        found: dict[str, list[_Piece]] = {}
        experts: dict[str, dict[int, _Piece]] = {}
        for shard in self._shards:
            for name in shard.tensors:
                if _BUFFER.fullmatch(name) or (
                    name == "lm_head.weight" and self._config.tied_output
                ):
                    continue
                layer = _LAYER.fullmatch(name)
                expert = _EXPERT.fullmatch(layer[2]) if layer else None
                stacked = _EXPERTS.fullmatch(layer[2]) if layer else None
                if layer and expert:
                    whole = f"blk.{int(layer[1])}.{_EXPERT_PARTS[expert[2]]}"
                    experts.setdefault(whole, {})[int(expert[1])] = _Piece(shard, name)
                elif layer and stacked:
                    self._add_stacked(found, f"blk.{int(layer[1])}.", stacked[1], shard, name)
                else:
                    self._add(found, self._name(name), [_Piece(shard, name)])
        for name, pieces in experts.items():
            if sorted(pieces) != list(range(len(pieces))):
                raise self._error(f"of the {len(pieces)} experts of {name!r} some are missing")
            self._add(found, name, [pieces[index] for index in range(len(pieces))])
        return found

    def _add_stacked(
        self,
        found: dict[str, list[_Piece]],
        layer: str,
        part: str,
        shard: SafetensorsFile,
        name: str,
    ) -> None:
        shape = shard.tensors[name].shape
        if part == "down_proj":
            self._add(found, f"{layer}ffn_down_exps.weight", [_Piece(shard, name)])
            return
        if len(shape) != 3 or shape[1] % 2 or shape[1] == 0:
            raise self._error(f"tensor {name!r} has the shape {shape}, which is not gates and ups")
        half = shape[1] // 2
        for what, first in (("gate", 0), ("up", half)):
            self._add(found, f"{layer}ffn_{what}_exps.weight", [_Piece(shard, name, first, half)])

    def _add(self, found: dict[str, list[_Piece]], name: str, pieces: list[_Piece]) -> None:
        if name in found:
            raise self._error(
                f"tensor {pieces[0].name!r} is there twice, as {found[name][0].name!r} too"
            )
        found[name] = pieces

    def _name(self, name: str) -> str:
        """The name in GGUF; an unknown one stays as it is, and has no place in the model."""
        layer = _LAYER.fullmatch(name)
        if layer is None:
            return _OUTSIDE.get(name, name)
        stem, dot, kind = layer[2].rpartition(".")
        if stem == "post_attention_layernorm":
            ours = "post_attention_norm" if self._config.post_norms else "ffn_norm"
        else:
            ours = _INSIDE.get(stem, stem)
        return f"blk.{int(layer[1])}.{ours}{dot}{kind}"

    def _error(self, what: str) -> ModelError:
        return ModelError(f"{self.path}: {what}")


def _bytes_of(piece: _Piece) -> NDArray[np.uint8]:
    data = piece.file.data(piece.name)
    if not piece.rows:
        return data
    count, rows = piece.file.tensors[piece.name].shape[:2]
    cut = data.reshape(count, rows, -1)[:, piece.first : piece.first + piece.rows]
    return np.ascontiguousarray(cut).reshape(-1)


def _shard_paths(path: Path) -> list[Path]:
    index = path / INDEX
    if (path / WHOLE).is_file():
        return [path / WHOLE]
    if not index.is_file():
        torch = [file.name for file in (*path.glob("*.bin"), *path.glob("*.pth"))]
        also = f"; {torch[0]} is of another format, save it as safetensors" if torch else ""
        raise ModelError(f"{path}: the folder has neither {WHOLE} nor {INDEX}{also}")
    names = read_json(index).get("weight_map")
    if not isinstance(names, dict) or not all(isinstance(n, str) for n in names.values()):
        raise ModelError(f"{index}: weight_map is no object of file names")
    files = sorted(set(names.values()))
    for name in files:
        if Path(name).name != name:
            raise ModelError(f"{index}: {name!r} is no name of a file in this folder")
    return [path / name for name in files]


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file. Raises ModelError."""
    try:
        values = json.loads(path.read_bytes())
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path}: is no JSON: {error}") from error
    if not isinstance(values, dict):
        raise ModelError(f"{path}: is no JSON object")
    return values
