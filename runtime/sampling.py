"""Randomness by counters, and the arrays of one batched draw.

The uniform for token i of a hole is a pure function of the hole's key and i, so a token is the
same alone, in any batch, and after a preemption.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from sglite.runtime.backends.base import DrawRequest

if TYPE_CHECKING:
    from sglite.grammars import Vocabulary
    from sglite.runtime.constraints import Constraints
    from sglite.runtime.generation import Generation

_64_BITS = 0xFFFF_FFFF_FFFF_FFFF
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
    keys = np.array([key & _64_BITS], np.uint64)
    return float(uniforms(keys, np.array([counter], np.uint64))[0])


def _mix(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    x = (x ^ (x >> np.uint64(30))) * _MIX_1
    x = (x ^ (x >> np.uint64(27))) * _MIX_2
    return x ^ (x >> np.uint64(31))


class DrawBatch:
    """The arrays of one draw for up to `rows` generations, reused in every step."""

    def __init__(self, rows: int, vocabulary: Vocabulary) -> None:
        self._text_mask = vocabulary.text_mask
        self._masks = np.zeros((rows, vocabulary.mask_words), np.uint32)
        self._size = 0
        self._floats = np.zeros((3, rows), np.float32)
        self._top_k = np.zeros(rows, np.int32)
        self._keys = np.zeros(rows, np.uint64)
        self._counters = np.zeros(rows, np.uint64)
        self._end_rest = np.zeros(rows, np.uint8)
        self._end_start = np.zeros(rows + 1, np.int32)
        self._end_ids = array("i")
        self._loaded: list[Generation] = []

    def holds(self, drawn: Sequence[Generation]) -> bool:
        """Whether just these generations are loaded, and none of them has gone on since."""
        return self._loaded == drawn

    def unload(self) -> None:
        """The generations that were loaded go on."""
        self._loaded = []

    def load(self, drawn: list[Generation], constraints: Constraints) -> None:
        """Take the parameters and masks of these generations, one row each."""
        self._loaded = []
        self._size = len(drawn)
        self._fill_masks(drawn, constraints)
        del self._end_ids[:]
        for row, generation in enumerate(drawn):
            gen, sampling = generation.gen, generation.gen.sampling
            end_ids, end_rest = generation.end_outcome(self._masks[row])
            self._floats[0, row] = sampling.temperature
            self._floats[1, row] = sampling.top_p
            self._floats[2, row] = sampling.min_p
            self._top_k[row] = sampling.top_k
            self._keys[row] = gen.key & _64_BITS
            self._counters[row] = len(generation.ids)
            self._end_rest[row] = end_rest
            self._end_ids.extend(end_ids)
            self._end_start[row + 1] = len(self._end_ids)
        self._loaded = drawn

    def wanted(self) -> npt.NDArray[np.uint32] | None:
        """The ids whose logits the draw reads in some row, uint32 [W]; None: it may read all."""
        n = self._size
        if self._end_rest[:n].any():
            return None
        mask: npt.NDArray[np.uint32] = np.bitwise_or.reduce(self._masks[:n], axis=0)
        for token in self._end_ids:
            mask[token >> 5] |= np.uint32(1 << (token & 31))
        return mask

    def request(self) -> DrawRequest:
        """The request for what was loaded; most of its arrays are views."""
        n = self._size
        return DrawRequest(
            mask=self._masks[:n],
            temperature=self._floats[0, :n],
            top_p=self._floats[1, :n],
            top_k=self._top_k[:n],
            min_p=self._floats[2, :n],
            uniform=uniforms(self._keys[:n], self._counters[:n]),
            end_ids=np.array(self._end_ids, np.int32),
            end_start=self._end_start[: n + 1],
            end_rest=self._end_rest[:n],
        )

    def _fill_masks(self, drawn: Sequence[Generation], constraints: Constraints) -> None:
        masks = self._masks[: len(drawn)]
        rows, matchers, budgets = [], [], []
        for row, generation in enumerate(drawn):
            if generation.matcher is None:
                masks[row] = self._text_mask
            else:
                rows.append(row)
                matchers.append(generation.matcher)
                budgets.append(generation.budget)
        if not rows:
            return
        # The matchers fill consecutive rows; beside free text that takes a copy.
        whole = len(rows) == len(drawn)
        filled = masks if whole else np.empty((len(rows), masks.shape[1]), np.uint32)
        constraints.fill_masks(matchers, filled, np.array(budgets, np.int32))
        if not whole:
            masks[rows] = filled
