"""The storage formats of GGUF tensors, decoded plainly: raw bytes -> float32.

A row of a tensor is a sequence of blocks that each code 32 or 256 values. All numbers are
little-endian; `f16` is an IEEE half; `lo` and `hi` are the nibbles of a byte. It knows nothing of
files.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Float32 = npt.NDArray[np.float32]


def dequantise(raw: Bytes, kind: str) -> Float32:
    """Decode rows of the format `kind`: uint8 [..., bytes] -> float32 [..., values].

    Raises ValueError for an unknown kind and for rows that are not whole blocks.
    """
    if kind not in _FORMATS:
        raise ValueError(f"no format {kind!r}; known are {', '.join(_FORMATS)}")
    values, size, decode = _FORMATS[kind]
    *lead, length = raw.shape
    if length % size:
        raise ValueError(f"a row of {length} bytes is not a multiple of {kind}'s block of {size}")
    blocks = np.ascontiguousarray(raw, dtype=np.uint8).reshape(-1, size)
    return decode(blocks).reshape(*lead, length // size * values)


def _f32(blocks: Bytes) -> Float32:
    return blocks.view("<f4").astype(np.float32)


def _f16(blocks: Bytes) -> Float32:
    return blocks.view("<f2").astype(np.float32)


def _bf16(blocks: Bytes) -> Float32:
    """The upper half of a float32."""
    return (blocks.view("<u2").astype(np.uint32) << 16).view(np.float32)


def _q4_0(blocks: Bytes) -> Float32:
    """32 values in 18 bytes: d * (q - 8)

    | d f16 | 16 bytes: lo = q[0..15], hi = q[16..31] |
    """
    return _scale(blocks) * (_nibbles(blocks[:, 2:]) - np.float32(8))


def _q4_1(blocks: Bytes) -> Float32:
    """32 values in 20 bytes: d * q + m

    | d f16 | m f16 | 16 bytes: lo = q[0..15], hi = q[16..31] |
    """
    return _scale(blocks) * _nibbles(blocks[:, 4:]) + _scale(blocks, 2)


def _q5_0(blocks: Bytes) -> Float32:
    """32 values in 22 bytes: d * (q - 16)

    | d f16 | u32: bit i = bit 4 of q[i] | 16 bytes: lo, hi = bits 0..3 of q[0..15], q[16..31] |
    """
    return _scale(blocks) * (_fives(blocks[:, 2:6], blocks[:, 6:]) - np.float32(16))


def _q5_1(blocks: Bytes) -> Float32:
    """32 values in 24 bytes: d * q + m

    | d f16 | m f16 | u32: bit i = bit 4 of q[i] | 16 bytes: bits 0..3 as in Q5_0 |
    """
    return _scale(blocks) * _fives(blocks[:, 4:8], blocks[:, 8:]) + _scale(blocks, 2)


def _q8_0(blocks: Bytes) -> Float32:
    """32 values in 34 bytes: d * q

    | d f16 | 32 int8: q |
    """
    return _scale(blocks) * blocks[:, 2:].view(np.int8).astype(np.float32)


def _q2_k(blocks: Bytes) -> Float32:
    """256 values in 84 bytes, 16 groups of 16: d * scale[g] * q - dmin * min[g]

    | 16 bytes: lo = scale, hi = min | 2 x 32 bytes: q (see _quarters) | d f16 | dmin f16 |
    """
    q = _quarters(blocks[:, 16:80]).reshape(-1, 16, 16).astype(np.float32)
    d = _scale(blocks, 80) * (blocks[:, :16] & 15).astype(np.float32)
    m = _scale(blocks, 82) * (blocks[:, :16] >> 4).astype(np.float32)
    return (d[:, :, None] * q - m[:, :, None]).reshape(-1, 256)


def _q3_k(blocks: Bytes) -> Float32:
    """256 values in 110 bytes, 16 groups of 16: d * (scale[g] - 32) * (q - 4)

    | 32 bytes: bit j of byte i = bit 2 of q[32j + i] | 2 x 32 bytes: bits 0..1 (see _quarters) |
    | 12 bytes: 6-bit scale[0..15]                                                      | d f16 |

    scale[g]: bits 0..3 = lo of byte g for g < 8, hi of byte g - 8 else;
              bits 4..5 = bits 2 * (g / 4) and the next of byte 8 + g % 4
    """
    eighths = np.arange(8, dtype=np.uint8)[:, None]
    third = (blocks[:, None, :32] >> eighths) & np.uint8(1)
    q = _quarters(blocks[:, 32:96]) | third.reshape(-1, 256) << 2
    low = np.concatenate([blocks[:, 96:104] & 15, blocks[:, 96:104] >> 4], axis=1)
    pairs = np.array([0, 2, 4, 6], dtype=np.uint8)[:, None]
    high = ((blocks[:, None, 104:108] >> pairs) & np.uint8(3)).reshape(-1, 16)
    scales = (low | high << 4).astype(np.float32) - np.float32(32)
    values: Float32 = q.reshape(-1, 16, 16).astype(np.float32) - np.float32(4)
    scaled: Float32 = (_scale(blocks, 108) * scales)[:, :, None] * values
    return scaled.reshape(-1, 256)


def _q4_k(blocks: Bytes) -> Float32:
    """256 values in 144 bytes, 8 groups of 32: d * scale[g] * q - dmin * min[g]

    | d f16 | dmin f16 | 12 bytes: 6-bit scale[0..7], min[0..7] (see _sixes) |
    | 4 x 32 bytes: lo = group 0, 2, 4, 6; hi = group 1, 3, 5, 7             |
    """
    return _affine(blocks, _pairs(blocks[:, 16:]))


def _q5_k(blocks: Bytes) -> Float32:
    """256 values in 176 bytes, 8 groups of 32: d * scale[g] * q - dmin * min[g]

    | d f16 | dmin f16 | 12 bytes: 6-bit scale[0..7], min[0..7] (see _sixes) |
    | 32 bytes: bit g of byte i = bit 4 of value i of group g                |
    | 4 x 32 bytes: bits 0..3 as in Q4_K                                     |
    """
    groups = np.arange(8, dtype=np.uint8)[:, None]
    fifth: Bytes = (blocks[:, None, 16:48] >> groups) & np.uint8(1)
    return _affine(blocks, _pairs(blocks[:, 48:]) | fifth * np.uint8(16))


def _q6_k(blocks: Bytes) -> Float32:
    """256 values in 210 bytes, 16 groups of 16: d * scale[g] * (q - 32)

    | 2 x 64 bytes: bits 0..3 | 2 x 32 bytes: bits 4..5 | 16 int8: scale | d f16 |

    for each half of 128 values:
        lo of bytes 0..31, lo of 32..63, hi of 0..31, hi of 32..63  -> bits 0..3
        bits 0..1, 2..3, 4..5, 6..7 of the 32 bytes                 -> bits 4..5
    """
    low = blocks[:, :128].reshape(-1, 2, 1, 64)
    low = np.concatenate([low & 15, low >> 4], axis=2).reshape(-1, 2, 4, 32)
    shifts = np.array([0, 2, 4, 6], dtype=np.uint8)[:, None]
    high = (blocks[:, 128:192].reshape(-1, 2, 1, 32) >> shifts) & 3
    q = (low | high << 4).astype(np.float32) - np.float32(32)
    scales = blocks[:, 192:208].view(np.int8).astype(np.float32)
    return ((_scale(blocks, 208) * scales)[:, :, None] * q.reshape(-1, 16, 16)).reshape(-1, 256)


_CURVE = np.array(
    [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.float32
)
"""What the codes of the IQ4 types stand for."""


def _iq4_nl(blocks: Bytes) -> Float32:
    """32 values in 18 bytes: d * curve[q]

    | d f16 | 16 bytes: lo = q[0..15], hi = q[16..31] |
    """
    return _scale(blocks) * _CURVE[_nibbles(blocks[:, 2:]).astype(np.intp)]


def _iq4_xs(blocks: Bytes) -> Float32:
    """256 values in 136 bytes, 8 groups of 32: d * (scale[g] - 32) * curve[q]

    | d f16 | u16: bits 2g and 2g + 1 = bits 4..5 of scale[g]                      |
    | 4 bytes: lo, hi = bits 0..3 of scale[2i], scale[2i + 1] | 8 x 16 bytes: q as in IQ4_NL |
    """
    pairs = 2 * np.arange(8, dtype=np.uint16)
    high = (np.ascontiguousarray(blocks[:, 2:4]).view("<u2") >> pairs & 3).astype(np.float32)
    low = np.stack([blocks[:, 4:8] & 15, blocks[:, 4:8] >> 4], axis=2).reshape(-1, 8)
    scales = low.astype(np.float32) + np.float32(16) * high - np.float32(32)
    codes = _nibbles(blocks[:, 8:].reshape(-1, 16)).astype(np.intp)
    values = _CURVE[codes].reshape(-1, 8, 32)
    return ((_scale(blocks) * scales)[:, :, None] * values).reshape(-1, 256)


def _scale(blocks: Bytes, at: int = 0) -> Float32:
    """The f16 at byte `at` of every block, float32 [N, 1]."""
    return np.ascontiguousarray(blocks[:, at : at + 2]).view("<f2").astype(np.float32)


def _nibbles(packed: Bytes) -> Float32:
    return np.concatenate([packed & 15, packed >> 4], axis=1).astype(np.float32)


def _fives(high: Bytes, low: Bytes) -> Float32:
    fifth = np.unpackbits(high, axis=1, bitorder="little")
    return _nibbles(low) + np.float32(16) * fifth.astype(np.float32)


def _quarters(packed: Bytes) -> Bytes:
    """2 x 32 bytes of four 2-bit numbers -> [N, 256], the lowest bits of all 32 first."""
    shifts = np.array([0, 2, 4, 6], dtype=np.uint8)[:, None]
    quarters: Bytes = (packed.reshape(-1, 2, 1, 32) >> shifts) & np.uint8(3)
    return quarters.reshape(-1, 256)


def _pairs(packed: Bytes) -> Bytes:
    """4 x 32 bytes of two nibbles -> [N, 8, 32], group 2j low, group 2j + 1 high."""
    four = packed.reshape(-1, 4, 1, 32)
    return np.concatenate([four & 15, four >> 4], axis=2).reshape(-1, 8, 32)


def _sixes(packed: Bytes) -> tuple[Bytes, Bytes]:
    """12 bytes -> 8 scales and 8 minima of six bits.

    byte    0..3                        4..7                        8..11
    bits    | s[j+4] 4..5 | s[j] 0..5 | | m[j+4] 4..5 | m[j] 0..5 | | m[j+4] 0..3 | s[j+4] 0..3 |
    """
    a, b, c = packed[:, :4], packed[:, 4:8], packed[:, 8:]
    scales = np.concatenate([a & 63, (c & 15) | a >> 6 << 4], axis=1)
    minima = np.concatenate([b & 63, c >> 4 | b >> 6 << 4], axis=1)
    return scales, minima


def _affine(blocks: Bytes, q: Bytes) -> Float32:
    scales, minima = _sixes(blocks[:, 4:16])
    d = (_scale(blocks) * scales.astype(np.float32))[:, :, None]
    m = (_scale(blocks, 2) * minima.astype(np.float32))[:, :, None]
    return (d * q.astype(np.float32) - m).reshape(-1, 256)


_FORMATS: dict[str, tuple[int, int, Callable[[Bytes], Float32]]] = {
    "F32": (1, 4, _f32),
    "F16": (1, 2, _f16),
    "BF16": (1, 2, _bf16),
    "Q4_0": (32, 18, _q4_0),
    "Q4_1": (32, 20, _q4_1),
    "Q5_0": (32, 22, _q5_0),
    "Q5_1": (32, 24, _q5_1),
    "Q8_0": (32, 34, _q8_0),
    "Q2_K": (256, 84, _q2_k),
    "Q3_K": (256, 110, _q3_k),
    "Q4_K": (256, 144, _q4_k),
    "Q5_K": (256, 176, _q5_k),
    "Q6_K": (256, 210, _q6_k),
    "IQ4_NL": (32, 18, _iq4_nl),
    "IQ4_XS": (256, 136, _iq4_xs),
}
