"""The plain operations, against torch and against the properties that define them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sglite.kernels.reference import ops


def randn(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 2, shape)


def test_pointwise_operations_are_those_of_torch() -> None:
    x = randn(0, 5, 64)
    t, weight = torch.from_numpy(x), randn(1, 64)
    expected = torch.nn.functional.rms_norm(t, (64,), torch.from_numpy(weight), 1e-5)
    np.testing.assert_allclose(ops.rms_norm(x, weight, 1e-5), expected.numpy(), rtol=1e-12)
    np.testing.assert_allclose(ops.softmax(x), torch.softmax(t, -1).numpy(), rtol=1e-12)
    np.testing.assert_allclose(ops.silu(x), torch.nn.functional.silu(t).numpy(), rtol=1e-9)
    gelu = torch.nn.functional.gelu(t, approximate="tanh").numpy()
    np.testing.assert_allclose(ops.gelu_tanh(x), gelu, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("interleaved", [False, True])
def test_rope_turns_pairs_as_complex_numbers(interleaved: bool) -> None:
    x, positions = randn(2, 6, 3, 16), np.array([0, 1, 2, 7, 500, 8191])
    out = ops.rope(x, positions, 1e5 ** (-np.arange(8) / 8), interleaved)
    pairs = (
        (lambda a: a[..., 0::2] + 1j * a[..., 1::2])
        if interleaved
        else (lambda a: a[..., :8] + 1j * a[..., 8:])
    )
    turn = np.exp(1j * positions[:, None, None] * 1e5 ** (-2 * np.arange(8) / 16))
    np.testing.assert_allclose(pairs(out), pairs(x) * turn, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(out[0], x[0])


def test_rope_leaves_the_rest_of_a_head_alone() -> None:
    x, positions, frequencies = randn(8, 3, 2, 16), np.array([0, 3, 90]), [0.5, 0.01, 0.003]
    for interleaved in (False, True):
        whole = ops.rope(x[..., :6], positions, frequencies, interleaved)
        out = ops.rope(x, positions, frequencies, interleaved, magnitude=1.25)
        np.testing.assert_array_equal(out[..., 6:], x[..., 6:])
        np.testing.assert_allclose(out[..., :6], 1.25 * whole, rtol=1e-12)


def test_soft_cap() -> None:
    x = np.array([-1e9, -30.0, -0.01, 0.0, 0.01, 1e9])
    expected = [-30.0, -30 * np.tanh(1), -30 * np.tanh(0.01 / 30), 0, 30 * np.tanh(0.01 / 30), 30]
    np.testing.assert_allclose(ops.soft_cap(x, 30.0), expected, rtol=1e-12)
    assert ops.soft_cap(x, None) is x


def test_rope_keeps_products_between_equal_distances() -> None:
    frequencies = 1e4 ** (-np.arange(16) / 16)
    q, k = randn(3, 1, 1, 32), randn(4, 1, 1, 32)
    for interleaved in (False, True):
        products = [
            (ops.rope(q, np.array([p + 5]), frequencies, interleaved)
             * ops.rope(k, np.array([p]), frequencies, interleaved)).sum()
            for p in (0, 3, 100)
        ]  # fmt: skip
        np.testing.assert_allclose(products, products[0], rtol=1e-9)


@pytest.mark.parametrize("window", [None, 1, 4, 100])
def test_attention_is_that_of_torch(window: int | None) -> None:
    tokens, start = 9, 5
    length = start + tokens
    q, k, v = randn(5, tokens, 6, 8), randn(6, length, 2, 8), randn(7, length, 2, 8)
    at, seen = np.arange(start, length)[:, None], np.arange(length)
    visible = (seen <= at) & (at - seen < (window or length))
    expected = torch.nn.functional.scaled_dot_product_attention(
        *(torch.from_numpy(a).transpose(0, 1)[None] for a in (q, k, v)),
        attn_mask=torch.from_numpy(visible),
        scale=0.3,
        enable_gqa=True,
    )
    got = ops.attention(q, k, v, start, 0.3, window)
    np.testing.assert_allclose(got, expected[0].transpose(0, 1).numpy(), rtol=1e-9, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), cut=st.integers(0, 20), length=st.integers(1, 20))
def test_pages_and_chunks_change_nothing(seed: int, cut: int, length: int) -> None:
    """Any block table and any cut into two chunks give what one pass over plain K and V gives."""
    rng = np.random.default_rng(seed)
    cut = min(cut, length)
    q, k, v = (rng.normal(size=(length, heads, 8)) for heads in (4, 2, 2))
    whole = ops.attention(q, k, v, 0, 0.5, 7)
    pages = rng.permutation(9)[: -(-length // 4)]
    k_cache, v_cache = np.full((9, 4, 2, 8), np.nan), np.full((9, 4, 2, 8), np.nan)
    parts = []
    for first, last in ((0, cut), (cut, length)):
        if first == last:
            continue
        ops.write_pages(k_cache, k[first:last], pages, first)
        ops.write_pages(v_cache, v[first:last], pages, first)
        parts.append(ops.paged_attention(q[first:last], k_cache, v_cache, pages, first, 0.5, 7))
    np.testing.assert_allclose(np.concatenate(parts), whole, rtol=1e-12)
