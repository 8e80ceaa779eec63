"""The operations of a decoder-only transformer, by their plain definitions in float64.

They know nothing of models; shapes say what they mean: T tokens, H heads, D head_dim, N width.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Float = npt.NDArray[np.floating]
Float64 = npt.NDArray[np.float64]
Int = npt.NDArray[np.integer]


def rms_norm(x: Float, weight: Float, epsilon: float) -> Float64:
    """x [..., N] over its root mean square along N, times weight [N]."""
    x = x.astype(np.float64)
    mean = np.mean(x * x, axis=-1, keepdims=True)
    out: Float64 = x / np.sqrt(mean + epsilon) * weight
    return out


def rope(
    x: Float,
    positions: Int,
    frequencies: Sequence[float],
    interleaved: bool,
    magnitude: float = 1.0,
) -> Float64:
    """Rotate the first R = 2 * len(frequencies) values of x [T, H, D], pair i by position *
    frequencies[i], and multiply them with `magnitude`.

    Pair i is (2i, 2i + 1) when interleaved, else (i, i + R / 2). positions: [T].
    """
    half = len(frequencies)
    angles = positions.astype(np.float64)[:, None, None] * np.asarray(frequencies, np.float64)
    cos, sin = magnitude * np.cos(angles), magnitude * np.sin(angles)
    first = slice(0, 2 * half, 2) if interleaved else slice(0, half)
    second = slice(1, 2 * half, 2) if interleaved else slice(half, 2 * half)
    a, b = x[..., first].astype(np.float64), x[..., second].astype(np.float64)
    out = x.astype(np.float64)
    out[..., first] = a * cos - b * sin
    out[..., second] = a * sin + b * cos
    return out


def softmax(x: Float) -> Float64:
    """exp(x) / sum(exp(x)) along the last axis; -inf has no share."""
    x = x.astype(np.float64)
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    out: Float64 = e / e.sum(axis=-1, keepdims=True)
    return out


def soft_cap(x: Float, cap: float | None) -> Float64:
    """cap * tanh(x / cap); x itself where there is no cap."""
    if cap is None:
        return x.astype(np.float64, copy=False)
    out: Float64 = cap * np.tanh(x.astype(np.float64) / cap)
    return out


def silu(x: Float) -> Float64:
    """x * sigmoid(x)."""
    x = x.astype(np.float64)
    out: Float64 = x * 0.5 * (1 + np.tanh(x / 2))
    return out


def gelu_tanh(x: Float) -> Float64:
    """The tanh form of x * Phi(x)."""
    x = x.astype(np.float64)
    out: Float64 = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return out


def attention(
    q: Float,
    k: Float,
    v: Float,
    start: int,
    scale: float,
    window: int | None = None,
    cap: float | None = None,
) -> Float64:
    """Causal attention of q [T, H, D], standing at positions start, start + 1, ...

    k, v: [S, G, D] at the positions 0 .. S - 1, S >= start + T; head h reads head h * G // H of
    them. The token at p sees the positions p - window + 1 .. p; its scores are soft-capped.
    Returns [T, H, D].
    """
    tokens, heads, _ = q.shape
    serves = np.arange(heads) * k.shape[1] // heads
    scores = np.einsum(
        "thd,shd->hts", q.astype(np.float64), k[:, serves].astype(np.float64), optimize=True
    )
    at = np.arange(start, start + tokens)[:, None]
    seen = np.arange(k.shape[0])[None, :]
    visible = seen <= at
    if window is not None:
        visible &= seen > at - window
    shares = softmax(np.where(visible, soft_cap(scores * scale, cap), -np.inf))
    out: Float64 = np.einsum("hts,shd->thd", shares, v[:, serves].astype(np.float64), optimize=True)
    return out


def write_pages(cache: Float, values: Float, pages: Int, start: int) -> None:
    """Put values [T, G, D] at the positions start, start + 1, ... of a sequence.

    cache: [pages, slots, G, D]; position p lies in slot p % slots of page pages[p // slots].
    """
    at = np.arange(start, start + len(values))
    slots = cache.shape[1]
    cache[pages[at // slots], at % slots] = values


def read_pages(cache: Float, pages: Int, length: int) -> Float:
    """The first `length` positions of a sequence, [length, G, D], through its block table."""
    at = np.arange(length)
    slots = cache.shape[1]
    found: Float = cache[pages[at // slots], at % slots]
    return found


def paged_attention(
    q: Float,
    k_cache: Float,
    v_cache: Float,
    pages: Int,
    start: int,
    scale: float,
    window: int | None = None,
) -> Float64:
    """`attention` over K and V [pages, slots, G, D] that already hold the tokens of q too."""
    length = start + len(q)
    k, v = (read_pages(cache, pages, length) for cache in (k_cache, v_cache))
    return attention(q, k, v, start, scale, window)
