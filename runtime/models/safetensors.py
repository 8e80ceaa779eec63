"""Files of safetensors, read from a mapping: opening one copies no tensor.

    length of the header u64 | header, a JSON object | data
    header: name -> {"dtype": ..., "shape": [...], "data_offsets": [begin, end]}, from the data on;
            "__metadata__" -> texts

Nothing in a file is believed before it has been checked: opening one ends in a SafetensorsFile or
in a ModelError that names path and thing. It knows nothing of models.
"""

from __future__ import annotations

import json
import mmap
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sglite.errors import ModelError
from sglite.runtime.models.ggml_types import GGMLType
from sglite.runtime.models.mapping import map_file

_MOST_HEADER = 100 << 20
_MOST_DIMENSIONS = 8

_TYPES = {"F32": GGMLType.F32, "F16": GGMLType.F16, "BF16": GGMLType.BF16}
_DTYPES = {
    8: ("F64", "I64", "U64"),
    4: ("F32", "I32", "U32"),
    2: ("F16", "BF16", "I16", "U16"),
    1: ("I8", "U8", "BOOL", "F8_E4M3", "F8_E5M2"),
}
_SIZES = {dtype: size for size, dtypes in _DTYPES.items() for dtype in dtypes}


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """`dtype` as the file names it; `offset` counts from the beginning of the file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int
    nbytes: int


class SafetensorsFile:
    """An open file; `tensors` by name, in the order of the header. Views that were handed out keep
    the mapping."""

    def __init__(self, path: Path) -> None:
        """Map and check the file. Raises ModelError for whatever is wrong with it."""
        self.path = path
        self._map: mmap.mmap = map_file(path)
        self.tensors = self._read()

    def type_of(self, name: str) -> GGMLType:
        """The type of a tensor. Raises ModelError for one that cannot be computed with."""
        dtype = self.tensors[name].dtype
        if dtype not in _TYPES:
            raise self._error(
                f"tensor {name!r} has the type {dtype}; supported are {', '.join(_TYPES)}"
            )
        return _TYPES[dtype]

    def data(self, name: str) -> NDArray[np.uint8]:
        """The bytes of a tensor as a read-only view of the mapping, uint8 [nbytes]."""
        info = self.tensors[name]
        data = np.frombuffer(self._map, np.uint8, info.nbytes, info.offset)
        return data if info.offset % _SIZES[info.dtype] == 0 else data.copy()

    def _read(self) -> dict[str, StoredTensor]:
        size = len(self._map)
        if size < 8:
            raise self._error("the file has no header; is it cut short?")
        length = int.from_bytes(self._map[:8], "little")
        if length > min(size - 8, _MOST_HEADER):
            raise self._error(f"the header is said to have {length} bytes, the file has {size}")
        try:
            header = json.loads(self._map[8 : 8 + length])
        except (ValueError, RecursionError) as error:
            raise self._error(f"the header is no JSON: {error}") from error
        if not isinstance(header, dict):
            raise self._error("the header is no JSON object")
        start = 8 + length
        found = {
            name: self._tensor(name, entry, start, size)
            for name, entry in header.items()
            if name != "__metadata__"
        }
        end, before = start, ""
        for info in sorted(found.values(), key=lambda info: (info.offset, info.nbytes)):
            if info.offset < end:
                raise self._error(f"tensors {before!r} and {info.name!r} overlap")
            end, before = info.offset + info.nbytes, info.name
        return found

    def _tensor(self, name: str, entry: Any, start: int, size: int) -> StoredTensor:
        if not isinstance(entry, dict):
            raise self._error(f"tensor {name!r} is described by {type(entry).__name__}")
        dtype = entry.get("dtype")
        if not isinstance(dtype, str) or dtype not in _SIZES:
            raise self._error(f"tensor {name!r} has the unknown type {dtype!r}")
        shape = _sizes(entry.get("shape"))
        if shape is None or len(shape) > _MOST_DIMENSIONS or prod(shape) >= 1 << 60:
            raise self._error(f"tensor {name!r} has the impossible shape {entry.get('shape')!r}")
        place = _sizes(entry.get("data_offsets"))
        if place is None or len(place) != 2:
            raise self._error(f"tensor {name!r} has no two data_offsets")
        begin, end = place
        nbytes = prod(shape) * _SIZES[dtype]
        if end - begin != nbytes:
            raise self._error(f"tensor {name!r} has {end - begin} bytes, its shape takes {nbytes}")
        if start + end > size:
            raise self._error(
                f"tensor {name!r} ends at byte {start + end}, the file has {size}; is it cut short?"
            )
        return StoredTensor(name, dtype, shape, start + begin, nbytes)

    def _error(self, what: str) -> ModelError:
        return ModelError(f"{self.path}: {what}")


def _sizes(value: Any) -> tuple[int, ...] | None:
    if not isinstance(value, list):
        return None
    return tuple(value) if all(type(n) is int and 0 <= n < 1 << 60 for n in value) else None
