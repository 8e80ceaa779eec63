"""The config of a model out of its file: the two real ones, and what is refused."""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import Any

import pytest
from gguf_files import (
    ARRAY,
    F32,
    I32,
    LLAMA_SHAPES,
    STRING,
    U32,
    f32_tensors,
    file_bytes,
    llama_pairs,
    tiny_llama,
    write,
)

from sglite.errors import ModelError
from sglite.runtime.models.config import LayerConfig, ModelConfig
from sglite.runtime.models.gguf import GGUFFile
from sglite.runtime.models.rope import plain
from sglite.runtime.models.tensors import tensor_shapes


def _config(path: Path) -> ModelConfig:
    with GGUFFile.open(path) as file:
        return ModelConfig.from_gguf(file)


@pytest.mark.model
def test_smollm2(smollm2_path: Path) -> None:
    config = _config(smollm2_path)
    assert config == ModelConfig(
        architecture="llama",
        vocab_size=49152,
        context_length=8192,
        width=576,
        ff_width=1536,
        heads=9,
        kv_heads=3,
        head_dim=64,
        norm_epsilon=pytest.approx(1e-5),
        activation="silu",
        rope_interleaved=True,
        qk_norm=False,
        post_norms=False,
        embedding_scale=1.0,
        attention_scale=0.125,
        tied_output=True,
        layers=(LayerConfig(window=None, rope=plain(100_000.0, 64)),) * 30,
    )


@pytest.mark.model
def test_gemma3_agrees_with_transformers(gemma_path: Path) -> None:
    from transformers import Gemma3TextConfig

    config = _config(gemma_path)
    theirs = Gemma3TextConfig(num_hidden_layers=18, sliding_window=512)
    assert theirs.layer_types.count("full_attention") == 3
    assert [layer.window for layer in config.layers] == [
        None if kind == "full_attention" else 512 for kind in theirs.layer_types
    ]
    assert [layer.rope for layer in config.layers] == [
        plain(theirs.rope_parameters[kind]["rope_theta"], 256) for kind in theirs.layer_types
    ]
    assert config.activation == "gelu_tanh"
    assert theirs.hidden_activation == "gelu_pytorch_tanh"
    assert config.attention_scale == theirs.query_pre_attn_scalar**-0.5
    assert config.embedding_scale == math.sqrt(640)
    assert (config.heads, config.kv_heads, config.head_dim) == (4, 1, 256)
    assert (config.width, config.ff_width, config.vocab_size) == (640, 2048, 262144)
    assert config.qk_norm
    assert config.post_norms
    assert config.tied_output
    assert not config.rope_interleaved


def test_what_a_file_may_leave_out(tmp_path: Path) -> None:
    shapes = dict(LLAMA_SHAPES)
    shapes |= {"blk.0.attn_k.weight": [8, 8], "blk.0.attn_v.weight": [8, 8]}
    shapes["output.weight"] = [8, 7]
    pairs = llama_pairs(
        llama__attention__head_count_kv=None,
        llama__rope__freq_base=None,
        llama__rope__dimension_count=None,
    )
    config = _config(write(tmp_path, file_bytes(pairs, *f32_tensors(shapes))))
    assert (config.kv_heads, config.head_dim) == (2, 4)
    assert config.layers == (LayerConfig(window=None, rope=plain(10_000.0, 4)),)
    assert not config.tied_output
    assert {name: tuple(reversed(sizes)) for name, sizes in shapes.items()} == (
        tensor_shapes(config)
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"general__architecture": (STRING, "mamba")},
            "'mamba'; known are gemma2, gemma3, llama, ",
        ),
        ({"general__architecture": None}, "None; known are gemma2, gemma3, llama, "),
        ({"general__architecture": (U32, 4)}, "known are gemma2, gemma3, llama, "),
        ({"llama__block_count": None}, "llama.block_count is missing"),
        ({"llama__block_count": (U32, 0)}, "llama.block_count must be an integer"),
        ({"llama__block_count": (U32, 1 << 30)}, "llama.block_count is 1073741824, more than"),
        ({"llama__block_count": (U32, 2)}, "'blk.1.attn_norm.weight' (8,) is missing"),
        ({"llama__context_length": (F32, 8.0)}, "llama.context_length must be an integer"),
        ({"llama__context_length": (7, True)}, "llama.context_length must be an integer"),
        ({"llama__feed_forward_length": (U32, 1 << 31)}, "llama.feed_forward_length must be"),
        ({"llama__attention__head_count": (ARRAY, (U32, [2]))}, "head_count must be an integer"),
        ({"llama__attention__head_count": (U32, 3)}, "head_count is 3, which does not divide 8"),
        ({"llama__attention__head_count_kv": (U32, 3)}, "head_count_kv is 3"),
        ({"llama__attention__layer_norm_rms_epsilon": (F32, math.nan)}, "rms_epsilon must be"),
        ({"llama__attention__layer_norm_rms_epsilon": None}, "rms_epsilon is missing"),
        ({"llama__rope__freq_base": (F32, math.inf)}, "rope.freq_base must be"),
        ({"llama__rope__freq_base": (F32, -1.0)}, "rope.freq_base must be"),
        ({"llama__rope__freq_base": (STRING, "1e6")}, "rope.freq_base must be"),
        ({"llama__rope__dimension_count": (U32, 3)}, "rope.dimension_count is 3"),
        ({"llama__rope__dimension_count": (U32, 6)}, "rope.dimension_count is 6"),
        ({"llama__attention__key_length": (U32, 4098)}, "key_length is 4098"),
        ({"llama__rope__freq_base": (F32, 0.5)}, "rope.freq_base is 0.5"),
        ({"llama__attention__value_length": (U32, 8)}, "value_length is 8"),
        ({"llama__rope__scaling__type": (STRING, "ntk")}, "rope.scaling.type is 'ntk'"),
        ({"llama__rope__scaling__type": (U32, 1)}, "rope.scaling.type is 1"),
        ({"llama__rope__scaling__type": (STRING, "longrope")}, "longrope, and factors for it are"),
        ({"llama__rope__scaling__type": (STRING, "yarn")}, "original_context_length is missing"),
        ({"llama__rope__scaling__yarn_log_multiplier": (F32, 0.1)}, "yarn_log_multiplier is 0.1"),
        ({"llama__rope__scaling__factor": (F32, 8.0)}, "rope.scaling.factor is 8.0"),
        ({"llama__expert_count": (U32, 8)}, "llama.expert_used_count is missing"),
        (
            {"llama__expert_count": (U32, 8), "llama__expert_used_count": (U32, 9)},
            "expert_used_count is 9, more than the 8 experts",
        ),
        (
            {"llama__expert_count": (U32, 8), "llama__expert_used_count": (U32, 2)},
            "'blk.0.ffn_gate.weight' has no place",
        ),
        ({"llama__expert_shared_count": (U32, 1)}, "expert_shared_count is 1"),
        ({"llama__attn_logit_softcapping": (F32, math.nan)}, "attn_logit_softcapping must be"),
        ({"llama__attention__sliding_window": (I32, -1)}, "sliding_window must be an integer"),
        ({"llama__attention__scale": (ARRAY, (F32, [1.0, 2.0]))}, "attention.scale must be"),
        ({"llama__vocab_size": (U32, 8)}, "vocab_size must be the 7 rows"),
        ({"tokenizer__ggml__tokens": (ARRAY, (STRING, ["a"]))}, "tokens has 1 tokens"),
        ({"llama__feed_forward_length": (U32, 8)}, "has the shape (16, 8), not (8, 8)"),
    ],
)
def test_a_wrong_key_is_named(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = write(tmp_path, tiny_llama(**changes))
    with pytest.raises(ModelError) as caught:
        _config(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "name", ["output.bias", "blk.0.attn_output.bias", "blk.0.attn_k.bias", "blk.1.attn_q.weight"]
)
def test_a_tensor_that_would_be_left_out_is_refused(name: str, tmp_path: Path) -> None:
    content = file_bytes(llama_pairs(), *f32_tensors({**LLAMA_SHAPES, name: [8]}))
    with pytest.raises(ModelError, match=f"'{name}' has no place in this llama model"):
        _config(write(tmp_path, content))


@pytest.mark.parametrize(
    ("name", "sizes", "message"),
    [
        ("rope_freqs.weight", [3], "'rope_freqs.weight' is F32 (3,), not F32 (2,)"),
        ("rope_factors_long.weight", [2], "is longrope, and factors for it are missing"),
        ("blk.0.attn_qkv.weight", [8, 16], "'blk.0.attn_q.weight' is in "),
        ("blk.0.ffn_gate_exps.weight", [8, 16, 2], "'blk.0.ffn_gate_exps.weight' has no place"),
    ],
)
def test_a_tensor_that_contradicts_is_refused(
    name: str, sizes: list[int], message: str, tmp_path: Path
) -> None:
    content = file_bytes(llama_pairs(), *f32_tensors({**LLAMA_SHAPES, name: sizes}))
    with pytest.raises(ModelError) as caught:
        _config(write(tmp_path, content))
    assert message in str(caught.value)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_factors_are_positive_numbers(bad: float, tmp_path: Path) -> None:
    infos, data = f32_tensors({**LLAMA_SHAPES, "rope_freqs.weight": [2]})
    at = len(data) - 32 + 4  # the second of its two values
    data = data[:at] + struct.pack("<f", bad) + data[at + 4 :]
    with pytest.raises(ModelError, match=r"'rope_freqs\.weight' has a value that is no positive"):
        _config(write(tmp_path, file_bytes(llama_pairs(), infos, data)))


def test_values_that_switch_a_key_off_are_fine(tmp_path: Path) -> None:
    content = tiny_llama(
        llama__rope__scaling__type=(STRING, "none"),
        llama__rope__scaling__factor=(F32, 1.0),
        llama__expert_count=(U32, 0),
        llama__vocab_size=(U32, 7),
    )
    assert _config(write(tmp_path, content)).heads == 2
