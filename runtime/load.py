"""From a model's name to a running engine: the one place that puts the parts together."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sglite.errors import ModelError
from sglite.runtime.engines.base import Engine

DEFAULT_KV_MEMORY = 1 << 30
"""Bytes of KV cache when the user names none, never above a quarter of the machine's memory."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """An engine and the file that its weights come from (None for an engine without one)."""

    engine: Engine
    path: Path | None


def load_engine(
    name: str,
    *,
    backend: str = "cpu",
    threads: int | None = None,
    context: int | None = None,
    kv_memory: int | None = None,
    kv_dtype: str = "f16",
    prefix_cache: bool = True,
    script: Any = None,
) -> Loaded:
    """Build the engine for `name` (a known name, a path or hf:ORG/REPO/FILE).

    context: most tokens of one sequence, None for the model's own limit. kv_memory: bytes of KV
    cache. kv_dtype: "f16" or "f32". Raises ModelError for a model that cannot be found, read or
    run, and ValueError for an argument out of range.
    """
    if backend == "scripted":
        from sglite.runtime.engines.scripted import ScriptedEngine

        return Loaded(ScriptedEngine(name, script=script), None)
    if backend != "cpu":
        raise ModelError(f"no backend named {backend!r}; this version has 'cpu' and 'scripted'")
    if script is not None:
        raise ValueError("script= belongs to backend='scripted'")
    return _load_cpu(name, threads, context, kv_memory, kv_dtype, prefix_cache)


def _load_cpu(
    name: str,
    threads: int | None,
    context: int | None,
    kv_memory: int | None,
    kv_dtype: str,
    prefix_cache: bool,
) -> Loaded:
    from sglite.grammars import Vocabulary
    from sglite.runtime.backends.cpu import CpuBackend, page_bytes
    from sglite.runtime.engine import LocalEngine
    from sglite.runtime.models.config import ModelConfig
    from sglite.runtime.models.gguf import GGUFFile
    from sglite.runtime.models.pull import resolve
    from sglite.runtime.models.tokenizer import Tokenizer

    path = resolve(name)
    gguf = GGUFFile.open(path)
    config = ModelConfig.from_gguf(gguf)
    tokenizer = Tokenizer.from_gguf(gguf)
    kv_bytes = default_kv_memory() if kv_memory is None else kv_memory
    pages = kv_bytes // page_bytes(config, kv_dtype)
    if pages < 1:
        raise ValueError(
            f"kv_memory={kv_bytes} bytes holds no page; one page of {name} takes "
            f"{page_bytes(config, kv_dtype)} bytes"
        )
    runner = CpuBackend(gguf, config, threads=threads, pages=pages, kv_dtype=kv_dtype)
    vocabulary = Vocabulary.from_tokens(
        tokenizer.token_bytes,
        eos_ids=tokenizer.eos_ids,
        special_ids=tokenizer.special_ids,
        encode=tokenizer.encode_bytes,
    )
    engine = LocalEngine(
        name, runner, tokenizer, vocabulary, prefix_cache=prefix_cache, context=context
    )
    return Loaded(engine, path)


def default_kv_memory() -> int:
    """Bytes for the KV cache: DEFAULT_KV_MEMORY, or a quarter of the memory if that is less."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return DEFAULT_KV_MEMORY
    return min(DEFAULT_KV_MEMORY, total // 4)
