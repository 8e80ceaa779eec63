"""Every weight format on a random matrix: how near its kernels come to what the machine can do.

`decode` streams a matrix that no cache holds past one token, beside a plain read of the same
bytes. `prefill512` multiplies a small one with 512 tokens, beside int8 dot products without
memory. `error` is that of the product against the format's definition in float64, relative, and
comes from rounding the activations to int8: the peer is the most that is allowed.
"""

from __future__ import annotations

import fnmatch

import numpy as np
import numpy.typing as npt
from rows import Row, compare, interleave

from sglite.kernels import _cpu
from sglite.kernels.reference.formats import dequantise
from sglite.runtime.models.ggml_types import GGMLType

COLS = 2048
ROWS = 2048  # of the matrix of `prefill512`
TOKENS = 512
ALLOWED = 0.01

# Where the f16 scales of a block lie in the file.
SCALES = {
    "Q4_0": (0,),
    "Q4_1": (0, 2),
    "Q5_0": (0,),
    "Q5_1": (0, 2),
    "Q8_0": (0,),
    "Q2_K": (80, 82),
    "Q3_K": (108,),
    "Q4_K": (0, 2),
    "Q5_K": (0, 2),
    "Q6_K": (208,),
    "IQ4_NL": (0,),
    "IQ4_XS": (0,),
}


def random_rows(name: str, rows: int, rng: np.random.Generator) -> npt.NDArray[np.uint8]:
    """Rows of COLS random codes with scales of about 1, as the file has them: [rows, bytes]."""
    length, size = GGMLType[name].block
    blocks = np.frombuffer(rng.bytes(rows * COLS // length * size), np.uint8).copy()
    blocks = blocks.reshape(-1, size)
    for at in SCALES[name]:
        scales = rng.uniform(0.5, 1.5, len(blocks)).astype(np.float16)
        blocks[:, at : at + 2] = scales[:, None].view(np.uint8)
    return blocks.reshape(rows, -1)


def measure(threads: int, megabytes: float, only: str, rounds: int) -> list[Row]:
    """Three rows for each type. `megabytes`: of the matrix that is streamed."""
    rows = []
    for name in SCALES:
        if not fnmatch.fnmatch(name, only):
            continue
        rng = np.random.default_rng(1)
        row_bytes = _cpu.panel_formats()[int(GGMLType[name])][1] * COLS // (16 * 256)
        count = max(16, int(megabytes * 2**20) // row_bytes)
        raw = random_rows(name, min(count, 4096), rng)
        streamed = np.resize(raw, (count, raw.shape[1]))
        rows.append(_decode(name, streamed, threads, rounds, rng))
        rows += _prefill(name, random_rows(name, ROWS, rng), threads, rounds, rng)
    return rows


def _probe(name: str, raw: npt.NDArray[np.uint8], threads: int) -> _cpu.Probe:
    return _cpu.Probe(int(GGMLType[name]), raw.reshape(-1), len(raw), COLS, threads=threads)


def _decode(
    name: str, raw: npt.NDArray[np.uint8], threads: int, rounds: int, rng: np.random.Generator
) -> Row:
    probe = _probe(name, raw, threads)
    x = rng.normal(size=(1, COLS)).astype(np.float32)
    out = np.empty((1, len(raw)), np.float32)

    def ours() -> float:
        return probe.size / probe.multiply(x, out) / 1e9

    def peer() -> float:
        return probe.read_rate() / 1e9

    interleave(ours, peer, 1)
    return compare(f"types/{name}/decode", "GB/s", *interleave(ours, peer, rounds), "a plain read")


def _prefill(
    name: str, raw: npt.NDArray[np.uint8], threads: int, rounds: int, rng: np.random.Generator
) -> list[Row]:
    probe = _probe(name, raw, threads)
    x = rng.normal(size=(TOKENS, COLS)).astype(np.float32)
    out = np.empty((TOKENS, len(raw)), np.float32)

    def ours() -> float:
        return 2e-9 * out.size * COLS / probe.multiply(x, out)

    def peer() -> float:
        return probe.dot_rate() / 1e9

    interleave(ours, peer, 1)
    speed = compare(
        f"types/{name}/prefill{TOKENS}",
        "GOP/s",
        *interleave(ours, peer, rounds),
        "int8 dots alone",
    )
    expected = x.astype(np.float64) @ dequantise(raw, name).astype(np.float64).T
    error = float(np.linalg.norm(out - expected) / np.linalg.norm(expected))
    row = Row(f"types/{name}/error", "relative", error, ALLOWED, "allowed", ALLOWED / error, 0.0)
    return [speed, row]
