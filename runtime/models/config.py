"""One description for every decoder-only transformer that a backend can run.

There is no class per family: a family is a way to fill this in. It knows nothing of files' bytes
or of how a backend computes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from sglite.runtime.models.rope import Rope

if TYPE_CHECKING:
    from sglite.runtime.models.gguf import GGUFFile


@dataclass(frozen=True, slots=True)
class LayerConfig:
    """What may differ from layer to layer.

    window: a token attends to itself and the `window - 1` tokens before it; None for all.
    rope: how queries and keys turn with their position; None where they do not.
    """

    window: int | None
    rope: Rope | None


@dataclass(frozen=True, slots=True)
class Experts:
    """The feed-forwards of a layer, of which each token takes some.

    The router's softmax over all `count` experts gives their shares; the `used` largest count,
    ties to the lower number. normalised: divided by their sum.
    """

    count: int
    used: int
    normalised: bool


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """Shapes and kinds of one model.

    x -> + attention(norm(x)) -> + feed_forward(norm(x)), the feed-forward being
    down(activation(gate(x)) * up(x)), or the sum of those of some `experts`, each of width
    ff_width; all norms RMS norms over the stored weights as they are.
    qkv_bias: q, k and v have a bias. qk_norm: RMS norm over head_dim on q and k before the
    rotation. post_norms: RMS norm on the outputs of attention and feed-forward before they are
    added. rope_interleaved: rotated pairs are (2i, 2i + 1), else (i, i + rotated / 2).
    embedding_scale multiplies the embedded tokens, attention_scale the dot products.
    attention_cap: scores x become cap * tanh(x / cap); logit_cap: the same of the logits.
    tied_output: the output matrix is the embedding matrix.
    """

    architecture: str
    vocab_size: int
    context_length: int
    width: int
    ff_width: int
    heads: int
    kv_heads: int
    head_dim: int
    norm_epsilon: float
    activation: Literal["silu", "gelu_tanh"]
    rope_interleaved: bool
    qk_norm: bool
    post_norms: bool
    embedding_scale: float
    attention_scale: float
    tied_output: bool
    layers: tuple[LayerConfig, ...]
    qkv_bias: bool = False
    attention_cap: float | None = None
    logit_cap: float | None = None
    experts: Experts | None = None

    @classmethod
    def from_gguf(cls, gguf: GGUFFile, context: int | None = None) -> ModelConfig:
        """The config that a file describes; all its tensors are checked to be there, in shape.

        context: most tokens of a sequence, None for all that the model has; a model that turns
        faster in short contexts needs to know. Raises ModelError that names the key or the tensor.
        """
        from sglite.runtime.models.families import config_from_gguf

        return config_from_gguf(gguf, context)
