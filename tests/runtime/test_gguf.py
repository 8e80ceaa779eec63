"""The GGUF reader against the published `gguf` package, and on files that are wrong."""

from __future__ import annotations

import re
import struct
import time
from pathlib import Path
from typing import Any

import gguf as published
import numpy as np
import pytest
from gguf_files import (
    ARRAY,
    BOOL,
    STRING,
    U32,
    U64,
    f32_tensors,
    file_bytes,
    pair,
    string,
    tensor,
    tiny_llama,
    write,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from sglite.errors import ModelError
from sglite.runtime.models.gguf import GGMLType, GGUFFile, StringArray


@pytest.mark.model
def test_reads_what_the_published_package_reads(smollm2_path: Path) -> None:
    theirs = published.GGUFReader(smollm2_path)
    with GGUFFile.open(smollm2_path) as ours:
        fields = {k: f for k, f in theirs.fields.items() if not k.startswith("GGUF.")}
        assert list(ours.metadata) == list(fields)
        for key, field in fields.items():
            value = ours.metadata[key]
            expected = field.contents()
            assert (list(value) if isinstance(value, StringArray | np.ndarray) else value) == (
                expected
            ), key
        assert list(ours.tensors) == [tensor.name for tensor in theirs.tensors]
        for expected_tensor in theirs.tensors:
            info = ours.tensors[expected_tensor.name]
            assert info.type == expected_tensor.tensor_type
            assert info.shape == tuple(reversed(expected_tensor.shape.tolist()))
            assert info.offset == expected_tensor.data_offset
            data = ours.data(info.name)
            assert data.nbytes == info.nbytes == expected_tensor.n_bytes
            assert np.array_equal(data, expected_tensor.data.reshape(-1).view(np.uint8))


@pytest.mark.model
@pytest.mark.parametrize("fixture", ["smollm2_path", "gemma_path"])
def test_opens_a_real_file_at_once(fixture: str, request: pytest.FixtureRequest) -> None:
    path = request.getfixturevalue(fixture)
    times = []
    for _ in range(3):
        start = time.perf_counter()
        GGUFFile.open(path).close()
        times.append(time.perf_counter() - start)
    assert min(times) < 0.3, times


def test_block_sizes_are_the_published_ones() -> None:
    for type_ in GGMLType:
        theirs = published.GGMLQuantizationType(type_.value)
        assert theirs.name == type_.name
        assert published.GGML_QUANT_SIZES[theirs] == type_.block


_INTS = {
    "uint8": (0, 255),
    "int8": (-128, 127),
    "uint16": (0, 65535),
    "int16": (-32768, 32767),
    "uint32": (0, 2**32 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "uint64": (0, 2**64 - 1),
    "int64": (-(2**63), 2**63 - 1),
}
_scalars = st.one_of(
    *(st.tuples(st.just(name), st.integers(*limits)) for name, limits in _INTS.items()),
    st.tuples(st.just("float32"), st.floats(width=32, allow_nan=False)),
    st.tuples(st.just("float64"), st.floats(allow_nan=False)),
    st.tuples(st.just("bool"), st.booleans()),
    st.tuples(st.just("string"), st.text(st.characters(exclude_categories=["Cs"]), min_size=1)),
    st.tuples(
        st.just("array"),
        st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=20)
        | st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=20),
    ),
)
_names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60)
_tensors = st.dictionaries(
    _names, st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple), max_size=5
)


@settings(max_examples=60, deadline=None)
@given(
    metadata=st.dictionaries(_names, _scalars, max_size=6),
    shapes=_tensors,
    alignment=st.sampled_from([None, 8, 64]),
)
def test_reads_what_the_published_writer_writes(
    tmp_path_factory: pytest.TempPathFactory,
    metadata: dict[str, tuple[str, Any]],
    shapes: dict[str, tuple[int, ...]],
    alignment: int | None,
) -> None:
    path = tmp_path_factory.mktemp("gguf") / "written.gguf"
    writer = published.GGUFWriter(path, "any")
    metadata = {k: v for k, v in metadata.items() if not k.startswith("general.")}
    if alignment:
        writer.add_custom_alignment(alignment)
    for key, (kind, value) in metadata.items():
        getattr(writer, f"add_{kind}")(key, value)
    generator = np.random.default_rng(7)
    arrays = {
        name: generator.normal(size=shape).astype(np.float32) for name, shape in shapes.items()
    }
    for name, array in arrays.items():
        writer.add_tensor(name, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with GGUFFile.open(path) as file:
        for key, (_, value) in metadata.items():
            read = file.metadata[key]
            assert (list(read) if isinstance(read, StringArray | np.ndarray) else read) == value
        assert set(file.tensors) == set(arrays)
        for name, array in arrays.items():
            assert file.tensors[name].shape == array.shape
            assert np.array_equal(file.data(name).view(np.float32).reshape(array.shape), array)


_odd_strings = st.one_of(
    st.binary(max_size=12),
    st.sampled_from([b"", b"\0", b"\0" * 8, b"\1" + b"\0" * 7, b"\0" * 40, b"x" * 255, b"y" * 256]),
    st.integers(0, 700).map(lambda length: b"z" * length),
)


@settings(max_examples=100, deadline=None)
@given(
    stretches=st.lists(
        st.tuples(st.lists(_odd_strings, max_size=6), st.integers(1, 1500)), max_size=6
    ),
    ordinary=st.integers(0, 3000),
    before=st.binary(max_size=9),
)
def test_string_arrays_hold_the_strings(
    stretches: list[tuple[list[bytes], int]], ordinary: int, before: bytes
) -> None:
    expected = [f"word {i}".encode() for i in range(ordinary)]
    for strings, times in stretches:
        expected += strings * times if len(strings) < 3 else strings
        expected += [b"w"] * (times % 97)
    blob = before + b"".join(map(string, expected))
    array = StringArray(memoryview(blob + b"\0" * 30), len(before), len(expected))
    assert array.raw() == expected
    assert array.end == len(blob)
    decoded = [raw.decode("utf-8", "replace") for raw in expected]
    assert list(array) == decoded
    for index in range(-min(3, len(expected)), min(3, len(expected))):
        assert array[index] == decoded[index]
    assert array[1:5] == decoded[1:5]


def test_string_arrays_longer_than_a_window() -> None:
    expected = [str(i).encode() * (i % 7) for i in range(120_000)]
    blob = b"".join(map(string, expected))
    assert len(blob) > 1 << 21
    assert StringArray(memoryview(blob), 0, len(expected)).raw() == expected
    with pytest.raises(EOFError) as caught:
        StringArray(memoryview(blob)[:-1], 0, len(expected))
    assert caught.value.args == (len(blob) - 8 - len(expected[-1]),)


def test_views_are_read_only_and_outlive_the_file(tmp_path: Path) -> None:
    file = GGUFFile.open(write(tmp_path, tiny_llama()))
    data = file.data("output_norm.weight")
    types = file.metadata["tokenizer.ggml.token_type"]
    tokens = file.metadata["tokenizer.ggml.tokens"]
    assert isinstance(types, np.ndarray)
    assert isinstance(tokens, StringArray)
    assert not data.flags.writeable
    assert not types.flags.writeable
    with pytest.raises(TypeError):
        file.metadata["x"] = 1  # type: ignore[index]
    file.close()
    file.close()
    assert data.view(np.float32).tolist() == [1.0] * 8
    assert tokens[1] == "a"
    with pytest.raises(ModelError, match="after close"):
        file.data("output_norm.weight")


def test_an_unknown_tensor_is_named(tmp_path: Path) -> None:
    with (
        GGUFFile.open(write(tmp_path, tiny_llama())) as file,
        pytest.raises(ModelError, match="'nothing'"),
    ):
        file.data("nothing")


def _one(*sizes: int, kind: int = 0, offset: int = 0) -> list[bytes]:
    return [tensor("t", list(sizes), kind, offset)]


_DATA = b"\0" * 64
_WRONG = {
    "empty": (b"", "empty", 0),
    "foreign": (b"PK\x03\x04 and more", "not a GGUF file", 0),
    "shorter than the magic": (b"GG", "not a GGUF file", 0),
    "version 1": (file_bytes([], [], version=1), "GGUF version 1", 4),
    "version 4": (file_bytes([], [], version=4), "GGUF version 4", 4),
    "big-endian": (file_bytes([], [], version=3 << 24), "big-endian", 4),
    "no counts": (b"GGUF\3\0\0\0\1\0", "ends inside the number of tensors", 8),
    "many pairs": (file_bytes([], [], pair_count=1 << 60), "metadata pairs cannot fit", 24),
    "many tensors": (file_bytes([], [], tensor_count=1 << 60), "tensors cannot fit", 24),
    "long key": (
        file_bytes([struct.pack("<Q", 1 << 62) + b"x" * 20], [], pair_count=1),
        "ends inside the key of metadata pair 0",
        32,
    ),
    "empty key": (file_bytes([pair("", U32, 1)], [], _DATA), "0 characters", 24),
    "key not UTF-8": (file_bytes([pair(b"\xff\xfe", U32, 1)], []), "not UTF-8", 24),
    "key twice": (
        file_bytes([pair("a", U32, 1), pair("a", U32, 2)], []),
        "'a' appears twice",
        24 + 9 + 8,
    ),
    "string not UTF-8": (file_bytes([pair("a", STRING, b"\xc0")], []), "not UTF-8", 37),
    "unknown value type": (
        file_bytes([string("a") + struct.pack("<IQ", 13, 0)], []),
        "unknown type 13",
        33,
    ),
    "unknown element type": (
        file_bytes([string("a") + struct.pack("<IIQ", ARRAY, 77, 0)], []),
        "array of the unknown type 77",
        37,
    ),
    "arrays in arrays": (
        file_bytes([string("a") + struct.pack("<IIQ", ARRAY, ARRAY, 1 << 40)], []),
        "array of arrays",
        37,
    ),
    "absurd array of numbers": (
        file_bytes([string("a") + struct.pack("<IIQ", ARRAY, U64, 1 << 61)], []),
        "ends inside metadata 'a'",
        49,
    ),
    "absurd array of strings": (
        file_bytes([string("a") + struct.pack("<IIQ", ARRAY, STRING, 1 << 61)], []),
        "strings of metadata 'a' cannot fit",
        49,
    ),
    "string of an array outside": (
        file_bytes([string("a") + struct.pack("<IIQQQ", ARRAY, STRING, 2, 0, 1 << 63)], []),
        "ends inside a string of metadata 'a'",
        57,
    ),
    "half a boolean": (
        file_bytes([string("a") + struct.pack("<IB", BOOL, 2) + b"\0" * 9], [], pair_count=1),
        "neither 0 nor 1",
        37,
    ),
    "alignment 0": (
        file_bytes([pair("general.alignment", U32, 0)], [], _DATA),
        "power of two, not 0",
        24 + 25 + 8,
    ),
    "alignment 24": (
        file_bytes([pair("general.alignment", U32, 24)], [], _DATA),
        "power of two, not 24",
        24 + 25 + 8,
    ),
    "alignment in words": (
        file_bytes([pair("general.alignment", STRING, "32")], [], _DATA),
        "power of two, not '32'",
        24 + 25 + 4 + 10,
    ),
    "no dimensions": (file_bytes([], _one(), _DATA), "0 dimensions", 33),
    "five dimensions": (file_bytes([], _one(1, 1, 1, 1, 1), _DATA), "5 dimensions", 33),
    "a size of 0": (file_bytes([], _one(8, 0), _DATA), "impossible shape (0, 8)", 37),
    "overflow": (file_bytes([], _one(1 << 32, 1 << 32), _DATA), "impossible shape", 37),
    "unknown tensor type": (file_bytes([], _one(8, kind=4), _DATA), "unknown type 4", 45),
    "half a block": (file_bytes([], _one(33, kind=8), _DATA), "no whole number of Q8_0", 37),
    "offset not aligned": (file_bytes([], _one(8, offset=8), _DATA), "alignment 32", 24),
    "offset outside": (file_bytes([], _one(8, offset=64), _DATA), "cut short?", 24),
    "offset far outside": (file_bytes([], _one(8, offset=(1 << 64) - 32), _DATA), "takes", 24),
    "data outside": (file_bytes([], _one(1 << 40), _DATA), "takes", 24),
    "name twice": (file_bytes([], _one(8) * 2, _DATA), "'t' appears twice", 24 + 33),
    "name not UTF-8": (file_bytes([], [tensor(b"\x80", [8], 0, 0)], _DATA), "not UTF-8", 24),
    "overlap": (
        file_bytes([], [*_one(9), tensor("u", [8], 0, 32)], _DATA),
        "'t' and 'u' overlap",
        24 + 33,
    ),
}


@pytest.mark.parametrize("case", _WRONG)
def test_a_wrong_file_is_refused_with_the_place(case: str, tmp_path: Path) -> None:
    content, what, byte = _WRONG[case]
    path = write(tmp_path, content)
    with pytest.raises(ModelError) as caught:
        GGUFFile.open(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert re.search(re.escape(what), message)
    assert message.endswith(f"(byte {byte})")


def test_version_2_is_read(tmp_path: Path) -> None:
    content = file_bytes([pair("a", U32, 5)], *f32_tensors({"t": [4, 2]}), version=2)
    with GGUFFile.open(write(tmp_path, content)) as file:
        assert (file.version, dict(file.metadata)) == (2, {"a": 5})
        assert file.tensors["t"].shape == (2, 4)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(ModelError, match=re.escape(str(path))):
            GGUFFile.open(path)
