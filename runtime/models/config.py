"""One description for every decoder-only transformer that a backend can run.

There is no class per family: a family is a way to fill this in. It knows nothing of files' bytes
or of how a backend computes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from sglite.runtime.models.gguf import GGUFFile


@dataclass(frozen=True, slots=True)
class LayerConfig:
    """What may differ from layer to layer.

    window: a token attends to itself and the `window - 1` tokens before it; None for all.
    rope_base: base of the rotary frequencies of this layer.
    """

    window: int | None
    rope_base: float


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """Shapes and kinds of one model.

    x -> + attention(norm(x)) -> + feed_forward(norm(x)), the feed-forward being
    down(activation(gate(x)) * up(x)), all norms RMS norms over the stored weights as they are.
    qk_norm: RMS norm over head_dim on q and k before the rotation. post_norms: RMS norm on the
    outputs of attention and feed-forward before they are added. rope_interleaved: rotated pairs
    are (2i, 2i + 1), else (i, i + head_dim / 2). embedding_scale multiplies the embedded tokens,
    attention_scale the dot products. tied_output: the output matrix is the embedding matrix.
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

    @classmethod
    def from_gguf(cls, gguf: GGUFFile) -> ModelConfig:
        """The config that a file describes; all its tensors are checked to be there, in shape.

        Raises ModelError that names the key or the tensor.
        """
        from sglite.runtime.models.families import config_from_gguf

        return config_from_gguf(gguf)
