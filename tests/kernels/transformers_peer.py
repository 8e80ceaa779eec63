"""transformers as the peer of the accuracy tests: the same model on the dequantised weights.

`python tests/kernels/transformers_peer.py NAME ...` lets it write the texts on which the models are
compared and keeps their ids in `written/NAME.json`; the tests only read them, because writing takes
many forwards and reading takes one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import (
    DynamicCache,
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
)

from sglite.kernels.reference.formats import dequantise
from sglite.runtime.models.config import LayerConfig, ModelConfig
from sglite.runtime.models.gguf import GGUFFile
from sglite.runtime.models.pull import resolve
from sglite.runtime.models.tokenizer import Tokenizer

PROMPTS = [
    "The capital of France is Paris, a city on the river Seine. It is known for",
    "def fibonacci(n):\n    if n < 2:\n        return n\n    return",
    "Dear Sir or Madam,\n\nI write to complain about the kettle that I bought in your shop on",
    "Water boils at 100 degrees Celsius at sea level. At the top of a mountain it boils",
]
PROMPT_TOKENS = 12
LONG_PROMPT_TOKENS = 530
"""More than Gemma's window of 512."""
WRITTEN = 48
"""Tokens that transformers writes after each prompt."""

FOLDER = Path(__file__).parent / "written"

Array = np.ndarray[Any, Any]


def read_weights(gguf: GGUFFile) -> dict[str, Array]:
    """Every tensor as float32, under its GGUF name."""
    return {
        name: dequantise(gguf.data(name).reshape(*info.shape[:-1], -1), info.type.name)
        for name, info in gguf.tensors.items()
    }


def read_texts(name: str) -> list[list[int]]:
    """Ids of texts; transformers wrote the last WRITTEN of each."""
    texts: list[list[int]] = json.loads((FOLDER / f"{name}.json").read_text())
    return texts


def peer(config: ModelConfig, weights: Mapping[str, Array]) -> Any:
    """The same model in transformers, float32."""
    shape: dict[str, Any] = {
        "vocab_size": config.vocab_size,
        "hidden_size": config.width,
        "intermediate_size": config.ff_width,
        "num_hidden_layers": len(config.layers),
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.kv_heads,
        "head_dim": config.head_dim,
        "max_position_embeddings": config.context_length,
        "rms_norm_eps": config.norm_epsilon,
        "tie_word_embeddings": config.tied_output,
        "attn_implementation": "eager",
        "bos_token_id": None,
        "eos_token_id": None,
        "pad_token_id": None,
    }
    with torch.device("meta"):
        model: Any = (
            gemma3(config, shape) if config.architecture == "gemma3" else llama(config, shape)
        )
    state = {
        theirs: torch.from_numpy(convert(config, ours, weights[ours]))
        for ours, theirs in names(config).items()
    }
    state.setdefault("lm_head.weight", state["model.embed_tokens.weight"])
    missing, unexpected = model.load_state_dict(state, strict=True, assign=True)
    assert not missing
    assert not unexpected
    model.tie_weights()
    rebuild_buffers(model)
    return model.eval()


def rope_base(layer: LayerConfig) -> float:
    assert layer.rope is not None
    return round(layer.rope.frequencies[1] ** -len(layer.rope.frequencies))


def llama(config: ModelConfig, shape: dict[str, Any]) -> Any:
    rope = {"rope_type": "default", "rope_theta": rope_base(config.layers[0])}
    return LlamaForCausalLM(LlamaConfig(**shape, rope_parameters=rope))


def gemma3(config: ModelConfig, shape: dict[str, Any]) -> Any:
    kinds = ["full_attention" if layer.window is None else "sliding_attention"
             for layer in config.layers]  # fmt: skip
    bases = dict(zip(kinds, (rope_base(layer) for layer in config.layers), strict=True))
    return Gemma3ForCausalLM(
        Gemma3TextConfig(
            **shape,
            layer_types=kinds,
            sliding_window=next(layer.window for layer in config.layers if layer.window),
            query_pre_attn_scalar=round(config.attention_scale**-2),
            rope_parameters={
                kind: {"rope_type": "default", "rope_theta": base} for kind, base in bases.items()
            },
        )
    )


def rebuild_buffers(model: Any) -> None:
    """Buffers are not in the state, so that they are still without values."""
    inner = model.model
    inner.rotary_emb = type(inner.rotary_emb)(config=model.config)
    if hasattr(inner.embed_tokens, "embed_scale"):
        scale = inner.embed_tokens.scalar_embed_scale
        inner.embed_tokens.embed_scale = torch.tensor(scale)


def names(config: ModelConfig) -> dict[str, str]:
    """GGUF name -> transformers name."""
    layer = {
        "attn_norm": "input_layernorm",
        "attn_q": "self_attn.q_proj",
        "attn_k": "self_attn.k_proj",
        "attn_v": "self_attn.v_proj",
        "attn_output": "self_attn.o_proj",
        "ffn_norm": "post_attention_layernorm",
        "ffn_gate": "mlp.gate_proj",
        "ffn_up": "mlp.up_proj",
        "ffn_down": "mlp.down_proj",
    }
    if config.architecture == "gemma3":
        layer |= {
            "attn_q_norm": "self_attn.q_norm",
            "attn_k_norm": "self_attn.k_norm",
            "post_attention_norm": "post_attention_layernorm",
            "ffn_norm": "pre_feedforward_layernorm",
            "post_ffw_norm": "post_feedforward_layernorm",
        }
    found = {
        "token_embd.weight": "model.embed_tokens.weight",
        "output_norm.weight": "model.norm.weight",
    }
    if not config.tied_output:
        found["output.weight"] = "lm_head.weight"
    for i in range(len(config.layers)):
        found |= {f"blk.{i}.{a}.weight": f"model.layers.{i}.{b}.weight" for a, b in layer.items()}
    return found


def convert(config: ModelConfig, name: str, weight: Array) -> Array:
    """GGUF stores Gemma's norms with 1 added, and Llama's q and k for interleaved rotation."""
    if config.architecture == "gemma3" and "norm" in name:
        return weight - np.float32(1)
    if config.rope_interleaved and (".attn_q." in name or ".attn_k." in name):
        pairs = weight.reshape(-1, config.head_dim // 2, 2, weight.shape[1])
        return np.ascontiguousarray(pairs.swapaxes(1, 2)).reshape(weight.shape)
    return weight


@torch.inference_mode()
def logits_of(model: Any, ids: list[int]) -> Array:
    """Logits where the text was written, float32 [WRITTEN, V]."""
    out = model(torch.tensor([ids[:-1]]), use_cache=False, logits_to_keep=WRITTEN)
    found: Array = out.logits[0].numpy()
    return found


def prompts(gguf: GGUFFile) -> list[list[list[int]]]:
    """Batches of prompts of one length: some short ones, and a long one."""
    tokenizer = Tokenizer.from_gguf(gguf)
    start = [tokenizer.bos_id] if tokenizer.add_bos and tokenizer.bos_id is not None else []
    licence = (Path(__file__).parents[2] / "LICENSE").read_text()
    short = [(start + tokenizer.encode(text))[:PROMPT_TOKENS] for text in PROMPTS]
    assert {len(ids) for ids in short} == {PROMPT_TOKENS}
    return [short, [(start + tokenizer.encode(licence))[:LONG_PROMPT_TOKENS]]]


@torch.inference_mode()
def write(model: Any, batches: list[list[list[int]]]) -> list[list[int]]:
    """Continue every prompt by sampling at temperature 0.7 with a fixed seed."""
    generator = torch.Generator().manual_seed(20)
    texts: list[list[int]] = []
    for batch in batches:
        ids = torch.tensor(batch)
        cache, fed = DynamicCache(config=model.config), ids
        for _ in range(WRITTEN):
            # The cache goes by position: versions of transformers name it differently.
            logits = model(fed, None, None, cache, logits_to_keep=1).logits[:, -1]
            fed = torch.multinomial(torch.softmax(logits / 0.7, -1), 1, generator=generator)
            ids = torch.cat([ids, fed], dim=1)
        texts += ids.tolist()
    return texts


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name in sys.argv[1:]:
        with GGUFFile.open(resolve(name)) as gguf:
            config = ModelConfig.from_gguf(gguf)
            texts = write(peer(config, read_weights(gguf)), prompts(gguf))
        (FOLDER / f"{name}.json").write_text(json.dumps(texts) + "\n")


if __name__ == "__main__":
    main()
