"""Steps, copies and draws from several threads, and the threads of models: see also
`make test-races`."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

import cpu_models as models
import numpy as np
import pytest
from limits import examples
from test_draw import ROWS, arguments

from sglite.kernels import _cpu
from sglite.runtime.backends.cpu import CpuBackend
from sglite.runtime.models.ggml_types import GGMLType
from sglite.runtime.plan import StepPlan

THREADS = 4


def together(work: Any) -> None:
    """Runs work(0), work(1), ... at once; what one of them raises is raised here."""
    errors: list[BaseException] = []

    def run(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in errors:
        raise error


@pytest.fixture(params=["llama", "experts"])
def backend(request: pytest.FixtureRequest) -> CpuBackend:
    config = {"llama": models.llama(), "experts": models.experts()}[request.param]
    file: Any = models.random_file(config, GGMLType.Q4_1, np.random.default_rng(5))
    return CpuBackend(file, config, threads=3, pages=4 * THREADS)


def test_steps_and_copies_take_turns(backend: CpuBackend) -> None:
    def plan(number: int) -> StepPlan:
        pages = [4 * number, 4 * number + 1]
        rows = [models.Row([number + 1] * 20, 0, pages, 20), models.Row([7], 0, [pages[1] + 1], 1)]
        return models.make_plan(rows)

    expected = [backend.forward(plan(i)).copy() for i in range(THREADS)]

    def work(number: int) -> None:
        own = plan(number)
        logits = np.empty((21, backend.vocab_size), np.float32)
        for _ in range(examples(10)):
            arrays = [getattr(own, name) for name in models.ARRAYS]
            backend._open_model().forward(*arrays, logits)
            assert np.array_equal(logits, expected[number])
            backend.copy_pages(np.array([[4 * number, 4 * number + 3]], np.int32))
            mask = np.full((21, 3), 0xFFFFFFFF, np.uint32)
            ids, _ = _cpu.draw(
                logits,
                mask,
                **{k: np.resize(v, 21) for k, v in own_draw.items()},
                end_ids=np.zeros(0, np.int32),
                end_start=np.zeros(22, np.int32),
            )
            assert (ids == logits.argmax(axis=1)).all()

    given_ = arguments(ROWS)
    own_draw = {
        k: given_[k] for k in ("temperature", "top_p", "top_k", "min_p", "uniform", "end_rest")
    }
    together(work)


def test_arrays_that_change_while_a_step_runs_are_checked_first(backend: CpuBackend) -> None:
    """What another thread writes into a plan counts before the checks or not at all."""
    plan = models.make_plan([models.Row([1, 2, 3] * 20, 0, [3, 2, 1, 0], 3)])
    arrays = {name: getattr(plan, name).copy() for name in models.ARRAYS}
    logits = np.empty((3, backend.vocab_size), np.float32)
    stop = threading.Event()

    def spoil() -> None:
        rng = np.random.default_rng()
        while not stop.is_set():
            array = arrays[str(rng.choice(models.ARRAYS))]
            at = rng.integers(len(array))
            kept = array[at]
            array[at] = rng.choice([-1, 10**9, 3])
            array[at] = kept

    thread = threading.Thread(target=spoil)
    thread.start()
    try:
        for _ in range(examples(60)):
            with contextlib.suppress(ValueError):
                backend._open_model().forward(*arrays.values(), logits)
    finally:
        stop.set()
        thread.join()


def test_a_backend_closed_while_others_use_it(backend: CpuBackend) -> None:
    plan = models.make_plan([models.Row([1, 2, 3], 0, [3], 3)])

    model = backend._open_model()

    def work(number: int) -> None:
        if number == 0:
            backend.close()
        else:
            _steps(model, plan)

    together(work)


def _steps(model: Any, plan: StepPlan) -> None:
    arrays = [getattr(plan, name) for name in models.ARRAYS]
    for _ in range(3):
        model.forward(*arrays, np.empty((3, 77), np.float32))


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_models_come_and_go(threads: int) -> None:
    config = models.llama()
    file: Any = models.random_file(config, GGMLType.Q8_0, np.random.default_rng(5))
    plan = models.make_plan([models.Row([1, 2, 3] * 9, 0, [1, 0], 3)])
    expected = None
    for _ in range(examples(5)):
        backend = CpuBackend(file, config, threads=threads, pages=2)
        logits = backend.forward(plan).copy()
        assert expected is None or np.array_equal(logits, expected)
        expected = logits
        backend.close()
