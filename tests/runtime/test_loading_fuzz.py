"""Whatever a file says of a model that would run: it runs, or is refused by ModelError.

The files are those of test_gguf_fuzz.py, large enough for the native code, changed as a whole: keys
of other types and values, tensors of other types and shapes, any bytes as weights.
"""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gguf_files import (
    ARRAY,
    BOOL,
    F32,
    F64,
    I8,
    I32,
    I64,
    STRING,
    U8,
    U32,
    U64,
    file_bytes,
    llama_pairs,
    pair,
    tensor,
    write,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from limits import examples
from test_gguf_fuzz import mutated_by, mutations_of

from sglite.errors import ModelError
from sglite.runtime.backends.cpu import CpuBackend
from sglite.runtime.models.config import ModelConfig
from sglite.runtime.models.ggml_types import GGMLType
from sglite.runtime.models.gguf import GGUFFile
from sglite.runtime.plan import StepPlan

WIDTH, HEAD, FF, VOCABULARY, EXPERTS = 64, 16, 32, 7, 3
SIZES = {
    "embedding_length": (U32, WIDTH),
    "feed_forward_length": (U32, FF),
    "attention.head_count": (U32, WIDTH // HEAD),
    "attention.head_count_kv": (U32, 2),
    "rope.dimension_count": (U32, HEAD),
}
DENSE = {
    "token_embd.weight": [WIDTH, VOCABULARY],
    "output_norm.weight": [WIDTH],
    "blk.0.attn_norm.weight": [WIDTH],
    "blk.0.attn_q.weight": [WIDTH, WIDTH],
    "blk.0.attn_k.weight": [WIDTH, 2 * HEAD],
    "blk.0.attn_v.weight": [WIDTH, 2 * HEAD],
    "blk.0.attn_output.weight": [WIDTH, WIDTH],
    "blk.0.ffn_norm.weight": [WIDTH],
    "blk.0.ffn_gate.weight": [WIDTH, FF],
    "blk.0.ffn_up.weight": [WIDTH, FF],
    "blk.0.ffn_down.weight": [FF, WIDTH],
}
"""Sizes in the order of the file: columns first."""

Change = tuple[int, Any] | None


def _without(shapes: dict[str, list[int]], *names: str) -> dict[str, list[int]]:
    return {name: sizes for name, sizes in shapes.items() if not name.endswith(names)}


_EXPERTS = _without(DENSE, "ffn_gate.weight", "ffn_up.weight", "ffn_down.weight") | {
    "blk.0.ffn_gate_inp.weight": [WIDTH, EXPERTS],
    "blk.0.ffn_gate_exps.weight": [WIDTH, FF, EXPERTS],
    "blk.0.ffn_up_exps.weight": [WIDTH, FF, EXPERTS],
    "blk.0.ffn_down_exps.weight": [FF, WIDTH, EXPERTS],
    "blk.0.attn_q.bias": [WIDTH],
    "blk.0.attn_k.bias": [2 * HEAD],
    "blk.0.attn_v.bias": [2 * HEAD],
    "rope_freqs.weight": [HEAD // 2],
}
_FUSED = _without(DENSE, "_q.weight", "_k.weight", "_v.weight", "gate.weight", "up.weight") | {
    "blk.0.attn_qkv.weight": [WIDTH, WIDTH + 4 * HEAD],
    "blk.0.ffn_up.weight": [WIDTH, 2 * FF],
    "rope_factors_long.weight": [HEAD // 2],
    "rope_factors_short.weight": [HEAD // 2],
}
_NORMED = DENSE | {
    "blk.0.post_attention_norm.weight": [WIDTH],
    "blk.0.post_ffw_norm.weight": [WIDTH],
    "blk.0.attn_q_norm.weight": [HEAD],
    "blk.0.attn_k_norm.weight": [HEAD],
}
MODELS: dict[str, tuple[str, dict[str, Change], dict[str, list[int]]]] = {
    "dense": ("llama", {}, DENSE),
    "experts": (
        "llama",
        {
            "expert_count": (U32, EXPERTS),
            "expert_used_count": (U32, 2),
            "expert_weights_norm": (BOOL, True),
            "attention.sliding_window": (U32, 5),
            "attn_logit_softcapping": (F32, 50.0),
            "final_logit_softcapping": (F32, 30.0),
        },
        _EXPERTS,
    ),
    "fused": (
        "phi3",
        {
            "rope.scaling.attn_factor": (F32, 1.19),
            "rope.scaling.original_context_length": (U32, 16),
        },
        _FUSED,
    ),
    "normed": ("gemma3", {"attention.sliding_window": (U32, 4)}, _NORMED),
    "stretched": (
        "qwen2",
        {
            "rope.scaling.type": (STRING, "yarn"),
            "rope.scaling.factor": (F32, 4.0),
            "rope.scaling.original_context_length": (U32, 16),
        },
        DENSE,
    ),
}

_NUMBERS = [0, 1, 2, 3, 5, 16, 17, 33, 63, 64, 1 << 20, (1 << 31) - 1, (1 << 32) - 1]
_VALUES: st.SearchStrategy[Change] = st.one_of(
    st.none(),
    st.tuples(st.just(U32), st.sampled_from(_NUMBERS)),
    st.tuples(st.just(I32), st.sampled_from([-1, -(1 << 31), 7, 64])),
    st.tuples(st.just(U8), st.integers(0, 255)),
    st.tuples(st.just(I8), st.integers(-128, 127)),
    st.tuples(st.just(U64), st.sampled_from([0, 1, 64, 1 << 40, (1 << 64) - 1])),
    st.tuples(st.just(I64), st.sampled_from([-1, 1, 64, -(1 << 63)])),
    st.tuples(st.just(F32), st.sampled_from([0.0, -1.0, 1.0, 1e-45, 3e38, math.inf, math.nan])),
    st.tuples(st.just(F64), st.sampled_from([0.0, 1e-320, 1e300, math.nan])),
    st.tuples(st.just(BOOL), st.booleans()),
    st.tuples(st.just(STRING), st.sampled_from(["", "linear", "yarn", "longrope", "none", "ü"])),
    st.tuples(st.just(ARRAY), st.tuples(st.just(U32), st.lists(st.integers(0, 99), max_size=3))),
)


def data_of(type_: int, sizes: list[int], rng: np.random.Generator) -> bytes:
    """Any weights; those of F32 are numbers near 1."""
    if type_ == GGMLType.F32:
        return rng.uniform(0.5, 1.5, math.prod(sizes)).astype("<f4").tobytes()
    length, size = GGMLType(type_).block
    return rng.integers(0, 256, math.prod(sizes) // length * size, np.uint8).tobytes()


def laid_out(
    name: str,
    changes: dict[str, Change],
    types: dict[str, int],
    shapes: dict[str, list[int]],
    seed: int = 1,
) -> bytes:
    """A file of the model `name`; what is said of its tensors is true unless `shapes` lie."""
    architecture, keys, right = MODELS[name]
    said = SIZES | keys | changes
    pairs = llama_pairs(
        architecture, **{f"{architecture}.{key}": value for key, value in said.items()}
    )
    rng = np.random.default_rng(seed)
    infos, data = [], b""
    for tensor_name, sizes in right.items():
        type_ = types.get(tensor_name, GGMLType.F32)
        if sizes[0] % GGMLType(type_).block[0]:
            type_ = GGMLType.F32
        shown = shapes.get(tensor_name, sizes)
        infos.append(tensor(tensor_name, shown, type_, len(data)))
        data += data_of(type_, sizes, rng)
        data += b"\0" * (-len(data) % 32)
    return file_bytes(pairs, infos, data)


def outcome(folder: Path, content: bytes) -> str:
    """ "ran" or "refused": whatever else happens is a fault."""
    path = write(folder, content)
    try:
        with GGUFFile.open(path) as file:
            config = ModelConfig.from_gguf(file)
            backend = CpuBackend(file, config, threads=2, pages=4)
    except ModelError:
        return "refused"
    tokens = np.arange(20, dtype=np.int32) % config.vocab_size
    tokens = tokens[: config.context_length]
    count = len(tokens)
    ints = [[0, count], [0], [3, 1], [0, 2], [0, count - 1] if count > 1 else [0]]
    plan = StepPlan(tokens, *(np.array(values, np.int32) for values in ints))
    assert backend.forward(plan).shape == (len(plan.logit_tokens), config.vocab_size)
    backend.close()
    return "ran"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("loading")


@pytest.mark.parametrize("name", MODELS)
def test_files_whose_keys_say_something_else(folder: Path, name: str) -> None:
    assert outcome(folder, laid_out(name, {}, {}, {})) == "ran"
    keys = sorted({*SIZES, *MODELS[name][1], "context_length", "block_count", "rope.freq_base",
                   "attention.key_length", "attention.value_length", "attention.scale",
                   "rope.scaling.factor", "rope.scaling.type", "rope.scaling.yarn_beta_fast",
                   "attention.sliding_window", "attention.sliding_window_pattern", "vocab_size",
                   "expert_count", "expert_used_count", "expert_feed_forward_length",
                   "attention.layer_norm_rms_epsilon", "attn_logit_softcapping"})  # fmt: skip

    @settings(max_examples=examples(80), deadline=None)
    @given(st.dictionaries(st.sampled_from(keys), _VALUES, min_size=1, max_size=3))
    def check(changes: dict[str, Change]) -> None:
        outcome(folder, laid_out(name, changes, {}, {}))

    check()


@pytest.mark.parametrize("name", MODELS)
def test_files_with_tensors_of_other_types_and_shapes(folder: Path, name: str) -> None:
    tensors = MODELS[name][2]
    outcomes: set[str] = set()

    @st.composite
    def other_shape(draw: st.DrawFn, sizes: list[int]) -> list[int]:
        changed = [draw(st.sampled_from([n, n, n - 1, n + 1, 2 * n, n // 2, 1])) for n in sizes]
        return [max(1, n) for n in draw(st.permutations(changed))]

    @settings(max_examples=examples(60), deadline=None)
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        kinds = st.sampled_from([int(t) for t in GGMLType])
        types = data.draw(st.dictionaries(st.sampled_from(list(tensors)), kinds, max_size=3))
        lying = data.draw(st.lists(st.sampled_from(list(tensors)), max_size=2))
        shapes = {n: data.draw(other_shape(tensors[n])) for n in lying}
        seed = data.draw(st.integers(0, 99))
        outcomes.add(outcome(folder, laid_out(name, {}, types, shapes, seed)))

    check()
    assert outcomes == {"ran", "refused"}


@pytest.mark.parametrize("name", MODELS)
def test_files_with_bytes_changed_anywhere(folder: Path, name: str) -> None:
    content = laid_out(name, {}, dict.fromkeys(MODELS[name][2], GGMLType.Q4_0), {})
    assert outcome(folder, content) == "ran"

    @settings(max_examples=examples(100), deadline=None)
    @given(mutations_of(len(content)))
    def check(mutations: list[tuple[str, int, Any]]) -> None:
        outcome(folder, mutated_by(content, mutations))

    check()


@pytest.mark.parametrize("name", MODELS)
def test_files_cut_short(folder: Path, name: str) -> None:
    content = laid_out(name, {}, {}, {})
    for length in np.linspace(0, len(content.rstrip(b"\0")) - 1, examples(40)).astype(int):
        assert outcome(folder, content[:length]) == "refused"


def test_metadata_counts_beyond_the_file_are_refused(folder: Path) -> None:
    infos = [tensor(n, s, 0, 0) for n, s in DENSE.items()]
    for count in (12, 1 << 31, (1 << 63) - 1, (1 << 64) - 1):
        pairs = llama_pairs()
        for counts in ({"tensor_count": count}, {"pair_count": count}):
            assert outcome(folder, file_bytes(pairs, infos, **counts)) == "refused"
        claim = struct.pack("<IQ", U32, count)
        bad = pair("x", U32, 0)[:-8] + struct.pack("<I", ARRAY) + claim
        assert outcome(folder, file_bytes([*pairs, bad], infos)) == "refused"
