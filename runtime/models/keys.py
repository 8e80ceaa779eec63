"""Reads the `ARCHITECTURE.key` values of a GGUF file and refuses wrong kinds and ranges by name."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sglite.errors import ModelError
from sglite.runtime.models.gguf import GGMLType, GGUFFile, StringArray

MAX_HEAD_DIM = 4096

# Keys that change the computation in a way that no config can express, with the values that mean
# "not used".
_UNSUPPORTED: dict[str, tuple[float | str, ...]] = {
    "attention.causal": (True,),
    "attention.clamp_kqv": (0.0,),
    "attention.max_alibi_bias": (0.0,),
    "attention.output_scale": (0.0, 1.0),
    "attention.shared_kv_layers": (0,),
    "attention.temperature_length": (0,),
    "attention.temperature_scale": (0.0,),
    "embedding_scale": (0.0, 1.0),
    "expert_gating_func": (0, 1),
    "expert_group_count": (0, 1),
    "expert_shared_count": (0,),
    "expert_weights_scale": (0.0, 1.0),
    "leading_dense_block_count": (0,),
    "logit_scale": (0.0, 1.0),
    "nextn_predict_layers": (0,),
    "residual_scale": (0.0, 1.0),
    "rope.scaling.alpha": (0.0, 1.0),
    "rope.scaling.yarn_ext_factor": (1.0,),
    "rope.scaling.yarn_log_multiplier": (0.0,),
    "router_logit_softcapping": (0.0,),
    "use_parallel_residual": (False,),
}


class Keys:
    """The values of one architecture in one file."""

    def __init__(self, gguf: GGUFFile, architecture: str) -> None:
        self.gguf = gguf
        self.architecture = architecture
        for key, unused in _UNSUPPORTED.items():
            value = self._value(key)
            if value is None or (isinstance(value, (int, float, str)) and value in unused):
                continue
            raise self.error(key, f"is {value!r}, which is not supported")

    def error(self, key: str, what: str) -> ModelError:
        return ModelError(f"{self.gguf.path}: {self.architecture}.{key} {what}")

    def has(self, key: str) -> bool:
        return self._value(key) is not None

    def size(self, key: str, default: int | None = None, *, least: int = 1) -> int:
        """A count, at least `least`."""
        value = self._value(key)
        value = default if value is None else value
        if value is None:
            raise self.error(key, "is missing")
        if type(value) is not int or not least <= value < 1 << 31:
            raise self.error(key, f"must be an integer from {least} to 2^31 - 1, not {value!r}")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """A positive finite number."""
        value = self._value(key)
        value = default if value is None else value
        if value is None:
            raise self.error(key, "is missing")
        if not isinstance(value, float) or not 0 < value < math.inf:
            raise self.error(key, f"must be a positive number, not {value!r}")
        return float(value)

    def optional(self, key: str) -> float | None:
        """A positive finite number, or None where it is missing or 0."""
        value = self._value(key)
        return (
            None if value is None or (isinstance(value, float) and value == 0) else self.number(key)
        )

    def flag(self, key: str, default: bool) -> bool:
        value = self._value(key)
        value = default if value is None else value
        if not isinstance(value, bool):
            raise self.error(key, f"must be true or false, not {value!r}")
        return value

    def text(self, key: str, default: str, known: Sequence[str]) -> str:
        """One of the known texts."""
        value = self._value(key)
        value = default if value is None else value
        if not isinstance(value, str) or value not in known:
            raise self.error(key, f"is {value!r}, which is not supported")
        return value

    def vocab_size(self) -> int:
        embedding = self.gguf.tensors.get("token_embd.weight")
        if embedding is None or len(embedding.shape) != 2:
            raise ModelError(f"{self.gguf.path}: there is no matrix token_embd.weight")
        rows = embedding.shape[0]
        if self.size("vocab_size", rows) != rows:
            raise self.error("vocab_size", f"must be the {rows} rows of token_embd.weight")
        tokens = self.gguf.metadata.get("tokenizer.ggml.tokens")
        if isinstance(tokens, StringArray) and len(tokens) != rows:
            raise ModelError(
                f"{self.gguf.path}: tokenizer.ggml.tokens has {len(tokens)} tokens, "
                f"token_embd.weight {rows} rows"
            )
        return rows

    def layer_count(self) -> int:
        count = self.size("block_count")
        # Checked before anything of that length is built.
        if count > len(self.gguf.tensors):
            raise self.error("block_count", f"is {count}, more than the file has tensors")
        return count

    def head_dim(self, width: int, heads: int) -> int:
        """Length of a head; keys and values must agree about it."""
        if not self.has("attention.key_length") and width % heads:
            raise self.error("attention.head_count", f"is {heads}, which does not divide {width}")
        head_dim = self.size("attention.key_length", width // heads or 1)
        if (length := self.size("attention.value_length", head_dim)) != head_dim:
            raise self.error(
                "attention.value_length",
                f"is {length}; only the length of a key, {head_dim}, works",
            )
        if head_dim % 2 or head_dim > MAX_HEAD_DIM:
            raise self.error(
                "attention.key_length", f"is {head_dim}; only even ones to {MAX_HEAD_DIM} work"
            )
        return head_dim

    def factors(self, name: str, count: int) -> list[float] | None:
        """The tensor `name` of `count` F32 values, all positive and finite, if the file has it."""
        info = self.gguf.tensors.get(name)
        if info is None:
            return None
        if info.type != GGMLType.F32 or info.shape != (count,):
            raise ModelError(
                f"{self.gguf.path}: tensor {name!r} is {info.type.name} {info.shape}, "
                f"not F32 ({count},) (byte {info.offset})"
            )
        values = self.gguf.data(name).view("<f4")
        if not (np.isfinite(values).all() and (values > 0).all()):
            raise ModelError(
                f"{self.gguf.path}: tensor {name!r} has a value that is no positive number "
                f"(byte {info.offset})"
            )
        factors: list[float] = values.astype(np.float64).tolist()
        return factors

    def _value(self, key: str) -> object:
        return self.gguf.metadata.get(f"{self.architecture}.{key}")
