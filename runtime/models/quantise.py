"""Weights to blocks of 32: Q8_0 and Q4_0, as ggml describes them, each value to its nearest code.

Q8_0: scale f16 = max |x| / 127, then 32 codes i8
Q4_0: scale f16 = the value of largest magnitude / -8, then 16 bytes: code i in the low half of
      byte i, code i + 16 in the high half; value = (code - 8) * scale
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sglite.runtime.models.ggml_types import GGMLType

_BLOCK = 32
_BLOCKS_AT_A_TIME = 1 << 15

Float32 = NDArray[np.float32]
Bytes = NDArray[np.uint8]


def to_float32(data: Bytes, kind: GGMLType) -> Float32:
    """The values of F32, F16 or BF16 bytes."""
    if kind == GGMLType.BF16:
        return (data.view("<u2").astype(np.uint32) << 16).view(np.float32)
    dtype = {GGMLType.F32: "<f4", GGMLType.F16: "<f2"}[kind]
    with np.errstate(invalid="ignore"):  # a NaN that signals is a NaN
        return data.view(dtype).astype(np.float32)


@dataclass(frozen=True, slots=True)
class Quantiser:
    """`blocks`: float32 [N, 32] to bytes [N, bytes of a block]."""

    type: GGMLType
    blocks: Callable[[Float32], Bytes]

    def quantise(self, data: Bytes, kind: GGMLType, columns: int) -> Bytes:
        """The blocks of a matrix of F32, F16 or BF16, whose rows are whole blocks, one after the
        other: a piece at a time, so that it is never there in float32 as a whole."""
        assert columns % _BLOCK == 0
        width = _BLOCK * kind.block[1]
        count = len(data) // width
        out = np.empty((count, self.type.block[1]), np.uint8)
        # What is no number, or too large for a scale of 16 bits, spoils its own block alone.
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            for first in range(0, count, _BLOCKS_AT_A_TIME):
                last = min(first + _BLOCKS_AT_A_TIME, count)
                values = to_float32(data[first * width : last * width], kind)
                out[first:last] = self.blocks(values.reshape(-1, _BLOCK))
        return out.reshape(-1)


def _scaled(values: Float32, scale: Float32) -> Float32:
    inverse = np.where(scale == 0, np.float32(0), 1 / scale)
    return values * inverse[:, None]


def _with_scale(scale: Float32, codes: Bytes) -> Bytes:
    halves = scale.astype("<f2").view(np.uint8).reshape(-1, 2)
    return np.concatenate([halves, codes], axis=1)


def _q8_0(values: Float32) -> Bytes:
    scale = np.abs(values).max(axis=1) / np.float32(127)
    codes = np.rint(_scaled(values, scale)).astype(np.int8)
    return _with_scale(scale, codes.view(np.uint8))


def _q4_0(values: Float32) -> Bytes:
    at = np.abs(values).argmax(axis=1)
    scale = values[np.arange(len(values)), at] / np.float32(-8)
    codes = np.clip(np.rint(_scaled(values, scale)) + 8, 0, 15).astype(np.uint8)
    return _with_scale(scale, codes[:, :16] | codes[:, 16:] << 4)


QUANTISERS = {
    "q8_0": Quantiser(GGMLType.Q8_0, _q8_0),
    "q4_0": Quantiser(GGMLType.Q4_0, _q4_0),
}
