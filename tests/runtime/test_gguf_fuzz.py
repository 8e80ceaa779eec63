"""Whatever bytes a file has: a GGUFFile or a ModelError, little memory, and never anything else.

What gets through the reader goes on to the config, the tokeniser and every tensor.
"""

from __future__ import annotations

import math
import os
import re
import struct
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gguf_files import sentencepiece, tiny_experts, tiny_fused, tiny_llama, write
from hypothesis import example, given, settings
from hypothesis import strategies as st
from limits import examples

from sglite.errors import ModelError
from sglite.runtime.models.config import ModelConfig
from sglite.runtime.models.gguf import GGUFFile, StringArray
from sglite.runtime.models.tensors import model_tensors, tensor_shapes
from sglite.runtime.models.tokenizer import Tokenizer

_MEMORY = 16 << 20
_TINY = tiny_llama()
_SENTENCEPIECE = tiny_llama(**sentencepiece(["<unk>", "a", "b", "▁", "ab", "  ", "<0x0A>"]))
_FILES = {
    "gpt2": _TINY,
    "llama": _SENTENCEPIECE,
    "experts": tiny_experts(),
    "fused": tiny_fused(),
}
_EXTREMES = [0, 1, 2, 0x7F, 0xFF, 1 << 15, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 61]
_EXTREMES += [(1 << 63) - 1, 1 << 63, (1 << 64) - 32, (1 << 64) - 1]


@st.composite
def mutations_of(draw: st.DrawFn, size: int) -> list[tuple[str, int, Any]]:
    """Up to four changes, each (kind, place, what)."""
    place = st.integers(0, size - 1)
    change = st.one_of(
        st.tuples(st.just("byte"), place, st.integers(0, 255)),
        st.tuples(st.just("u32"), place, st.sampled_from(_EXTREMES)),
        st.tuples(st.just("u64"), place, st.sampled_from(_EXTREMES)),
        st.tuples(st.just("insert"), place, st.binary(min_size=1, max_size=9)),
        st.tuples(st.just("delete"), place, st.integers(1, 40)),
    )
    return draw(st.lists(change, min_size=1, max_size=4))


def mutated_by(content: bytes, mutations: list[tuple[str, int, Any]]) -> bytes:
    for kind, place, what in mutations:
        if kind == "insert":
            content = content[:place] + what + content[place:]
        elif kind == "delete":
            content = content[:place] + content[place + what :]
        else:
            new = {
                "byte": lambda number: struct.pack("<B", number),
                "u32": lambda number: struct.pack("<I", number & 0xFFFFFFFF),
                "u64": lambda number: struct.pack("<Q", number),
            }[kind](what)
            content = content[:place] + new + content[place + len(new) :]
    return content


@contextmanager
def _little_memory(limit: int) -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < limit


def _outcome(path: Path, use: Callable[[GGUFFile], object]) -> ModelError | None:
    """The error that opening and using the file gives; any other exception is a failure."""
    try:
        with GGUFFile.open(path) as file:
            use(file)
    except ModelError as error:
        return error
    return None


def _opens(path: Path) -> bool:
    """Whether the file opens; if it does, everything made of it works or is refused."""
    with _little_memory(_MEMORY):
        error = _outcome(path, _read_everything)
        if error is not None:
            assert re.match(re.escape(str(path)) + r": .* \(byte \d+\)$", str(error), re.DOTALL)
            return False
        for use in (ModelConfig.from_gguf, _use_tokenizer):
            error = _outcome(path, use)
            assert error is None or str(path) in str(error)
    return True


def test_the_files_to_be_mutated_are_whole(folder: Path) -> None:
    for content in _FILES.values():
        with GGUFFile.open(write(folder, content)) as file:
            config = ModelConfig.from_gguf(file)
            tensors = {name: data.size for name, _, _, data in model_tensors(file, config)}
        sizes = {name: 4 * math.prod(shape) for name, shape in tensor_shapes(config).items()}
        assert tensors == sizes


def _read_everything(file: GGUFFile) -> None:
    for value in file.metadata.values():
        if isinstance(value, StringArray):
            assert len(list(value)) == len(value)
        elif isinstance(value, np.ndarray):
            value.copy()
    size = file.path.stat().st_size
    for name, info in file.tensors.items():
        assert 0 < info.offset <= info.offset + info.nbytes <= size
        assert file.data(name)[-1:].nbytes == 1


def _use_tokenizer(file: GGUFFile) -> None:
    tokenizer = Tokenizer.from_gguf(file)
    ids = tokenizer.encode("ab ab\n  é")
    assert not tokenizer.special_ids & set(ids)
    assert all(0 <= id_ < tokenizer.vocab_size for id_ in ids)
    tokenizer.decode(ids)
    assert len(tokenizer.token_bytes) == tokenizer.vocab_size


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


@pytest.mark.parametrize("content", _FILES.values(), ids=_FILES)
def test_every_truncation_is_refused(content: bytes, folder: Path) -> None:
    path = write(folder, content)
    assert _opens(path)
    for length in reversed(range(len(content.rstrip(b"\0")))):
        os.truncate(path, length)
        with pytest.raises(ModelError):
            GGUFFile.open(path)


@pytest.mark.parametrize("content", _FILES.values(), ids=_FILES)
def test_mutated_small_files(content: bytes, folder: Path) -> None:
    outcomes = {True: 0, False: 0}

    @settings(max_examples=examples(250), deadline=None)
    @given(mutations_of(len(content)))
    @example([("u64", 8, 1 << 63)])
    def check(mutations: list[tuple[str, int, Any]]) -> None:
        outcomes[_opens(write(folder, mutated_by(content, mutations)))] += 1

    check()
    assert min(outcomes.values()) >= examples(8), outcomes


@settings(max_examples=examples(100), deadline=None)
@given(content=st.binary(max_size=300))
def test_random_bytes_behind_the_magic(folder: Path, content: bytes) -> None:
    _opens(write(folder, b"GGUF\3\0\0\0" + content))


@pytest.mark.model
@pytest.mark.parametrize("fixture", ["smollm2_path", "gemma_path"])
def test_mutated_headers_of_real_files(
    fixture: str, request: pytest.FixtureRequest, folder: Path
) -> None:
    path = request.getfixturevalue(fixture)
    with GGUFFile.open(path) as file:
        end = min(info.offset for info in file.tensors.values())
        tokens = file.metadata["tokenizer.ggml.tokens"]
        assert isinstance(tokens, StringArray)
        outside_the_tokens = st.integers(0, 1500) | st.integers(tokens.end, end - 1)
    header, size = path.read_bytes()[:end], path.stat().st_size
    mutated = folder / "header.gguf"

    @settings(max_examples=examples(25), deadline=None)
    @given(outside_the_tokens | st.integers(0, end - 1), st.sampled_from(_EXTREMES), st.booleans())
    @example(place=249, number=1 << 31, cut=False)
    @example(place=289, number=0, cut=False)
    def check(place: int, number: int, cut: bool) -> None:
        changed = header[:place] + struct.pack("<Q", number) + header[place + 8 :]
        mutated.write_bytes(changed[:place] if cut else changed[:end])
        with mutated.open("r+b") as file:
            file.truncate(place + 1 if cut else size)  # the data stays a hole
        # No more than a few times the size of the header, whatever it says.
        with _little_memory(8 * end):
            error = _outcome(mutated, _describe)
        assert error is None or str(mutated) in str(error)

    check()


def _describe(file: GGUFFile) -> None:
    ModelConfig.from_gguf(file)
    Tokenizer.from_gguf(file)
