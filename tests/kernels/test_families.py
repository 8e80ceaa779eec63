"""Every family against transformers: a tiny random model, through a GGUF file, over a text that
crosses its windows and the change of its rotation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from cpu_models import Row, make_plan, pages_for
from family_files import FAMILIES, ORIGINAL, TOKENS, Array, Family, logits, save, write

from sglite.kernels import _cpu
from sglite.kernels.reference.forward import forward
from sglite.runtime.backends.cpu import CpuBackend
from sglite.runtime.models.config import ModelConfig
from sglite.runtime.models.folder import ModelFolder
from sglite.runtime.models.gguf import GGUFFile
from sglite.runtime.models.tensors import TensorFile, model_tensors


@dataclass
class Case:
    """One model in a file, and the logits of transformers for `tokens`."""

    family: Family
    file: TensorFile
    config: ModelConfig
    tokens: list[int]
    expected: Array

    def weights(self) -> dict[str, Array]:
        return {
            name: data.view(np.float32).reshape(shape)
            for name, _, shape, data in model_tensors(self.file, self.config)
        }


def open_config(file: TensorFile, context: int | None = None) -> ModelConfig:
    if isinstance(file, ModelFolder):
        return file.config(context)
    assert isinstance(file, GGUFFile)
    return ModelConfig.from_gguf(file, context)


def make_case(
    family: Family, folder: Path, count: int, context: int | None = None, *, saved: bool = False
) -> Case:
    # A choice between experts that are nearly equal may fall either way, so theirs are no accident.
    fresh = int(np.random.SeedSequence().generate_state(1)[0])
    seed = 7 if any("expert" in key for key in family.keys) else fresh
    print("seed", seed)
    model = family.model(seed)
    tokens = np.random.default_rng(seed).integers(0, 101, count).tolist()
    file: TensorFile
    if saved:
        file = ModelFolder(save(model, folder))
    else:
        file = GGUFFile.open(write(family, model, folder / "model.gguf"))
    return Case(family, file, open_config(file, context), tokens, logits(model, tokens))


@pytest.fixture(
    scope="module",
    params=[(name, s) for name in FAMILIES for s in (False, True)],
    ids=lambda p: f"{p[0]}-{'folder' if p[1] else 'gguf'}",
)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    name, saved = request.param
    return make_case(FAMILIES[name], tmp_path_factory.mktemp("family"), TOKENS, saved=saved)


def relative_error(got: Array, expected: Array) -> float:
    """The largest over all positions of |got - expected| / |expected|."""
    difference = np.linalg.norm(got - expected, axis=1)
    return float((difference / np.linalg.norm(expected, axis=1)).max())


def backend_logits(case: Case, isa: str, threads: int = 2) -> Array:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SGLITE_ISA", isa)
        pages = pages_for(len(case.tokens))
        backend = CpuBackend(
            case.file, case.config, threads=threads, pages=pages, kv_dtype="f32", activations="f32"
        )
    row = Row(case.tokens, 0, list(range(pages)), len(case.tokens))
    got = backend.forward(make_plan([row])).copy()
    backend.close()
    return got


def test_the_plain_definition_is_what_transformers_computes(case: Case) -> None:
    error = relative_error(forward(case.config, case.weights(), case.tokens), case.expected)
    print(f"{case.config.architecture}: the plain definition, relative error {error:.1e}")
    assert error < 1e-4


@pytest.mark.parametrize("isa", _cpu.available_isas())
def test_the_cpu_backend_computes_the_same(case: Case, isa: str) -> None:
    error = relative_error(backend_logits(case, isa), case.expected)
    print(f"{case.config.architecture}: {isa}, relative error {error:.1e}")
    assert error < 1e-4


def test_what_a_family_has_shows_in_the_logits(case: Case) -> None:
    """Otherwise the comparisons would say nothing of it."""
    config, weights = case.config, case.weights()
    plain = next(layer.rope for layer in config.layers if layer.rope)
    changes = [*case.family.dropped, {"rope_interleaved": not config.rope_interleaved}]
    for index in map(config.layers.index, set(config.layers)):
        layer = config.layers[index]
        others = [replace(layer, window=None if layer.window else 24)]
        others += [replace(layer, rope=None if layer.rope else plain)]
        if layer.rope:
            faster = replace(layer.rope, frequencies=tuple(2 * f for f in layer.rope.frequencies))
            others += [replace(layer, rope=faster)]
        for other in others:
            layers = (*config.layers[:index], other, *config.layers[index + 1 :])
            changes.append({"layers": layers})
    for change in changes:
        changed = forward(replace(config, **change), weights, case.tokens)
        assert relative_error(changed, case.expected) > 1e-2, change


@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize("name", ["phi3", "phi4-mini"])
def test_a_short_context_has_a_rotation_of_its_own(name: str, saved: bool, tmp_path: Path) -> None:
    case = make_case(FAMILIES[name], tmp_path, ORIGINAL, context=ORIGINAL, saved=saved)
    for config, fits in ((case.config, True), (open_config(case.file), False)):
        error = relative_error(forward(config, case.weights(), case.tokens), case.expected)
        assert error < 1e-4 if fits else error > 1e-2
