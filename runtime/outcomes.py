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
    ending = ~allowed if end_rest else np.zeros_like(allowed)
    ending[end_ids] = True
    allowed[end_ids] = False
    ids = np.flatnonzero(allowed)
    values = logits[ids].astype(np.float64)
    if ending.any():
        ids = np.append(ids, END)
        values = np.append(values, log_total(logits[ending]))
    values -= log_total(values)
    if len(ids) > 4 * count:
        # Everything that ties with the last one stays, so that the lowest ids win.
        least = np.partition(values, len(values) - count)[len(values) - count]
        near = values >= least
        ids, values = ids[near], values[near]
    order = np.argsort(-values, kind="stable")[:count]
    return {int(ids[i]): float(values[i]) for i in order if values[i] > -np.inf}


def log_total(logits: npt.NDArray[np.floating]) -> float:
    """Log of the sum of the exponentials, -inf for nothing."""
    top = float(logits.max(initial=-np.inf))
    if top == -np.inf:
        return top
    return top + float(np.log(np.exp(logits - top).sum(dtype=np.float64)))
