"""How the `tokenizer.json` of a transformers folder becomes the metadata of a tokeniser.

What it says is brought into the keys of GGUF, which `Tokenizer` reads. Two kinds of byte-pair
encoding are known: over bytes (GPT-2 and those after it), cut by patterns, and over characters with
bytes where a character has no token (SentencePiece). Changes of the text before it is cut are left
out, as with GGUF: only spaces are spelled.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from sglite.errors import ModelError
from sglite.runtime.models.folder import read_json
from sglite.runtime.models.gguf import MetadataValue, StringArray
from sglite.runtime.models.splits import BYTE_LEVEL, Splits
from sglite.runtime.models.tokenizer import BYTE, CONTROL, NORMAL, UNUSED, USER_DEFINED, Tokenizer

_END_KEYS = ("eos_token_id", "eot_token_id", "eom_token_id")


def tokenizer_from_folder(folder: Path, vocab_size: int) -> Tokenizer:
    """The tokeniser of a model with `vocab_size` ids. Raises ModelError."""
    reader = _Reader(folder, vocab_size)
    return Tokenizer(reader.metadata(), str(reader.path), reader.splits())


class _Reader:
    def __init__(self, folder: Path, vocab_size: int) -> None:
        self.path = folder / "tokenizer.json"
        self._folder = folder
        self._size = vocab_size
        self._values = read_json(self.path)
        self._said = self._optional("tokenizer_config.json")
        model = self._values.get("model")
        if not isinstance(model, dict) or model.get("type", "BPE") != "BPE":
            kind = model.get("type") if isinstance(model, dict) else model
            raise self._error(f"model is {kind!r}; only BPE is supported")
        self._model: dict[str, Any] = model
        if self._model.get("continuing_subword_prefix") or self._model.get("end_of_word_suffix"):
            raise self._error("model marks parts of words, which is not supported")
        steps = list(_flat(self._values.get("pre_tokenizer"), "pretokenizers"))
        self._cuts = steps
        self._is_bytes = any(step.get("type") == "ByteLevel" for step in steps)
        if not self._is_bytes and not self._model.get("byte_fallback"):
            raise self._error("model has neither bytes nor a fallback to them, not supported")

    def splits(self) -> Splits | None:
        """How text is cut into words; None for SentencePiece."""
        if not self._is_bytes:
            return None
        patterns: list[str] = []
        for step in self._cuts:
            kind = step.get("type")
            if kind == "ByteLevel":
                if step.get("add_prefix_space"):
                    raise self._error("pre_tokenizer.add_prefix_space is not supported")
                if step.get("use_regex", True):
                    patterns.append(BYTE_LEVEL)
            elif kind == "Digits":
                patterns.append(r"\p{N}" if step.get("individual_digits") else r"\p{N}+")
            elif kind == "Split" and step.get("behavior") == "Isolated":
                patterns.append(self._pattern(step.get("pattern")))
            else:
                raise self._error(f"pre_tokenizer {kind!r} is not supported")
        return Splits(tuple(patterns), whole_words=bool(self._model.get("ignore_merges")))

    def metadata(self) -> dict[str, MetadataValue]:
        """By the keys of GGUF."""
        texts, types = self._tokens()
        bos, adds_bos = self._beginning()
        found: dict[str, MetadataValue] = {
            "model": "gpt2" if self._is_bytes else "llama",
            "tokens": _strings(texts),
            "token_type": np.array(types, np.int32),
            "merges": _strings(self._merges()),
            "add_bos_token": adds_bos,
            "add_space_prefix": self._puts_space(),
        }
        if bos is not None:
            found["bos_token_id"] = bos
        found |= dict(zip(_END_KEYS, self._ends(), strict=False))
        metadata = {f"tokenizer.ggml.{key}": value for key, value in found.items()}
        template = self._template()
        if template is not None:
            metadata["tokenizer.chat_template"] = template
        return metadata

    def _tokens(self) -> tuple[list[str], list[int]]:
        """The text and the type of each id."""
        texts: list[str | None] = [None] * self._size
        types = [UNUSED] * self._size
        vocabulary = self._model.get("vocab")
        if not isinstance(vocabulary, dict):
            raise self._error("model.vocab is no object")
        for text, id_ in vocabulary.items():
            self._check_id(id_, text)
            texts[id_] = text
            types[id_] = NORMAL
            if not self._is_bytes and len(text) == 6 and text.startswith("<0x"):
                types[id_] = BYTE
        for token in self._values.get("added_tokens") or ():
            id_, text = token.get("id"), token.get("content")
            self._check_id(id_, text)
            if not isinstance(text, str):
                raise self._error(f"added token {id_} has the text {text!r}")
            texts[id_] = text
            types[id_] = CONTROL if token.get("special") else USER_DEFINED
        return [f"[unused {i}]" if t is None else t for i, t in enumerate(texts)], types

    def _check_id(self, id_: Any, text: Any) -> None:
        if type(id_) is not int or not 0 <= id_ < self._size:
            raise self._error(f"token {text!r} has the id {id_!r}, the model has {self._size}")

    def _merges(self) -> Iterator[str]:
        merges = self._model.get("merges")
        if not isinstance(merges, list):
            raise self._error("model.merges is no list")
        for merge in merges:
            pair = merge.split(" ") if isinstance(merge, str) else merge
            if not isinstance(pair, list) or len(pair) != 2:
                raise self._error(f"merge {merge!r} is no pair")
            yield " ".join(pair)

    def _puts_space(self) -> bool:
        steps = [*_flat(self._values.get("normalizer"), "normalizers"), *self._cuts]
        for step in steps:
            if step.get("type") == "Prepend":
                return True
            if step.get("type") == "Metaspace":
                return bool(step.get("prepend_scheme", "always") != "never")
        return False

    def _beginning(self) -> tuple[int | None, bool]:
        """The id that sequences begin with, and whether text is given it."""
        said = self._said.get("add_bos_token")
        template = self._values.get("post_processor")
        for step in _flat(template, "processors"):
            if step.get("type") != "TemplateProcessing":
                continue
            first = (step.get("single") or [{}])[0].get("SpecialToken")
            if first is not None:
                ids = (step.get("special_tokens") or {}).get(first.get("id"), {}).get("ids")
                if isinstance(ids, list) and len(ids) == 1:
                    self._check_id(ids[0], first.get("id"))
                    return ids[0], said is not False
        bos = self._named("bos_token")
        return bos, said is True and bos is not None

    def _ends(self) -> list[int]:
        """Ids that end a generation, that of the tokeniser first."""
        found = [self._named("eos_token")]
        for name in ("generation_config.json", "config.json"):
            ids = self._optional(name).get("eos_token_id")
            found += ids if isinstance(ids, list) else [ids]
        ends = list(dict.fromkeys(id_ for id_ in found if id_ is not None))
        for id_ in ends:
            self._check_id(id_, "eos_token")
        if len(ends) > len(_END_KEYS):
            raise self._error(f"{len(ends)} ids end a text, {len(_END_KEYS)} are the most")
        return ends

    def _named(self, key: str) -> int | None:
        said = self._said.get(key)
        text = said.get("content") if isinstance(said, dict) else said
        if not isinstance(text, str):
            return None
        for token in self._values.get("added_tokens") or ():
            if token.get("content") == text:
                return int(token["id"])
        id_ = self._model["vocab"].get(text)
        return id_ if isinstance(id_, int) else None

    def _template(self) -> str | None:
        file = self._folder / "chat_template.jinja"
        if file.is_file():
            try:
                return file.read_text(encoding="utf-8")
            except (OSError, ValueError) as error:
                raise ModelError(f"{file}: cannot be read: {error}") from error
        template = self._said.get("chat_template")
        if isinstance(template, list):  # several by name
            named = {t.get("name"): t.get("template") for t in template if isinstance(t, dict)}
            template = named.get("default")
        return template if isinstance(template, str) else None

    def _optional(self, name: str) -> dict[str, Any]:
        path = self._folder / name
        return read_json(path) if path.is_file() else {}

    def _pattern(self, pattern: Any) -> str:
        if isinstance(pattern, dict) and isinstance(pattern.get("Regex"), str):
            return str(pattern["Regex"])
        raise self._error(f"pre_tokenizer cuts by {pattern!r}, which is not supported")

    def _error(self, what: str) -> ModelError:
        return ModelError(f"{self.path}: {what}")


def _flat(step: Any, key: str) -> Iterator[dict[str, Any]]:
    """The steps of a sequence of them, or the one there is."""
    if isinstance(step, dict) and step.get("type") == "Sequence":
        for part in step.get(key) or ():
            yield from _flat(part, key)
    elif isinstance(step, dict):
        yield step


def _strings(texts: Iterable[str]) -> StringArray:
    raw = [text.encode("utf-8", "replace") for text in texts]
    blob = b"".join(struct.pack("<Q", len(data)) + data for data in raw)
    return StringArray(memoryview(blob), 0, len(raw))
