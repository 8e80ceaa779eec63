"""How `gpt2` vocabularies cut text into words before they merge bytes, by the names in GGUF.

A word is what a pattern matches or what lies between matches; several patterns cut one after the
other. It knows nothing of the library that runs them.
"""

from __future__ import annotations

from dataclasses import dataclass

_SHORT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_LOWER_END = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
_UPPER_START = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"

BYTE_LEVEL = rf"{_GPT2}|\s+"
"""How the byte level of the `tokenizers` library cuts where nothing else does."""


@dataclass(frozen=True, slots=True)
class Splits:
    """patterns: in the syntax of the `tokenizers` library. whole_words: a word that is a token is
    not built by merging. add_bos: where the file does not say it."""

    patterns: tuple[str, ...]
    whole_words: bool = False
    add_bos: bool = False


_LLAMA3 = rf"{_SHORT}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|"
_QWEN2 = _LLAMA3.replace("{1,3}", "")
_MARKS = r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|"
_TEKKEN = rf"{_LOWER_END}|{_UPPER_START}|\p{{N}}{_MARKS}"
_GPT4O = rf"{_LOWER_END}{_SHORT}?|{_UPPER_START}{_SHORT}?|\p{{N}}{{1,3}}{_MARKS}"

_KINDS = {
    "gpt-2": Splits((BYTE_LEVEL,)),
    "smollm": Splits((r"\p{N}", BYTE_LEVEL)),
    "default": Splits((r"[\p{P}\$\+<=>\^~\|]+", _GPT2, r"\p{N}+", "[0-9][0-9][0-9]")),
    "llama-bpe": Splits((_LLAMA3 + _SPACES,), whole_words=True, add_bos=True),
    "dbrx": Splits((_LLAMA3 + _SPACES,)),
    "qwen2": Splits((_QWEN2 + _SPACES,)),
    "tekken": Splits((_TEKKEN + _SPACES,), whole_words=True, add_bos=True),
    "gpt-4o": Splits((_GPT4O + _SPACES,)),
}

SPLITS = _KINDS | {
    "llama3": _KINDS["llama-bpe"],
    "llama-v3": _KINDS["llama-bpe"],
    "deepseek-r1-qwen": _KINDS["qwen2"],
}
"""`tokenizer.ggml.pre` -> how the text is cut; files that name none mean `default`."""
