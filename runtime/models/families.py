"""How the metadata of a GGUF file becomes a ModelConfig: what each family takes for granted, and
which keys say the rest.

Whatever would change the computation and is not modelled is refused, so that a backend can trust
the config and the shapes of all tensors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from sglite.errors import ModelError
from sglite.runtime.models import rope
from sglite.runtime.models.config import Experts, LayerConfig, ModelConfig
from sglite.runtime.models.gguf import GGUFFile
from sglite.runtime.models.keys import Keys
from sglite.runtime.models.tensors import check_tensors


@dataclass(frozen=True, slots=True)
class Family:
    """What the files of an architecture do not say.

    rope_interleaved, activation, qk_norm, post_norms: see ModelConfig. scaled_embedding: embedded
    tokens are multiplied with sqrt(width). everywhere: of so many layers the last one has no
    window; 0: all have the window that the file names. rope_base: where the file names none.
    nearby_base: the base of layers with a window, if it is another. unturned: of so many layers
    the last one does not rotate. wide_scale: number of layers of the member that scales its dot
    products by width / heads in place of head_dim.
    """

    rope_interleaved: bool = False
    activation: Literal["silu", "gelu_tanh"] = "silu"
    qk_norm: bool = False
    post_norms: bool = False
    scaled_embedding: bool = False
    everywhere: int = 0
    rope_base: float = 10_000.0
    nearby_base: float | None = None
    unturned: int = 0
    wide_scale: int = 0


FAMILIES = {
    "llama": Family(rope_interleaved=True),
    "smollm3": Family(rope_interleaved=True, unturned=4),
    "qwen2": Family(),
    "qwen3": Family(qk_norm=True),
    "qwen3moe": Family(qk_norm=True),
    "phi3": Family(),
    "gemma2": Family(
        activation="gelu_tanh",
        post_norms=True,
        scaled_embedding=True,
        everywhere=2,
        wide_scale=46,
    ),
    "gemma3": Family(
        activation="gelu_tanh",
        qk_norm=True,
        post_norms=True,
        scaled_embedding=True,
        everywhere=6,
        rope_base=1_000_000.0,
        nearby_base=10_000.0,
        wide_scale=62,
    ),
}
"""By the names that GGUF files have for them; Mistral's files say `llama`, Phi-4's `phi3`."""


def config_from_gguf(gguf: GGUFFile, context: int | None = None) -> ModelConfig:
    """The config that the file describes, with every tensor present and of the right shape.

    context: most tokens of a sequence, None for all that the model has. Raises ModelError that
    names the key or the tensor.
    """
    architecture = gguf.metadata.get("general.architecture")
    if not isinstance(architecture, str) or architecture not in FAMILIES:
        raise ModelError(
            f"{gguf.path}: general.architecture is {architecture!r}; "
            f"known are {', '.join(sorted(FAMILIES))}"
        )
    config = _config(Keys(gguf, architecture), FAMILIES[architecture], context)
    check_tensors(gguf, config)
    return config


def _config(keys: Keys, family: Family, context: int | None) -> ModelConfig:
    width = keys.size("embedding_length")
    heads = keys.size("attention.head_count")
    kv_heads = keys.size("attention.head_count_kv", heads)
    if heads % kv_heads:
        raise keys.error("attention.head_count_kv", f"is {kv_heads}, which does not divide {heads}")
    head_dim = keys.head_dim(width, heads)
    layers = _layers(keys, family, head_dim, context)
    tensors = keys.gguf.tensors
    experts = _experts(keys)
    ff_width = keys.size("feed_forward_length") if experts is None else _expert_width(keys)
    scaled = width // heads if len(layers) == family.wide_scale else head_dim
    return ModelConfig(
        architecture=keys.architecture,
        vocab_size=keys.vocab_size(),
        context_length=keys.size("context_length"),
        width=width,
        ff_width=ff_width,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        norm_epsilon=keys.number("attention.layer_norm_rms_epsilon"),
        activation=family.activation,
        rope_interleaved=family.rope_interleaved,
        qkv_bias="blk.0.attn_q.bias" in tensors or "blk.0.attn_qkv.bias" in tensors,
        qk_norm=family.qk_norm,
        post_norms=family.post_norms,
        embedding_scale=math.sqrt(width) if family.scaled_embedding else 1.0,
        attention_scale=keys.optional("attention.scale") or 1 / math.sqrt(scaled),
        attention_cap=keys.optional("attn_logit_softcapping"),
        logit_cap=keys.optional("final_logit_softcapping"),
        experts=experts,
        tied_output="output.weight" not in tensors,
        layers=layers,
    )


def _layers(
    keys: Keys, family: Family, head_dim: int, context: int | None
) -> tuple[LayerConfig, ...]:
    rotated = keys.size("rope.dimension_count", head_dim)
    if rotated % 2 or rotated > head_dim:
        raise keys.error("rope.dimension_count", f"is {rotated}, no even number up to {head_dim}")
    far = _rope(keys, family, rotated, context)
    window = keys.size("attention.sliding_window", 0, least=0) or None
    near = far
    if family.nearby_base is not None:
        near = rope.plain(keys.number("rope.freq_base_swa", family.nearby_base), rotated)
    everywhere = family.everywhere
    if everywhere:
        everywhere = keys.size("attention.sliding_window_pattern", everywhere)

    def layer(number: int) -> LayerConfig:
        windowed = window is not None and not (everywhere and number % everywhere == 0)
        turned = not (family.unturned and number % family.unturned == 0)
        kind = near if windowed else far
        return LayerConfig(window if windowed else None, kind if turned else None)

    return tuple(layer(number) for number in range(1, keys.layer_count() + 1))


def _rope(keys: Keys, family: Family, size: int, context: int | None) -> rope.Rope:
    base = keys.number("rope.freq_base", family.rope_base)
    if base <= 1:
        raise keys.error("rope.freq_base", f"is {base}, not above 1")
    legacy = keys.optional("rope.scale_linear")
    kinds = ("none", "linear", "yarn", "longrope")
    kind = keys.text("rope.scaling.type", "none" if legacy is None else "linear", kinds)
    factor = keys.optional("rope.scaling.factor") or legacy or 1.0
    long, short = (keys.factors(f"rope_factors_{k}.weight", size // 2) for k in ("long", "short"))
    freqs = keys.factors("rope_freqs.weight", size // 2)
    if (freqs is not None) + (long is not None or short is not None) + (kind in kinds[1:3]) > 1:
        raise keys.error("rope.scaling.type", f"is {kind!r}, and the file has factors besides it")
    if kind == "none" and factor != 1:
        raise keys.error("rope.scaling.factor", f"is {factor}, and there is no rope.scaling.type")
    if long is not None and short is not None:
        magnitude = keys.number("rope.scaling.attn_factor")
        original = keys.size("rope.scaling.original_context_length")
        reach = context or keys.size("context_length")
        return rope.divided(base, size, long if reach > original else short, magnitude)
    if long is not None or short is not None or kind == "longrope":
        raise keys.error("rope.scaling.type", "is longrope, and factors for it are missing")
    if freqs is not None:
        return rope.divided(base, size, freqs)
    if kind == "linear":
        return rope.linear(base, size, factor)
    if kind == "yarn":
        return rope.yarn(
            base,
            size,
            factor,
            keys.size("rope.scaling.original_context_length"),
            magnitude=rope.yarn_magnitude(factor)
            * (keys.optional("rope.scaling.attn_factor") or 1),
            beta_fast=keys.number("rope.scaling.yarn_beta_fast", 32.0),
            beta_slow=keys.number("rope.scaling.yarn_beta_slow", 1.0),
        )
    return rope.plain(base, size)


def _experts(keys: Keys) -> Experts | None:
    count = keys.size("expert_count", 0, least=0)
    if count == 0:
        return None
    used = keys.size("expert_used_count")
    if used > count:
        raise keys.error("expert_used_count", f"is {used}, more than the {count} experts")
    return Experts(count, used, keys.flag("expert_weights_norm", True))


def _expert_width(keys: Keys) -> int:
    if keys.has("expert_feed_forward_length"):
        return keys.size("expert_feed_forward_length")
    return keys.size("feed_forward_length")
