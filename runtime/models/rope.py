"""Rotary frequencies, and the ways in which models stretch them over longer contexts.

Pair i of a head turns by position * frequencies[i]; the cosines and sines are multiplied with
`magnitude`. Whatever the kind, it comes down to these two. It knows nothing of files.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rope:
    """How the first 2 * len(frequencies) values of each query and key turn with their position.

    frequencies: radians a position, one for each pair. magnitude: factor of what is turned.
    """

    frequencies: tuple[float, ...]
    magnitude: float = 1.0


def plain(base: float, size: int) -> Rope:
    """base^(-2i / size) for `size` turned values."""
    half = size // 2
    return Rope(tuple(base ** (-i / half) for i in range(half)))


def linear(base: float, size: int, factor: float) -> Rope:
    """Positions divided by `factor`."""
    return Rope(tuple(x / factor for x in plain(base, size).frequencies))


def divided(base: float, size: int, factors: Sequence[float], magnitude: float = 1.0) -> Rope:
    """Each frequency divided by a factor of its own: how longrope is stored, and llama3 in GGUF."""
    frequencies = plain(base, size).frequencies
    divided = (x / factor for x, factor in zip(frequencies, factors, strict=True))
    return Rope(tuple(divided), magnitude)


def llama3(base: float, size: int, factor: float, low: float, high: float, original: float) -> Rope:
    """Slow pairs divided by `factor`, fast ones kept, those between blended.

    low, high: turns within the `original` context below which a pair is slow, above which fast.
    """

    def stretched(frequency: float) -> float:
        turns = original * frequency / (2 * math.pi)
        share = min(1.0, max(0.0, (turns - low) / (high - low)))
        return frequency * (share + (1 - share) / factor)

    return Rope(tuple(map(stretched, plain(base, size).frequencies)))


def yarn(
    base: float,
    size: int,
    factor: float,
    original: float,
    *,
    magnitude: float | None = None,
    beta_fast: float = 32.0,
    beta_slow: float = 1.0,
) -> Rope:
    """The same idea, blended linearly over the numbers of the pairs.

    beta_fast, beta_slow: turns within the `original` context at which the blend begins and ends.
    """

    def pair_that_turns(turns: float) -> float:
        return size * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(base))

    begin = max(0, math.floor(pair_that_turns(beta_fast)))
    end = min(size - 1, math.ceil(pair_that_turns(beta_slow)))
    width = end - begin if end != begin else 0.001

    def stretched(i: int, frequency: float) -> float:
        slow = min(1.0, max(0.0, (i - begin) / width))
        return frequency * (1 - slow + slow / factor)

    if magnitude is None:
        magnitude = yarn_magnitude(factor)
    frequencies = plain(base, size).frequencies
    return Rope(tuple(stretched(i, x) for i, x in enumerate(frequencies)), magnitude)


def yarn_magnitude(factor: float) -> float:
    """The magnitude that yarn's authors found for a context `factor` times as long."""
    return 0.1 * math.log(factor) + 1.0 if factor > 1 else 1.0


def longrope_magnitude(factor: float, original: float) -> float:
    """That of longrope, for a context `factor` times the `original` one."""
    return math.sqrt(1 + math.log(factor) / math.log(original)) if factor > 1 else 1.0
