"""Vocabularies of every kind against byte-pair encoding by its definition.

The definition is written here anew, over the `regex` package; the patterns are those that
transformers and llama.cpp know for the names in GGUF. The vocabulary is trained on a few texts.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from functools import cache
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest
import regex
from gguf_files import ARRAY, BOOL, I32, STRING, U32, sentencepiece, tiny_llama, write
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as Encoder
from tokenizers import models, pre_tokenizers, trainers
from transformers.integrations.gguf.gguf_tokenizer_mapping import (
    GGUF_PRE_TOKENIZER_SPLITS,
    convert_gguf_tokenizer,
)

from sglite.runtime.models.bpe import byte_spelling
from sglite.runtime.models.gguf import GGUFFile
from sglite.runtime.models.splits import SPLITS
from sglite.runtime.models.tokenizer import Tokenizer
from sglite.runtime.prompt import encode_pieces
from sglite.runtime.segment import Piece

CORPUS = [
    "Hello, world! It's John's; they'll say WE'VE DON'T. Isn't HTTPServer camelCase ABCdef?",
    "def f(x: int):\n    if x >= 0:\n        return x ** 2\n\n    # négatif\r\n\treturn -x\n",
    "0 1 12 123 1234567890 3.14159 1,000,000 -42 1e-9 ½ Ⅷ ² ٣٤٥ 1234 12345 $5 <a href='x'/>\n\n",
    "Größe naïve café e\u0301 Привет мир Ξεσκε नमस्ते ภาษา 天地玄黄 다람쥐 👍🏽 ſ K ǅ ʰ",
    "a  b   c    d\te\t\tf \t \n\ng\r\nh \u00a0\u2003\u3000x   ",
]

_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"
PATTERNS = {name: (pattern,) for name, pattern in GGUF_PRE_TOKENIZER_SPLITS.items()} | {
    "gpt-2": (_GPT2 + r"|\s+",),
    "smollm": (r"\p{N}", _GPT2 + r"|\s+"),
    "default": (r"[\p{P}\$\+<=>\^~\|]+", _GPT2, r"\p{N}+", "[0-9][0-9][0-9]"),
}
WHOLE_WORDS = ("llama-bpe", "llama3", "llama-v3", "tekken")

# What a later Unicode assigns may be a letter to one library and none to the other.
ASSIGNED = st.characters(exclude_categories=("Cs", "Cn"))
SPELLING = {byte: char for char, byte in byte_spelling().items()}


@cache
def trained() -> tuple[dict[str, int], list[str]]:
    """Ids of the tokens, and the merges. Longer words are tokens that no merge builds."""
    encoder = Encoder(models.BPE())
    encoder.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    encoder.train_from_iterator(
        [word for text in CORPUS for word in regex.findall(r" ?\w+|\W", text)] * 3,
        trainers.BpeTrainer(
            vocab_size=430,
            special_tokens=["<|end|>"],
            initial_alphabet=alphabet,
            show_progress=False,
        ),
    )
    merges = [" ".join(pair) for pair in json.loads(encoder.to_str())["model"]["merges"]]
    vocabulary = encoder.get_vocab()
    for word in ("Ġhello", "123", "HTTP", "Ġworlds"):
        vocabulary.setdefault(word, len(vocabulary))
    return vocabulary, merges


def pieces(text: str, patterns: tuple[str, ...]) -> list[str]:
    """Matches of each pattern, and what lies between them, within the pieces of the one before."""
    parts = [text]
    for pattern in patterns:
        found = []
        for part in parts:
            end = 0
            for match in regex.finditer(pattern, part):
                found += [part[end : match.start()], match[0]]
                end = match.end()
            found.append(part[end:])
        parts = [part for part in found if part]
    return parts


def encode(text: str, name: str) -> list[int]:
    vocabulary, merges = trained()
    ranks = {tuple(merge.split(" ")): rank for rank, merge in enumerate(merges)}
    ids = []
    for piece in pieces(text, PATTERNS[name]):
        word = [SPELLING[byte] for byte in piece.encode()]
        if name in WHOLE_WORDS and "".join(word) in vocabulary:
            word = ["".join(word)]
        while True:
            pairs = [(ranks.get(pair, len(ranks)), i) for i, pair in enumerate(pairwise(word))]
            rank, at = min(pairs, default=(len(ranks), 0))
            if rank == len(ranks):
                break
            word[at : at + 2] = [word[at] + word[at + 1]]
        ids += [vocabulary[part] for part in word]
    return ids


def tokenizer(folder: Path, name: str | None, **changes: Any) -> Tokenizer:
    vocabulary, merges = trained()
    tokens = sorted(vocabulary, key=vocabulary.__getitem__)
    content = {
        "pre": None if name is None else (STRING, name),
        "tokens": (ARRAY, (STRING, tokens)),
        "token_type": (ARRAY, (I32, [3] + [1] * (len(tokens) - 1))),
        "merges": (ARRAY, (STRING, merges)),
    } | changes
    named = {f"tokenizer__ggml__{key}": value for key, value in content.items()}
    with GGUFFile.open(write(folder, tiny_llama(**named))) as file:
        return Tokenizer.from_gguf(file)


def random_texts(count: int) -> Iterator[str]:
    seed = random.randrange(1 << 32)
    print("seed", seed)
    generator = random.Random(seed)
    letters = "".join(CORPUS)
    for _ in range(count):
        start = generator.randrange(len(letters))
        text = letters[start : start + generator.randrange(30)]
        yield text + "".join(generator.choices(letters, k=generator.randrange(20)))


@pytest.mark.parametrize("name", SPLITS)
def test_every_kind_of_split(name: str, tmp_path: Path) -> None:
    ours = tokenizer(tmp_path, name)
    for text in [*CORPUS, *random_texts(300)]:
        ids = ours.encode(text)
        assert ids == encode(text, name), repr(text)
        assert ours.decode(ids) == text


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(SPLITS)), st.text(ASSIGNED, max_size=30))
def test_any_text(tmp_path_factory: pytest.TempPathFactory, name: str, text: str) -> None:
    if name not in _MADE:
        _MADE[name] = tokenizer(tmp_path_factory.mktemp("any"), name)
    ids = _MADE[name].encode(text)
    assert ids == encode(text, name)
    assert _MADE[name].decode(ids) == text


_MADE: dict[str, Tokenizer] = {}


def test_kinds_differ() -> None:
    """Otherwise the comparison would say nothing of a name."""
    text = " ".join(CORPUS) + " WORLDS'LL 12345 worlds/\n"
    kinds = {name: tuple(encode(text, name)) for name in SPLITS}
    same = {"llama3": "llama-bpe", "llama-v3": "llama-bpe", "deepseek-r1-qwen": "qwen2"}
    assert {name: kinds[name] for name in same} == {a: kinds[b] for a, b in same.items()}
    assert len(set(kinds.values())) == len(kinds) - len(same)


def test_a_file_without_a_name_means_default(tmp_path: Path) -> None:
    assert tokenizer(tmp_path, None).encode(CORPUS[2]) == encode(CORPUS[2], "default")


@pytest.mark.parametrize(("name", "starts"), [("llama-bpe", True), ("qwen2", False)])
def test_what_begins_a_text_where_the_file_does_not_say_it(
    name: str, starts: bool, tmp_path: Path
) -> None:
    bos = {"bos_token_id": (U32, 1)}
    assert tokenizer(tmp_path, name, **bos).add_bos == starts
    assert not tokenizer(tmp_path, name).add_bos
    said = {"add_bos_token": (BOOL, not starts)}
    assert tokenizer(tmp_path, name, **bos, **said).add_bos != starts


PREFIXED = ["<s>", "a", "b", "▁", "ab", "▁ab", "▁▁", "<0x0A>"]


@pytest.mark.parametrize("said", [True, False, None])
def test_a_space_in_front_of_the_text(said: bool | None, tmp_path: Path) -> None:
    """`encode` itself never adds one: texts are put together before."""
    changes = sentencepiece(PREFIXED)
    changes["tokenizer__ggml__add_space_prefix"] = None if said is None else (BOOL, said)
    with GGUFFile.open(write(tmp_path, tiny_llama(**changes))) as file:
        ours = Tokenizer.from_gguf(file)
    assert ours.space_prefix == (said is not False)
    assert ours.encode("ab ab") == [4, 5]
    assert ours.token_bytes[5] == b" ab"


def test_prefixed_texts_are_those_of_transformers(tmp_path: Path) -> None:
    changes = sentencepiece(PREFIXED)
    changes["tokenizer__ggml__add_space_prefix"] = None
    path = write(tmp_path, tiny_llama(**changes))
    with GGUFFile.open(path) as file:
        ours = Tokenizer.from_gguf(file)
    content = {
        "tokenizer_type": "llama",
        "tokens": PREFIXED,
        "scores": [-float(i) for i in range(len(PREFIXED))],
        "token_type": [3, 1, 1, 1, 1, 1, 1, 6],
        "bos_token_id": 0,
        "eos_token_id": 0,
        "unk_token_id": 0,
    }
    theirs, _ = convert_gguf_tokenizer("phi3", content)
    for text in (
        "ab",
        " ab",
        "a  b\nab",
        "b ab   ba",
        *("".join(t) for t in product("ab ", repeat=4)),
    ):
        prompt = encode_pieces([Piece(text)], ours)
        assert prompt.opening is not None
        assert list(prompt.opening.ids) == theirs.encode(text, add_special_tokens=False).ids, text
