"""The text of `sglite inspect`: metadata, tensors and types of a model, and what the CPU backend
makes of them.

Text from the file is shown as Python would write it wherever it could confuse a terminal.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from math import prod

import numpy as np

from sglite.kernels import _cpu
from sglite.runtime.models.folder import ModelFolder, read_json
from sglite.runtime.models.gguf import GGUFFile, MetadataValue, StringArray
from sglite.runtime.models.tensors import TensorFile

_SHOWN_CHARACTERS = 70
_SHOWN_ELEMENTS = 5


def describe(file: GGUFFile | ModelFolder) -> Iterator[str]:
    """The lines, without line ends."""
    size = sum(path.stat().st_size for path in file.files)
    if isinstance(file, GGUFFile):
        yield f"{file.path}  GGUF version {file.version}  {size:,} bytes"
        rows: list[tuple[str, ...]] = [(_name(k), _value(v)) for k, v in file.metadata.items()]
    else:
        yield f"{file.path}  safetensors in {len(file.files) - 1} files  {size:,} bytes"
        config = read_json(file.path / "config.json")
        rows = [(_name(k), _value(json.dumps(v))) for k, v in config.items()]
    yield ""
    yield f"metadata ({len(rows)})"
    yield from _columns(rows)
    yield ""
    yield f"tensors ({len(file.tensors)})"
    yield from _columns(_tensor_rows(file))
    yield ""
    yield "types"
    yield from _columns(_type_rows(file))


def _tensor_rows(file: TensorFile) -> list[tuple[str, ...]]:
    """A row for tensors that differ only in their layer."""
    alike = Counter(
        (re.sub(r"^blk\.\d+\.", "blk.*.", tensor.name), tensor.type, tensor.shape)
        for tensor in file.tensors.values()
    )
    return [
        (
            _name(name),
            type_.name,
            " x ".join(map(str, shape)),
            f"{count} times" * (count > 1),
            _packed(int(type_), shape),
        )
        for (name, type_, shape), count in alike.items()
    ]


def _packed(type_: int, shape: tuple[int, ...]) -> str:
    """What the CPU backend makes of a tensor: kind, bytes and bits a weight; vectors become f32."""
    formats = _cpu.panel_formats()
    if type_ not in formats:
        return "not supported"
    if len(shape) == 1:
        return f"f32, {4 * shape[0]:,} bytes"
    kind, panel = formats[type_]
    nbytes = -(-prod(shape[:-1]) // 16) * shape[-1] * panel // 256
    return f"{kind}, {nbytes:,} bytes, {8 * nbytes / prod(shape):.2f} bits a weight"


def _type_rows(file: TensorFile) -> list[tuple[str, ...]]:
    count: Counter[str] = Counter()
    weights: Counter[str] = Counter()
    nbytes: Counter[str] = Counter()
    for tensor in file.tensors.values():
        count[tensor.type.name] += 1
        weights[tensor.type.name] += prod(tensor.shape)
        nbytes[tensor.type.name] += tensor.nbytes
    total = (count.total(), weights.total(), nbytes.total())
    rows = [(name, count[name], weights[name], size) for name, size in nbytes.most_common()]
    return [
        (
            name,
            f"{tensors} tensors",
            f"{values:,} weights",
            f"{size:,} bytes",
            f"{8 * size / values:.2f} bits a weight" if values else "",
        )
        for name, tensors, values, size in [*rows, ("all", *total)]
    ]


def _columns(rows: list[tuple[str, ...]]) -> Iterator[str]:
    if not rows:
        return
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        yield f"  {'  '.join(cells)}".rstrip()


def _name(text: str) -> str:
    return text if text.isprintable() else repr(text)


def _value(value: MetadataValue) -> str:
    if isinstance(value, str):
        shown = repr(value[:_SHOWN_CHARACTERS])
        return shown + f"... ({len(value)} characters)" * (len(value) > _SHOWN_CHARACTERS)
    if isinstance(value, StringArray | np.ndarray):
        head = value[:_SHOWN_ELEMENTS]
        items = head if isinstance(head, list) else head.tolist()
        shown = ", ".join(repr(item)[:_SHOWN_CHARACTERS] for item in items)
        more = f", ... ({len(value)} of them)" if len(value) > _SHOWN_ELEMENTS else ""
        return f"[{shown}{more}]"
    return f"{value:,}" if type(value) is int else str(value)
