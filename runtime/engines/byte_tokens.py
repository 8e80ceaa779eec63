"""The vocabulary of an engine that knows no tokens: bytes, and a few special tokens after them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sglite.grammars import Vocabulary


def byte_vocabulary(special: Sequence[str], ends: Sequence[str]) -> Vocabulary:
    """One token for every byte, then the special tokens, of which `ends` end a text."""
    from sglite.grammars import Vocabulary

    tokens = [bytes([b]) for b in range(256)] + [text.encode() for text in special]
    end_ids = [256 + special.index(text) for text in ends]
    return Vocabulary.from_tokens(tokens, end_ids, range(256, len(tokens)), encode=list)
