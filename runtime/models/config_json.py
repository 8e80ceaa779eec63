"""How the `config.json` of a transformers folder becomes a ModelConfig.

The same families as in GGUF, by other names and keys; weights in such a folder are in the order
that does not interleave rotated pairs. What would change the computation and is not modelled is
refused by its key.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sglite.errors import ModelError
from sglite.runtime.models import rope
from sglite.runtime.models.config import Experts, LayerConfig, ModelConfig
from sglite.runtime.models.families import FAMILIES
from sglite.runtime.models.keys import MAX_HEAD_DIM

_MAX_BYTES = 16 << 20
_MAX_LAYERS = 4096

_ARCHITECTURES = {
    "llama": "llama",
    "mistral": "llama",
    "mixtral": "llama",
    "smollm3": "smollm3",
    "qwen2": "qwen2",
    "qwen3": "qwen3",
    "qwen3_moe": "qwen3moe",
    "phi3": "phi3",
    "gemma2": "gemma2",
    "gemma3_text": "gemma3",
}
"""The name in GGUF of each `model_type`."""

_ACTIVATIONS = {"silu": "silu", "gelu_pytorch_tanh": "gelu_tanh"}

# Keys that no config can express, with the values that mean "not used".
_UNSUPPORTED: dict[str, tuple[object, ...]] = {
    "attention_bias": (False,),
    "mlp_bias": (False,),
    "mlp_only_layers": ([],),
    "decoder_sparse_step": (1,),
    "quantization_config": (),
    "use_bidirectional_attention": (False,),
}

_FULL, _SLIDING = "full_attention", "sliding_attention"


def config_from_json(path: Path, context: int | None = None) -> ModelConfig:
    """The config that the file `path` describes.

    context: most tokens of a sequence, None for all that the model has. Raises ModelError that
    names the key.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
        if len(content) > _MAX_BYTES:
            raise ModelError(f"{path}: more than {_MAX_BYTES} bytes are no config")
        values = json.loads(content)
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path}: is no JSON: {error}") from error
    if not isinstance(values, dict):
        raise ModelError(f"{path}: is no JSON object")
    kind = values.get("model_type")
    if not isinstance(kind, str) or kind not in _ARCHITECTURES:
        known = ", ".join(sorted(_ARCHITECTURES))
        raise ModelError(f"{path}: model_type is {kind!r}; known are {known}")
    return _config(_Keys(path, values), kind, context)


@dataclass(frozen=True, slots=True)
class _Keys:
    """Values of one JSON object, those that are null being missing."""

    path: Path
    values: Mapping[str, Any]
    prefix: str = ""

    def error(self, key: str, what: str) -> ModelError:
        return ModelError(f"{self.path}: {self.prefix}{key} {what}")

    def has(self, key: str) -> bool:
        return self.values.get(key) is not None

    def size(self, key: str, default: int | None = None, *, most: int = (1 << 31) - 1) -> int:
        value = self.values.get(key)
        value = default if value is None else value
        if value is None:
            raise self.error(key, "is missing")
        if type(value) is not int or not 0 < value <= most:
            raise self.error(key, f"must be an integer from 1 to {most}, not {value!r}")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        value = self.values.get(key)
        value = default if value is None else value
        if value is None:
            raise self.error(key, "is missing")
        if type(value) not in (int, float) or not 0 < value < 1e38:
            raise self.error(key, f"must be a positive number, not {value!r}")
        return float(value)

    def flag(self, key: str, default: bool) -> bool:
        value = self.values.get(key)
        value = default if value is None else value
        if not isinstance(value, bool):
            raise self.error(key, f"must be true or false, not {value!r}")
        return value

    def items(self, key: str, count: int) -> list[Any]:
        value = self.values.get(key)
        if not isinstance(value, list) or len(value) != count:
            raise self.error(key, f"must be a list of {count}")
        return value

    def numbers(self, key: str, count: int) -> list[float]:
        numbers = self.items(key, count)
        if not all(type(x) in (int, float) and 1e-6 < x < 1e6 for x in numbers):
            raise self.error(key, f"must be a list of {count} positive numbers")
        return [float(x) for x in numbers]

    def part(self, key: str) -> _Keys:
        value = self.values.get(key)
        if not isinstance(value, dict):
            raise self.error(key, f"must be an object, not {value!r}")
        return _Keys(self.path, value, f"{self.prefix}{key}.")


def _config(keys: _Keys, kind: str, context: int | None) -> ModelConfig:
    for key, unused in _UNSUPPORTED.items():
        if keys.has(key) and keys.values[key] not in unused:
            raise keys.error(key, f"is {keys.values[key]!r}, which is not supported")
    architecture = _ARCHITECTURES[kind]
    family = FAMILIES[architecture]
    gemma = kind.startswith("gemma")
    activation = keys.values.get("hidden_activation") or keys.values.get("hidden_act")
    if not isinstance(activation, str) or _ACTIVATIONS.get(activation) != family.activation:
        key = "hidden_activation" if keys.has("hidden_activation") else "hidden_act"
        raise keys.error(key, f"is {activation!r}, which is not supported for {kind}")
    width = keys.size("hidden_size")
    heads = keys.size("num_attention_heads")
    kv_heads = keys.size("num_key_value_heads", heads)
    if heads % kv_heads:
        raise keys.error("num_key_value_heads", f"is {kv_heads}, which does not divide {heads}")
    derived = None if gemma or kind == "qwen3" else width // heads or 1
    head_dim = keys.size("head_dim", derived, most=MAX_HEAD_DIM)
    if head_dim % 2:
        raise keys.error("head_dim", f"is {head_dim}, which is odd")
    experts = _experts(keys, kind)
    wide = experts is not None and kind != "mixtral"
    scalar = keys.number("query_pre_attn_scalar") if gemma else head_dim
    return ModelConfig(
        architecture=architecture,
        vocab_size=keys.size("vocab_size"),
        context_length=keys.size("max_position_embeddings"),
        width=width,
        ff_width=keys.size("moe_intermediate_size" if wide else "intermediate_size"),
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        norm_epsilon=keys.number("rms_norm_eps"),
        activation=family.activation,
        rope_interleaved=False,
        qkv_bias=kind == "qwen2",
        qk_norm=family.qk_norm,
        post_norms=family.post_norms,
        embedding_scale=math.sqrt(width) if family.scaled_embedding else 1.0,
        attention_scale=1 / math.sqrt(scalar),
        attention_cap=_cap(keys, "attn_logit_softcapping"),
        logit_cap=_cap(keys, "final_logit_softcapping"),
        experts=experts,
        tied_output=keys.flag("tie_word_embeddings", gemma or kind == "smollm3"),
        layers=_layers(keys, kind, head_dim, context),
    )


def _cap(keys: _Keys, key: str) -> float | None:
    return keys.number(key) if keys.has(key) else None


def _experts(keys: _Keys, kind: str) -> Experts | None:
    names = {"mixtral": ("num_local_experts",), "qwen3_moe": ("num_experts", "num_local_experts")}
    if kind not in names:
        return None
    name = next((name for name in names[kind] if keys.has(name)), names[kind][0])
    count, used = keys.size(name), keys.size("num_experts_per_tok")
    if used > count:
        raise keys.error("num_experts_per_tok", f"is {used}, more than the {count} experts")
    return Experts(count, used, kind == "mixtral" or keys.flag("norm_topk_prob", False))


def _layers(keys: _Keys, kind: str, head_dim: int, context: int | None) -> tuple[LayerConfig, ...]:
    count = keys.size("num_hidden_layers", most=_MAX_LAYERS)
    kinds = _layer_kinds(keys, kind, count)
    ropes = {name: _rope(keys, kind, name, head_dim, context) for name in sorted(set(kinds))}
    windows = {_FULL: None, _SLIDING: keys.size("sliding_window") if _SLIDING in kinds else None}
    turned = [True] * count
    if kind == "smollm3" and keys.has("no_rope_layers"):
        turned = [item == 1 for item in keys.items("no_rope_layers", count)]
    elif kind == "smollm3":
        interval = keys.size("no_rope_layer_interval", FAMILIES[kind].unturned)
        turned = [number % interval != 0 for number in range(1, count + 1)]
    return tuple(
        LayerConfig(windows[name], ropes[name] if turns else None)
        for name, turns in zip(kinds, turned, strict=True)
    )


def _layer_kinds(keys: _Keys, kind: str, count: int) -> list[str]:
    if keys.has("layer_types"):
        kinds = keys.items("layer_types", count)
        for name in kinds:
            if name not in (_FULL, _SLIDING):
                raise keys.error("layer_types", f"has {name!r}, which is not supported")
        return kinds
    numbers = range(1, count + 1)
    if kind.startswith("gemma"):
        named = "sliding_window_pattern" if keys.has("sliding_window_pattern") else None
        everywhere = FAMILIES[_ARCHITECTURES[kind]].everywhere
        period = keys.size(named or "_sliding_window_pattern", everywhere)
        return [_FULL if number % period == 0 else _SLIDING for number in numbers]
    windowed = keys.has("sliding_window") and kind != "llama"
    if kind.startswith("qwen") or kind == "smollm3":
        windowed = windowed and keys.flag("use_sliding_window", False)
        if windowed:
            first = keys.size("max_window_layers")
            return [_SLIDING if number > first else _FULL for number in numbers]
    return [_SLIDING if windowed else _FULL] * count


def _rope(keys: _Keys, kind: str, layer_kind: str, head_dim: int, context: int | None) -> rope.Rope:
    """That of the layers of one kind, from `rope_parameters` or from the keys before there were."""
    base = FAMILIES[_ARCHITECTURES[kind]].rope_base
    theta = keys.number("rope_theta", base)
    local = kind == "gemma3_text" and layer_kind == _SLIDING
    if keys.has("rope_parameters"):
        values = keys.part("rope_parameters")
        if values.has(layer_kind):
            values = values.part(layer_kind)
        theta = values.number("rope_theta", theta)
    elif local:
        values, theta = _Keys(keys.path, {}), keys.number("rope_local_base_freq", 10_000.0)
    elif keys.has("rope_scaling"):
        values = keys.part("rope_scaling")
    else:
        values = _Keys(keys.path, {})
    if theta <= 1:
        raise keys.error("rope_theta", f"is {theta}, not above 1")
    share = values.number("partial_rotary_factor", keys.number("partial_rotary_factor", 1.0))
    size = int(head_dim * share)
    if not 0 < size <= head_dim or size % 2:
        raise keys.error("partial_rotary_factor", f"is {share}; no even part of {head_dim}")
    return _scaled(keys, values, theta, size, context)


def _scaled(keys: _Keys, values: _Keys, theta: float, size: int, context: int | None) -> rope.Rope:
    name = values.values.get("rope_type") or values.values.get("type") or "default"
    if name == "default":
        return rope.plain(theta, size)
    if name == "linear":
        return rope.linear(theta, size, values.number("factor"))
    reach = keys.size("max_position_embeddings")
    # Phi-3 names it beside the others; where both do, that is the one that counts.
    where = keys if keys.has("original_max_position_embeddings") else values
    original = where.size("original_max_position_embeddings")
    if name == "llama3":
        low, high = values.number("low_freq_factor"), values.number("high_freq_factor")
        if high <= low:
            raise values.error("high_freq_factor", f"is {high}, not above low_freq_factor {low}")
        return rope.llama3(theta, size, values.number("factor"), low, high, original)
    magnitude = values.number("attention_factor") if values.has("attention_factor") else None
    factor = values.number("factor", reach / original)
    if name == "yarn":
        for key in ("mscale", "mscale_all_dim"):
            if values.has(key):
                raise values.error(key, "is not supported")
        if not values.flag("truncate", True):
            raise values.error("truncate", "is false, which is not supported")
        return rope.yarn(
            theta,
            size,
            factor,
            original,
            magnitude=magnitude,
            beta_fast=values.number("beta_fast", 32.0),
            beta_slow=values.number("beta_slow", 1.0),
        )
    if name in ("longrope", "su"):
        if original < 2:
            raise where.error("original_max_position_embeddings", f"is {original}")
        long = (context or reach) > original
        factors = values.numbers("long_factor" if long else "short_factor", size // 2)
        if magnitude is None:
            magnitude = rope.longrope_magnitude(factor, original)
        return rope.divided(theta, size, factors, magnitude)
    raise values.error("rope_type", f"is {name!r}, which is not supported")
