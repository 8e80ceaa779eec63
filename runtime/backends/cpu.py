"""The CPU backend: a model of a file on the native kernels.

It checks the file's tensors against the config, packs them once, and makes one native call a step.
It knows nothing of sequences, of who owns a page, or of how a file is read.
"""

from __future__ import annotations

import mmap
import os
import sys
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sglite.errors import ModelError
from sglite.kernels import _cpu
from sglite.runtime.backends.base import Backend, DrawRequest, Float32
from sglite.runtime.models.config import Experts, ModelConfig
from sglite.runtime.models.file_digest import digest_of
from sglite.runtime.models.tensors import TensorFile, model_tensors
from sglite.runtime.plan import PAGE_SIZE, StepPlan

_KV_BYTES = {"f16": 2, "f32": 4}
_MOST_PANELS = 0.75  # of all
_ACTIVATIONS = ("int8", "f32")

ISA_VARIABLE = "SGLITE_ISA"
"""Environment variable that forces an instruction set: avx512, avx2 or portable."""


def page_bytes(config: ModelConfig, kv_dtype: str = "f16") -> int:
    """Bytes of K and V of one page over all layers. Raises ValueError for an unknown dtype."""
    if kv_dtype not in _KV_BYTES:
        raise ValueError(f"kv_dtype must be one of {', '.join(_KV_BYTES)}, got {kv_dtype!r}")
    values = 2 * len(config.layers) * config.kv_heads * config.head_dim * PAGE_SIZE
    return values * _KV_BYTES[kv_dtype]


def granted_cores() -> int:
    """Cores that this process may use: its affinity, cut by the quota of its control group."""
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    return max(1, min([cores, *_cgroup_quotas()]))


def _cgroup_quotas() -> Iterator[int]:
    root = Path("/sys/fs/cgroup")
    candidates = [
        (root / "cpu.max",),
        (root / "cpu/cpu.cfs_quota_us", root / "cpu/cpu.cfs_period_us"),
    ]
    for paths in candidates:
        try:
            quota, period = " ".join(path.read_text() for path in paths).split()
            if quota not in ("max", "-1"):
                yield max(1, int(quota) // int(period))
        except (OSError, ValueError, ZeroDivisionError):
            continue  # no such file, or one that says nothing of a quota


def _let_go(arrays: Iterable[npt.NDArray[np.uint8]]) -> None:
    """Give the pages of a mapped file back to the system, which reads again what is used again.

    The weights have been copied, so all but some rows of the embedding would lie there twice.
    """
    maps: dict[int, mmap.mmap] = {}
    for array in arrays:
        buffer: object = array.base
        while isinstance(buffer, np.ndarray):
            buffer = buffer.base
        # A writable mapping may hold what its file does not.
        if isinstance(buffer, memoryview) and buffer.readonly:
            owner: object = buffer.obj
            if isinstance(owner, mmap.mmap):
                maps[id(owner)] = owner
    for mapping in maps.values():
        if hasattr(mapping, "madvise"):
            mapping.madvise(mmap.MADV_DONTNEED)


class CpuBackend(Backend):
    """Weights and KV pages of one model in this process's memory.

    `threads=None` takes the cores granted to the process. `pages` KV pages are reserved; the system
    hands their memory out when they are first written. kv_dtype: "f16" or "f32"; activations:
    "int8", or "f32" for comparisons, which multiplies the dequantised weights in floating point.
    Raises ModelError for a file that does not match its config and ValueError for an argument out
    of range.
    """

    def __init__(
        self,
        file: TensorFile,
        config: ModelConfig,
        *,
        threads: int | None = None,
        pages: int,
        kv_dtype: str = "f16",
        activations: str = "int8",
    ) -> None:
        self.bytes_per_page = page_bytes(config, kv_dtype)
        if activations not in _ACTIVATIONS:
            raise ValueError(
                f"activations must be one of {', '.join(_ACTIVATIONS)}, got {activations!r}"
            )
        if pages < 1:
            raise ValueError(f"pages must be at least 1, got {pages}")
        threads = granted_cores() if threads is None else threads
        if not 1 <= threads <= 256:
            raise ValueError(f"threads must be in 1..256, got {threads}")
        isa = os.environ.get(ISA_VARIABLE, "")
        if isa and isa not in _cpu.available_isas():
            known = ", ".join(_cpu.available_isas())
            raise ValueError(f"{ISA_VARIABLE}={isa}: this machine has {known}")
        tensors = [
            (name, int(kind), shape, data)
            for name, kind, shape, data in model_tensors(file, config)
        ]
        experts = config.experts or Experts(0, 0, False)
        ropes = list(dict.fromkeys(layer.rope for layer in config.layers if layer.rope))
        try:
            self._model: _cpu.Model | None = _cpu.Model(
                tensors,
                vocab_size=config.vocab_size,
                context_length=config.context_length,
                width=config.width,
                ff_width=config.ff_width,
                heads=config.heads,
                kv_heads=config.kv_heads,
                head_dim=config.head_dim,
                norm_epsilon=config.norm_epsilon,
                embedding_scale=config.embedding_scale,
                attention_scale=config.attention_scale,
                attention_cap=config.attention_cap or 0.0,
                logit_cap=config.logit_cap or 0.0,
                experts=experts.count,
                experts_used=experts.used,
                normalise_experts=experts.normalised,
                activation=config.activation,
                rope_interleaved=config.rope_interleaved,
                qkv_bias=config.qkv_bias,
                qk_norm=config.qk_norm,
                post_norms=config.post_norms,
                tied_output=config.tied_output,
                windows=[layer.window or 0 for layer in config.layers],
                ropes=[ropes.index(layer.rope) if layer.rope else -1 for layer in config.layers],
                frequencies=[rope.frequencies for rope in ropes],
                magnitudes=[rope.magnitude for rope in ropes],
                pages=pages,
                threads=threads,
                half_kv=kv_dtype == "f16",
                int8_activations=activations == "int8",
                isa=isa,
            )
        except ValueError as error:
            raise ModelError(f"{file.path}: {error}") from error
        _let_go(data for _, _, _, data in tensors)
        self._files = tuple(file.files)
        kinds = [(name, kind) for name, kind, _, _ in tensors]
        self._numerics = (config, kv_dtype, activations, kinds)
        self.isa = self._model.isa
        self.threads = threads
        self.vocab_size = config.vocab_size
        self.pages_total = pages
        self.max_context = config.context_length
        self._logits = np.empty((0, config.vocab_size), np.float32)

    def forward(self, plan: StepPlan) -> Float32:
        """Logits float32 [L, V]; see Backend. Raises ValueError for an inconsistent plan."""
        wanted = len(plan.logit_tokens)
        if wanted > len(self._logits):
            self._logits = np.zeros((wanted, self.vocab_size), np.float32)
        logits = self._logits[:wanted]
        self._open_model().forward(
            plan.tokens,
            plan.query_start,
            plan.context_start,
            plan.pages,
            plan.page_start,
            plan.logit_tokens,
            logits,
            None if plan.logit_mask is None else self._head_panels(plan.logit_mask),
        )
        return logits

    def _head_panels(self, mask: npt.NDArray[np.uint32]) -> npt.NDArray[np.int32] | None:
        """The panels of 16 rows of the output matrix that hold a wanted id; None for most of them,
        which are faster read one after the other."""
        halves = mask.view(np.uint16)
        if sys.byteorder == "big":
            halves = halves.reshape(-1, 2)[:, ::-1]
        panels = np.flatnonzero(halves).astype(np.int32)
        return panels if 0 < len(panels) <= _MOST_PANELS * self.vocab_size / 16 else None

    def copy_pages(self, pairs: npt.NDArray[np.int32]) -> None:
        """Copy whole pages: int32 [N, 2] of (source, destination)."""
        self._open_model().copy_pages(pairs)

    def page_identity(self, memo: Path) -> bytes:
        """See Backend: model file, config, types, instruction set and the kernels themselves."""
        kernels = digest_of(Path(_cpu.__file__), memo)
        files = [digest_of(path, memo) for path in self._files]
        parts = (files, kernels, self.isa, PAGE_SIZE, *self._numerics)
        return blake2b(repr(parts).encode(), digest_size=32).digest()

    def read_page(self, page: int, out: npt.NDArray[np.uint8]) -> None:
        """Copy a page to uint8 [bytes_per_page]."""
        self._open_model().read_page(page, out)

    def write_page(self, page: int, data: npt.NDArray[np.uint8]) -> None:
        """Copy to a page what `read_page` gave, also in a backend of the same identity."""
        self._open_model().write_page(page, data)

    def draw(self, logits: Float32, request: DrawRequest) -> tuple[npt.NDArray[np.int32], Float32]:
        """Draw one outcome a row; see Backend."""
        return _cpu.draw(
            logits,
            request.mask,
            request.temperature,
            request.top_p,
            request.top_k,
            request.min_p,
            request.uniform,
            request.end_ids,
            request.end_start,
            request.end_rest,
            self.isa,
        )

    def close(self) -> None:
        """Free weights, pages and threads. Calling it twice is fine."""
        self._model = None

    def _open_model(self) -> _cpu.Model:
        if self._model is None:
            raise ValueError("the backend is closed")
        return self._model
