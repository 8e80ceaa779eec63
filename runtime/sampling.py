"""Randomness by counters, and the arrays of one batched draw.

The uniform for token i of a hole is a pure function of the hole's key and i, so a token is the
same alone, in any batch, and after a preemption.
"""

from __future__ import annotations

from array import array

import numpy as np
import numpy.typing as npt

from sglite.options import Sampling
from sglite.runtime.backends.base import DrawRequest

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


def uniforms(
    keys: npt.NDArray[np.uint64], counters: npt.NDArray[np.uint64]
) -> npt.NDArray[np.float64]:
    """Numbers in [0, 1) with 53 bits, one for each (key, counter): splitmix64 over the mixed key.

    Both uint64 [N]; float64 [N].
    """
    mixed = _mix(_mix(keys + _GOLDEN) + (counters + np.uint64(1)) * _GOLDEN)
    return (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53


def uniform(key: int, counter: int) -> float:
    """`uniforms` for one pair."""
    keys = np.array([key & 0xFFFF_FFFF_FFFF_FFFF], np.uint64)
    return float(uniforms(keys, np.array([counter], np.uint64))[0])


def _mix(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    x = (x ^ (x >> np.uint64(30))) * _MIX_1
    x = (x ^ (x >> np.uint64(27))) * _MIX_2
    return x ^ (x >> np.uint64(31))


class DrawBatch:
    """Arrays for up to `rows` draws over `mask_words` words of mask, reused in every step."""

    def __init__(self, rows: int, mask_words: int) -> None:
        self.masks = np.zeros((rows, mask_words), np.uint32)
        self.size = 0
        self._floats = np.zeros((3, rows), np.float32)
        self._top_k = np.zeros(rows, np.int32)
        self._keys = np.zeros(rows, np.uint64)
        self._counters = np.zeros(rows, np.uint64)
        self._end_rest = np.zeros(rows, np.uint8)
        self._end_start = np.zeros(rows + 1, np.int32)
        self._end_ids = array("i")

    def clear(self) -> None:
        """Begin the next step."""
        self.size = 0
        del self._end_ids[:]

    def add(
        self, sampling: Sampling, key: int, counter: int, end_ids: array[int], end_rest: bool
    ) -> None:
        """One more row; its mask is masks[size - 1] afterwards."""
        row = self.size
        self._floats[:, row] = (sampling.temperature, sampling.top_p, sampling.min_p)
        self._top_k[row] = sampling.top_k
        self._keys[row] = key & 0xFFFF_FFFF_FFFF_FFFF
        self._counters[row] = counter
        self._end_rest[row] = end_rest
        self._end_ids.extend(end_ids)
        self._end_start[row + 1] = len(self._end_ids)
        self.size = row + 1

    def request(self) -> DrawRequest:
        """The request for the rows so far; its arrays are views."""
        n = self.size
        return DrawRequest(
            mask=self.masks[:n],
            temperature=self._floats[0, :n],
            top_p=self._floats[1, :n],
            top_k=self._top_k[:n],
            min_p=self._floats[2, :n],
            uniform=uniforms(self._keys[:n], self._counters[:n]),
            end_ids=np.array(self._end_ids, np.int32),
            end_start=self._end_start[: n + 1],
            end_rest=self._end_rest[:n],
        )
