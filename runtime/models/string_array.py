"""A long array of strings inside a mapped GGUF file, found without reading it string by string.

In the file each string is its length (uint64) and its bytes, so where string i + 1 begins is only
known from string i:

    05 00 00 00 00 00 00 00  h e l l o  02 00 00 00 00 00 00 00  h i ...
    ^ start 0                           ^ start 1

Nearly all strings are shorter than 256 bytes and hold no NUL. Then a start is a byte followed by
seven zeros, and all starts are found at once; a chain of candidates counts only as far as each one
ends where the next begins. Where the guess fails, the strings are walked.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray

_WINDOW = 1 << 19
_WALK = 4096
_LENGTH = struct.Struct("<Q")


class StringArray(Sequence[str]):
    """The strings of one metadata array, decoded when asked for.

    It keeps the mapped file alive. `end` is the offset behind the last string.
    """

    __slots__ = ("_buffer", "_starts", "end")

    def __init__(self, buffer: memoryview, offset: int, count: int) -> None:
        """`count` strings from `offset`. Raises EOFError, with the offset of the string that does
        not fit into the buffer as its argument."""
        self._buffer = buffer
        self._starts, self.end = _locate(buffer, offset, count)

    def __len__(self) -> int:
        return len(self._starts)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        """The string, with U+FFFD where its bytes are not UTF-8."""
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        start = int(self._starts[index])
        (length,) = _LENGTH.unpack_from(self._buffer, start)
        return str(self._buffer[start + 8 : start + 8 + length], "utf-8", "replace")

    def __iter__(self) -> Iterator[str]:
        return (raw.decode("utf-8", "replace") for raw in self.raw())

    def __repr__(self) -> str:
        return f"<{len(self)} strings>"

    def raw(self) -> list[bytes]:
        """All strings as the bytes that the file has."""
        if not len(self):
            return []
        first = int(self._starts[0])
        blob = bytes(self._buffer[first : self.end])
        starts = (self._starts - first).tolist()
        ends = [*starts[1:], len(blob)]
        return [blob[start + 8 : end] for start, end in zip(starts, ends, strict=True)]


def _locate(buffer: memoryview, offset: int, count: int) -> tuple[NDArray[np.int64], int]:
    """Start of each string, int64 [count], and the end of the last."""
    everything = np.frombuffer(buffer, np.uint8)
    runs: list[NDArray[np.int64]] = []
    missing = count
    while missing:
        run = _guess(everything[offset : offset + _WINDOW])[:missing] + offset
        # A hostile file could make every guess end at once: walking keeps the cost linear.
        if len(run) < _WALK // 4:
            run = _walk(buffer, offset, min(_WALK, missing))
        last = int(run[-1])
        offset = last + 8 + _LENGTH.unpack_from(buffer, last)[0]
        if offset > len(buffer):
            raise EOFError(last)
        missing -= len(run)
        runs.append(run)
    return (np.concatenate(runs) if runs else np.zeros(0, np.int64)), offset


def _guess(window: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Starts, relative to the window, of the strings that follow its beginning, as far as a byte
    before seven zeros proves to be one."""
    if len(window) < 16:
        return np.zeros(0, np.int64)
    zero = window == 0
    two = zero[:-1] & zero[1:]
    four = two[:-2] & two[2:]
    seven = four[:-3] & four[3:]
    found = np.flatnonzero(seven[1:])
    if not len(found) or found[0] != 0:
        return found[:0]
    broken = np.flatnonzero(found[:-1] + 8 + window[found[:-1]] != found[1:])
    return found[: int(broken[0]) + 1] if len(broken) else found


def _walk(buffer: memoryview, offset: int, count: int) -> NDArray[np.int64]:
    """Starts of `count` strings, one after the other."""
    starts = []
    for _ in range(count):
        starts.append(offset)
        if offset + 8 > len(buffer):
            raise EOFError(offset)
        offset += 8 + _LENGTH.unpack_from(buffer, offset)[0]
    return np.array(starts, np.int64)
