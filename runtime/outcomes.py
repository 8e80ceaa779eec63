"""The outcomes that a draw chooses from, with their probabilities, for those who want to see them.

The draw itself is the backend's; this is asked for only where a hole keeps the most probable ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sglite.runtime.backends.base import Float32

END = -1
"""Stands for the end outcome among ids."""

_DEPTHS = (4, 8, 16)
"""How far below the top to look for the highest logits; looking costs less than sorting all."""


def most_probable(
    logits: Float32,
    mask: npt.NDArray[np.uint32],
    end_ids: Sequence[int],
    end_rest: bool,
    count: int,
) -> dict[int, float]:
    """The `count` most probable outcomes of a draw from logits [V] under mask [W], as
    `DrawRequest` describes it: id -> natural log probability, in falling order, ties by id, the
    end outcome after all ids."""
    allowed = np.unpackbits(mask.view(np.uint8), bitorder="little")[: len(logits)].astype(bool)
    ends = np.array(end_ids, np.intp)
    end = log_total(logits[ends])
    allowed[ends] = False
    if end_rest:
        rest = ~allowed
        rest[ends] = False
        end = float(np.logaddexp(end, log_total(logits[rest])))
    values = np.where(allowed, logits, np.float32(-np.inf))
    total = np.logaddexp(log_total(values), end)
    ids = _highest(values, count)
    outcomes = [(float(values[token]), int(token)) for token in ids]
    if end > -np.inf:
        outcomes.append((end, END))
    outcomes.sort(key=lambda outcome: -outcome[0])
    return {token: float(value - total) for value, token in outcomes[:count]}


def _highest(values: Float32, count: int) -> npt.NDArray[np.intp]:
    """Indices, ascending, among which the `count` highest values are, the first of equals too."""
    top = values.max(initial=-np.inf)
    for depth in _DEPTHS if top > -np.inf else ():
        near = np.flatnonzero(values >= top - np.float32(depth))
        if len(near) >= count:
            return near
    return np.flatnonzero(values > -np.inf)


def log_total(logits: npt.NDArray[np.floating]) -> float:
    """Log of the sum of the exponentials, -inf for nothing."""
    top = float(logits.max(initial=-np.inf))
    if top == -np.inf:
        return top
    return top + float(np.log(np.exp(logits - top).sum(dtype=np.float64)))
