"""Decoding of the storage formats, against the published `gguf` package on random bytes."""

from __future__ import annotations

import time

import gguf
import numpy as np
import pytest

from sglite.kernels.reference.formats import dequantise

KINDS = ["F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0"]
KINDS += ["Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS"]


@pytest.mark.parametrize("kind", KINDS)
def test_random_bytes_decode_like_the_published_package(kind: str) -> None:
    seed = int(time.time())
    print(f"seed {seed}")
    published = gguf.GGMLQuantizationType[kind]
    values, size = gguf.GGML_QUANT_SIZES[published]
    raw = np.random.default_rng(seed).integers(0, 256, (7, size * 9), dtype=np.uint8)
    with np.errstate(all="ignore"):  # random halves hold NaN and infinity
        ours = dequantise(raw, kind)
        theirs = gguf.quants.dequantize(raw.view(np.float32) if kind == "F32" else raw, published)
    if kind == "F16":
        theirs = raw.view(np.float16).astype(np.float32)
    assert ours.dtype == np.float32
    assert ours.shape == (7, values * 9)
    np.testing.assert_array_equal(ours, theirs)


def test_leading_shape_is_kept() -> None:
    raw = np.zeros((2, 3, 34), np.uint8)
    assert dequantise(raw, "Q8_0").shape == (2, 3, 32)
    np.testing.assert_array_equal(dequantise(raw[0, 0], "Q8_0"), np.zeros(32, np.float32))


def test_a_block_by_hand() -> None:
    half = np.array([0.5], np.float16).view(np.uint8)
    nibbles = np.arange(16, dtype=np.uint8) | (15 - np.arange(16, dtype=np.uint8)) << 4
    block = np.concatenate([half, nibbles])
    expected = np.concatenate([np.arange(16), 15 - np.arange(16)]) / 2 - 4
    np.testing.assert_array_equal(dequantise(block, "Q4_0"), expected.astype(np.float32))


def test_errors_name_the_format() -> None:
    with pytest.raises(ValueError, match="no format 'Q9'"):
        dequantise(np.zeros(34, np.uint8), "Q9")
    with pytest.raises(ValueError, match=r"33 bytes .* Q8_0's block of 34"):
        dequantise(np.zeros(33, np.uint8), "Q8_0")
