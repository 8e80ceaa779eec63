"""GGUF files (versions 2 and 3), read from a mapping: opening one copies no tensor.

    magic "GGUF" | version u32 | tensor count u64 | metadata count u64
    metadata:     key string | type u32 | value                                   ... one each
    tensor infos: name string | dimensions u32 | sizes u64 ... | type u32 | offset u64
    padding to the alignment, then the data that the offsets count from

All numbers are little-endian; a string is a u64 length and its bytes. Nothing in a file is
believed before it has been checked: whatever a file holds, opening it ends in a GGUFFile or in a
ModelError that names path, thing and byte offset. (A file that is cut short later, while it is
mapped, ends the process when the lost part is read: replace model files by renaming.) It knows
nothing of models or of how values are coded.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from sglite.errors import ModelError
from sglite.runtime.models.ggml_types import GGMLType
from sglite.runtime.models.mapping import map_file
from sglite.runtime.models.string_array import StringArray

__all__ = ["GGMLType", "GGUFFile", "MetadataValue", "StringArray", "TensorInfo"]

MetadataValue = int | float | bool | str | StringArray | NDArray[np.generic]
"""A scalar, a StringArray, or a read-only numpy view of an array of numbers."""

_STRING, _ARRAY, _BOOL = 8, 9, 7
_NUMBERS = {
    0: "<u1",
    1: "<i1",
    2: "<u2",
    3: "<i2",
    4: "<u4",
    5: "<i4",
    6: "<f4",
    _BOOL: "|b1",
    10: "<u8",
    11: "<i8",
    12: "<f8",
}
_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")

_DEFAULT_ALIGNMENT = 32
_MAX_DIMENSIONS = 4
_MAX_NAME = 65535
_MAX_TEXT = 4 << 20  # bytes of a text in the metadata
_SMALLEST_PAIR = 8 + 1 + 4 + 1
_SMALLEST_TENSOR_INFO = 8 + 1 + 4 + 8 + 4 + 8


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """Where a tensor lies. `shape` is in numpy order (rows, columns), the last one contiguous;
    `offset` counts from the beginning of the file; both it and `nbytes` are in bytes."""

    name: str
    type: GGMLType
    shape: tuple[int, ...]
    offset: int
    nbytes: int


class GGUFFile:
    """An open GGUF file. Use it as a context manager, or call `close`.

    Views that were handed out stay valid after `close`; the mapping goes with the last of them.
    """

    metadata: Mapping[str, MetadataValue]
    """By key, in the order of the file. Long arrays are decoded only when they are read."""

    tensors: Mapping[str, TensorInfo]
    """By name, in the order of the file."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.files = (self.path,)
        self._map: mmap.mmap | None = map_file(self.path)
        cursor = _Cursor(self.path, memoryview(self._map))
        self.version = _read_version(cursor)
        tensor_count = cursor.u64("the number of tensors")
        pair_count = cursor.u64("the number of metadata pairs")
        cursor.check_count(pair_count, _SMALLEST_PAIR, "metadata pairs")
        self.metadata = MappingProxyType(_read_metadata(cursor, pair_count))
        cursor.check_count(tensor_count, _SMALLEST_TENSOR_INFO, "tensors")
        self.tensors = MappingProxyType(_read_tensors(cursor, tensor_count, self.metadata))

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> GGUFFile:
        """Map and check the file. Raises ModelError for whatever is wrong with it."""
        return cls(path)

    def data(self, name: str) -> NDArray[np.uint8]:
        """The bytes of a tensor as a read-only view of the mapping, uint8 [nbytes].

        Raises ModelError for a name that the file does not have, and after `close`.
        """
        if self._map is None:
            raise ModelError(f"{self.path}: tensor {name!r} was asked for after close()")
        info = self.tensors.get(name)
        if info is None:
            raise ModelError(f"{self.path}: there is no tensor {name!r}")
        return np.frombuffer(self._map, np.uint8, info.nbytes, info.offset)

    def close(self) -> None:
        """Let go of the mapping. Closing twice is fine."""
        self._map = None

    def __enter__(self) -> GGUFFile:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


class _Cursor:
    """A position in the mapped file that refuses to leave it."""

    def __init__(self, path: Path, buffer: memoryview) -> None:
        self.path = path
        self.buffer = buffer
        self.position = 0

    def error(self, what: str, at: int | None = None) -> ModelError:
        return ModelError(f"{self.path}: {what} (byte {self.position if at is None else at})")

    def check_room(self, nbytes: int, what: str) -> None:
        if nbytes > len(self.buffer) - self.position:
            raise self.error(f"the file ends inside {what}; is it cut short?")

    def check_count(self, count: int, smallest: int, what: str) -> None:
        """Refuse a count that the rest of the file has no room for, before it costs anything."""
        room = len(self.buffer) - self.position
        if count * smallest > room:
            raise self.error(f"{count} {what} cannot fit into the {room} bytes that are left")

    def u32(self, what: str) -> int:
        self.check_room(4, what)
        (value,) = _U32.unpack_from(self.buffer, self.position)
        self.position += 4
        return int(value)

    def u64(self, what: str) -> int:
        self.check_room(8, what)
        (value,) = _U64.unpack_from(self.buffer, self.position)
        self.position += 8
        return int(value)

    def string(self, what: str, longest: int = _MAX_TEXT) -> str:
        start = self.position
        length = self.u64(f"the length of {what}")
        self.check_room(length, what)
        if length > longest:  # the weights behind the header would be read as text
            raise self.error(f"{what} has {length} bytes; {longest} are the most", start)
        raw = self.buffer[self.position : self.position + length]
        self.position += length
        try:
            return str(raw, "utf-8")
        except UnicodeDecodeError:
            raise self.error(f"{what} is not UTF-8", start) from None

    def name(self, what: str) -> str:
        start = self.position
        name = self.string(what, 4 * _MAX_NAME)
        if not 0 < len(name) <= _MAX_NAME:
            raise self.error(f"{what} has {len(name)} characters, not 1 to {_MAX_NAME}", start)
        return name

    def numbers(self, type_id: int, count: int, what: str) -> NDArray[np.generic]:
        dtype = np.dtype(_NUMBERS[type_id])
        self.check_room(count * dtype.itemsize, what)
        values = np.frombuffer(self.buffer, dtype, count, self.position)
        if type_id == _BOOL and (bad := np.flatnonzero(values.view(np.uint8) > 1)).size:
            raise self.error(f"a boolean of {what} is neither 0 nor 1", self.position + int(bad[0]))
        self.position += values.nbytes
        return values

    def strings(self, count: int, what: str) -> StringArray:
        self.check_count(count, 8, f"strings of {what}")
        try:
            array = StringArray(self.buffer, self.position, count)
        except EOFError as error:
            what = f"the file ends inside a string of {what}; is it cut short?"
            raise self.error(what, error.args[0]) from None
        self.position = array.end
        return array


def _read_version(cursor: _Cursor) -> int:
    if bytes(cursor.buffer[:4]) != b"GGUF":
        raise cursor.error(f"not a GGUF file: it begins with {bytes(cursor.buffer[:4])!r}")
    cursor.position = 4
    version = cursor.u32("the version")
    if version in (2, 3):
        return version
    if version in (2 << 24, 3 << 24):
        raise cursor.error("a big-endian GGUF file; only little-endian ones can be read", 4)
    raise cursor.error(f"GGUF version {version}; versions 2 and 3 can be read", 4)


def _read_metadata(cursor: _Cursor, count: int) -> dict[str, MetadataValue]:
    metadata: dict[str, MetadataValue] = {}
    for index in range(count):
        start = cursor.position
        key = cursor.name(f"the key of metadata pair {index}")
        if key in metadata:
            raise cursor.error(f"metadata key {key!r} appears twice", start)
        metadata[key] = _read_value(cursor, f"metadata {key!r}")
    return metadata


def _read_value(cursor: _Cursor, what: str) -> MetadataValue:
    start = cursor.position
    type_id = cursor.u32(f"the type of {what}")
    if type_id == _STRING:
        return cursor.string(what)
    if type_id in _NUMBERS:
        value: int | float | bool = cursor.numbers(type_id, 1, what)[0].item()
        return value
    if type_id != _ARRAY:
        raise cursor.error(f"{what} has the unknown type {type_id}", start)
    start = cursor.position
    element_id = cursor.u32(f"the element type of {what}")
    count = cursor.u64(f"the length of {what}")
    if element_id == _STRING:
        return cursor.strings(count, what)
    if element_id in _NUMBERS:
        return cursor.numbers(element_id, count, what)
    if element_id == _ARRAY:
        raise cursor.error(f"{what} is an array of arrays, which is not supported", start)
    raise cursor.error(f"{what} is an array of the unknown type {element_id}", start)


def _read_tensors(
    cursor: _Cursor, count: int, metadata: Mapping[str, MetadataValue]
) -> dict[str, TensorInfo]:
    alignment = metadata.get("general.alignment", _DEFAULT_ALIGNMENT)
    if type(alignment) is not int or alignment < 1 or alignment & (alignment - 1):
        raise cursor.error(f"general.alignment must be a power of two, not {alignment!r}")
    found: list[tuple[TensorInfo, int]] = []
    names: set[str] = set()
    for index in range(count):
        start = cursor.position
        info = _read_tensor_info(cursor, index)
        if info.name in names:
            raise cursor.error(f"tensor {info.name!r} appears twice", start)
        if info.offset % alignment:
            raise cursor.error(
                f"tensor {info.name!r} begins at {info.offset}, "
                f"not a multiple of the alignment {alignment}",
                start,
            )
        names.add(info.name)
        found.append((info, start))
    data_start = -(-cursor.position // alignment) * alignment
    return _place(cursor, found, data_start)


def _read_tensor_info(cursor: _Cursor, index: int) -> TensorInfo:
    """One tensor info; its offset still counts from the beginning of the data."""
    name = cursor.name(f"the name of tensor {index}")
    what = f"tensor {name!r}"
    start = cursor.position
    dimensions = cursor.u32(f"the number of dimensions of {what}")
    if not 1 <= dimensions <= _MAX_DIMENSIONS:
        raise cursor.error(f"{what} has {dimensions} dimensions, not 1 to {_MAX_DIMENSIONS}", start)
    start = cursor.position
    sizes = [cursor.u64(f"the shape of {what}") for _ in range(dimensions)]
    if 0 in sizes or prod(sizes) >= 1 << 63:
        raise cursor.error(f"{what} has the impossible shape {tuple(reversed(sizes))}", start)
    type_start = cursor.position
    type_id = cursor.u32(f"the type of {what}")
    try:
        ggml_type = GGMLType(type_id)
    except ValueError:
        raise cursor.error(f"{what} has the unknown type {type_id}", type_start) from None
    length, size = ggml_type.block
    if sizes[0] % length:
        raise cursor.error(
            f"rows of {sizes[0]} values in {what} are no whole number of "
            f"{ggml_type.name} blocks of {length}",
            start,
        )
    offset = cursor.u64(f"the offset of {what}")
    return TensorInfo(name, ggml_type, tuple(reversed(sizes)), offset, prod(sizes) // length * size)


def _place(
    cursor: _Cursor, found: list[tuple[TensorInfo, int]], data_start: int
) -> dict[str, TensorInfo]:
    """The tensors with absolute offsets, none of them outside the file or on top of another.

    Takes each info with the place where the file describes it.
    """
    tensors: dict[str, TensorInfo] = {}
    for info, start in found:
        offset = data_start + info.offset
        if offset + info.nbytes > len(cursor.buffer):
            raise cursor.error(
                f"tensor {info.name!r} takes bytes {offset} to {offset + info.nbytes}, "
                f"but the file has {len(cursor.buffer)}; is it cut short?",
                start,
            )
        tensors[info.name] = TensorInfo(info.name, info.type, info.shape, offset, info.nbytes)
    starts = dict(zip(tensors, (start for _, start in found), strict=True))
    end, before = data_start, ""
    for info in sorted(tensors.values(), key=lambda info: info.offset):
        if info.offset < end:
            raise cursor.error(f"tensors {before!r} and {info.name!r} overlap", starts[info.name])
        end, before = info.offset + info.nbytes, info.name
    return tensors
