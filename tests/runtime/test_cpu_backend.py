"""CpuBackend around the native model: arguments, memory, threads, and the real models."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from sglite.runtime.backends import cpu
from sglite.runtime.backends.base import DrawRequest
from sglite.runtime.backends.cpu import CpuBackend, granted_cores, page_bytes
from sglite.runtime.models.families import config_from_gguf
from sglite.runtime.models.gguf import GGUFFile
from sglite.runtime.plan import StepPlan


def plan_of(tokens: list[int], context: int, pages: list[int], logits: list[int]) -> StepPlan:
    def ints(values: list[int]) -> np.ndarray:
        return np.array(values, np.int32)

    return StepPlan(
        tokens=ints(tokens),
        query_start=ints([0, len(tokens)]),
        context_start=ints([context]),
        pages=ints(pages),
        page_start=ints([0, len(pages)]),
        logit_tokens=ints(logits),
    )


@pytest.fixture(scope="module")
def backend(smollm2_path: Path) -> CpuBackend:
    gguf = GGUFFile.open(smollm2_path)
    made = CpuBackend(gguf, config_from_gguf(gguf), threads=2, pages=200)
    gguf.close()  # the backend keeps what it needs
    return made


pytestmark = pytest.mark.model


def test_numbers(backend: CpuBackend) -> None:
    assert backend.vocab_size == 49152
    assert backend.max_context == 8192
    assert backend.pages_total == 200
    assert backend.bytes_per_page == 2 * 2 * 30 * 3 * 64 * 16
    assert backend.threads == 2


def test_arguments_out_of_range(smollm2_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gguf = GGUFFile.open(smollm2_path)
    config = config_from_gguf(gguf)
    for wrong in (
        {"pages": 0},
        {"pages": 1, "threads": 0},
        {"pages": 1, "kv_dtype": "f8"},
        {"pages": 1, "activations": "int4"},
    ):
        with pytest.raises(ValueError, match=f"{list(wrong)[-1]} must be"):
            CpuBackend(gguf, config, **wrong)  # type: ignore[arg-type]
    monkeypatch.setenv("SGLITE_ISA", "mmx")
    with pytest.raises(ValueError, match=r"SGLITE_ISA=mmx: this machine has .*portable"):
        CpuBackend(gguf, config, pages=1)


def test_chunks_of_a_real_model(backend: CpuBackend) -> None:
    rng = np.random.default_rng()
    tokens = rng.integers(0, backend.vocab_size, 300).tolist()
    pages = rng.permutation(200).tolist()
    whole = backend.forward(plan_of(tokens, 0, pages[:19], [299])).copy()
    for begin, end in ((0, 17), (17, 18), (18, 255), (255, 299)):
        backend.forward(plan_of(tokens[begin:end], begin, pages[40:59], []))
    assert np.array_equal(backend.forward(plan_of(tokens[299:], 299, pages[40:59], [0])), whole)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads /proc")
def test_untouched_pages_cost_nothing(smollm2_path: Path) -> None:
    gguf = GGUFFile.open(smollm2_path)
    config = config_from_gguf(gguf)
    before = resident_bytes()
    made = CpuBackend(gguf, config, threads=1, pages=50_000)  # 17 GB of KV
    made.forward(plan_of([1, 2, 3], 0, [49_999], [2]))
    assert resident_bytes() - before < 200e6  # the packed weights, and little of the file
    made.close()
    assert resident_bytes() - before < 40e6
    made.close()
    with pytest.raises(ValueError, match="closed"):
        made.forward(plan_of([1], 0, [0], [0]))


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def test_old_logits_stay_readable(backend: CpuBackend) -> None:
    first = backend.forward(plan_of([1], 0, [0], [0]))
    kept = first.copy()
    backend.forward(plan_of(list(range(40)), 0, [1, 2, 3], list(range(40))))
    assert np.array_equal(first, kept)


def test_draw_takes_the_largest_allowed(backend: CpuBackend) -> None:
    logits = backend.forward(plan_of([1, 2, 3], 0, [0], [0, 1, 2]))
    rows, vocab = logits.shape
    allowed = np.zeros((rows, vocab), bool)
    allowed[:, ::7] = True
    request = DrawRequest(
        mask=np.packbits(allowed, axis=1, bitorder="little").view(np.uint32),
        temperature=np.zeros(rows, np.float32),
        top_p=np.ones(rows, np.float32),
        top_k=np.zeros(rows, np.int32),
        min_p=np.zeros(rows, np.float32),
        uniform=np.zeros(rows),
        end_ids=np.zeros(0, np.int32),
        end_start=np.zeros(rows + 1, np.int32),
        end_rest=np.zeros(rows, np.uint8),
    )
    ids, logprobs = backend.draw(logits, request)
    masked = np.where(allowed, logits.astype(np.float64), -np.inf)
    assert ids.tolist() == masked.argmax(axis=1).tolist()
    peak = masked.max(axis=1)
    expected = -np.log(np.exp(masked - peak[:, None]).sum(axis=1))
    np.testing.assert_allclose(logprobs, expected, atol=1e-4)


def test_the_gil_is_free_during_a_step(backend: CpuBackend) -> None:
    """Another thread runs Python code while a long step runs."""
    ticks = 0
    stop = threading.Event()

    def count() -> None:
        nonlocal ticks
        while not stop.wait(0.001):
            ticks += 1

    thread = threading.Thread(target=count)
    thread.start()
    backend.forward(plan_of(list(range(512)), 0, list(range(32)), [511]))
    stop.set()
    thread.join()
    assert ticks >= 5


def test_calls_from_two_threads_take_turns(backend: CpuBackend) -> None:
    plans = [plan_of(list(range(i, i + 20)), 0, [10 * i, 10 * i + 1], [19]) for i in range(4)]
    expected = [backend.forward(plan).copy() for plan in plans]
    logits = [np.empty((1, backend.vocab_size), np.float32) for _ in plans]

    def work(i: int) -> None:
        for _ in range(5):
            model = backend._open_model()
            plan = plans[i]
            arrays = [name for name in StepPlan.__slots__ if name != "logit_mask"]
            model.forward(*(getattr(plan, name) for name in arrays), logits[i])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for got, wanted in zip(logits, expected, strict=True):
        assert np.array_equal(got, wanted)


def test_threads_sleep_between_steps(backend: CpuBackend) -> None:
    backend.forward(plan_of([1], 0, [0], [0]))
    before = time.process_time()
    time.sleep(0.2)
    assert time.process_time() - before < 0.02


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cannot bind threads to cores")
@pytest.mark.parametrize("batch", [1, 8])
def test_threads_without_cores_of_their_own(smollm2_path: Path, batch: int) -> None:
    """On one core three threads cost hardly more than one, and give the same bits."""
    tokens = np.random.default_rng().integers(0, 49152, batch).astype(np.int32)
    plan = StepPlan(
        tokens=tokens,
        query_start=np.arange(batch + 1, dtype=np.int32),
        context_start=np.zeros(batch, np.int32),
        pages=np.arange(batch, dtype=np.int32),
        page_start=np.arange(batch + 1, dtype=np.int32),
        logit_tokens=np.arange(batch, dtype=np.int32),
    )
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        with GGUFFile.open(smollm2_path) as gguf:
            config = config_from_gguf(gguf)
            made = [CpuBackend(gguf, config, threads=n, pages=batch) for n in (1, 3)]
        seconds: list[list[float]] = [[], []]
        for _ in range(9):
            results = []
            for backend, times in zip(made, seconds, strict=True):
                before = time.process_time()  # waits that spin count in it, other processes do not
                results.append(backend.forward(plan))
                times.append(time.process_time() - before)
            assert np.array_equal(*results)
    finally:
        os.sched_setaffinity(0, cores)
    assert np.median(seconds[1]) < 1.7 * np.median(seconds[0])


def test_granted_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(cpu, "_cgroup_quotas", lambda: iter([3]))
    assert granted_cores() == 3
    monkeypatch.setattr(cpu, "_cgroup_quotas", lambda: iter([]))
    assert granted_cores() == 8


def test_page_bytes(smollm2_path: Path) -> None:
    config = config_from_gguf(GGUFFile.open(smollm2_path))
    assert page_bytes(config, "f32") == 2 * page_bytes(config)
