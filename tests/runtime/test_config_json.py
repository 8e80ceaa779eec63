"""The config out of a transformers folder: what a GGUF file of the same model says, and what is
refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from family_files import FAMILIES, ORIGINAL, Family, write
from hypothesis import given, settings
from hypothesis import strategies as st
from limits import examples

from sglite.errors import ModelError
from sglite.runtime.models.config import ModelConfig
from sglite.runtime.models.config_json import config_from_json
from sglite.runtime.models.gguf import GGUFFile


def saved(folder: Path, values: Any) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps(values))
    return path


def values_of(family: Family) -> dict[str, Any]:
    """The config as transformers saves it."""
    values: dict[str, Any] = family.model(0).config.to_dict()
    return values


def assert_same(got: ModelConfig, expected: ModelConfig) -> None:
    """Equal, but for the order of the weights and the digits of floats."""

    def bare(config: ModelConfig) -> ModelConfig:
        layers = tuple(replace(layer, rope=None) for layer in config.layers)
        return replace(config, layers=layers, rope_interleaved=False, norm_epsilon=0.0)

    assert bare(got) == bare(expected)
    assert got.norm_epsilon == pytest.approx(expected.norm_epsilon)
    for ours, theirs in zip(got.layers, expected.layers, strict=True):
        assert (ours.rope is None) == (theirs.rope is None)
        if ours.rope and theirs.rope:
            assert ours.rope.magnitude == pytest.approx(theirs.rope.magnitude)
            np.testing.assert_allclose(ours.rope.frequencies, theirs.rope.frequencies, rtol=1e-5)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_folder_says_what_a_gguf_file_says(name: str, tmp_path: Path) -> None:
    family = FAMILIES[name]
    model = family.model(0)
    path = saved(tmp_path, model.config.to_dict())
    with GGUFFile.open(write(family, model, tmp_path / "model.gguf")) as file:
        for context in (None, ORIGINAL):
            assert_same(config_from_json(path, context), ModelConfig.from_gguf(file, context))


OLD = {
    "llama3": ["rope_theta"],
    "qwen2.5-yarn": ["rope_theta"],
    "phi3": ["rope_theta"],
    "phi4-mini": ["rope_theta", "partial_rotary_factor"],
}


@pytest.mark.parametrize("name", OLD)
def test_rotations_as_older_versions_wrote_them(name: str, tmp_path: Path) -> None:
    values = values_of(FAMILIES[name])
    expected = config_from_json(saved(tmp_path, values))
    scaling = values.pop("rope_parameters")
    values |= {key: scaling.pop(key) for key in OLD[name]}
    values["rope_scaling"] = scaling
    scaling["type"] = scaling.pop("rope_type")
    assert config_from_json(saved(tmp_path, values)) == expected


def test_gemma3_as_older_versions_wrote_it(tmp_path: Path) -> None:
    values = values_of(FAMILIES["gemma3"])
    expected = config_from_json(saved(tmp_path, values))
    del values["rope_parameters"], values["layer_types"]
    values |= {"rope_theta": 1e6, "rope_local_base_freq": 1e4, "sliding_window_pattern": 6}
    values["rope_scaling"] = {"rope_type": "linear", "factor": 8.0}
    assert config_from_json(saved(tmp_path, values)) == expected


def test_windows_of_qwen_begin_behind_some_layers(tmp_path: Path) -> None:
    values = values_of(FAMILIES["qwen2"]) | {"sliding_window": 9, "max_window_layers": 1}
    del values["layer_types"]
    windows = [None, 9, 9, 9]
    for used in (True, False):
        config = config_from_json(saved(tmp_path, values | {"use_sliding_window": used}))
        assert [layer.window for layer in config.layers] == (windows if used else [None] * 4)


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("llama2", {"model_type": "mamba"}, "model_type is 'mamba'; known are gemma2, "),
    ("llama2", {"model_type": ["llama"]}, "model_type is ['llama']"),
    ("llama2", {"hidden_size": None}, "hidden_size is missing"),
    ("llama2", {"hidden_size": 1 << 31}, "hidden_size must be an integer from 1 to"),
    ("llama2", {"hidden_size": True}, "hidden_size must be an integer"),
    ("llama2", {"num_hidden_layers": 5000}, "num_hidden_layers must be an integer from 1 to 4096"),
    ("llama2", {"num_key_value_heads": 3}, "num_key_value_heads is 3, which does not divide 4"),
    ("llama2", {"head_dim": 7}, "head_dim is 7, which is odd"),
    ("llama2", {"rms_norm_eps": float("nan")}, "rms_norm_eps must be a positive number"),
    ("llama2", {"hidden_act": "gelu"}, "hidden_act is 'gelu'"),
    ("llama2", {"attention_bias": True}, "attention_bias is True, which is not supported"),
    ("llama2", {"quantization_config": {"bits": 4}}, "quantization_config is {'bits': 4}"),
    ("llama2", {"rope_parameters": {"rope_type": "dynamic", "factor": 2.0}}, "original_max_"),
    ("llama2", {"rope_parameters": [1]}, "rope_parameters must be an object"),
    ("llama2", {"rope_parameters": {"rope_theta": 1}}, "rope_theta is 1.0, not above 1"),
    ("llama2", {"tie_word_embeddings": "no"}, "tie_word_embeddings must be true or false"),
    ("gemma2", {"head_dim": None}, "head_dim is missing"),
    ("gemma2", {"layer_types": ["full_attention"]}, "layer_types must be a list of 4"),
    ("gemma2", {"layer_types": ["chunked_attention"] * 4}, "layer_types has 'chunked_attention'"),
    ("gemma2", {"attn_logit_softcapping": -5.0}, "attn_logit_softcapping must be a positive"),
    ("gemma2", {"use_bidirectional_attention": True}, "use_bidirectional_attention is True"),
    ("smollm3", {"no_rope_layers": [1]}, "no_rope_layers must be a list of 4"),
    ("qwen3-moe", {"num_experts_per_tok": 7}, "num_experts_per_tok is 7, more than the 6 experts"),
    ("qwen3-moe", {"mlp_only_layers": [0]}, "mlp_only_layers is [0]"),
    ("qwen3-moe", {"decoder_sparse_step": 2}, "decoder_sparse_step is 2"),
]


@pytest.mark.parametrize(("name", "changes", "message"), WRONG)
def test_a_wrong_key_is_named(
    name: str, changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    path = saved(tmp_path, values_of(FAMILIES[name]) | changes)
    with pytest.raises(ModelError) as caught:
        config_from_json(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)


def test_unknown_rotations_are_refused(tmp_path: Path) -> None:
    values = values_of(FAMILIES["llama3"])
    for change, message in (
        ({"rope_type": "ntk"}, "rope_parameters.rope_type is 'ntk'"),
        ({"rope_type": "longrope"}, "rope_parameters.long_factor must be a list of 8"),
        ({"rope_type": "yarn", "mscale": 1.0}, "rope_parameters.mscale is not supported"),
        ({"high_freq_factor": 1.0}, "rope_parameters.high_freq_factor is 1.0"),
    ):
        path = saved(tmp_path, values | {"rope_parameters": values["rope_parameters"] | change})
        with pytest.raises(ModelError, match=message):
            config_from_json(path)


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff{}", b"[" * 100_000])
def test_what_is_no_config(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=r"config\.json: is no JSON"):
        config_from_json(path)
    with pytest.raises(ModelError, match="cannot be read"):
        config_from_json(tmp_path / "missing.json")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)


def test_any_value_is_taken_or_refused(tmp_path: Path) -> None:
    models = [values_of(family) for family in FAMILIES.values()]
    taken = {True: 0, False: 0}

    @settings(max_examples=examples(400), deadline=None)
    @given(st.sampled_from(models), st.data())
    def check(values: dict[str, Any], data: st.DataObject) -> None:
        changed = json.loads(json.dumps(values))
        place = changed
        if "rope_parameters" in changed and data.draw(st.booleans()):
            place = changed["rope_parameters"]
        place[data.draw(st.sampled_from(sorted(place)))] = data.draw(JSON)
        try:
            config_from_json(saved(tmp_path, changed))
            taken[True] += 1
        except ModelError:
            taken[False] += 1

    check()
    assert min(taken.values()) > 20, taken
