"""From a model's name to a running engine: the one place that puts the parts together."""

from __future__ import annotations

import os
from pathlib import Path

from sglite.errors import ModelError
from sglite.grammars import Vocabulary
from sglite.runtime.backends.cpu import CpuBackend, page_bytes
from sglite.runtime.engine import LocalEngine
from sglite.runtime.engines.base import Engine
from sglite.runtime.models.config import ModelConfig
from sglite.runtime.models.folder import ModelFolder
from sglite.runtime.models.gguf import GGUFFile
from sglite.runtime.models.pull import resolve
from sglite.runtime.models.tensors import TensorFile
from sglite.runtime.models.tokenizer import Tokenizer
from sglite.runtime.models.tokenizer_json import tokenizer_from_folder

DEFAULT_KV_MEMORY = 1 << 30
"""Bytes of KV cache when the user names none, never above a quarter of the machine's memory."""


def load_engine(
    name: str,
    *,
    backend: str = "cpu",
    threads: int | None = None,
    context: int | None = None,
    kv_memory: int | None = None,
    kv_dtype: str = "f16",
    prefix_cache: bool | str | os.PathLike[str] = True,
    weights: str | None = None,
) -> Engine:
    """Build the engine for `name` (a known name, a path or hf:ORG/REPO/FILE).

    context: most tokens of one sequence, None for the model's own limit. kv_memory: bytes of KV
    cache, None for DEFAULT_KV_MEMORY. prefix_cache: whether prefixes are kept, or the folder to
    save them in. weights: None or the type that matrices of safetensors become. Raises ModelError
    for a model that cannot be found, read or run, ValueError for an argument out of range and
    TypeError for one that is no number.
    """
    for argument, value in (("threads", threads), ("context", context), ("kv_memory", kv_memory)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise TypeError(f"{argument} must be a whole number or None, got {value!r}")
    if backend != "cpu":
        raise ModelError(
            f"no backend named {backend!r}; this version has 'cpu', 'scripted' and 'remote'"
        )
    if not isinstance(prefix_cache, bool | str | os.PathLike):
        raise TypeError(
            f"prefix_cache must be True, False or the path of a folder, got {prefix_cache!r}"
        )
    path = resolve(name)
    file: TensorFile
    if path.is_dir():
        file = folder = ModelFolder(path, weights)
        config = folder.config(context)
        tokenizer = tokenizer_from_folder(path, config.vocab_size)
    elif weights is not None:
        raise ValueError(f"weights={weights!r} is for folders of safetensors; {path} has its own")
    else:
        file = gguf = GGUFFile.open(path)
        config = ModelConfig.from_gguf(gguf, context)
        tokenizer = Tokenizer.from_gguf(gguf)
    memory = default_kv_memory() if kv_memory is None else kv_memory
    page = page_bytes(config, kv_dtype)
    if memory < page:
        raise ValueError(f"kv_memory={memory} bytes holds no page; one page takes {page} bytes")
    runner = CpuBackend(file, config, threads=threads, pages=memory // page, kv_dtype=kv_dtype)
    vocabulary = Vocabulary.from_tokens(
        tokenizer.spelled,
        eos_ids=tokenizer.eos_ids,
        special_ids=tokenizer.special_ids,
        encode=tokenizer.encode_bytes,
    )
    engine = LocalEngine(
        name,
        runner,
        tokenizer,
        vocabulary,
        prefix_cache=prefix_cache if isinstance(prefix_cache, bool) else Path(prefix_cache),
        context=context,
    )
    engine.path = path
    return engine


def default_kv_memory() -> int:
    """Bytes for the KV cache: DEFAULT_KV_MEMORY, or a quarter of the memory if that is less."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return DEFAULT_KV_MEMORY
    return min(DEFAULT_KV_MEMORY, total // 4)
