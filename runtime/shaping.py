"""What a hole asks to be done to its logits before the draw: bias, then penalties.

It changes the rows of its own hole and no others, so that a batch gives the same tokens as a row
alone.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sglite.options import Sampling
from sglite.runtime.backends.base import Float32
from sglite.runtime.segment import Gen


def shaping_of(gen: Gen, prompt: array[int]) -> Shaping | None:
    """The shaping that the hole asks for after the ids `prompt`, or None."""
    neutral = Sampling()
    s = gen.sampling
    asked = (s.repetition_penalty, s.presence_penalty, s.frequency_penalty) != (
        neutral.repetition_penalty,
        neutral.presence_penalty,
        neutral.frequency_penalty,
    )
    return Shaping(gen, prompt) if asked or gen.logit_bias else None


class Shaping:
    """Depends on the hole, its prompt and its ids so far alone."""

    __slots__ = ("_bias", "_biased", "_prompt", "_sampling", "bans")

    def __init__(self, gen: Gen, prompt: array[int]) -> None:
        self._sampling = gen.sampling
        self._biased = np.array([token for token, _ in gen.logit_bias], np.int64)
        self._bias = np.array([bias for _, bias in gen.logit_bias], np.float32)
        self._prompt = np.unique(np.array(prompt, np.int64))
        self.bans = bool(np.isneginf(self._bias).any())
        """Whether some id is forbidden."""

    def apply(self, logits: Float32, ids: Sequence[int]) -> None:
        """Change the logits [V] at the place after `ids`, which the hole has written, in place."""
        s = self._sampling
        logits[self._biased] += self._bias
        value: npt.NDArray[np.int64]
        value, counts = np.unique(np.array(ids, np.int64), return_counts=True)
        if s.repetition_penalty != 1:
            penalty = np.float32(s.repetition_penalty)
            seen = np.union1d(self._prompt, value)
            there = logits[seen]
            logits[seen] = np.where(there > 0, there / penalty, there * penalty)
        if s.presence_penalty or s.frequency_penalty:
            per_count = np.float32(s.frequency_penalty) * counts.astype(np.float32)
            logits[value] -= np.float32(s.presence_penalty) + per_count
