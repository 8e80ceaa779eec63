"""Literal text to ids, and the healing of its end.

All pieces of an Append are one text: it is cut only at special tokens and at generated ids, and
what stands between two of them is encoded in one go, whoever wrote it. Healing takes back the last
tokens of user text where a longer token could span the border to the value; their bytes become a
forced prefix of the hole's grammar.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from sglite.runtime.segment import Piece

if TYPE_CHECKING:
    from sglite.grammars import Vocabulary
    from sglite.runtime import sequence


class Tokenizer(Protocol):
    """What the engine needs of a tokeniser."""

    @property
    def bos_id(self) -> int | None: ...
    @property
    def add_bos(self) -> bool: ...
    @property
    def space_prefix(self) -> bool:
        """Whether text at the beginning, and behind special tokens, has a space in front."""

    @property
    def token_bytes(self) -> Sequence[bytes]: ...
    @property
    def vocab_size(self) -> int: ...
    @property
    def chat_template(self) -> str | None: ...
    @property
    def template_variables(self) -> dict[str, str]: ...
    def encode(self, text: str) -> list[int]:
        """Ids of plain text; never special ones."""

    def encode_bytes(self, data: bytes) -> list[int]:
        """Ids of any bytes."""

    def special_id(self, text: str) -> int | None:
        """The id of the special token that is spelled so, or None."""

    def split_special(self, text: str) -> list[str | int]:
        """The text cut at the texts of special tokens, these as ids."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """ids: int32 array. healable: how many of the last ids lie entirely in user text. opening: the
    same pieces where no id stands before them, if that makes a difference."""

    ids: array[int]
    healable: int
    opening: Prompt | None = None


def encode_pieces(pieces: Sequence[Piece], tokenizer: Tokenizer) -> Prompt:
    """Ids of the pieces. Raises ValueError for a `special` piece that is not one special token,
    and for ids that the model does not have."""
    prompt = _encode(pieces, tokenizer, opens=False)
    if not tokenizer.space_prefix:
        return prompt
    opening = _encode(pieces, tokenizer, opens=True)
    return prompt if opening == prompt else replace(prompt, opening=opening)


def _encode(pieces: Sequence[Piece], tokenizer: Tokenizer, opens: bool) -> Prompt:
    """opens: whether text at the beginning gets the space that some models have learnt."""
    ids = array("i")
    run: list[tuple[str, bool]] = []
    healable = 0

    def end_run() -> None:
        nonlocal healable, opens
        text = "".join(part for part, _ in run)
        healable = 0
        if text:
            encoded = tokenizer.encode(" " + text if opens else text)
            ids.extend(encoded)
            healable = _healable(encoded, run, tokenizer.token_bytes)
            opens = False
        run.clear()

    for piece in pieces:
        if piece.kind == "user":
            run.append((piece.text, True))
            continue
        if piece.kind == "ids":
            end_run()
            ids.extend(_known(piece.ids, tokenizer.vocab_size))
            healable, opens = 0, opens and not piece.ids
            continue
        parts = tokenizer.split_special(piece.text)
        if piece.kind == "special" and not (len(parts) == 1 and isinstance(parts[0], int)):
            raise ValueError(
                f"{piece.text!r} is not the text of one special token of this model; "
                "write it as plain text or use a token from the model's vocabulary"
            )
        for part in parts:
            if isinstance(part, str):
                run.append((part, False))
            else:
                end_run()
                ids.append(part)
                healable, opens = 0, tokenizer.space_prefix
    if run:
        end_run()
    return Prompt(ids, healable)


def _known(ids: Sequence[int], vocab_size: int) -> Sequence[int]:
    for token in ids:
        if not 0 <= token < vocab_size:
            raise ValueError(
                f"id {token} is not in the vocabulary (0 to {vocab_size - 1}); ids stand for text "
                "of the model that generated them"
            )
    return ids


def _healable(ids: list[int], run: list[tuple[str, bool]], token_bytes: Sequence[bytes]) -> int:
    """How many of the last ids lie entirely in the user text at the end of the run."""
    tail: list[str] = []
    for part, is_user in reversed(run):
        if not is_user and part:
            break
        tail.append(part)
    user = "".join(reversed(tail)).encode("utf-8", "surrogatepass")
    count, end = 0, len(user)
    for token in reversed(ids):
        data = token_bytes[token]
        start = end - len(data)
        if not data or start < 0 or user[start:end] != data:
            break
        count, end = count + 1, start
    return count


def heal(
    seq: sequence.Sequence, vocabulary: Vocabulary, token_bytes: Sequence[bytes], longest: int
) -> bytes:
    """Remove the tokens at the end of the state that a longer token could span; their bytes.

    Takes the longest run of last ids, all healable and never the first id of the sequence, whose
    bytes are a strict prefix of some token. `longest`: bytes of the longest token.
    """
    most = min(seq.healable, len(seq.ids) - 1)
    tail, removed, prefix = b"", 0, b""
    for count in range(1, most + 1):
        tail = token_bytes[seq.ids[-count]] + tail
        if len(tail) >= longest:
            break
        if vocabulary.extends(tail):
            removed, prefix = count, tail
    if removed:
        seq.truncate(len(seq.ids) - removed)
        seq.literal = max(0, seq.literal - removed)
        seq.healable -= removed
    return prefix
