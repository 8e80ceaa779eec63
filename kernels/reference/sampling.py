"""The plain definition of drawing one outcome from a row of logits; the oracle of `_cpu.draw`.

Everything is float64 and sorted in full. It knows nothing of batches or of where the logits and
the uniform numbers come from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Float64 = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]

END = -1
"""Stands for the virtual end outcome among ids."""


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What may be drawn, in the order of drawing: ids ascending, the end outcome last.

    ids: int64 [N], END for the end outcome. logits: float64 [N], the end outcome's being the log
    of its total.
    """

    ids: Int64
    logits: Float64

    def logprobs(self) -> Float64:
        """Natural log of each outcome's probability, float64 [N], before temperature."""
        return self.logits - _log_total(self.logits)


def outcomes(
    logits: npt.NDArray[np.float32],
    mask: npt.NDArray[np.uint32],
    end_ids: Sequence[int] = (),
    end_rest: bool = False,
) -> Outcomes:
    """The outcomes of one row: logits [V], mask uint32 [ceil(V / 32)], bit set = allowed.

    `end_ids` make up the end outcome and are never drawn as themselves; `end_rest` adds every id
    outside the mask to it. An outcome of probability zero (logit -inf) is left out. Raises
    ValueError where no outcome is left, or for NaN and +inf among the logits that count.
    """
    vocab = len(logits)
    allowed = unpack_mask(mask, vocab)
    ends = np.zeros(vocab, dtype=bool)
    ends[np.asarray(end_ids, dtype=np.int64)] = True
    drawable = allowed & ~ends
    if end_rest:
        ends |= ~allowed
    values = logits.astype(np.float64)
    counting = values[drawable | ends]
    if np.isnan(counting).any() or np.isposinf(counting).any():
        raise ValueError("a logit that counts is NaN or +inf")
    ids = np.flatnonzero(drawable & ~np.isneginf(values))
    chosen = values[ids]
    if not np.isneginf(values[ends]).all():
        # float32, so that an end outcome of one id ties with an equal logit.
        end = np.float64(np.float32(_log_total(values[ends])))
        ids, chosen = np.append(ids, END), np.append(chosen, end)
    if len(ids) == 0:
        raise ValueError("no outcome has a probability")
    return Outcomes(ids, chosen)


def filtered(
    found: Outcomes, temperature: float, top_k: int = 0, top_p: float = 1.0, min_p: float = 0.0
) -> Float64:
    """Probabilities float64 [N] at `temperature` > 0 after top_k, then top_p, then min_p.

    top_k keeps the k most probable outcomes. top_p keeps the shortest prefix, by falling
    probability, of what is left whose share of it reaches top_p. min_p keeps the outcomes with at
    least min_p times the largest probability. Among equals the earlier outcome comes first. The
    survivors add up to 1, the others are 0.
    """
    scaled = (found.logits - found.logits.max()) / temperature
    weights = np.exp(scaled)
    order = np.argsort(-found.logits, kind="stable")
    if top_k > 0:
        order = order[:top_k]
    if top_p < 1:
        reached = np.cumsum(weights[order]) >= top_p * weights[order].sum()
        order = order[: int(np.argmax(reached)) + 1] if reached.any() else order
    if min_p > 0:
        order = order[weights[order] >= min_p * weights[order[0]]]
    kept = np.zeros_like(weights)
    kept[order] = weights[order]
    probabilities: Float64 = kept / kept.sum()
    return probabilities


def greedy(found: Outcomes) -> int:
    """Index into `found` of the most probable outcome; the first of equals."""
    return int(np.argmax(found.logits))


def pick(probabilities: Float64, uniform: float) -> int:
    """Index of the first outcome whose cumulated probability exceeds `uniform`."""
    cumulated = np.cumsum(probabilities)
    above = np.flatnonzero(cumulated > uniform)
    return int(above[0]) if len(above) else int(np.flatnonzero(probabilities)[-1])


def draw(
    logits: npt.NDArray[np.float32],
    mask: npt.NDArray[np.uint32],
    uniform: float,
    temperature: float,
    top_p: float = 1.0,
    top_k: int = 0,
    min_p: float = 0.0,
    end_ids: Sequence[int] = (),
    end_rest: bool = False,
) -> tuple[int, float]:
    """One row: the id drawn (END for the end outcome) and its log probability."""
    found = outcomes(logits, mask, end_ids, end_rest)
    if temperature == 0:
        index = greedy(found)
    else:
        index = pick(filtered(found, temperature, top_k, top_p, min_p), uniform)
    return int(found.ids[index]), float(found.logprobs()[index])


def pack_mask(allowed: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint32]:
    """bool [V] -> uint32 [ceil(V / 32)], bit i % 32 of word i // 32 for id i."""
    padded = np.zeros(-(-len(allowed) // 32) * 32, dtype=bool)
    padded[: len(allowed)] = allowed
    return np.packbits(padded, bitorder="little").view("<u4").astype(np.uint32)


def unpack_mask(mask: npt.NDArray[np.uint32], vocab: int) -> npt.NDArray[np.bool_]:
    """The reverse of `pack_mask`: bool [vocab]."""
    bits = np.unpackbits(mask.astype("<u4").view(np.uint8), bitorder="little")
    return bits[:vocab].astype(bool)


def _log_total(logits: Float64) -> float:
    top = float(logits.max())
    return top + float(np.log(np.exp(logits - top).sum()))
