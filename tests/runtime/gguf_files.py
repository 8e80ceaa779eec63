"""Writes GGUF files byte by byte, right ones and wrong ones, and remembers where things lie."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import Any

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
_FORMATS = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", BOOL: "?"} | {
    U64: "Q",
    I64: "q",
    F64: "d",
}


def string(text: str | bytes) -> bytes:
    raw = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(raw)) + raw


def value(kind: int, content: Any) -> bytes:
    """Type and value; an array's content is (element kind, elements)."""
    head = struct.pack("<I", kind)
    if kind == STRING:
        return head + string(content)
    if kind == ARRAY:
        element, items = content
        body = (
            b"".join(map(string, items))
            if element == STRING
            else struct.pack(f"<{len(items)}{_FORMATS[element]}", *items)
        )
        return head + struct.pack("<IQ", element, len(items)) + body
    return head + struct.pack(f"<{_FORMATS[kind]}", content)


def pair(key: str | bytes, kind: int, content: Any) -> bytes:
    return string(key) + value(kind, content)


def tensor(name: str | bytes, sizes: list[int], kind: int, offset: int) -> bytes:
    return (
        string(name)
        + struct.pack(f"<I{len(sizes)}Q", len(sizes), *sizes)
        + struct.pack("<IQ", kind, offset)
    )


def file_bytes(
    pairs: list[bytes],
    tensors: list[bytes],
    data: bytes = b"",
    *,
    magic: bytes = b"GGUF",
    version: int = 3,
    alignment: int = 32,
    tensor_count: int | None = None,
    pair_count: int | None = None,
) -> bytes:
    head = magic + struct.pack(
        "<IQQ",
        version,
        len(tensors) if tensor_count is None else tensor_count,
        len(pairs) if pair_count is None else pair_count,
    )
    head += b"".join(pairs) + b"".join(tensors)
    return head + b"\0" * (-len(head) % alignment) + data


def llama_pairs(architecture: str = "llama", **changes: tuple[int, Any] | None) -> list[bytes]:
    """Metadata of a tiny Llama, or another family of the same shapes, with a vocabulary of 7
    tokens. `changes` replace, add or, by None, remove keys; "__" stands for "."."""
    content: dict[str, tuple[int, Any] | None] = {
        "general.architecture": (STRING, architecture),
        f"{architecture}.block_count": (U32, 1),
        f"{architecture}.context_length": (U32, 64),
        f"{architecture}.embedding_length": (U32, 8),
        f"{architecture}.feed_forward_length": (U32, 16),
        f"{architecture}.attention.head_count": (U32, 2),
        f"{architecture}.attention.head_count_kv": (U32, 1),
        f"{architecture}.attention.layer_norm_rms_epsilon": (F32, 1e-5),
        f"{architecture}.rope.freq_base": (F32, 10000.0),
        f"{architecture}.rope.dimension_count": (U32, 4),
        "tokenizer.ggml.model": (STRING, "gpt2"),
        "tokenizer.ggml.pre": (STRING, "smollm"),
        "tokenizer.ggml.tokens": (ARRAY, (STRING, ["<|end|>", "a", "b", "Ġ", "ab", "Ġab", "Ċ"])),
        "tokenizer.ggml.token_type": (ARRAY, (I32, [3, 1, 1, 1, 1, 1, 1])),
        "tokenizer.ggml.merges": (ARRAY, (STRING, ["a b", "Ġ ab"])),
        "tokenizer.ggml.eos_token_id": (U32, 0),
    }
    content |= {key.replace("__", "."): change for key, change in changes.items()}
    return [pair(key, *kept) for key, kept in content.items() if kept is not None]


LLAMA_SHAPES = {
    "token_embd.weight": [8, 7],
    "output_norm.weight": [8],
    "blk.0.attn_norm.weight": [8],
    "blk.0.attn_q.weight": [8, 8],
    "blk.0.attn_k.weight": [8, 4],
    "blk.0.attn_v.weight": [8, 4],
    "blk.0.attn_output.weight": [8, 8],
    "blk.0.ffn_norm.weight": [8],
    "blk.0.ffn_gate.weight": [8, 16],
    "blk.0.ffn_up.weight": [8, 16],
    "blk.0.ffn_down.weight": [16, 8],
}
"""Sizes in the order of the file: columns first."""


def f32_tensors(shapes: dict[str, list[int]]) -> tuple[list[bytes], bytes]:
    """Infos and data of F32 tensors one after the other."""
    infos, data = [], b""
    for index, (name, sizes) in enumerate(shapes.items()):
        infos.append(tensor(name, sizes, 0, len(data)))
        count = 1
        for size in sizes:
            count *= size
        data += struct.pack("<f", index) * count
        data += b"\0" * (-len(data) % 32)
    return infos, data


def tiny_llama(**changes: tuple[int, Any] | None) -> bytes:
    return file_bytes(llama_pairs(**changes), *f32_tensors(LLAMA_SHAPES))


def tiny_experts() -> bytes:
    """The tiny Llama with experts, biases, a window, soft caps and factors of its rotation."""
    layer = "blk.0.ffn_"
    dense = [f"{layer}{part}.weight" for part in ("gate", "up", "down")]
    shapes = {name: sizes for name, sizes in LLAMA_SHAPES.items() if name not in dense}
    shapes |= {
        f"{layer}gate_inp.weight": [8, 3],
        f"{layer}gate_exps.weight": [8, 16, 3],
        f"{layer}up_exps.weight": [8, 16, 3],
        f"{layer}down_exps.weight": [16, 8, 3],
        "rope_freqs.weight": [2],
        "blk.0.attn_q.bias": [8],
        "blk.0.attn_k.bias": [4],
        "blk.0.attn_v.bias": [4],
    }
    pairs = llama_pairs(
        llama__expert_count=(U32, 3),
        llama__expert_used_count=(U32, 2),
        llama__expert_weights_norm=(BOOL, True),
        llama__attention__sliding_window=(U32, 5),
        llama__attn_logit_softcapping=(F32, 50.0),
        llama__final_logit_softcapping=(F32, 30.0),
    )
    return file_bytes(pairs, *f32_tensors(shapes))


def tiny_fused() -> bytes:
    """A Phi-3 of the same shapes: fused matrices, and a rotation for short and long contexts."""
    fused = ["blk.0.attn_q.weight", "blk.0.attn_k.weight", "blk.0.attn_v.weight"]
    fused += ["blk.0.ffn_gate.weight", "blk.0.ffn_up.weight"]
    shapes = {name: sizes for name, sizes in LLAMA_SHAPES.items() if name not in fused}
    shapes |= {
        "rope_factors_long.weight": [2],
        "rope_factors_short.weight": [2],
        "blk.0.attn_qkv.weight": [8, 16],
        "blk.0.ffn_up.weight": [8, 32],
    }
    pairs = llama_pairs(
        "phi3",
        phi3__rope__scaling__attn_factor=(F32, 1.19),
        phi3__rope__scaling__original_context_length=(U32, 16),
        phi3__attention__sliding_window=(U32, 0),
    )
    return file_bytes(pairs, *f32_tensors(shapes))


def write(folder: Path, content: bytes) -> Path:
    path = folder / "test.gguf"
    path.write_bytes(content)
    return path


def sentencepiece(tokens: list[str]) -> dict[str, tuple[int, Any] | None]:
    """Changes that make the vocabulary of the tiny Llama one of kind `llama`: tokens for spaces
    and "\t" are user-defined, <0xNN> are bytes, <x> are control; earlier ones merge first."""
    types = [
        6
        if re.fullmatch("<0x..>", token)
        else 3
        if re.fullmatch("<.*>", token)
        else 4
        if not token.strip(" \t")
        else 1
        for token in tokens
    ]
    return {
        "tokenizer__ggml__model": (STRING, "llama"),
        "tokenizer__ggml__pre": None,
        "tokenizer__ggml__merges": None,
        "tokenizer__ggml__add_space_prefix": (BOOL, False),
        "tokenizer__ggml__tokens": (ARRAY, (STRING, tokens)),
        "tokenizer__ggml__token_type": (ARRAY, (I32, types)),
        "tokenizer__ggml__scores": (ARRAY, (F32, [-float(i) for i in range(len(tokens))])),
        "tokenizer__ggml__bos_token_id": (U32, 0),
    }
