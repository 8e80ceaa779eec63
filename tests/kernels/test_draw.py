"""The native sampler against its plain definition: `kernels/reference/sampling.py`."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sglite.kernels import _cpu
from sglite.kernels.reference import sampling
from sglite.kernels.reference.sampling import pack_mask


@dataclass(frozen=True)
class Row:
    logits: np.ndarray
    allowed: np.ndarray
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    uniform: float = 0.5
    end_ids: tuple[int, ...] = ()
    end_rest: bool = False


def arguments(rows: list[Row]) -> dict[str, Any]:
    ends = [r.end_ids for r in rows]
    return {
        "logits": np.stack([r.logits for r in rows]).astype(np.float32),
        "mask": np.stack([pack_mask(r.allowed) for r in rows]),
        "temperature": np.array([r.temperature for r in rows], np.float32),
        "top_p": np.array([r.top_p for r in rows], np.float32),
        "top_k": np.array([r.top_k for r in rows], np.int32),
        "min_p": np.array([r.min_p for r in rows], np.float32),
        "uniform": np.array([r.uniform for r in rows], np.float64),
        "end_ids": np.array([i for e in ends for i in e], np.int32),
        "end_start": np.cumsum([0, *map(len, ends)]).astype(np.int32),
        "end_rest": np.array([r.end_rest for r in rows], np.uint8),
    }


def native(rows: list[Row], vectors: str = "auto") -> list[tuple[int, float]]:
    ids, logprobs = _cpu.draw(**arguments(rows), vectors=vectors)
    assert ids.dtype == np.int32
    assert logprobs.dtype == np.float32
    return list(zip(ids.tolist(), logprobs.tolist(), strict=True))


def agrees(row: Row, got: tuple[int, float]) -> None:
    """`got` is what the definition allows: rounding may move borders by 1e-6, nothing more."""
    found = sampling.outcomes(row.logits, pack_mask(row.allowed), row.end_ids, row.end_rest)
    where = np.flatnonzero(found.ids == got[0])
    assert len(where) == 1, f"{got[0]} is not an outcome of the row"
    index = int(where[0])
    assert got[1] == pytest.approx(found.logprobs()[index], abs=2e-6, rel=2e-6)
    if row.temperature == 0:
        best = sampling.greedy(found)
        if index != best:
            # Only an end outcome that is a sum may be off by a rounding.
            assert sampling.END in (found.ids[index], found.ids[best])
            assert found.logits[index] == pytest.approx(found.logits[best], abs=2e-6, rel=2e-6)
        return
    temperature = float(np.float32(row.temperature))
    ways = [(float(np.float32(row.top_p)), float(np.float32(row.min_p)))]
    ways += [
        (p * (1 + e), m * (1 + f)) for p, m in ways for e in (-3e-6, 3e-6) for f in (-3e-6, 3e-6)
    ]
    for top_p, min_p in ways:
        p = sampling.filtered(found, temperature, row.top_k, min(top_p, 1.0), min(min_p, 1.0))
        end = float(np.cumsum(p)[index])
        if p[index] > 0 and end - p[index] - 3e-6 <= row.uniform <= end + 3e-6:
            return
    pytest.fail(f"{got[0]} is not what uniform={row.uniform} points at")


def check(rows: list[Row]) -> None:
    for row, got in zip(rows, native(rows), strict=True):
        agrees(row, got)


def random_row(rng: np.random.Generator, vocab: int) -> Row:
    """Mixes flat, peaked, tied and shifted logits with sparse, dense and clustered masks."""
    spread = rng.choice([0.0, 0.01, 1.0, 3.0, 10.0, 100.0])
    logits = rng.normal(rng.choice([0.0, -40.0, 1000.0]), spread, vocab)
    if rng.random() < 0.3:
        logits = np.round(logits)
    if rng.random() < 0.2:
        logits[rng.random(vocab) < 0.5] = -np.inf
    logits[rng.integers(vocab)] = 1.0  # something finite in every row
    allowed = rng.random(vocab) < rng.choice([0.0, 0.01, 0.5, 0.95, 1.0])
    if rng.random() < 0.5:  # whole words of the mask
        run = np.repeat(rng.random(-(-vocab // 64)) < 0.5, 64)[:vocab]
        allowed = np.where(run, rng.random() < 0.9, allowed)
    allowed[np.argmax(logits == 1.0)] = True
    ends = rng.integers(0, vocab, rng.integers(0, 4)) if rng.random() < 0.6 else []
    return Row(
        logits.astype(np.float32),
        allowed,
        temperature=float(rng.choice([0.0, 0.05, 0.7, 1.0, 2.0])),
        top_p=float(rng.choice([1.0, 0.95, 0.5, 0.01])),
        top_k=int(rng.choice([0, 0, 1, 5, 40, vocab])),
        min_p=float(rng.choice([0.0, 0.0, 0.05, 1.0])),
        uniform=float(rng.choice([rng.random(), 0.0, np.nextafter(1.0, 0.0)])),
        end_ids=tuple(int(e) for e in ends),
        end_rest=bool(rng.random() < 0.3),
    )


def drawable(row: Row) -> bool:
    try:
        sampling.outcomes(row.logits, pack_mask(row.allowed), row.end_ids, row.end_rest)
    except ValueError:
        return False
    return True


@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), vocab=st.sampled_from([1, 31, 32, 33, 255, 256, 257, 1500]))
def test_agrees_with_the_definition(seed: int, vocab: int) -> None:
    rng = np.random.default_rng(seed)
    rows = [row for row in (random_row(rng, vocab) for _ in range(6)) if drawable(row)]
    if rows:
        check(rows)


def test_agrees_on_a_large_vocabulary() -> None:
    seed = int(time.time())
    print(f"seed {seed}")
    rng = np.random.default_rng(seed)
    check([row for row in (random_row(rng, 50_021) for _ in range(24)) if drawable(row)])


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), vocab=st.sampled_from([40, 700, 3000]))
def test_same_bits_alone_in_a_batch_and_on_every_vector_set(seed: int, vocab: int) -> None:
    rng = np.random.default_rng(seed)
    rows = [row for row in (random_row(rng, vocab) for _ in range(6)) if drawable(row)]
    if not rows:
        return
    together = native(rows)
    assert [native([row])[0] for row in rows] == together
    assert native(rows[::-1])[::-1] == together
    assert native(rows, vectors="portable") == together
    for vectors in ("avx2", "avx512"):
        try:
            _cpu.draw(**arguments([Row(np.zeros(1), np.array([True]))]), vectors=vectors)
        except ValueError:  # not on this machine
            continue
        assert native(rows, vectors=vectors) == together


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_gathered_columns_give_the_same_bits(seed: int) -> None:
    """A row cut down to the columns that count draws the same outcome."""
    rng = np.random.default_rng(seed)
    full = replace(random_row(rng, 2000), end_rest=False)
    if not drawable(full):
        return
    columns = np.flatnonzero(full.allowed)
    columns = np.union1d(columns, np.array(full.end_ids, dtype=np.int64)).astype(np.int64)
    gathered = replace(
        full,
        logits=full.logits[columns],
        allowed=full.allowed[columns],
        end_ids=tuple(int(np.searchsorted(columns, e)) for e in full.end_ids),
    )
    (token, logprob), (place, gathered_logprob) = native([full])[0], native([gathered])[0]
    assert (token if token < 0 else int(np.searchsorted(columns, token))) == place
    assert logprob == gathered_logprob


@pytest.mark.parametrize(
    ("sampled", "end_ids", "end_rest"),
    [
        ({"temperature": 1.0}, (), False),
        ({"temperature": 1.3}, (3, 17), False),
        ({"temperature": 0.7}, (5,), True),
        ({"temperature": 1.5, "top_k": 9}, (1,), False),
        ({"temperature": 1.0, "top_p": 0.8}, (2,), True),
        ({"temperature": 2.0, "min_p": 0.2}, (), False),
    ],
)
def test_the_distribution_is_the_stated_one(
    sampled: dict[str, Any], end_ids: tuple[int, ...], end_rest: bool
) -> None:
    """Chi-square over 20,000 draws; fails by chance once in a million runs a case."""
    seed = int(time.time())
    print(f"seed {seed}")
    rng = np.random.default_rng(seed)
    draws = 20_000
    row = Row(
        rng.normal(0, 0.7, 50).astype(np.float32),  # flat: every filter leaves a good many
        rng.random(50) < 0.7,
        end_ids=end_ids,
        end_rest=end_rest,
        **sampled,
    )
    counted: dict[int, int] = {}
    for token, _ in native([replace(row, uniform=u) for u in rng.random(draws)]):
        counted[token] = counted.get(token, 0) + 1
    found = sampling.outcomes(row.logits, pack_mask(row.allowed), end_ids, end_rest)
    p = sampling.filtered(
        found, row.temperature, row.top_k, float(np.float32(row.top_p)), row.min_p
    )
    assert set(counted) <= {int(i) for i in found.ids[p > 0]}
    seen = np.array([counted.get(int(i), 0) for i in found.ids], dtype=np.float64)
    rare = p * draws < 5
    expected = np.append(p[~rare], p[rare].sum()) * draws
    seen = np.append(seen[~rare], seen[rare].sum())
    expected, seen = expected[expected > 0], seen[expected > 0]
    chi_square = float(((seen - expected) ** 2 / expected).sum())
    freedom = len(expected) - 1
    assert freedom > 2
    # Wilson and Hilferty: the cube root is nearly normal; 4.75 deviations are one in a million.
    deviations = ((chi_square / freedom) ** (1 / 3) - (1 - 2 / (9 * freedom))) / np.sqrt(
        2 / (9 * freedom)
    )
    assert deviations < 4.75


def test_ties_go_to_the_lowest_id_and_the_end_comes_last() -> None:
    logits = np.zeros(600, np.float32)
    logits[[300, 400, 599]] = 2.0
    allowed = np.ones(600, bool)
    tie = Row(logits, allowed)
    assert native([tie])[0][0] == 300
    allowed = allowed.copy()
    allowed[300] = False
    assert native([replace(tie, allowed=allowed)])[0][0] == 400
    assert native([replace(tie, allowed=allowed, end_ids=(400,))])[0][0] == 599
    only_end = replace(tie, end_ids=(300, 400, 599))
    assert native([only_end])[0][0] == -1
    # 0.0 and -0.0 are equal, for the filters too.
    signed = Row(np.array([-1, -0.0, 0.0, -0.0], np.float32), np.ones(4, bool))
    assert native([signed])[0][0] == 1
    top_2 = replace(signed, temperature=1.0, top_k=2)
    drawn = {native([replace(top_2, uniform=u)])[0][0] for u in (0.0, 0.3, 0.49, 0.51, 0.99)}
    assert drawn == {1, 2}


def test_an_end_id_never_comes_as_itself() -> None:
    row = Row(np.array([0, 9, 0], np.float32), np.array([True, True, True]), end_ids=(1,))
    assert native([row])[0][0] == -1
    alone = Row(np.array([0, 9, 0], np.float32), np.array([False, True, False]), end_ids=(1, 1))
    assert native([alone]) == [(-1, 0.0)]


def test_many_small_end_ids_add_up() -> None:
    logits = np.full(2000, -1.0, np.float32)
    logits[7] = 3.0
    row = Row(logits, np.arange(2000) == 7, end_ids=tuple(range(100, 120)))
    assert native([row])[0][0] == 7
    assert native([replace(row, end_ids=tuple(range(100, 200)))])[0][0] == -1
    assert native([replace(row, end_ids=(), end_rest=True)])[0][0] == -1


def test_one_outcome_has_probability_one() -> None:
    for temperature in (0.0, 1.0, 1e-38, 1e30):
        row = Row(np.array([4, 5, 6], np.float32), np.array([True, False, False]), temperature)
        assert native([row]) == [(0, 0.0)]


def test_extreme_temperatures() -> None:
    logits = np.array([1.0, 3.0, 2.0, 3.0], np.float32)
    cold = Row(logits, np.ones(4, bool), temperature=1e-40, uniform=0.49)
    assert native([cold])[0][0] == 1
    assert native([replace(cold, uniform=0.51)])[0][0] == 3
    hot = replace(cold, temperature=3e38)
    assert [native([replace(hot, uniform=u)])[0][0] for u in (0.2, 0.3, 0.6, 0.9)] == [0, 1, 2, 3]


ROWS = [Row(np.arange(70, dtype=np.float32), np.ones(70, bool), end_ids=(1,)) for _ in range(2)]


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("temperature", [0, -1], "row 1: temperature"),
        ("temperature", [np.nan, 0], "row 0: temperature"),
        ("top_p", [1, 0], "row 1: top_p"),
        ("top_k", [-1, 0], "row 0: top_k"),
        ("min_p", [0, 1.5], "row 1: min_p"),
        ("uniform", [0, 1], "row 1: uniform"),
        ("uniform", [0], "uniform must have 2 entries, got 1"),
        ("end_rest", [0, 0, 0], "end_rest must have 2 entries, got 3"),
        ("end_start", [0, 1], "end_start must have 3 entries"),
        ("end_start", [0, 2, 1], "row 1: end_start"),
        ("end_start", [-1, 0, 1], "row 0: end_start"),
        ("end_start", [0, 1, 3], "row 1: end_start"),
        ("end_ids", [1, 70], "row 1: an end id"),
        ("end_ids", [-1, 1], "row 0: an end id"),
    ],
)
def test_wrong_arguments_are_named(name: str, value: list[float], says: str) -> None:
    right = arguments(ROWS)
    wrong = {**right, name: np.array(value, dtype=right[name].dtype)}
    with pytest.raises(ValueError, match=says):
        _cpu.draw(**wrong)


def test_wrong_shapes_and_types_are_refused() -> None:
    right = arguments(ROWS)
    with pytest.raises(ValueError, match=r"mask must be \[2, 3\], got \[2, 2\]"):
        _cpu.draw(**{**right, "mask": right["mask"][:, :2].copy()})
    with pytest.raises(ValueError, match="vocabulary"):
        _cpu.draw(**{**right, "logits": np.zeros((2, 0), np.float32)})
    with pytest.raises(ValueError, match="vectors must be"):
        _cpu.draw(**right, vectors="sse9")
    with pytest.raises(TypeError):
        _cpu.draw(**{**right, "logits": right["logits"].astype(np.float64)})
    with pytest.raises(TypeError):
        _cpu.draw(**{**right, "logits": right["logits"][:, ::2]})


def test_a_row_without_an_outcome_is_named() -> None:
    good = ROWS[0]
    nothing = replace(good, allowed=np.zeros(70, bool), end_ids=())
    with pytest.raises(ValueError, match="row 1: the mask allows no id"):
        native([good, nothing])
    with pytest.raises(ValueError, match="row 0: every logit that counts is -inf"):
        native([replace(good, logits=np.full(70, -np.inf, np.float32)), good])
    assert native([replace(nothing, end_rest=True)]) == [(-1, 0.0)]


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_among_the_logits_that_count_is_named(value: float) -> None:
    logits = np.zeros(700, np.float32)
    logits[650] = value
    good = Row(np.zeros(700, np.float32), np.ones(700, bool))
    bad = replace(good, logits=logits)
    with pytest.raises(ValueError, match="row 1: a logit"):
        native([good, bad])
    elsewhere = replace(bad, allowed=np.arange(700) < 650)
    assert native([elsewhere])[0][0] == 0
    with pytest.raises(ValueError, match="row 0: a logit"):
        native([replace(elsewhere, end_rest=True)])
    with pytest.raises(ValueError, match="row 0: a logit"):
        native([replace(elsewhere, end_ids=(650,))])


def test_bits_beyond_the_vocabulary_are_ignored() -> None:
    given_ = arguments([Row(np.zeros(33, np.float32), np.ones(33, bool))])
    given_["mask"][:] = 0xFFFFFFFF
    given_["end_rest"][:] = 1
    ids, logprobs = _cpu.draw(**given_)
    assert ids.tolist() == [0]
    assert logprobs[0] == pytest.approx(-np.log(33), abs=1e-6)


def test_no_rows() -> None:
    ids, logprobs = _cpu.draw(
        np.zeros((0, 9), np.float32),
        np.zeros((0, 1), np.uint32),
        *(np.zeros(0, t) for t in (np.float32, np.float32, np.int32, np.float32, np.float64)),
        np.zeros(0, np.int32),
        np.zeros(1, np.int32),
        np.zeros(0, np.uint8),
    )
    assert len(ids) == len(logprobs) == 0
