"""The tokeniser against transformers' reading of the same files.

The encoders are the ones that transformers makes from the files. They are set to read special
tokens as text, which is what `encode` promises. For SmolLM2 transformers does not know the name of
the pre-tokeniser and takes that of GPT-2; here it gets the one that the model was published with,
which splits digits.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from gguf_files import ARRAY, BOOL, F32, I32, STRING, U32, sentencepiece, tiny_llama, write

from sglite.errors import ModelError
from sglite.runtime.models.gguf import GGUFFile
from sglite.runtime.models.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def smollm2(smollm2_path: Path) -> Tokenizer:
    with GGUFFile.open(smollm2_path) as file:
        return Tokenizer.from_gguf(file)


@pytest.fixture(scope="module")
def gemma(gemma_path: Path) -> Tokenizer:
    with GGUFFile.open(gemma_path) as file:
        return Tokenizer.from_gguf(file)


@dataclass(frozen=True)
class Pair:
    """Our tokeniser and the encoder of transformers, for one model."""

    ours: Tokenizer
    theirs: Any
    tokens: list[str]
    """Text of the ids that stand for whole characters."""
    known: frozenset[int]
    """Bytes that have a token of their own."""

    @property
    def is_byte_level(self) -> bool:
        return self.ours.vocab_size == 49152

    def encode(self, text: str) -> list[int]:
        ids: list[int] = self.theirs.encode(text, add_special_tokens=False).ids
        return ids

    def spellable(self, text: str) -> bool:
        return self.known.issuperset(text.encode())

    def held(self, text: str) -> str:
        """The text as ids can hold it: "▁" is a space for a SentencePiece vocabulary."""
        return text if self.is_byte_level else text.replace("▁", " ")


@pytest.fixture(scope="module", params=["smollm2", "gemma"])
def pair(request: pytest.FixtureRequest) -> Pair:
    from tokenizers import pre_tokenizers
    from transformers.integrations.gguf import convert_gguf_tokenizer, get_gguf_tokenizer

    path: Path = request.getfixturevalue(f"{request.param}_path")
    architecture, content, _ = get_gguf_tokenizer(str(path))
    theirs, _ = convert_gguf_tokenizer(architecture, content)
    theirs.encode_special_tokens = True
    if request.param == "smollm2":
        theirs.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Digits(individual_digits=True),
                pre_tokenizers.ByteLevel(add_prefix_space=False),
            ]
        )
    ours = request.getfixturevalue(request.param)
    texts = (raw.decode("utf-8", "replace") for raw in ours.token_bytes if raw)
    return Pair(
        ours,
        theirs,
        tokens=[text for text in texts if "\ufffd" not in text],
        known=frozenset(raw[0] for raw in ours.token_bytes if len(raw) == 1),
    )


_CORPUS = [
    "",
    "Hello, world! It's John's; they'll say we've DON'T.",
    "The quick brown fox jumps over the lazy dog.",
    "Größe, naïve café, Ærøskøbing, Łódź, İstanbul, façade e\u0301 \u1e9e ﬁ",
    "Привет, мир! Съешь же ещё этих мягких французских булок",
    "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία",
    "نص حكيم له سر قاطع وذو شأن عظيم ١٢٣ ۴۵۶",
    "דג סקרן שט בים מאוכזב",
    "ऋषियों को सताने वाले दुष्ट राक्षसों १२३",
    "เป็นมนุษย์สุดประเสริฐเลิศคุณค่า ๑๒๓",
    "いろはにほへと ちりぬるを カタカナ ﾊﾝｶｸ １２３",
    "天地玄黄，宇宙洪荒。𠜎𠜱𠝹",
    "다람쥐 헌 쳇바퀴에 타고파",
    "ამ ქვეყნად հայերեն ᚠᛇᚻ ᏣᎳᎩ ꦗꦮ 𐤀𐤁 𝔘𝔫𝔦𝔠𝔬𝔡𝔢",
    "👍🏽👨‍👩‍👧‍👦🇩🇪🏳️‍🌈☃️ ❤ :-) ¯\\_(ツ)_/¯",
    "0 1 12 123 1234567890 3.14159 1,000,000 -42 1e-9 0x1F ½ Ⅷ ² ٣",
    "a  b   c    d\te\t\tf \t \n\ng\r\nh\r\r \u00a0\u2003\u3000\u200b\ufeff",
    "   leading and trailing   ",
    "\n\n\n\n  \n \n",
    "def f(x: int):\n    if x >= 0:\n        return x ** 2\n\n    # négatif\n    return -x\n",
    '{"name": "Ada", "tags": ["x", "y"], "n": 1.5e3, "ok": true, "s": "\\u00e9\\n"}',
    "<table><tr><td>&nbsp;</td></tr></table> <h1>Title</h1> <div class='a'>",
    "http://example.com/a?b=c&d=%20#e user@example.com C:\\dir\\file.txt",
    "<|im_start|>system\nyou<|im_end|>\n<|endoftext|>",
    "<bos><start_of_turn>user\nhi<end_of_turn><eos><pad><unk><unused7>",
    "<0x41><0x0A> Ġword ▁word ▁▁ Ċ",
    "\x00\x01\x7f\x80\x9f\uffff\ue000\U0010ffff",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" * 5,
    "=" * 300 + "-" * 77 + "#" * 13,
    *(" " * n + "x" for n in (*range(1, 70), 500)),
    *("\n" * n for n in (*range(1, 40), 200)),
    *("\t" * n + "1" for n in (*range(1, 40), 200)),
]


_LATIN = [chr(code) for code in [*range(0x20, 0x7F), *range(0xA0, 0x250)]]
_PARTS = [*"<>|/0x41_▁", "<|im_start|>", "<div>", "</h1>", "<0x41>", "<unused3>", "\n\n"]


def _random_texts(generator: random.Random, tokens: list[str], count: int) -> Iterator[str]:
    """Texts of several kinds, each hard on another part of a tokeniser."""
    pick = generator.choice
    kinds: list[Callable[[], str]] = [
        lambda: pick(_LATIN),
        lambda: chr(generator.randrange(0x250, 0xD800)),
        lambda: chr(generator.randrange(0xE000, 0x110000)),
        lambda: pick(" \t\n\r  \u00a0\u3000ab1"),
        lambda: pick("0123456789 .,-٣५Ⅷ²½a"),
        lambda: pick("abcdefghijklmnopqrstuvwxyz"),
        lambda: pick(tokens),
        lambda: pick(_PARTS),
    ]
    for _ in range(count):
        draw = pick(kinds)
        text = "".join(draw() for _ in range(generator.randrange(1, 50)))
        yield text * pick([1, 1, 1, 7])


def _fresh_generator() -> random.Random:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    return random.Random(seed)


@pytest.mark.model
def test_ids_equal_those_of_transformers(pair: Pair) -> None:
    for text in [*_CORPUS, *_random_texts(_fresh_generator(), pair.tokens, 2000)]:
        ids = pair.ours.encode(text)
        assert ids == pair.encode(text), repr(text)
        assert not pair.ours.special_ids.intersection(ids)
        if pair.spellable(text):
            assert pair.ours.decode(ids) == pair.held(text)
            assert pair.theirs.decode(ids, skip_special_tokens=False) == pair.held(text)


@pytest.mark.model
def test_characters_of_every_byte(pair: Pair) -> None:
    codes = [*range(0x250), *range(0x250, 0xD800, 5), *range(0xE000, 0x110000, 997)]
    assert set("".join(map(chr, codes)).encode()) == set(range(256)) - _NEVER_IN_UTF8
    for code in codes:
        text = f"{chr(code)}a{chr(code)}"
        assert pair.ours.encode(text) == pair.encode(text), code


@pytest.mark.model
def test_long_documents(pair: Pair) -> None:
    words = " ".join(random.Random(3).choices(pair.tokens, k=20_000))
    for text in (words, "\n".join(_CORPUS) * 3, "ab" * 20_000):
        ids = pair.ours.encode(text)
        assert ids == pair.encode(text)
        if pair.spellable(text):
            assert pair.ours.decode(ids) == pair.held(text)


_NEVER_IN_UTF8 = {0xC0, 0xC1, *range(0xF5, 0x100)}


@pytest.mark.model
def test_token_bytes_are_what_ids_decode_to(pair: Pair) -> None:
    ours, theirs = pair.ours, pair.theirs
    assert ours.vocab_size == len(ours.token_bytes) == theirs.get_vocab_size()
    missing = set(range(256)) - pair.known
    # The text that SmolLM2's vocabulary was made from lacks some control characters.
    expected = _NEVER_IN_UTF8 | {4, 6, 19, 20, 22, 29, 0xF1, 0xF2} if pair.is_byte_level else set()
    assert missing == expected
    for id_ in range(0, ours.vocab_size, 3):
        raw = ours.token_bytes[id_]
        assert (raw == b"") == (id_ in ours.special_ids)
        text = raw.decode("utf-8", "replace")
        if raw and "\ufffd" not in text:
            assert theirs.decode([id_]) == text, id_


@pytest.mark.model
def test_bytes_are_encoded_exactly(pair: Pair) -> None:
    ours = pair.ours
    for text in [*_CORPUS, *_random_texts(_fresh_generator(), pair.tokens, 500)]:
        data = text.encode()
        ids = ours.encode_bytes(data)
        assert not ours.special_ids.intersection(ids)
        spelled = ours.decode_bytes(ids)
        assert data.startswith(spelled)
        assert spelled == data or not pair.spellable(data[len(spelled) :].decode()[0])
    marked = "a▁b ▁".encode()
    assert ours.decode_bytes(ours.encode_bytes(marked)) == marked
    assert ours.encode_bytes("é".encode() + "é".encode()[:1]) == ours.encode("é")
    assert ours.encode_bytes(b"a\xffb") == ours.encode("a")
    assert ours.encode_bytes(b"\x80") == []


@pytest.mark.model
def test_special_tokens_of_smollm2(smollm2: Tokenizer) -> None:
    ours = smollm2
    assert (ours.bos_id, ours.add_bos, ours.eos_ids) == (1, False, (2, 0))
    assert ours.special_ids == frozenset(range(17))
    assert ours.special_id("<|im_start|>") == 1
    assert ours.special_id("hello") is None
    assert ours.template_variables == {"bos_token": "<|im_start|>", "eos_token": "<|im_end|>"}
    assert ours.chat_template is not None
    assert "<|im_start|>" in ours.chat_template
    text = "<|im_start|>user\nhi<|im_end|><|im_end|>\n<eos>"
    assert ours.split_special(text) == [1, "user\nhi", 2, 2, "\n<eos>"]
    assert ours.split_special("plain") == ["plain"]
    assert ours.split_special("") == []
    assert ours.decode([1, *ours.encode("hi"), 2]) == "hi"


@pytest.mark.model
def test_special_tokens_of_gemma(gemma: Tokenizer) -> None:
    ours = gemma
    assert (ours.bos_id, ours.add_bos, ours.eos_ids) == (2, True, (1, 106))
    assert ours.chat_template is None
    assert ours.template_variables == {"bos_token": "<bos>", "eos_token": "<eos>"}
    assert {0, 1, 2, 3, 4, 5, 105, 106, 262143} <= ours.special_ids
    text_of_the_user = {ours.encode(text)[0] for text in ("\n", "\n\n", "<div>", "  ", "\t\t")}
    assert len(text_of_the_user) == 5
    assert not text_of_the_user & ours.special_ids
    assert ours.split_special("<bos><start_of_turn>user\n<div>") == [2, 105, "user\n<div>"]
    for mark in ("[multimodal]", "<start_of_image>", "<start_of_turn>"):
        assert ours.special_id(mark) is not None
        assert ours.special_id(mark) not in ours.encode(mark)


@pytest.mark.model
def test_many_threads_build_one_encoder(smollm2_path: Path) -> None:
    with GGUFFile.open(smollm2_path) as file:
        ours = Tokenizer.from_gguf(file)
    barrier = threading.Barrier(8)
    found: list[list[int]] = []

    def work() -> None:
        barrier.wait()
        found.append(ours.encode("The same text, 123.") + ours.encode_bytes(b"and bytes"))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert all(ids == found[0] for ids in found)


def _tiny(folder: Path, **changes: Any) -> Tokenizer:
    with GGUFFile.open(write(folder, tiny_llama(**changes))) as file:
        return Tokenizer.from_gguf(file)


def test_a_tiny_vocabulary_merges_as_its_file_says(tmp_path: Path) -> None:
    ours = _tiny(tmp_path)
    assert ours.token_bytes == [b"", b"a", b"b", b" ", b"ab", b" ab", b"\n"]
    assert ours.encode("ab ab\nba") == [4, 5, 6, 2, 1]
    assert ours.encode("<|end|>ab") == [4]
    assert ours.encode_bytes(b"ab<") == [4]
    assert ours.split_special("ab<|end|>") == ["ab", 0]


def test_a_tiny_vocabulary_of_pieces(tmp_path: Path) -> None:
    tokens = ["<s>", "a", "b", "▁", "ab", "▁ab", "  ", "\t \t", "<0x62>", "<0xC3>", "<0xA9>"]
    ours = _tiny(tmp_path, **sentencepiece(tokens))
    assert ours.token_bytes[5:9] == [b" ab", b"  ", b"\t \t", b"b"]
    assert ours.encode("ab ab  ab") == [4, 5, 6, 4]
    assert ours.encode("a\t \tb") == [1, 7, 2]
    assert ours.encode("<s>é") == [9, 10]
    assert ours.decode([0, 5, 9, 10]) == " abé"
    assert ours.encode_bytes("abéz".encode()) == [4, 9, 10]


def test_the_longest_special_token_counts(tmp_path: Path) -> None:
    tokens = ["<s>", "<s><s>", "<|x|>", "a", "b", "Ġ", "y"]
    ours = _tiny(
        tmp_path,
        tokenizer__ggml__tokens=(ARRAY, (STRING, tokens)),
        tokenizer__ggml__token_type=(ARRAY, (I32, [3, 3, 4, 1, 1, 1, 4])),
        tokenizer__ggml__merges=(ARRAY, (STRING, [])),
    )
    assert ours.split_special("<s><s><s>a<|x|>y") == [1, 0, "a", 2, "y"]
    assert ours.special_ids == {0, 1, 2}
    assert ours.encode("aya") == [3, 6, 3]


def test_lone_surrogates_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnicodeEncodeError):
        _tiny(tmp_path).encode("a\ud800")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": None}, "tokenizer.ggml.model is missing"),
        ({"model": (STRING, "rwkv")}, "model 'rwkv'; known are gpt2, llama"),
        ({"pre": (STRING, "chameleon")}, "pre 'chameleon'; known for 'gpt2' are gpt-2, smollm, "),
        ({"pre": (U32, 1)}, "pre 1; known for 'gpt2' are"),
        ({"pre": (ARRAY, (U32, [1, 2]))}, "known for 'gpt2' are"),
        ({"model": (STRING, "llama")}, "pre 'smollm'; known for 'llama' are default"),
        ({"tokens": None}, "tokens is missing"),
        ({"tokens": (ARRAY, (U32, [1, 2]))}, "tokens is missing or no array of strings"),
        ({"token_type": None}, "token_type is missing"),
        ({"token_type": (ARRAY, (I32, [1]))}, "not an array of 7 numbers"),
        ({"eos_token_id": (U32, 7)}, "eos_token_id is 7, not an id below 7"),
        ({"bos_token_id": (F32, 1.0)}, "bos_token_id is 1.0"),
        ({"merges": None}, "merges is missing"),
        ({"merges": (ARRAY, (STRING, ["a z"]))}, "no encoder can be built"),
        ({"merges": (ARRAY, (STRING, ["ab"]))}, "no encoder can be built"),
        (
            {"tokens": (ARRAY, (STRING, ["<|end|>", "a", "b", "Ġ", "ab", "漢", "Ċ"]))},
            "token 5 '漢'",
        ),
    ],
)
def test_what_is_wrong_is_named(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    changes = {f"tokenizer__ggml__{key}": change for key, change in changes.items()}

    def use() -> None:
        ours = _tiny(tmp_path, **changes)
        assert ours.token_bytes
        ours.encode("ab")

    with pytest.raises(ModelError) as caught:
        use()
    assert message in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_a_flag_puts_the_bos_in_front(tmp_path: Path) -> None:
    ours = _tiny(
        tmp_path,
        tokenizer__ggml__add_bos_token=(BOOL, True),
        tokenizer__ggml__bos_token_id=(U32, 0),
    )
    assert (ours.bos_id, ours.add_bos) == (0, True)
    assert not _tiny(tmp_path, tokenizer__ggml__add_bos_token=(BOOL, True)).add_bos
