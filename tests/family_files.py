"""Tiny random models of every family, made by transformers and written as GGUF by the published
package, with what converters do to the weights on the way.

Sizes are such that each kind of layer, each window and each change of the rotation is crossed by
TOKENS tokens, and the weights such that each of them shows in the logits.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
import transformers

from sglite.runtime.models.config import Experts

TOKENS = 90
WINDOW = 24
ORIGINAL = 32
"""The context before a rotation was stretched."""

Array = np.ndarray[Any, Any]

_SHAPE = {
    "vocab_size": 101,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "attn_implementation": "eager",
    "tie_word_embeddings": False,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": None,
}


@dataclass(frozen=True)
class Family:
    """kind: the model in transformers, `Llama` for LlamaConfig and LlamaForCausalLM. keys: what the
    file says beside the shapes. dropped: changes of a config that the logits must show."""

    kind: str
    architecture: str
    changes: dict[str, Any] = field(default_factory=dict)
    keys: dict[str, Any] = field(default_factory=dict)
    factors: Callable[[Any], dict[str, Array]] = lambda config: {}
    dropped: tuple[dict[str, Any], ...] = ()

    def model(self, seed: int) -> Any:
        """The model in float64, all its weights random."""
        config = getattr(transformers, f"{self.kind}{'Text' * (self.kind == 'Gemma3')}Config")
        torch.manual_seed(seed)
        model = getattr(transformers, f"{self.kind}ForCausalLM")(config(**_SHAPE | self.changes))
        for name, weight in model.named_parameters():
            if "norm" in name:
                middle = 0.0 if self.kind.startswith("Gemma") else 1.0
                torch.nn.init.uniform_(weight, middle - 0.5, middle + 0.5)
            elif weight.dim() == 1:
                torch.nn.init.uniform_(weight, -1, 1)
            else:
                torch.nn.init.normal_(weight, 0, 2 * weight.shape[-1] ** -0.5)
        return model.double().eval()


def _llama3_factors(config: Any) -> dict[str, Array]:
    plain = config.rope_parameters["rope_theta"] ** -(np.arange(8) / 8)
    initialise = transformers.modeling_rope_utils.ROPE_INIT_FUNCTIONS["llama3"]
    frequencies, _ = initialise(config, torch.device("cpu"))
    return {"rope_freqs.weight": plain / frequencies.double().numpy()}


def _longrope_factors(config: Any) -> dict[str, Array]:
    return {
        f"rope_factors_{kind}.weight": np.array(config.rope_parameters[f"{kind}_factor"])
        for kind in ("long", "short")
    }


def _rope(kind: str, theta: float = 10_000.0, **keys: Any) -> dict[str, Any]:
    return {"rope_parameters": {"rope_type": kind, "rope_theta": theta, **keys}}


def _longrope(pairs: int, **keys: Any) -> dict[str, Any]:
    rng = np.random.default_rng(pairs)
    return _rope(
        "longrope",
        short_factor=rng.uniform(1, 2, pairs).tolist(),
        long_factor=rng.uniform(2, 8, pairs).tolist(),
        **keys,
    )


_YARN = {"factor": 4.0, "original_max_position_embeddings": ORIGINAL}
_LLAMA3 = _YARN | {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
_LONGROPE_MAGNITUDE = (1 + np.log(128 / ORIGINAL) / np.log(ORIGINAL)) ** 0.5
_SCALING = "rope.scaling"
_PHI = {"original_max_position_embeddings": ORIGINAL, "sliding_window": None}

FAMILIES = {
    "llama2": Family(
        "Llama",
        "llama",
        {"num_key_value_heads": 4} | _rope("linear", factor=4.0),
        {f"{_SCALING}.type": "linear", f"{_SCALING}.factor": 4.0},
    ),
    "llama3": Family(
        "Llama",
        "llama",
        {"tie_word_embeddings": True} | _rope("llama3", 500_000.0, **_LLAMA3),
        {"rope.freq_base": 500_000.0},
        _llama3_factors,
    ),
    "mistral": Family(
        "Mistral", "llama", {"sliding_window": WINDOW}, {"attention.sliding_window": WINDOW}
    ),
    "smollm3": Family(
        "SmolLM3",
        "smollm3",
        {"no_rope_layer_interval": 4} | _rope("default", 5e6),
        {"rope.freq_base": 5e6},
    ),
    "qwen2": Family(
        "Qwen2", "qwen2", {"tie_word_embeddings": True}, {}, dropped=({"qkv_bias": False},)
    ),
    "qwen2.5-yarn": Family(
        "Qwen2",
        "qwen2",
        _rope("yarn", 1e6, **_YARN),
        {
            "rope.freq_base": 1e6,
            f"{_SCALING}.type": "yarn",
            f"{_SCALING}.factor": 4.0,
            f"{_SCALING}.original_context_length": ORIGINAL,
        },
    ),
    "qwen3": Family(
        "Qwen3",
        "qwen3",
        {"head_dim": 32} | _rope("default", 1e6),
        {"rope.freq_base": 1e6},
        dropped=({"qk_norm": False},),
    ),
    "qwen3-moe": Family(
        "Qwen3Moe",
        "qwen3moe",
        {"head_dim": 32, "num_experts": 6, "num_experts_per_tok": 2, "norm_topk_prob": True}
        | {"moe_intermediate_size": 32, "experts_implementation": "eager"},
        {"expert_count": 6, "expert_used_count": 2, "expert_feed_forward_length": 32},
        dropped=(
            {"experts": Experts(6, 2, normalised=False)},
            {"experts": Experts(6, 1, normalised=True)},
        ),
    ),
    "qwen3-moe-plain-shares": Family(
        "Qwen3Moe",
        "qwen3moe",
        {"num_experts": 5, "num_experts_per_tok": 3, "norm_topk_prob": False}
        | {"moe_intermediate_size": 64, "experts_implementation": "eager"},
        {"expert_count": 5, "expert_used_count": 3, "expert_feed_forward_length": 64}
        | {"expert_weights_norm": False},
    ),
    "mixtral": Family(
        "Mixtral",
        "llama",
        {"num_local_experts": 4, "num_experts_per_tok": 2, "experts_implementation": "eager"}
        | _rope("default", 1e6),
        {"rope.freq_base": 1e6, "expert_count": 4, "expert_used_count": 2},
    ),
    "gemma2": Family(
        "Gemma2",
        "gemma2",
        {
            "head_dim": 32,
            "sliding_window": WINDOW,
            "query_pre_attn_scalar": 32,
            "attn_logit_softcapping": 5.0,
            "final_logit_softcapping": 3.0,
            "tie_word_embeddings": True,
        },
        {
            "attention.sliding_window": WINDOW,
            "attn_logit_softcapping": 5.0,
            "final_logit_softcapping": 3.0,
        },
        dropped=(
            {"attention_cap": None},
            {"logit_cap": None},
            {"post_norms": False},
            {"embedding_scale": 1.0},
            {"activation": "silu"},
        ),
    ),
    "gemma3": Family(
        "Gemma3",
        "gemma3",
        {
            "num_hidden_layers": 7,
            "head_dim": 32,
            "sliding_window": WINDOW,
            "query_pre_attn_scalar": 32,
            "tie_word_embeddings": True,
            "rope_parameters": {
                "sliding_attention": {"rope_type": "default", "rope_theta": 10_000.0},
                "full_attention": {"rope_type": "linear", "rope_theta": 1e6, "factor": 8.0},
            },
        },
        {
            "attention.sliding_window": WINDOW,
            "rope.freq_base": 1e6,
            f"{_SCALING}.type": "linear",
            f"{_SCALING}.factor": 8.0,
        },
    ),
    "phi3": Family(
        "Phi3",
        "phi3",
        _PHI | {"sliding_window": WINDOW} | _longrope(8),
        {
            "attention.sliding_window": WINDOW,
            f"{_SCALING}.attn_factor": _LONGROPE_MAGNITUDE,
            f"{_SCALING}.original_context_length": ORIGINAL,
        },
        _longrope_factors,
    ),
    "phi4-mini": Family(
        "Phi3",
        "phi3",
        _PHI | {"tie_word_embeddings": True} | _longrope(6, partial_rotary_factor=0.75),
        {
            "attention.sliding_window": 0,
            "rope.dimension_count": 12,
            f"{_SCALING}.attn_factor": _LONGROPE_MAGNITUDE,
            f"{_SCALING}.original_context_length": ORIGINAL,
        },
        _longrope_factors,
    ),
}


def tensors(family: Family, model: Any) -> Iterator[tuple[str, Array]]:
    """The weights as a converter leaves them, float32, by their names in GGUF."""
    config = model.config
    architecture = next(a for a, name in gguf.MODEL_ARCH_NAMES.items()
                        if name == family.architecture)  # fmt: skip
    names = gguf.get_tensor_name_map(architecture, config.num_hidden_layers)
    for name, weight in model.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        values = weight.numpy()
        if "experts." in name:
            yield from _experts(name, values)
            continue
        ours = names.get_name(name, try_suffixes=(".weight", ".bias"))
        assert ours is not None, name
        if family.kind.startswith("Gemma") and "norm" in name:
            values = values + 1
        if family.architecture in ("llama", "smollm3") and ("q_proj" in name or "k_proj" in name):
            half = config.hidden_size // config.num_attention_heads // 2
            pairs = values.reshape(-1, 2, half, *values.shape[1:])
            values = pairs.swapaxes(1, 2).reshape(values.shape)
        yield ours, np.ascontiguousarray(values, np.float32)
    for name, values in family.factors(config).items():
        yield name, values.astype(np.float32)


def _experts(name: str, values: Array) -> Iterator[tuple[str, Array]]:
    layer = f"blk.{name.split('.')[2]}."
    if name.endswith("down_proj"):
        yield f"{layer}ffn_down_exps.weight", values.astype(np.float32)
    else:
        for part, half in zip(("gate", "up"), np.split(values, 2, axis=1), strict=True):
            yield f"{layer}ffn_{part}_exps.weight", half.astype(np.float32)


def write(family: Family, model: Any, path: Path) -> Path:
    """The model as a GGUF file of F32 tensors."""
    config = model.config
    writer = gguf.GGUFWriter(path, family.architecture)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    if "head_dim" in family.changes:
        writer.add_key_length(config.head_dim)
        writer.add_value_length(config.head_dim)
    for key, value in family.keys.items():
        add = {int: writer.add_uint32, str: writer.add_string, bool: writer.add_bool}
        add.get(type(value), writer.add_float32)(f"{family.architecture}.{key}", value)
    for name, values in tensors(family, model):
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def save(model: Any, folder: Path, dtype: torch.dtype = torch.float32, **how: Any) -> Path:
    """The model as a folder, as transformers saves it."""
    copy.deepcopy(model).to(dtype).save_pretrained(folder, **how)
    return folder


@torch.inference_mode()
def logits(model: Any, tokens: list[int]) -> Array:
    """Logits of all positions, float64 [T, V]."""
    out: Array = model(torch.tensor([tokens]), use_cache=False).logits[0].numpy()
    return out
