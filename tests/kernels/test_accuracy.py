"""The real models against transformers on the dequantised weights, teacher-forced on its tokens.

transformers runs in float32; at the positions where it wrote a text itself, the logits of the plain
definition and of the CPU backend are compared with its own.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from transformers_peer import WRITTEN, Array, logits_of, peer, read_texts, read_weights

from sglite.kernels.reference.forward import forward
from sglite.runtime.backends.cpu import CpuBackend
from sglite.runtime.models.config import ModelConfig
from sglite.runtime.models.gguf import GGUFFile
from sglite.runtime.plan import PAGE_SIZE, StepPlan

pytestmark = pytest.mark.model


@dataclass
class Written:
    """A text whose last WRITTEN ids transformers wrote, and its logits there, [WRITTEN, V]."""

    ids: list[int]
    logits: Array


@dataclass
class Case:
    gguf: GGUFFile
    config: ModelConfig
    weights: dict[str, Array]
    texts: list[Written] = field(default_factory=list)


@pytest.fixture(scope="module", params=["smollm2", "gemma3-270m"])
def case(request: pytest.FixtureRequest) -> Iterator[Case]:
    path = request.getfixturevalue(f"{request.param.split('3-')[0]}_path")
    with GGUFFile.open(path) as gguf:
        config = ModelConfig.from_gguf(gguf)
        case = Case(gguf, config, read_weights(gguf))
        model = peer(config, case.weights)
        case.texts = [Written(ids, logits_of(model, ids)) for ids in read_texts(request.param)]
        del model
        yield case
        del case
    gc.collect()


def backend_logits(backend: CpuBackend, text: Written) -> Array:
    """The backend's logits where the text was written, float64 [WRITTEN, V]."""
    ids = np.array(text.ids[:-1], np.int32)
    plan = StepPlan(
        tokens=ids,
        query_start=np.array([0, len(ids)], np.int32),
        context_start=np.zeros(1, np.int32),
        pages=np.arange(-(-len(ids) // PAGE_SIZE), dtype=np.int32),
        page_start=np.array([0, -(-len(ids) // PAGE_SIZE)], np.int32),
        logit_tokens=np.arange(len(ids) - WRITTEN, len(ids), dtype=np.int32),
    )
    return backend.forward(plan).astype(np.float64)


def backend_for(case: Case, **kinds: Any) -> CpuBackend:
    longest = max(len(text.ids) for text in case.texts)
    return CpuBackend(case.gguf, case.config, pages=-(-longest // PAGE_SIZE), threads=2, **kinds)


def relative_error(got: Array, expected: Array) -> float:
    """The largest over all positions of |got - expected| / |expected|."""
    difference = np.linalg.norm(got - expected, axis=1)
    return float((difference / np.linalg.norm(expected.astype(np.float64), axis=1)).max())


def log_softmax(logits: Array) -> Array:
    shifted = logits.astype(np.float64) - logits.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def test_the_plain_definition_is_what_transformers_computes(case: Case) -> None:
    windowed = any(layer.window for layer in case.config.layers)
    for text in (case.texts[0], case.texts[-1]) if windowed else case.texts[:1]:
        got = forward(case.config, case.weights, text.ids[:-1], last=WRITTEN)
        error = relative_error(got, text.logits)
        print(f"{case.config.architecture}: {len(text.ids)} tokens, relative error {error:.2e}")
        assert error <= 2e-5


def test_float_path_is_accurate(case: Case) -> None:
    backend = backend_for(case, activations="f32", kv_dtype="f32")
    errors = [relative_error(backend_logits(backend, text), text.logits) for text in case.texts]
    backend.close()
    print(f"{case.config.architecture}: float path, relative errors {np.array(errors)}")
    assert max(errors) <= 1e-4


@pytest.mark.parametrize(("kv_dtype", "most"), [("f16", 4e-3), ("int8", 1e-2)])
def test_shipped_path_is_accurate(case: Case, kv_dtype: str, most: float) -> None:
    backend = backend_for(case, kv_dtype=kv_dtype)
    divergences, gaps, equal = [], [], []
    for text in case.texts:
        ours, theirs = log_softmax(backend_logits(backend, text)), log_softmax(text.logits)
        divergences.append((np.exp(theirs) * (theirs - ours)).sum(axis=1))
        best = np.partition(theirs, -2, axis=1)[:, -2:]
        gaps.append(best[:, 1] - best[:, 0])
        equal.append(ours.argmax(axis=1) == theirs.argmax(axis=1))
    backend.close()
    mean = float(np.concatenate(divergences).mean())
    clear = np.concatenate(gaps) > 0.5
    same = np.concatenate(equal)
    print(
        f"{case.config.architecture}: shipped path, {kv_dtype}, {len(clear)} positions, "
        f"mean KL {mean:.2e}, "
        f"{clear.mean():.0%} with a gap above 0.5 nat, argmax equal at {same[clear].mean():.1%} of "
        f"those and {same.mean():.1%} of all"
    )
    assert mean <= most
    assert clear.mean() >= 0.7
    assert same[clear].all()
