"""A row's logits have the same bits alone, in any batch, in any chunks, over any pages."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import cpu_models as models
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from limits import examples

from sglite.kernels import _cpu
from sglite.runtime.backends.cpu import CpuBackend
from sglite.runtime.models.config import ModelConfig
from sglite.runtime.models.ggml_types import GGMLType
from sglite.runtime.plan import PAGE_SIZE, StepPlan

ISAS = _cpu.available_isas()
CONFIGS = {
    "llama": models.llama(),
    "gemma": models.gemma(),
    "capped": models.capped(),
    "experts": models.experts(),
}
PAGES = 256


@dataclass
class Model:
    """One random model on several backends, and the logits of sequences computed alone."""

    config: ModelConfig
    file: models.FakeFile
    backends: dict[int, CpuBackend] = field(default_factory=dict)


@pytest.fixture(scope="module", params=[(isa, name) for isa in ISAS for name in CONFIGS])
def model(request: pytest.FixtureRequest) -> Model:
    isa, name = request.param
    config = CONFIGS[name]
    kind = GGMLType.Q4_1 if name == "llama" else GGMLType.Q5_0
    made = Model(config, models.random_file(config, kind, np.random.default_rng(7)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SGLITE_ISA", isa)
        for threads in (1, 2, 3):
            made.backends[threads] = CpuBackend(
                made.file,  # type: ignore[arg-type]
                config,
                threads=threads,
                pages=PAGES,
            )
    return made


def alone(model: Model, tokens: list[int]) -> np.ndarray:
    """Logits [T, V] of one sequence in one piece, on one thread, over pages in order."""
    pages = list(range(models.pages_for(len(tokens))))
    plan = models.make_plan([models.Row(tokens, 0, pages, len(tokens))])
    return model.backends[1].forward(plan).copy()


@settings(max_examples=examples(8), deadline=None)
@given(seed=st.integers(0, 2**32 - 1), threads=st.sampled_from([1, 2, 3]))
def test_chunks_batches_and_pages(model: Model, seed: int, threads: int) -> None:
    """Sequences that share a prefix's pages, fed in random chunks in random batches."""
    rng = np.random.default_rng(seed)
    vocab = model.config.vocab_size
    shared_pages = int(rng.integers(0, 20))
    prefix = rng.integers(0, vocab, shared_pages * PAGE_SIZE).tolist()
    count = int(rng.integers(1, 12))
    lengths = np.where(rng.random(count) < 0.6, rng.integers(1, 20, count), rng.integers(1, 200))
    sequences = [prefix + rng.integers(0, vocab, int(n)).tolist() for n in lengths]
    free = rng.permutation(PAGES).tolist()
    common = [free.pop() for _ in range(shared_pages)]
    tables = [
        common + [free.pop() for _ in range(models.pages_for(len(s)) - shared_pages)]
        for s in sequences
        if len(free) > models.pages_for(len(s))
    ]
    sequences = sequences[: len(tables)]
    backend = model.backends[threads]
    expected = [alone(model, sequence) for sequence in sequences]

    # The first sequence writes the shared pages, in chunks; the others begin behind them.
    done = [0] + [len(prefix)] * (len(sequences) - 1)
    while done[0] < len(prefix):
        n = int(min(rng.integers(1, 150), len(prefix) - done[0]))
        row = models.Row(sequences[0][done[0] : done[0] + n], done[0], tables[0], 1)
        logits = backend.forward(models.make_plan([row]))
        done[0] += n
        assert np.array_equal(logits[0], expected[0][done[0] - 1])
    while any(d < len(s) for d, s in zip(done, sequences, strict=True)):
        chosen = [i for i, s in enumerate(sequences) if done[i] < len(s) and rng.random() < 0.8]
        rng.shuffle(chosen)
        rows, wanted = [], []
        for i in chosen:
            left = len(sequences[i]) - done[i]
            n = int(min(rng.choice([1, 1, 2, 5, 17, 120]), left))
            logits = int(rng.integers(0, n + 1))
            rows.append(models.Row(sequences[i][done[i] : done[i] + n], done[i], tables[i], logits))
            done[i] += n
            wanted.append(expected[i][done[i] - logits : done[i]])
        if rows:
            logits = backend.forward(models.make_plan(rows))
            assert np.array_equal(logits, np.concatenate(wanted))


@pytest.mark.parametrize("kind", models.TYPES, ids=lambda kind: kind.name)
@pytest.mark.parametrize("activations", ["int8", "f32"])
@pytest.mark.parametrize("isa", ISAS)
def test_every_tile_size(
    monkeypatch: pytest.MonkeyPatch, isa: str, kind: GGMLType, activations: str
) -> None:
    """Batches of every size up to two tiles give the bits of a batch of one."""
    monkeypatch.setenv("SGLITE_ISA", isa)
    config = models.llama(width=256, ff_width=256, heads=8, head_dim=32)
    rng = np.random.default_rng()
    file = models.random_file(config, kind, rng)
    backend = CpuBackend(
        file,  # type: ignore[arg-type]
        config,
        threads=2,
        pages=64,
        activations=activations,  # type: ignore[arg-type]
    )
    tokens = rng.integers(0, config.vocab_size, 34).tolist()

    def run(batch: list[int]) -> np.ndarray:
        rows = [models.Row([token], 0, [i], 1) for i, token in enumerate(batch)]
        return backend.forward(models.make_plan(rows)).copy()

    expected = np.concatenate([run([token]) for token in tokens])
    for size in rng.permutation(np.arange(2, 35))[: examples(33)]:
        assert np.array_equal(run(tokens[:size]), expected[:size])


def test_more_threads_than_cores(monkeypatch: pytest.MonkeyPatch, model: Model) -> None:
    """Threads that come late to a step, or a step too late, change nothing."""
    monkeypatch.setenv("SGLITE_ISA", model.backends[1].isa)
    rng = np.random.default_rng()
    backend = CpuBackend(
        model.file,  # type: ignore[arg-type]
        model.config,
        threads=8,
        pages=PAGES,
    )
    tokens = rng.integers(0, model.config.vocab_size, 40).tolist()

    def plan(size: int) -> StepPlan:
        return models.make_plan(
            [models.Row([token], 0, [i], 1) for i, token in enumerate(tokens)][:size]
        )

    expected = model.backends[1].forward(plan(len(tokens))).copy()
    for size in rng.choice([1, 2, 4, 5, 9, 40], examples(150)):
        assert np.array_equal(backend.forward(plan(size)), expected[:size])


@settings(max_examples=30, deadline=None)
@given(data=st.data(), threads=st.sampled_from([1, 2, 3]))
def test_wanted_columns(model: Model, data: st.DataObject, threads: int) -> None:
    """Logits under a mask have the bits that they have among all."""
    vocab = model.config.vocab_size
    rows = [
        models.Row([data.draw(st.integers(0, vocab - 1))], 0, [i], 1)
        for i in range(data.draw(st.sampled_from([1, 4, 5, 17])))
    ]
    ids = data.draw(st.sets(st.integers(0, vocab - 1), min_size=1, max_size=40), label="ids")
    bits = np.zeros(-(-vocab // 32) * 32, np.uint8)
    bits[list(ids)] = 1
    mask = np.packbits(bits, bitorder="little").view(np.uint32)
    backend = model.backends[threads]
    plan = models.make_plan(rows)
    expected = backend.forward(plan)[:, list(ids)].copy()
    found = backend.forward(replace(plan, logit_mask=mask))[:, list(ids)]
    assert np.array_equal(found, expected)


def test_copied_pages(model: Model) -> None:
    """A sequence goes on over copies of its pages with the same bits."""
    rng = np.random.default_rng()
    tokens = rng.integers(0, model.config.vocab_size, 60).tolist()
    expected = alone(model, tokens)
    backend = model.backends[2]
    backend.forward(models.make_plan([models.Row(tokens[:50], 0, [9, 8, 7, 6], 0)]))
    pairs = np.array([[9, 20], [8, 31], [7, 22], [6, 23]], np.int32)
    backend.copy_pages(pairs)
    trash = models.make_plan([models.Row(tokens[::-1], 0, [9, 8, 7, 6], 0)])
    backend.forward(trash)
    logits = backend.forward(models.make_plan([models.Row(tokens[50:], 50, [20, 31, 22, 23], 10)]))
    assert np.array_equal(logits, expected[50:])


@pytest.mark.parametrize("kv_dtype", ["f16", "f32"])
@pytest.mark.parametrize("isa", ISAS)
def test_dirty_pages_leave_no_trace(
    monkeypatch: pytest.MonkeyPatch, isa: str, kv_dtype: str
) -> None:
    """Pages that held what came of an infinite embedding serve the next sequence as new."""
    monkeypatch.setenv("SGLITE_ISA", isa)
    config = models.llama()
    rng = np.random.default_rng()
    file = models.random_file(config, GGMLType.F32, rng)
    file.bytes_of["token_embd.weight"].view(np.float32)[: config.width] = np.inf
    tokens = rng.integers(1, config.vocab_size, 21).tolist()
    backend = CpuBackend(
        file,  # type: ignore[arg-type]
        config,
        threads=1,
        pages=4,
        kv_dtype=kv_dtype,  # type: ignore[arg-type]
    )
    clean = models.make_plan([models.Row(tokens, 0, [0, 1], 21)])
    expected = backend.forward(clean).copy()
    assert np.isfinite(expected).all()
    poison = models.make_plan([models.Row([0] * 64, 0, [0, 1, 2, 3], 1)])
    assert np.isnan(backend.forward(poison)).all()
    assert np.array_equal(backend.forward(clean), expected)
