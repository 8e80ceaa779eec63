"""The token byte strings of a tokeniser, as grammars see them: a trie, and which ids are text.

It knows nothing of tokenisers; `encode` is handed in for canonical forced tokens.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sglite.grammars import _native

if TYPE_CHECKING:
    from sglite.grammars.matcher import Grammar

Encode = Callable[[bytes], Sequence[int]]

_COMPILED_KEPT = 256
_COMPILED_BYTES = 512 << 20


class Vocabulary:
    """Token ids and the bytes that each stands for. Make one with `from_tokens`; immutable.

    `eos_ids`: ids that end a sequence, ascending. `text_mask`: uint32 `[mask_words]`, the bits of
    all ids that have bytes and are neither special nor eos. `encode`: text as UTF-8 to ids, or
    None.
    """

    def __init__(
        self,
        native: _native.Vocabulary,
        tokens: list[bytes],
        eos_ids: tuple[int, ...],
        special_ids: frozenset[int],
        encode: Encode | None,
    ) -> None:
        self.native = native
        self.size = native.size
        self.mask_words = native.mask_words
        self.eos_ids = eos_ids
        self.special_ids = special_ids
        self.encode = encode
        self.text_mask: NDArray[np.uint32] = native.text_mask()
        self.text_mask.flags.writeable = False
        self._tokens = tokens
        self._compiled: OrderedDict[Hashable, Future[Grammar]] = OrderedDict()
        self._compiled_bytes = _COMPILED_BYTES
        self._lock = threading.Lock()

    @classmethod
    def from_tokens(
        cls,
        tokens: Sequence[bytes],
        eos_ids: Iterable[int] = (),
        special_ids: Iterable[int] = (),
        encode: Encode | None = None,
    ) -> Vocabulary:
        """A vocabulary of `tokens`, the bytes of id i at index i (b"" for an id without text).

        Ids in `special_ids` and `eos_ids` never stand for text in a constrained hole. `encode`
        turns UTF-8 bytes into the ids that the tokeniser would give, without special ids; without
        it there are no forced tokens. Raises TypeError for tokens that are not bytes, ValueError
        for ids outside the vocabulary.
        """
        listed = list(tokens)
        checked: list[object] = [*tokens]
        for i, token in enumerate(checked):
            if not isinstance(token, bytes):
                raise TypeError(f"token {i} is {type(token).__name__}, expected bytes")
        eos = sorted({int(i) for i in eos_ids})
        special = sorted({int(i) for i in special_ids})
        native = _native.Vocabulary(listed, eos, special)
        return cls(native, listed, tuple(eos), frozenset(special), encode)

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return f"Vocabulary(size={self.size}, eos_ids={list(self.eos_ids)})"

    def token(self, token_id: int) -> bytes:
        """The bytes of an id; special ids included. Raises IndexError for an id outside."""
        if not 0 <= token_id < self.size:
            raise IndexError(f"id {token_id} is outside a vocabulary of {self.size}")
        return self._tokens[token_id]

    @property
    def tokens(self) -> Sequence[bytes]:
        """The bytes of every id; special ids included."""
        return self._tokens

    def empty_mask(self) -> NDArray[np.uint32]:
        """A mask with no bit set: uint32 `[mask_words]`."""
        return np.zeros(self.mask_words, np.uint32)

    def tokens_beginning(self, text: bytes) -> NDArray[np.int32]:
        """Text ids whose bytes are a non-empty prefix of `text` or start with it, ascending."""
        return self.native.tokens_beginning(text)

    def extends(self, tail: bytes) -> bool:
        """Whether some text id has `tail` as a strict prefix: it could still grow over its end."""
        return self.native.extends(tail)

    def compiled(self, key: Hashable, compile_now: Callable[[], Grammar]) -> Grammar:
        """The grammar kept under `key`, compiled on first use; the 256 used last are kept, fewer
        where they have grown beyond 512 MB together.

        Threads that want the same one wait for one compilation. What it raises is not kept.
        """
        with self._lock:
            known = self._compiled.get(key)
            if known is None:
                mine: Future[Grammar] = Future()
                self._compiled[key] = mine
                if len(self._compiled) > _COMPILED_KEPT:
                    self._compiled.popitem(last=False)
            else:
                self._compiled.move_to_end(key)
        if known is not None:
            return known.result()
        try:
            grammar = compile_now()
        except BaseException as error:
            mine.set_exception(error)
            with self._lock:
                self._compiled.pop(key, None)
            raise
        mine.set_result(grammar)
        self._drop_large()
        return grammar

    def _drop_large(self) -> None:
        """Forgets grammars, the one used longest ago first, while all together are too large. What
        a grammar holds grows while it is used."""
        if _native.Grammar.memory_of_all() <= self._compiled_bytes:
            return
        with self._lock:
            kept = [(k, f.result().memory) for k, f in self._compiled.items() if _is_there(f)]
            total = sum(size for _, size in kept)
            for key, size in kept[:-1]:
                if total <= self._compiled_bytes:
                    break
                del self._compiled[key]
                total -= size


def _is_there(future: Future[Grammar]) -> bool:
    """Whether its grammar is compiled."""
    return future.done() and future.exception() is None
