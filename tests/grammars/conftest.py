"""A small vocabulary that every test of grammars may use."""

from __future__ import annotations

import pytest

from sglite.grammars import Vocabulary

EXTRA = [
    b"ab", b"abc", b"bcd", b"aa", b"12", b"00", b'": "', b'", "', b'{"', b'"}', b'": ', b", ",
    "é".encode(), "日本".encode(), "日".encode()[:2], b"tru", b"true", b"null", b"al", b'"a',
    b'\\u00',
]  # fmt: skip


@pytest.fixture(scope="session")
def vocab() -> Vocabulary:
    """All single bytes, some longer tokens, one special id and two eos ids at the end."""
    tokens = [bytes([i]) for i in range(256)] + EXTRA + [b"<special>", b"<eos>", b""]
    n = len(tokens)
    return Vocabulary.from_tokens(tokens, eos_ids=[n - 2, n - 1], special_ids=[n - 3])
