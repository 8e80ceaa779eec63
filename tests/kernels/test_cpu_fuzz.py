"""Whatever tensors, configs, plans and parameters say: an error that can be caught, or numbers.

Longer: SGLITE_FUZZ=20. What is read or written out of place is found by `make test-sanitize`.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import replace
from typing import Any

import cpu_models as models
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from limits import examples
from test_draw import ROWS, arguments

from sglite.errors import ModelError
from sglite.kernels import _cpu
from sglite.runtime.backends.cpu import CpuBackend
from sglite.runtime.models.config import Experts, LayerConfig
from sglite.runtime.models.ggml_types import GGMLType
from sglite.runtime.models.rope import Rope

FAMILIES = {
    "llama": models.llama(),
    "gemma": models.gemma(),
    "capped": models.capped(),
    "experts": models.experts(),
}
PAGES = 8
PLAN = models.make_plan([models.Row([1, 2, 3], 14, [0, 1], 2), models.Row([4], 16, [0, 2], 1)])
FRESH = models.make_plan([models.Row([1, 2, 3, 4, 5], 0, [3], 5)])
"""Reads nothing that another plan has written."""

EXTREMES = [0, 1, 2, 15, 16, 31, 32, 33, 48, 96, 1 << 15, (1 << 31) - 1, 1 << 31, (1 << 32) - 1]
EXTREMES += [1 << 53, 1 << 61, (1 << 63) - 1]
whole = st.sampled_from([*EXTREMES, *(-n for n in EXTREMES)])
small = st.integers(-3, 20)
any_int32 = small | st.integers(-(2**31), 2**31 - 1)
floats = st.floats(width=32) | st.sampled_from([0.0, -0.0, 1e-45, -1.0, math.nan, math.inf])

Views = list[tuple[str, int, tuple[int, ...], Any]]


def runs(backend: CpuBackend) -> None:
    """What was loaded computes something of the right shape, number or not."""
    with np.errstate(all="ignore"):
        assert backend.forward(PLAN).shape == (3, backend.vocab_size)
    backend.close()


def views_of(family: str, kind: GGMLType, seed: int) -> Views:
    file = models.random_file(FAMILIES[family], kind, np.random.default_rng(seed))
    return [(n, int(i.type), i.shape, file.data(n)) for n, i in file.tensors.items()]


@st.composite
def changed_shape(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[int, ...]:
    sizes = list(shape) or [1]
    kind = draw(st.sampled_from(["set", "add", "drop", "swap"]))
    at = draw(st.integers(0, len(sizes) - 1))
    if kind == "set":
        sizes[at] = draw(whole | st.integers(sizes[at] - 2, sizes[at] + 2))
    elif kind == "add":
        sizes.insert(at, draw(st.sampled_from([0, 1, 2, -1])))
    elif kind == "drop":
        del sizes[at]
    else:
        sizes.reverse()
    return tuple(sizes)


@st.composite
def changed_data(draw: st.DrawFn, data: np.ndarray) -> np.ndarray:
    kind = draw(st.sampled_from(["bytes", "ones", "cut", "more", "strided", "floats", "matrix"]))
    if kind == "bytes":
        return np.random.default_rng(draw(st.integers(0, 99))).integers(0, 256, data.size, np.uint8)
    if kind == "ones":  # NaN as a number of any type
        return np.full(data.size, 255, np.uint8)
    if kind == "cut":
        return data[: draw(st.integers(0, max(0, data.size - 1)))]
    if kind == "more":
        return np.concatenate([data, data[: draw(st.integers(1, 40))]])
    if kind == "strided":
        return np.repeat(data, 2)[::2]
    if kind == "floats":
        return data.astype(np.float32)
    return data.reshape(1, -1)


def change_views(draw: Any, views: Views) -> None:
    """One tensor renamed, retyped, reshaped, refilled, dropped or named twice."""
    at = draw(st.integers(0, len(views) - 1))
    name, type_, shape, data = views[at]
    kind = draw(st.sampled_from(["name", "type", "shape", "data", "data", "drop", "twice"]))
    if kind == "name":
        views[at] = (
            draw(st.sampled_from([views[0][0], "", "x", "\ud7ff", "\ud800"])),
            type_,
            shape,
            data,
        )
    elif kind == "type":
        types = st.sampled_from([int(t) for t in GGMLType]) | st.integers(-5, 300)
        views[at] = (name, draw(types), shape, data)
    elif kind == "shape":
        views[at] = (name, type_, draw(changed_shape(shape)), data)
    elif kind == "data":
        views[at] = (name, type_, shape, draw(changed_data(data)))
    elif kind == "drop":
        del views[at]
    else:
        views.append(views[at])


def arguments_of(family: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What CpuBackend hands to the native model."""
    taken: dict[str, Any] = {}

    class Taken(Exception):  # noqa: N818
        pass

    def take(tensors: Views, **others: Any) -> None:
        taken.update(others)
        raise Taken

    config = FAMILIES[family]
    file: Any = models.random_file(config, GGMLType.Q4_1, np.random.default_rng(1))
    with monkeypatch.context() as patch:
        patch.setattr(_cpu, "Model", take)
        with pytest.raises(Taken):
            CpuBackend(file, config, threads=2, pages=PAGES)
    return taken


@pytest.mark.parametrize("family", FAMILIES)
def test_any_tensors_are_loaded_or_refused(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    others = arguments_of(family, monkeypatch)
    outcomes: set[str] = set()

    @settings(max_examples=examples(60), deadline=None)
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        kind = data.draw(st.sampled_from([t for t in models.TYPES if t.block[0] < 256]))
        views = views_of(family, kind, 2)
        for _ in range(data.draw(st.integers(1, 2))):
            change_views(data.draw, views)
        try:
            model = _cpu.Model(views, **others)
        except (ValueError, TypeError):
            outcomes.add("refused")
            return
        logits = np.empty((3, others["vocab_size"]), np.float32)
        model.forward(*(getattr(PLAN, name) for name in models.ARRAYS), logits)
        outcomes.add("loaded")

    check()
    assert "refused" in outcomes


def test_entries_that_are_no_tensors_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    others = arguments_of("llama", monkeypatch)
    views = views_of("llama", GGMLType.Q4_1, 1)
    for wrong in ((), views[0][:3], (*views[0], 1), None, 5, ("x", "y", (1,), views[0][3])):
        with pytest.raises(TypeError):
            _cpu.Model([*views, wrong], **others)  # type: ignore[list-item]


def test_data_that_would_need_a_copy_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The copy would be gone while it is read."""
    others = arguments_of("llama", monkeypatch)
    views = views_of("llama", GGMLType.Q4_1, 1)
    name, type_, shape, data = views[0]
    for wrong in (np.repeat(data, 2)[::2], data.astype(np.float32), data.reshape(1, -1)):
        with pytest.raises(TypeError):
            _cpu.Model([(name, type_, shape, wrong), *views[1:]], **others)


EXPERTS = st.builds(Experts, whole | small, whole | small, st.booleans())
ROPES = st.builds(Rope, st.lists(floats, max_size=9).map(tuple), floats)
LAYERS = st.lists(st.builds(LayerConfig, st.none() | whole | small, st.none() | ROPES), max_size=4)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(
        ["vocab_size", "context_length", "width", "ff_width", "heads", "kv_heads", "head_dim"],
        whole | small,
    ),
    **dict.fromkeys(["norm_epsilon", "embedding_scale", "attention_scale"], floats),
    **dict.fromkeys(["attention_cap", "logit_cap"], st.none() | floats),
    **dict.fromkeys(
        ["rope_interleaved", "qk_norm", "post_norms", "tied_output", "qkv_bias"], st.booleans()
    ),
    "activation": st.sampled_from(["silu", "gelu_tanh", "", "relu"]),
    "experts": st.none() | EXPERTS,
    "layers": LAYERS.map(tuple),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_any_config_is_run_or_refused(family: str) -> None:
    """Also one whose sizes fit to the tensors, which are made for it where that is possible."""

    @settings(max_examples=examples(80), deadline=None)
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        names = data.draw(st.lists(st.sampled_from(list(FIELDS)), min_size=1, max_size=2))
        config = replace(FAMILIES[family], **{n: data.draw(FIELDS[n], label=n) for n in names})
        numbers = [config.vocab_size, config.width, config.ff_width, config.heads, config.kv_heads]
        numbers += [config.head_dim, config.experts.count if config.experts else 1]
        fits = all(0 < n <= 100 for n in numbers) and len(config.layers) > 0
        made = config if fits and data.draw(st.booleans()) else FAMILIES[family]
        file: Any = models.random_file(made, GGMLType.F32, np.random.default_rng(3))
        try:
            backend = CpuBackend(file, config, threads=2, pages=PAGES)
        except (ModelError, ValueError, TypeError):
            return
        with contextlib.suppress(ValueError):  # of too short a context, or too small a vocabulary
            runs(backend)

    check()


@pytest.mark.parametrize("isa", _cpu.available_isas())
@pytest.mark.parametrize("kind", models.TYPES, ids=str)
def test_any_weights_are_multiplied(
    monkeypatch: pytest.MonkeyPatch, isa: str, kind: GGMLType
) -> None:
    """Scales that are no numbers, endless ones and tiny ones, in one row and in all."""
    monkeypatch.setenv("SGLITE_ISA", isa)
    wide = {"width": 256, "ff_width": 256, "heads": 8, "head_dim": 32}
    config = models.experts(**(wide if kind.block[0] == 256 else {}))
    rng = np.random.default_rng()
    for case in ("random", "ones", "tiny", "one row"):
        file: Any = models.random_file(config, kind, rng)
        for name, data in file.bytes_of.items():
            if case == "random":
                file.bytes_of[name] = rng.integers(0, 256, data.size, np.uint8)
            elif case == "ones":
                file.bytes_of[name] = np.full(data.size, 255, np.uint8)
            elif file.tensors[name].type == GGMLType.F32 and case == "tiny":
                file.bytes_of[name] = (data.view(np.float32) * np.float32(1e-38)).view(np.uint8)
            elif case == "one row":
                data[: data.size // file.tensors[name].shape[0]] = 255
        for activations in ("int8", "f32"):
            backend = CpuBackend(file, config, threads=2, pages=PAGES, activations=activations)
            rows = [models.Row([i, 2 * i, 3], 0, [i], 3) for i in range(7)]
            assert backend.forward(models.make_plan(rows)).shape == (21, config.vocab_size)
            backend.close()


@pytest.fixture(scope="module", params=FAMILIES)
def backend(request: pytest.FixtureRequest) -> CpuBackend:
    config = FAMILIES[request.param]
    file: Any = models.random_file(config, GGMLType.Q5_0, np.random.default_rng(5))
    return CpuBackend(file, config, threads=2, pages=PAGES)


@st.composite
def changed_array(draw: st.DrawFn, array: np.ndarray, values: st.SearchStrategy[Any]) -> Any:
    """Other values, length, layout, type or dimensions."""
    kind = draw(st.sampled_from(["one", "one", "length", "strided", "type", "matrix", "none"]))
    if kind == "one" and array.size:
        changed = array.copy()
        changed.reshape(-1)[draw(st.integers(0, array.size - 1))] = draw(values)
        return changed
    if kind == "length":
        some = draw(st.lists(values, max_size=6))
        return np.array(some, array.dtype) if array.ndim == 1 else array[: len(some)]
    if kind == "strided":
        return np.repeat(array, 2, axis=-1)[..., ::2]
    if kind == "type":
        with np.errstate(all="ignore"):  # not every value has one of the other type
            return array.astype(draw(st.sampled_from([np.int64, np.uint32, np.int16, np.float64])))
    if kind == "matrix":
        return array.reshape(1, -1)
    return None


def test_any_plan_is_run_or_refused(backend: CpuBackend) -> None:
    expected = backend.forward(FRESH).copy()

    @settings(max_examples=examples(120), deadline=None)
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        arrays = {name: getattr(PLAN, name) for name in models.ARRAYS}
        names = st.lists(st.sampled_from(models.ARRAYS), min_size=1, max_size=3, unique=True)
        for name in data.draw(names):
            arrays[name] = data.draw(changed_array(arrays[name], any_int32), label=name)
            if arrays[name] is None:
                break
        panels = data.draw(st.none() | st.lists(st.integers(-1, 6) | any_int32, max_size=6))
        head_panels = None if panels is None else np.array(panels, np.int32)
        logits = np.empty((3, 77), np.float32)
        with contextlib.suppress(ValueError, TypeError):
            backend._open_model().forward(*arrays.values(), logits, head_panels)
        assert np.array_equal(backend.forward(FRESH), expected)

    check()


@pytest.mark.parametrize(
    "logits",
    [
        np.empty((2, 77), np.float32),
        np.empty((4, 77), np.float32),
        np.empty((3, 76), np.float32),
        np.empty((3, 77), np.float64),
        np.empty((3, 154), np.float32)[:, ::2],
        np.empty((77, 3), np.float32).T,
        np.empty(3 * 77, np.float32),
        np.broadcast_to(np.float32(0), (3, 77)),
        None,
    ],
    ids=lambda a: "None" if a is None else f"{a.dtype} {a.shape} {a.strides}",
)
def test_logits_of_another_layout_are_refused(backend: CpuBackend, logits: Any) -> None:
    arrays = [getattr(PLAN, name) for name in models.ARRAYS]
    with pytest.raises((ValueError, TypeError)):
        backend._open_model().forward(*arrays, logits)


def test_any_copies_are_made_or_refused(backend: CpuBackend) -> None:
    expected = backend.forward(FRESH).copy()

    @settings(max_examples=examples(60), deadline=None)
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        pages = st.integers(0, PAGES - 1) | any_int32
        pairs = np.array(data.draw(st.lists(st.tuples(pages, pages), max_size=5)), np.int32)
        pairs = pairs.reshape(-1, 2)
        if data.draw(st.booleans()):
            pairs = data.draw(changed_array(pairs, any_int32))
        with contextlib.suppress(ValueError, TypeError):
            backend.copy_pages(pairs)
        assert np.array_equal(backend.forward(FRESH), expected)

    check()


def test_any_pages_are_read_and_written_or_refused(backend: CpuBackend) -> None:
    """Also pages of bytes that are no numbers, which leave no trace in what is computed later."""
    expected = backend.forward(FRESH).copy()
    page = np.zeros(backend.bytes_per_page, np.uint8)

    @settings(max_examples=examples(60), deadline=None)
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        number = data.draw(st.integers(0, PAGES - 1) | any_int32 | st.integers(-(2**63), 2**63 - 1))
        content: Any = np.full_like(page, data.draw(st.integers(0, 255)))
        if data.draw(st.booleans()):
            content = data.draw(changed_array(content, st.integers(0, 255)))
        with contextlib.suppress(ValueError, TypeError):
            backend.read_page(number, content)
        with contextlib.suppress(ValueError, TypeError):
            backend.write_page(number, content)
        assert np.array_equal(backend.forward(FRESH), expected)

    check()
    kept = page.copy()
    backend.write_page(2, np.full_like(page, 7))
    backend.read_page(2, page)
    assert (page == 7).all()
    page.flags.writeable = False
    with pytest.raises(TypeError):
        backend.read_page(2, page)
    with pytest.raises(ValueError, match="bytes"):
        backend.write_page(2, kept[:-1])


VALUES: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(["logits", "temperature", "top_p", "min_p", "uniform"], floats),
    **dict.fromkeys(["top_k", "end_ids", "end_start"], any_int32),
    "mask": st.integers(0, 2**32 - 1),
    "end_rest": st.integers(0, 255),
}


@settings(max_examples=examples(300), deadline=None)
@given(data=st.data(), vectors=st.sampled_from([*_cpu.available_isas(), "auto"]))
def test_any_draw_is_made_or_refused(data: st.DataObject, vectors: str) -> None:
    given_ = arguments(ROWS)
    given_["temperature"][:] = data.draw(st.sampled_from([0.0, 1.0, 1e-40, 3e38]))
    names = st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=3, unique=True)
    for name in data.draw(names):
        if given_[name] is not None:
            given_[name] = data.draw(changed_array(given_[name], VALUES[name]), label=name)
    try:
        ids, logprobs = _cpu.draw(**given_, vectors=vectors)
    except (ValueError, TypeError):
        return
    assert ((ids >= -1) & (ids < 70)).all()
    assert (logprobs <= 0).all()


def test_a_closed_backend_says_so() -> None:
    config = FAMILIES["llama"]
    file: Any = models.random_file(config, GGMLType.F16, np.random.default_rng(5))
    closed = CpuBackend(file, config, threads=1, pages=PAGES)
    closed.close()
    with pytest.raises(ValueError, match="closed"):
        closed.forward(PLAN)
    with pytest.raises(ValueError, match="closed"):
        closed.copy_pages(np.zeros((1, 2), np.int32))
    closed.close()
