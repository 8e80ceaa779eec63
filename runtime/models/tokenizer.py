"""The tokeniser that a GGUF file describes in its metadata.

Making one reads nothing but a few ids; the token bytes, and the encoder of the `tokenizers`
library, are built when first asked for. Text of users and special tokens are kept apart: `encode`
never gives the id of a special token, whatever the text spells; those come from `split_special`
and `special_id` only. It knows nothing of chat templates beyond their text.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sglite.errors import ModelError
from sglite.runtime.models.bpe import (
    SPACE,
    byte_level_encoder,
    byte_spelling,
    derived_merges,
    pairs_of,
    sentencepiece_encoder,
)
from sglite.runtime.models.gguf import GGUFFile, MetadataValue, StringArray
from sglite.runtime.models.splits import SPLITS, Splits

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Encoder

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6

_KINDS = ("gpt2", "llama")

_MARKS = frozenset(
    {"[multimodal]", "<start_of_image>", "<end_of_image>", "<start_of_turn>", "<end_of_turn>"}
)
"""Special tokens that some files list as user-defined ones, next to those of text."""

_END_KEYS = ("eos_token_id", "eot_token_id", "eom_token_id")
_END_TEXTS = (
    "<|im_end|>",
    "<|endoftext|>",
    "<end_of_turn>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end_of_text|>",
    "<|end|>",
)


class Tokenizer:
    """Text to ids and back, for one model. All methods may be called from any thread.

    bos_id: the id that sequences begin with where `add_bos` says so; None if there is none.
    eos_ids: every id that ends a generation, that of the file's eos first. space_prefix: text that
    begins a sequence or stands behind a special token was learnt with a space in front of it.
    """

    bos_id: int | None
    add_bos: bool
    eos_ids: tuple[int, ...]
    space_prefix: bool
    chat_template: str | None

    def __init__(
        self,
        metadata: Mapping[str, MetadataValue],
        source: str,
        splits: Splits | None = None,
    ) -> None:
        """From the metadata of the file that `source` names in errors. `splits`: how text is cut,
        None for what the metadata names. Raises ModelError."""
        self._source = source
        self._metadata = metadata
        self._kind = self._text("tokenizer.ggml.model")
        if self._kind not in _KINDS:
            raise self._error(f"model {self._kind!r}; known are {', '.join(_KINDS)}")
        pieces = self._kind == "llama"
        pre = metadata.get("tokenizer.ggml.pre", "default")
        known = ("default",) if pieces else tuple(SPLITS)
        if not isinstance(pre, str) or pre not in known:
            raise self._error(f"pre {pre!r}; known for {self._kind!r} are {', '.join(known)}")
        self._splits = splits or SPLITS[pre]
        prefix = metadata.get("tokenizer.ggml.add_space_prefix", True)
        self.space_prefix = pieces and prefix is not False
        self._tokens = self._strings("tokenizer.ggml.tokens")
        self._types = self._numbers("tokenizer.ggml.token_type")
        self.bos_id = self._id("bos_token_id")
        add_bos = metadata.get("tokenizer.ggml.add_bos_token", pieces or self._splits.add_bos)
        self.add_bos = add_bos is True and self.bos_id is not None
        template = metadata.get("tokenizer.chat_template")
        self.chat_template = template if isinstance(template, str) else None
        self._eos_id = self._id("eos_token_id")
        named = [self._id(key) for key in _END_KEYS] + [self.special_id(t) for t in _END_TEXTS]
        self.eos_ids = tuple(dict.fromkeys(id_ for id_ in named if id_ is not None))
        self._lock = threading.Lock()
        self._built: Encoder | None = None

    @classmethod
    def from_gguf(cls, gguf: GGUFFile) -> Tokenizer:
        """The tokeniser of an open file, which may be closed afterwards. Raises ModelError."""
        return cls(gguf.metadata, str(gguf.path))

    @property
    def vocab_size(self) -> int:
        return len(self._tokens)

    @cached_property
    def special_ids(self) -> frozenset[int]:
        """Ids that stand for no text: control, unknown and unused tokens, marks of turns and
        media, and the beginning and end of a sequence."""
        types = self._types
        ids = set(np.flatnonzero(np.isin(types, (UNKNOWN, CONTROL, UNUSED))).tolist())
        for id_ in np.flatnonzero(types == USER_DEFINED).tolist():
            text = self._tokens[id_]
            if text in _MARKS or (text.startswith("<|") and text.endswith("|>")):
                ids.add(id_)
        ends = (self._id(key) for key in (*_END_KEYS, "bos_token_id"))
        return frozenset(ids).union(id_ for id_ in ends if id_ is not None)

    @cached_property
    def token_bytes(self) -> list[bytes]:
        """The text of each id as exact bytes, b"" for special ids: together those of a sequence
        are its text, though single ones may hold parts of a character."""
        raw = self._tokens.raw()
        found = self._unspell_bytes(raw) if self._kind == "gpt2" else self._unspell_spaces(raw)
        for id_ in self.special_ids:
            found[id_] = b""
        return found

    @cached_property
    def spelled(self) -> list[bytes]:
        """`token_bytes`, and special ids by the text that stands for them in templates."""
        found = self.token_bytes.copy()
        for id_ in self.special_ids:
            found[id_] = self._tokens[id_].encode()
        return found

    @cached_property
    def template_variables(self) -> dict[str, str]:
        """What a chat template may use besides messages: `bos_token` and `eos_token`."""
        ids = {"bos_token": self.bos_id, "eos_token": self._eos_id}
        return {name: "" if id_ is None else self._tokens[id_] for name, id_ in ids.items()}

    def special_id(self, text: str) -> int | None:
        """The id of the special token that is spelled so, or None."""
        return self._specials.get(text)

    def encode(self, text: str) -> list[int]:
        """Ids of plain text: no special ones, none put in front.

        A character that the vocabulary has no bytes for is left out. Raises UnicodeEncodeError for
        a lone surrogate.
        """
        text.encode()
        ids: list[int] = self._encoder.encode(text, add_special_tokens=False).ids
        return ids

    def encode_bytes(self, data: bytes) -> list[int]:
        """Ids whose bytes are exactly `data`, or as much of its beginning as is whole characters
        that the vocabulary can spell.

        Where `encode` would change the text (a literal "▁" becomes a space), bytes are kept.
        """
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            text = data[: error.start].decode()
        ids = self.encode(text)
        if self.decode_bytes(ids) == text.encode():
            return ids
        return self._encode_exactly(text)

    def split_special(self, text: str) -> list[str | int]:
        """The text of a template cut at its special tokens: the strings between, in order with the
        ids of the tokens. Of tokens that begin at one place the longest counts."""
        present = [special for special in self._specials if special in text]
        if not present:
            return [text] if text else []
        present.sort(key=len, reverse=True)
        pieces = re.split(f"({'|'.join(map(re.escape, present))})", text)
        return [
            self._specials[piece] if index % 2 else piece
            for index, piece in enumerate(pieces)
            if piece
        ]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of the ids, with U+FFFD for bytes that are not UTF-8."""
        return self.decode_bytes(ids).decode("utf-8", "replace")

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """The bytes of the ids, one after the other."""
        return b"".join(map(self.token_bytes.__getitem__, ids))

    @property
    def _encoder(self) -> Encoder:
        if self._built is None:
            with self._lock:
                if self._built is None:
                    self._built = self._build_encoder()
        return self._built

    @cached_property
    def _specials(self) -> dict[str, int]:
        """Ids of the special tokens by their text; the lowest where several have one text."""
        return {self._tokens[id_]: id_ for id_ in sorted(self.special_ids, reverse=True)}

    def _build_encoder(self) -> Encoder:
        texts = list(self._tokens)
        text_like = np.ones(len(texts), bool)
        text_like[list(self.special_ids)] = False
        user_defined = np.flatnonzero((self._types == USER_DEFINED) & text_like).tolist()
        try:
            if self._kind == "gpt2":
                whole = [texts[id_] for id_ in user_defined]
                vocabulary = {text: id_ for id_, text in enumerate(texts)}
                merges = self._strings("tokenizer.ggml.merges")
                return byte_level_encoder(vocabulary, merges, whole, self._splits)
            whole = [texts[id_] for id_ in user_defined if texts[id_].strip(" ")]
            texts = [_respell_spaces(text) for text in texts]
            vocabulary = {text: id_ for id_, text in enumerate(texts)}
            if "tokenizer.ggml.merges" in self._metadata:
                pairs = pairs_of(self._strings("tokenizer.ggml.merges"))
            else:
                pairs = derived_merges(texts[id_] for id_ in self._merge_order(text_like))
            return sentencepiece_encoder(vocabulary, pairs, whole)
        except ValueError as error:
            raise self._error(f"no encoder can be built: {error}") from error

    def _merge_order(self, text_like: NDArray[np.bool_]) -> list[int]:
        """The ids that merging may build, first those to build first: user-defined tokens, then
        by score, equal scores by id."""
        scores = self._numbers("tokenizer.ggml.scores")
        ids = np.flatnonzero(text_like & np.isin(self._types, (NORMAL, USER_DEFINED)))
        order = np.lexsort((ids, -scores[ids], self._types[ids] != USER_DEFINED))
        merged: list[int] = ids[order].tolist()
        return merged

    def _encode_exactly(self, text: str) -> list[int]:
        """Ids of `text` where the encoder would change some of its characters: these in bytes, up
        to the first one that has no ids at all."""
        odd = {char for char in set(text) if self.decode_bytes(self.encode(char)) != char.encode()}
        ids: list[int] = []
        for part in re.split(f"({'|'.join(map(re.escape, odd))})", text):
            if part not in odd:
                ids += self.encode(part)
            elif self._byte_ids.keys() >= set(part.encode()):
                ids += [self._byte_ids[byte] for byte in part.encode()]
            else:
                break
        return ids

    @cached_property
    def _byte_ids(self) -> dict[int, int]:
        """Ids of the tokens of a single byte, by that byte."""
        found: dict[int, int] = {}
        for id_ in np.flatnonzero(self._types == BYTE).tolist():
            found[self.token_bytes[id_][0]] = id_
        return found

    def _unspell_bytes(self, raw: list[bytes]) -> list[bytes]:
        """Bytes of `gpt2` tokens; user-defined ones are spelled as they are."""
        texts = [token.decode("utf-8", "replace") for token in raw]
        for id_ in {*self.special_ids, *np.flatnonzero(self._types == USER_DEFINED).tolist()}:
            texts[id_] = ""
        try:
            # One character is one byte, so all tokens can be translated as one string.
            blob = "".join(texts).translate(_LATIN_1).encode("latin-1")
        except UnicodeEncodeError as error:
            ends = np.cumsum([len(text) for text in texts])
            id_ = int(np.searchsorted(ends, error.start, "right"))
            raise self._error(f"token {id_} {texts[id_]!r} is not spelled in bytes") from None
        found = []
        start = 0
        for token, text in zip(raw, texts, strict=True):
            found.append(blob[start : start + len(text)] if text else token)
            start += len(text)
        return found

    def _unspell_spaces(self, raw: list[bytes]) -> list[bytes]:
        """Bytes of `llama` tokens."""
        separator = b"\xff"  # in no UTF-8 text
        found = separator.join(raw).replace(SPACE.encode(), b" ").split(separator)
        if len(found) != len(raw):
            raise self._error("a token is not UTF-8")
        for id_ in np.flatnonzero(self._types == BYTE).tolist():
            match = re.fullmatch(rb"<0x([0-9A-Fa-f]{2})>", raw[id_])
            if match is None:
                raise self._error(f"byte token {id_} is spelled {self._tokens[id_]!r}, not <0xNN>")
            found[id_] = bytes([int(match[1], 16)])
        return found

    def _error(self, what: str) -> ModelError:
        return ModelError(f"{self._source}: the tokeniser cannot be used: {what}")

    def _text(self, key: str) -> str:
        value = self._metadata.get(key)
        if not isinstance(value, str):
            raise self._error(f"{key} is missing" if value is None else f"{key} is no string")
        return value

    def _id(self, name: str) -> int | None:
        value = self._metadata.get(f"tokenizer.ggml.{name}")
        if value is None:
            return None
        if type(value) is not int or not 0 <= value < self.vocab_size:
            raise self._error(f"{name} is {value!r}, not an id below {self.vocab_size}")
        return value

    def _strings(self, key: str) -> StringArray:
        value = self._metadata.get(key)
        if not isinstance(value, StringArray):
            raise self._error(f"{key} is missing or no array of strings")
        return value

    def _numbers(self, key: str) -> NDArray[np.float64]:
        value = self._metadata.get(key)
        if not isinstance(value, np.ndarray) or len(value) != self.vocab_size:
            raise self._error(f"{key} is missing or not an array of {self.vocab_size} numbers")
        with np.errstate(invalid="ignore"):  # a NaN that signals is a NaN
            return value.astype(np.float64)


_LATIN_1 = {ord(char): chr(byte) for char, byte in byte_spelling().items()}


def _respell_spaces(text: str) -> str:
    """Runs of spaces are stored as they are, other tokens spell a space as "▁"."""
    return text if text.strip(" ") else SPACE * len(text)
