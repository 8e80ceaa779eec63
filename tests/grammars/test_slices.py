"""The slices of a vocabulary against what Python's json says of every token."""

from __future__ import annotations

import itertools
import json
import random
import re

import numpy as np
import pytest
from numpy.typing import NDArray

from sglite.grammars import Vocabulary

LIMIT = 9  # characters of a token, at most


def ids_of(mask: NDArray[np.uint32]) -> set[int]:
    bits = np.unpackbits(mask.view(np.uint8), bitorder="little")
    return {int(i) for i in np.flatnonzero(bits)}


# One character of a string as it may be written, and every strict beginning of one.
UTF8 = (
    rb"[\x20\x21\x23-\x5b\x5d-\x7f]|[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]"
    rb"|[\xe1-\xec\xee\xef][\x80-\xbf]{2}|\xed[\x80-\x9f][\x80-\xbf]|\xf0[\x90-\xbf][\x80-\xbf]{2}"
    rb"|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2}"
)
ANY = UTF8 + (
    rb'|\\["\\/bfnrt]|\\u(?![dD][89a-fA-F])[0-9a-fA-F]{4}'
    rb"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)
CANONICAL = UTF8 + rb'|\\["\\bfnrt]|\\u00(?:0[0-7bef]|1[0-9a-f])'
TEXT = UTF8 + rb'|[\x00-\x1f"\\]'
STYLES = {None: TEXT, False: CANONICAL, True: ANY}

# Whatever finishes a begun character, of at most three bytes or a second escape.
ENDS = [
    b"", b'"', b"/", b"u0000", b"0000", b"000", b"00", b"0", b"u001f", b"01f", b"1f", b"f", b"b",
    b"\\udc00", b"udc00", b"dc00", b"c00", b"800\\udc00", b"00\\udc00", b"0\\udc00", b"\\",
    *(bytes(c) for n in (1, 2, 3) for c in itertools.product(b"\x80\x98\x9f\xa0\xa9", repeat=n)),
]  # fmt: skip


def characters(token: bytes, style: bool | None, bytes_known: bytes) -> int | None:
    """How many characters `token` begins inside of a text; None if it does not stay there."""
    whole = re.compile(rb"(?:" + STYLES[style] + rb")", re.DOTALL)
    ends = [end for end in ENDS if set(end) <= set(bytes_known)]
    for end in sorted(ends, key=len):
        at, count = 0, 0
        while at < len(token) and (found := whole.match(token + end, at)):
            at, count = found.end(), count + 1
        if at == len(token + end):
            return count
    return None


def closing(token: bytes, style: bool) -> tuple[bytes, bytes] | None:
    found = re.match(rb"((?:" + STYLES[style] + rb')*)"(.*)', token, re.DOTALL)
    if found is None:
        return None
    return json.loads(b'"' + found[1] + b'"').encode(), found[2]


PIECES = [
    b"a", b"\x7f", "é".encode(), "日".encode(), "😀".encode(), b'"', b"\\", b"\\u", b"u", b"0",
    b"00", b"\\n", b"\\/", b'\\"', b"\\\\", b"\\u00", b"1f", b"1F", b"\\u001f", b"\\u000a",
    b"\\u0041", b"\\ud8", b"\\ud83d", b"\\ude00", b"\\uDC", b"dc00", b"\xf0", b"\x9f", b"\xe0",
    b"\xa0", b"\x80", b"\xed", b"\xc3", b"\xc0", b"\xf4\x90", b"\xff", b"\n", b"\x1f", b", ",
    b": {", b"}",
]  # fmt: skip


def random_vocabulary(rng: random.Random, size: int, plain: bytes) -> tuple[Vocabulary, bytes]:
    tokens = [bytes([b]) for b in plain]
    tokens += [b"".join(rng.choices(PIECES, k=rng.randrange(1, 6))) for _ in range(size)]
    tokens += [b"<eos>"]
    known = bytes({b for token in tokens[:-1] for b in token})
    return Vocabulary.from_tokens(tokens, eos_ids=[len(tokens) - 1]), known


@pytest.mark.parametrize("style", [None, False, True])
@pytest.mark.parametrize("seed", range(4))
def test_tokens_inside_are_those_that_some_text_can_hold(style: bool | None, seed: int) -> None:
    """Those that escape code points are decided one by one, later."""
    rng = random.Random(f"{seed} {style}")
    plain = bytes(range(256)) if seed % 2 == 0 else b'ab"\\u0\x9f'
    vocabulary, known = random_vocabulary(rng, 400 if seed % 2 == 0 else 25, plain)
    counts = {
        i: None
        if style is not None and b"\\u" in vocabulary.token(i)
        else characters(vocabulary.token(i), style, known)
        for i in range(vocabulary.size - 1)
    }
    assert sum(count is not None for count in counts.values()) > 5
    for most in (-1, 0, 1, 2, 3, LIMIT, 1 << 40):
        expected = {i for i, count in counts.items() if count is not None and count <= most}
        assert ids_of(vocabulary.native.inside(style, most)) == expected


@pytest.mark.parametrize("style", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_closing_tokens_are_taken_apart(style: bool, seed: int) -> None:
    rng = random.Random(seed)
    vocabulary, _ = random_vocabulary(rng, 1500, bytes(range(256)))
    expected = {
        (*parts, i)
        for i in range(vocabulary.size - 1)
        if (parts := closing(vocabulary.token(i), style)) is not None
    }
    found = vocabulary.native.closings(style)
    assert len(expected) > 30
    assert len(found) == len(set(found))
    assert set(found) == expected


def test_special_ids_are_in_no_slice() -> None:
    vocabulary = Vocabulary.from_tokens([b"a", b"b", b'c"'], eos_ids=[1], special_ids=[2])
    assert ids_of(vocabulary.native.inside(None, 9)) == {0}
    assert ids_of(vocabulary.native.inside(True, 9)) == {0}
    assert vocabulary.native.closings(True) == []
