"""Models in folders as transformers saves them: weights, types, tokenisers, and what is wrong."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
import torch
from click.testing import CliRunner
from family_files import FAMILIES, logits, save
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers.trainers import BpeTrainer

import sglite as sgl
from sglite.cli import main
from sglite.errors import ModelError
from sglite.kernels.reference.formats import dequantise
from sglite.kernels.reference.forward import forward
from sglite.runtime.models.folder import ModelFolder
from sglite.runtime.models.quantise import QUANTISERS
from sglite.runtime.models.safetensors import SafetensorsFile
from sglite.runtime.models.tensors import model_tensors
from sglite.runtime.models.tokenizer_json import tokenizer_from_folder

CORPUS = [
    "The quick brown fox jumps over the lazy dog, and the dog sleeps on.",
    "In 2024 there were 1,234 letters; 17 of them began with 'Dear Sir or Madam'.",
    'def f(x):\n    return {"a": [x, 1.5e-3], "b": "don\'t"}\n\n\n',
    "Füße, naïve café, Ελληνικά, 日本語 and 🙂🙃 with\ttabs  and   spaces",
] * 4
TEXTS = st.lists(
    st.sampled_from([*CORPUS[:4], "the dog", " the", "  ", "\n\n", "don't", "12345", "日本", "é"])
    | st.text(max_size=12),
    max_size=6,
).map("".join)

TEMPLATE = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}"


def weights_of(folder: ModelFolder) -> dict[str, np.ndarray]:
    return {
        name: dequantise(data.reshape(*shape[:-1], -1), kind.name).reshape(shape)
        for name, kind, shape, data in model_tensors(folder, folder.config())
    }


def byte_level(llama3: bool) -> tokenizers.Tokenizer:
    """Cut as GPT-2 does, or as Llama 3 does."""
    made = tokenizers.Tokenizer(models.BPE(ignore_merges=llama3))
    to_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not llama3)
    cut = (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
        r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )
    split = pre_tokenizers.Split(tokenizers.Regex(cut), "isolated")
    made.pre_tokenizer = (
        pre_tokenizers.Sequence([split, to_bytes])
        if llama3
        else pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), to_bytes])
    )
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(
        CORPUS, BpeTrainer(vocab_size=400, initial_alphabet=alphabet, show_progress=False)
    )
    return made


def sentencepiece() -> tokenizers.Tokenizer:
    """Characters with bytes where one has no token, as in Gemma and Llama 2."""
    trained = tokenizers.Tokenizer(models.BPE())
    trained.normalizer = normalizers.Replace(" ", "▁")
    trained.train_from_iterator(
        [text.replace("🙂", "") for text in CORPUS], BpeTrainer(vocab_size=300, show_progress=False)
    )
    learnt = json.loads(trained.to_str())["model"]
    names = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), *learnt["vocab"]]
    vocabulary = {name: id_ for id_, name in enumerate(dict.fromkeys(names))}
    merges = [tuple(m.split(" ")) if isinstance(m, str) else tuple(m) for m in learnt["merges"]]
    made = tokenizers.Tokenizer(
        models.BPE(vocabulary, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    )
    made.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    made.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback()])
    made.add_special_tokens(["<unk>"])
    return made


def write_tokenizer(made: tokenizers.Tokenizer, folder: Path) -> int:
    """With turns, and a beginning that texts are given. Returns the number of ids."""
    made.add_special_tokens(["<s>", "</s>", "<|user|>", "<|end|>"])
    made.add_tokens([AddedToken("\n\n\n", normalized=False)])
    made.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", made.token_to_id("<s>"))]
    )
    made.save(str(folder / "tokenizer.json"))
    said = {"bos_token": "<s>", "eos_token": {"content": "</s>"}, "chat_template": TEMPLATE}
    (folder / "tokenizer_config.json").write_text(json.dumps(said))
    ends = {"eos_token_id": [made.token_to_id("</s>"), made.token_to_id("<|end|>")]}
    (folder / "generation_config.json").write_text(json.dumps(ends))
    return made.get_vocab_size()


MAKERS = {
    "gpt2": lambda: byte_level(False),
    "llama3": lambda: byte_level(True),
    "sentencepiece": sentencepiece,
}


@pytest.fixture(scope="module", params=MAKERS)
def tokeniser(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("tokenizer")
    made = MAKERS[request.param]()
    size = write_tokenizer(made, folder)
    if request.param == "sentencepiece":  # as within a text
        made.normalizer = normalizers.Replace(" ", "▁")
    return made, tokenizer_from_folder(folder, size + 3)


@settings(max_examples=150, deadline=None)
@given(text=TEXTS)
@example(text="a\n\n\nb")
def test_ids_are_those_of_the_library(tokeniser, text: str) -> None:
    made, ours = tokeniser
    if any(special in text for special in ("<s>", "</s>", "<|", "▁")):
        return
    ids = ours.encode(text)
    assert ids == made.encode(text, add_special_tokens=False).ids
    assert ours.decode(ids) == text


def test_what_a_tokeniser_says(tokeniser) -> None:
    made, ours = tokeniser
    assert ours.vocab_size == made.get_vocab_size() + 3
    assert ours.bos_id == made.token_to_id("<s>")
    assert ours.add_bos
    assert ours.eos_ids[:2] == (made.token_to_id("</s>"), made.token_to_id("<|end|>"))
    assert ours.chat_template == TEMPLATE
    assert ours.special_id("<|user|>") == made.token_to_id("<|user|>")
    assert ours.special_id("\n\n\n") is None
    assert ours.space_prefix == (made.normalizer is not None)
    assert {*range(ours.vocab_size - 3, ours.vocab_size)} <= ours.special_ids


def test_a_folder_runs_as_a_model(tmp_path: Path) -> None:
    family = FAMILIES["llama3"]
    size = write_tokenizer(byte_level(True), tmp_path)
    model = type(family)(
        family.kind, family.architecture, family.changes | {"vocab_size": size}
    ).model(1)
    save(model, tmp_path, torch.bfloat16)

    @sgl.function
    def program(s: sgl.State) -> None:
        with s.user():
            s += "How many?"
        s += sgl.gen("n", int, max_tokens=8)

    for weights in (None, "q8_0", "q4_0"):
        with sgl.Model(tmp_path, weights=weights, kv_memory=1 << 22) as made, sgl.use(made):
            row = program.run()
            assert isinstance(row["n"], int)
            assert row.text().startswith("<|user|>How many?<|end|>")
            assert made.path == str(tmp_path)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", ["gemma3", "qwen3-moe", "phi3"])
def test_half_precision_is_taken_as_it_is(name: str, dtype: torch.dtype, tmp_path: Path) -> None:
    model = FAMILIES[name].model(7)
    for weight in model.parameters():
        weight.data = weight.data.to(dtype).double()
    folder = ModelFolder(save(model, tmp_path, dtype))
    tokens = np.random.default_rng(3).integers(0, 101, 40).tolist()
    got = forward(folder.config(), weights_of(folder), tokens)
    expected = logits(model, tokens)
    assert np.abs(got - expected).max() < 1e-3 * np.abs(expected).max()


def test_shards_are_one_model(tmp_path: Path) -> None:
    model = FAMILIES["qwen2"].model(5)
    whole = ModelFolder(save(model, tmp_path / "whole"))
    parts = ModelFolder(save(model, tmp_path / "parts", max_shard_size="40KB"))
    assert len(parts.files) > 3
    assert whole.config() == parts.config()
    assert whole.tensors.keys() == parts.tensors.keys()
    assert all(np.array_equal(whole.data(name), parts.data(name)) for name in whole.tensors)


def test_experts_are_the_same_in_one_tensor_or_in_many(tmp_path: Path) -> None:
    """Checkpoints keep each expert's matrices apart; transformers holds them together."""
    model = FAMILIES["qwen3-moe"].model(7).float()
    one, many = tmp_path / "one", tmp_path / "many"
    save(model, one)
    shutil.copytree(one, many)
    from safetensors.torch import save_file

    stacked, apart = {}, {}
    for name, value in model.state_dict().items():
        stacked[name] = value.contiguous()
        stem, _, part = name.rpartition(".experts.")
        if not stem:
            apart[name] = value.contiguous()
            continue
        for expert, matrix in enumerate(value):
            halves = matrix.chunk(2) if part == "gate_up_proj" else [matrix]
            names = ["gate_proj", "up_proj"] if part == "gate_up_proj" else ["down_proj"]
            for what, half in zip(names, halves, strict=True):
                apart[f"{stem}.experts.{expert}.{what}.weight"] = half.contiguous()
    save_file(stacked, one / "model.safetensors")
    save_file(apart, many / "model.safetensors")
    first, second = ModelFolder(one), ModelFolder(many)
    assert first.config() == second.config()
    assert all(np.array_equal(first.data(name), second.data(name)) for name in first.tensors)


@pytest.mark.parametrize("kind", QUANTISERS)
def test_quantised_weights_are_the_nearest(kind: str, tmp_path: Path) -> None:
    model = FAMILIES["llama2"].model(5)
    save(model, tmp_path, torch.bfloat16)
    plain, packed = ModelFolder(tmp_path), ModelFolder(tmp_path, kind)
    exact, rounded = weights_of(plain), weights_of(packed)
    for name, info in packed.tensors.items():
        if len(info.shape) == 1:
            assert np.array_equal(exact[name], rounded[name])
            continue
        assert info.type == QUANTISERS[kind].type
        assert len(packed.data(name)) == info.nbytes
        blocks = exact[name].reshape(-1, 32)
        size = np.abs(blocks).max(axis=1, keepdims=True)
        # Half a step, the far end of Q4_0 a whole one, and the rounding of the scale.
        step = size / (127 if kind == "q8_0" else 8)
        most = step * (0.5 if kind == "q8_0" else 1) + size * 2.0**-10
        assert (np.abs(rounded[name].reshape(-1, 32) - blocks) <= most).all()


def test_widths_that_are_no_whole_blocks_stay(tmp_path: Path) -> None:
    model = FAMILIES["qwen3-moe"]
    changed = type(model)(model.kind, model.architecture, model.changes | {"hidden_size": 48})
    folder = ModelFolder(save(changed.model(1), tmp_path), "q4_0")
    kinds = {name: info.type.name for name, info in folder.tensors.items()}
    assert kinds["blk.0.attn_q.weight"] == "F32"
    assert kinds["blk.0.ffn_down_exps.weight"] == "Q4_0"


def test_values_that_are_all_nothing() -> None:
    zeros = np.zeros(64, np.float32).view(np.uint8)
    for kind, quantiser in QUANTISERS.items():
        packed = quantiser.quantise(zeros, sgl_type("F32"), 32)
        assert not dequantise(packed.reshape(2, -1), kind.upper()).any()


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 2**32 - 1), min_size=32, max_size=32))
def test_whatever_a_block_holds_the_next_one_is_right(bits: list[int]) -> None:
    odd = np.array(bits, np.uint32).view(np.float32)
    good = np.linspace(-1, 1, 32, dtype=np.float32)
    data = np.concatenate([odd, good]).view(np.uint8)
    for kind, quantiser in QUANTISERS.items():
        packed = quantiser.quantise(data, sgl_type("F32"), 32).reshape(2, -1)
        assert np.abs(dequantise(packed[1:], kind.upper()) - good).max() < 0.15


def sgl_type(name: str) -> Any:
    from sglite.runtime.models.ggml_types import GGMLType

    return GGMLType[name]


def test_inspect_tells_what_each_tensor_becomes(small: Path) -> None:
    lines = CliRunner().invoke(main, ["inspect", str(small)]).output.splitlines()
    assert lines[0].startswith(f"{small}  safetensors in 1 files")
    (row,) = (line for line in lines if "blk.*.ffn_down.weight" in line)
    assert row.split()[1:7] == ["F32", "64", "x", "96", "4", "times"]


# What is wrong


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(FAMILIES["llama2"].model(1), tmp_path_factory.mktemp("small"))


def rewrite(folder: Path, change) -> None:
    """Change the header of the weights."""
    file = folder / "model.safetensors"
    raw = file.read_bytes()
    (length,) = struct.unpack_from("<Q", raw)
    header = json.loads(raw[8 : 8 + length])
    data = raw[8 + length :]
    change(header)
    text = json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text + data)


def drop(header: dict[str, Any]) -> None:
    del header["model.layers.0.mlp.up_proj.weight"]


def retype(header: dict[str, Any]) -> None:
    entry = header["model.norm.weight"]
    entry |= {"dtype": "F8_E4M3", "shape": [4 * entry["shape"][0]]}


def reshape(header: dict[str, Any]) -> None:
    header["model.layers.0.mlp.up_proj.weight"]["shape"].reverse()


def rename(header: dict[str, Any]) -> None:
    header["model.layers.0.mlp.lora_A.weight"] = header.pop("model.layers.0.mlp.up_proj.weight")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (drop, r"'blk\.0\.ffn_up\.weight' \(96, 64\) is missing"),
        (retype, r"'model\.norm\.weight' has the type F8_E4M3; supported are F32, F16, BF16"),
        (reshape, r"'blk\.0\.ffn_up\.weight' has the shape \(64, 96\), not \(96, 64\)"),
        (rename, r"'blk\.0\.mlp\.lora_A\.weight' has no place"),
    ],
)
def test_wrong_tensors(small: Path, tmp_path: Path, change, message: str) -> None:
    folder = tmp_path / "model"
    shutil.copytree(small, folder)
    rewrite(folder, change)
    with pytest.raises(ModelError, match=message):
        ModelFolder(folder).config()


def test_wrong_folders(small: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(small, folder)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(ModelError, match=r"pytorch_model\.bin is of another format"):
        ModelFolder(folder)
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "../secret"}}))
    with pytest.raises(ModelError, match="is no name of a file in this folder"):
        ModelFolder(folder)
    with pytest.raises(ModelError, match="is a folder without config"):
        sgl.Model(tmp_path)
    with pytest.raises(ValueError, match="weights must be one of q8_0, q4_0"):
        ModelFolder(small, "q9")
    with pytest.raises(ModelError, match=r"tokenizer\.json: cannot be read"):
        sgl.Model(small)


def test_weights_are_not_for_gguf(smollm2_path: Path) -> None:
    with pytest.raises(ValueError, match="is for folders of safetensors"):
        sgl.Model(smollm2_path, weights="q8_0")


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_any_bytes_are_read_or_refused(
    small: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    raw = bytearray((small / "model.safetensors").read_bytes())
    (length,) = struct.unpack_from("<Q", raw)
    kind = data.draw(st.sampled_from(["cut", "flip", "number"]))
    if kind == "cut":
        raw = raw[: data.draw(st.integers(0, 8 + length + 100))]
    elif kind == "flip":
        for _ in range(data.draw(st.integers(1, 4))):
            raw[data.draw(st.integers(0, 8 + length))] ^= 1 << data.draw(st.integers(0, 7))
    else:
        header = json.loads(raw[8 : 8 + length])
        entry = header[data.draw(st.sampled_from(sorted(header.keys() - {"__metadata__"})))]
        numbers = st.integers(-3, 1 << 70) | st.sampled_from([1.5, None, "x", True, [1]])
        key = data.draw(st.sampled_from(["shape", "data_offsets"]))
        entry[key] = data.draw(st.lists(numbers, max_size=4))
        text = json.dumps(header).encode()
        raw = bytearray(struct.pack("<Q", len(text)) + text + raw[8 + length :])
    file = tmp_path_factory.getbasetemp() / "fuzzed.safetensors"
    file.write_bytes(raw)
    try:
        opened = SafetensorsFile(file)
    except ModelError:
        return
    for name, info in opened.tensors.items():
        assert len(opened.data(name)) == info.nbytes
