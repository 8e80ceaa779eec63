"""How the metadata of a GGUF file becomes a ModelConfig, family by family.

Whatever would change the computation and is not modelled is refused here, so that a backend can
trust the config and the shapes of all tensors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from sglite.errors import ModelError
from sglite.runtime.models.config import LayerConfig, ModelConfig
from sglite.runtime.models.gguf import GGUFFile, StringArray

_GEMMA3_PERIOD = 6
_GEMMA3_LOCAL_ROPE_BASE = 10_000.0

# Keys that change the computation in a way that no config can express yet, with the values that
# mean "not used".
_UNSUPPORTED: dict[str, tuple[float | str, ...]] = {
    "rope.scaling.type": ("none",),
    "rope.scaling.factor": (0.0, 1.0),
    "rope.scale_linear": (0.0, 1.0),
    "expert_count": (0,),
    "attention.causal": (True,),
    "attention.scale": (0.0,),
    "attn_logit_softcapping": (0.0,),
    "final_logit_softcapping": (0.0,),
}


def config_from_gguf(gguf: GGUFFile) -> ModelConfig:
    """The config that the file describes, with every tensor present and of the right shape.

    Raises ModelError that names the key or the tensor.
    """
    architecture = gguf.metadata.get("general.architecture")
    if not isinstance(architecture, str) or architecture not in _FAMILIES:
        raise ModelError(
            f"{gguf.path}: general.architecture is {architecture!r}; "
            f"known are {', '.join(sorted(_FAMILIES))}"
        )
    config = _FAMILIES[architecture](_Keys(gguf, architecture))
    _check_tensors(gguf, config)
    return config


def tensor_shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Every tensor that the model needs, by its name in GGUF: shape in numpy order."""
    width, ff_width = config.width, config.ff_width
    q_width, kv_width = config.heads * config.head_dim, config.kv_heads * config.head_dim
    layer: dict[str, tuple[int, ...]] = {
        "attn_norm": (width,),
        "attn_q": (q_width, width),
        "attn_k": (kv_width, width),
        "attn_v": (kv_width, width),
        "attn_output": (width, q_width),
        "ffn_norm": (width,),
        "ffn_gate": (ff_width, width),
        "ffn_up": (ff_width, width),
        "ffn_down": (width, ff_width),
    }
    if config.qk_norm:
        layer |= {"attn_q_norm": (config.head_dim,), "attn_k_norm": (config.head_dim,)}
    if config.post_norms:
        layer |= {"post_attention_norm": (width,), "post_ffw_norm": (width,)}
    shapes: dict[str, tuple[int, ...]] = {
        "token_embd.weight": (config.vocab_size, width),
        "output_norm.weight": (width,),
    }
    if not config.tied_output:
        shapes["output.weight"] = (config.vocab_size, width)
    for index in range(len(config.layers)):
        shapes |= {f"blk.{index}.{name}.weight": shape for name, shape in layer.items()}
    return shapes


class _Keys:
    """Reads `ARCHITECTURE.key` values and refuses wrong kinds and ranges."""

    def __init__(self, gguf: GGUFFile, architecture: str) -> None:
        self.gguf = gguf
        self.architecture = architecture
        for key, unused in _UNSUPPORTED.items():
            value = gguf.metadata.get(f"{architecture}.{key}")
            if value is None or (isinstance(value, (int, float, str)) and value in unused):
                continue
            raise self.error(key, f"is {value!r}, which is not supported")

    def error(self, key: str, what: str) -> ModelError:
        return ModelError(f"{self.gguf.path}: {self.architecture}.{key} {what}")

    def size(self, key: str, default: int | None = None) -> int:
        """A positive count."""
        value = self.gguf.metadata.get(f"{self.architecture}.{key}", default)
        if value is None:
            raise self.error(key, "is missing")
        if type(value) is not int or not 0 < value < 1 << 31:
            raise self.error(key, f"must be an integer from 1 to 2^31 - 1, not {value!r}")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """A positive finite number."""
        value = self.gguf.metadata.get(f"{self.architecture}.{key}", default)
        if value is None:
            raise self.error(key, "is missing")
        if not isinstance(value, float) or not 0 < value < math.inf:
            raise self.error(key, f"must be a positive number, not {value!r}")
        return float(value)

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
        """Length of a head; keys, values and the rotation must agree about it."""
        if f"{self.architecture}.attention.key_length" not in self.gguf.metadata and width % heads:
            raise self.error("attention.head_count", f"is {heads}, which does not divide {width}")
        head_dim = self.size("attention.key_length", width // heads or 1)
        for key in ("attention.value_length", "rope.dimension_count"):
            if (length := self.size(key, head_dim)) != head_dim:
                raise self.error(key, f"is {length}; only the length of a key, {head_dim}, works")
        if head_dim % 2:
            raise self.error("attention.key_length", f"is {head_dim}, which is odd")
        return head_dim


def _llama(keys: _Keys) -> ModelConfig:
    layer = LayerConfig(window=None, rope_base=keys.number("rope.freq_base", 10_000.0))
    return _decoder(keys, (layer,) * keys.layer_count())


def _gemma3(keys: _Keys) -> ModelConfig:
    everywhere = LayerConfig(window=None, rope_base=keys.number("rope.freq_base", 1_000_000.0))
    nearby = LayerConfig(
        window=keys.size("attention.sliding_window"),
        rope_base=keys.number("rope.freq_base_swa", _GEMMA3_LOCAL_ROPE_BASE),
    )
    period = keys.size("attention.sliding_window_pattern", _GEMMA3_PERIOD)
    layers = tuple(
        everywhere if (index + 1) % period == 0 else nearby for index in range(keys.layer_count())
    )
    config = _decoder(keys, layers)
    return replace(
        config,
        activation="gelu_tanh",
        rope_interleaved=False,
        qk_norm=True,
        post_norms=True,
        embedding_scale=math.sqrt(config.width),
    )


_FAMILIES: dict[str, Callable[[_Keys], ModelConfig]] = {"llama": _llama, "gemma3": _gemma3}


def _decoder(keys: _Keys, layers: tuple[LayerConfig, ...]) -> ModelConfig:
    """What all families have in common; kinds are those of Llama."""
    width = keys.size("embedding_length")
    heads = keys.size("attention.head_count")
    kv_heads = keys.size("attention.head_count_kv", heads)
    if heads % kv_heads:
        raise keys.error("attention.head_count_kv", f"is {kv_heads}, which does not divide {heads}")
    head_dim = keys.head_dim(width, heads)
    return ModelConfig(
        architecture=keys.architecture,
        vocab_size=keys.vocab_size(),
        context_length=keys.size("context_length"),
        width=width,
        ff_width=keys.size("feed_forward_length"),
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        norm_epsilon=keys.number("attention.layer_norm_rms_epsilon"),
        activation="silu",
        rope_interleaved=True,
        qk_norm=False,
        post_norms=False,
        embedding_scale=1.0,
        attention_scale=1 / math.sqrt(head_dim),
        tied_output="output.weight" not in keys.gguf.tensors,
        layers=layers,
    )


def _check_tensors(gguf: GGUFFile, config: ModelConfig) -> None:
    shapes = tensor_shapes(config)
    for name, shape in shapes.items():
        info = gguf.tensors.get(name)
        if info is None:
            raise ModelError(f"{gguf.path}: tensor {name!r} {shape} is missing")
        if info.shape != shape:
            raise ModelError(
                f"{gguf.path}: tensor {name!r} has the shape {info.shape}, not {shape} "
                f"(byte {info.offset})"
            )
    for name, info in gguf.tensors.items():
        if name not in shapes:
            raise ModelError(
                f"{gguf.path}: tensor {name!r} has no place in a {config.architecture} model; "
                f"leaving it out would change what the model computes (byte {info.offset})"
            )
