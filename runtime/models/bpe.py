"""Builds the byte-pair encoders of GGUF vocabularies out of the `tokenizers` library.

Two spellings of text by tokens exist. `gpt2`: each byte is a printable character (a space is "Ġ"),
merges are in the file. `llama`: text as it is with "▁" for a space, characters without a token
fall back to byte tokens, and merges follow from the vocabulary.

The encoders know no special tokens: they encode plain text. `tokenizers` is imported when the
first one is built.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from sglite.runtime.models.splits import Splits

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Encoder

SPACE = "▁"
"""How `llama` vocabularies spell a space."""


def byte_spelling() -> dict[str, int]:
    """The character by which `gpt2` vocabularies spell each byte: itself where it is printable
    Latin-1, else the next unused one from U+0100."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in set(printable)]
    spelling = {chr(byte): byte for byte in printable}
    return spelling | {chr(0x100 + index): byte for index, byte in enumerate(hidden)}


def byte_level_encoder(
    vocabulary: dict[str, int], merges: Iterable[str], whole: Sequence[str], splits: Splits
) -> Encoder:
    """The encoder of a `gpt2` vocabulary that cuts text by `splits`.

    `merges`: "left right", best first. `whole`: tokens that are cut out of the text before
    anything else. Raises ValueError for merges that do not fit the vocabulary.
    """
    from tokenizers import Regex, pre_tokenizers

    encoder = _encoder(vocabulary, pairs_of(merges), whole, ignore_merges=splits.whole_words)
    cuts = [pre_tokenizers.Split(Regex(cut), "isolated") for cut in splits.patterns]
    to_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    encoder.pre_tokenizer = pre_tokenizers.Sequence([*cuts, to_bytes])
    return encoder


def sentencepiece_encoder(
    vocabulary: dict[str, int], merges: list[tuple[str, str]], whole: Sequence[str]
) -> Encoder:
    """The encoder of a `llama` vocabulary that puts no space before the text.

    `merges`: best first. Raises ValueError for a vocabulary that no encoder can be built from.
    """
    from tokenizers import normalizers

    encoder = _encoder(vocabulary, merges, whole, byte_fallback=True)
    encoder.normalizer = normalizers.Replace(" ", SPACE)
    return encoder


def pairs_of(merges: Iterable[str]) -> list[tuple[str, str]]:
    """The halves of merges that are written "left right"."""
    parted = (merge.partition(" ") for merge in merges)
    return [(left, right) for left, _, right in parted]


def derived_merges(ranked: Iterable[str]) -> list[tuple[str, str]]:
    """Every way to build a token out of two others, best first. `ranked`: the tokens that merging
    may build, the ones to build first before the others.

    The training merged the best pair everywhere, so the order of the tokens is the order of the
    merges; but how a token was put together is not recorded, and text may get to it in any way.
    Of the ways to build one token, the longest left half comes first.
    """
    tokens = list(ranked)
    known = set(tokens)
    return [
        (left, right)
        for token in tokens
        for cut in range(len(token) - 1, 0, -1)
        if (left := token[:cut]) in known and (right := token[cut:]) in known
    ]


def _encoder(
    vocabulary: dict[str, int],
    merges: list[tuple[str, str]],
    whole: Sequence[str],
    **options: bool,
) -> Encoder:
    from tokenizers import AddedToken, Tokenizer, models

    try:
        model = models.BPE(vocab=vocabulary, merges=merges, **options)
    # The library raises bare Exception.
    except Exception as error:
        raise ValueError(str(error)) from error
    encoder = Tokenizer(model)
    encoder.add_tokens([AddedToken(token, normalized=False, special=False) for token in whole])
    return encoder
