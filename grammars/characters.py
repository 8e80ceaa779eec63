"""Sets of characters as sorted, disjoint, inclusive ranges of code points, never surrogates."""

from __future__ import annotations

import functools
import itertools
import re
import unicodedata
from collections.abc import Iterable

import numpy as np

Ranges = tuple[tuple[int, int], ...]

LAST = 0x10FFFF
_SURROGATES = (0xD800, 0xDFFF)

ANY: Ranges = ((0, 0xD7FF), (0xE000, LAST))
DIGIT: Ranges = ((0x30, 0x39),)
ASCII_WORD: Ranges = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
ASCII_SPACE: Ranges = ((0x09, 0x0D), (0x20, 0x20))
ECMA_SPACE: Ranges = (
    (0x09, 0x0D),
    (0x20, 0x20),
    (0xA0, 0xA0),
    (0x1680, 0x1680),
    (0x2000, 0x200A),
    (0x2028, 0x2029),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x3000, 0x3000),
    (0xFEFF, 0xFEFF),
)


def union(*sets: Iterable[tuple[int, int]]) -> Ranges:
    """All characters of the given ranges, in any order, overlapping or not."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(r for ranges in sets for r in ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return _without_surrogates(merged)


def _without_surrogates(ranges: Iterable[tuple[int, int]]) -> Ranges:
    first, last = _SURROGATES
    kept: list[tuple[int, int]] = []
    for low, high in ranges:
        if low < first:
            kept.append((low, min(high, first - 1)))
        if high > last:
            kept.append((max(low, last + 1), high))
    return tuple(kept)


def negate(ranges: Ranges) -> Ranges:
    """All characters that are not in `ranges`."""
    gaps: list[tuple[int, int]] = []
    at = 0
    for low, high in ranges:
        if at < low:
            gaps.append((at, low - 1))
        at = high + 1
    if at <= LAST:
        gaps.append((at, LAST))
    return _without_surrogates(gaps)


def atoms(sets: Iterable[Ranges]) -> list[Ranges]:
    """A partition of all characters such that every given set is a union of its parts.

    The last part is what no set holds; it may be empty.
    """
    distinct = list(dict.fromkeys(sets))
    cuts = {0, LAST + 1, _SURROGATES[0], _SURROGATES[1] + 1}
    for ranges in distinct:
        for low, high in ranges:
            cuts |= {low, high + 1}
    borders = sorted(cuts)
    starts: dict[int, list[int]] = {}
    ends: dict[int, list[int]] = {}
    for i, ranges in enumerate(distinct):
        for low, high in ranges:
            starts.setdefault(low, []).append(i)
            ends.setdefault(high + 1, []).append(i)
    inside: set[int] = set()
    parts: dict[frozenset[int], list[tuple[int, int]]] = {}
    for low, behind in itertools.pairwise(borders):
        inside.difference_update(ends.get(low, ()))
        inside.update(starts.get(low, ()))
        if low != _SURROGATES[0]:
            parts.setdefault(frozenset(inside), []).append((low, behind - 1))
    rest = union(parts.pop(frozenset(), ()))
    return [union(ranges) for ranges in parts.values()] + [rest]


@functools.cache
def _every_character() -> str:
    codes = np.concatenate([np.arange(low, high + 1, dtype="<u4") for low, high in ANY])
    return codes.tobytes().decode("utf-32-le")


@functools.lru_cache(maxsize=256)
def matching(pattern: str, flags: int = 0) -> Ranges:
    """The characters that Python's `re` matches with a pattern for one character."""
    compiled = re.compile(f"(?:{pattern})+", flags)
    runs = []
    for match in compiled.finditer(_every_character()):
        text = match.group()
        low, high = ord(text[0]), ord(text[-1])
        runs.append((low, high))
    return union(runs)


@functools.lru_cache(maxsize=64)
def category(name: str) -> Ranges:
    """The characters of a Unicode general category, such as "L" or "Nd". Raises KeyError."""
    found = [
        (c, c)
        for low, high in ANY
        for c in range(low, high + 1)
        if unicodedata.category(chr(c)).startswith(name)
    ]
    if not found:
        raise KeyError(name)
    return union(found)


@functools.lru_cache(maxsize=256)
def without_case(ranges: Ranges, ascii_only: bool = False) -> Ranges:
    """The characters that match one of `ranges` when case is ignored, as Python's `re` does."""
    listed = "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in ranges)
    flags = re.IGNORECASE | (re.ASCII if ascii_only else 0)
    return union(ranges, matching(f"[{listed}]", flags)) if ranges else ()
