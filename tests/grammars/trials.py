"""What must hold at every position of every matcher, and texts drawn out of its masks.

A position is asked token by token, on forks, what the mask says at once.
"""

from __future__ import annotations

import random
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from sglite.grammars import Grammar, Matcher, Vocabulary

_CHARACTERS = "\t\n\r" + "".join(map(chr, range(0x20, 0x80)))
_LONGER = [
    '{"a":', '{"', '":', '": ', '",', '", "', '"}', "}]", "}}", "]]", "[[", "[]", "{}", ", ", ": ",
    "true", "tr", "ue", "null", "fals", "ab", "aa", '"a', '"ab"', "\\u00", "61", "0.", "00", ".0",
    "10", "1e", "-1", "é", "éa", "\n  ", '" ', "],", "1]", "1}", ",1", '"b":', ' "', "a", "\\",
]  # fmt: skip


def small_vocabulary() -> Vocabulary:
    """ASCII, é in two bytes, longer tokens across every border, ids that say the same as others,
    one special id, two eos ids, one id without text."""
    tokens = [c.encode() for c in _CHARACTERS] + [b"\xc3", b"\xa9"]
    tokens += [t.encode() for t in _LONGER] + [b"<special>", b"", b"<eos>", b""]
    n = len(tokens)
    return Vocabulary.from_tokens(tokens, eos_ids=[n - 2, n - 1], special_ids=[n - 4])


_LIKELY = set(b'{}[]",: abz01.\\u6' + "é".encode())


def choose(ids: Iterable[int], vocabulary: Vocabulary, rng: random.Random) -> int:
    """One of the ids, more often one of those that structure and the keys of tests are made of."""
    some = sorted(ids)
    if rng.random() < 0.7:
        some = [i for i in some if _LIKELY.issuperset(vocabulary.token(i))] or some
    return rng.choice(some)


def mask_ids(matcher: Matcher, budget: int | None = None) -> list[int]:
    """The ids in the mask."""
    return ids_of(_mask(matcher, budget))


def ids_of(mask: NDArray[np.uint32]) -> list[int]:
    bits = np.unpackbits(mask.view(np.uint8), bitorder="little")
    return [int(i) for i in np.flatnonzero(bits)]


def _mask(matcher: Matcher, budget: int | None) -> NDArray[np.uint32]:
    mask = matcher.grammar.vocabulary.empty_mask()
    mask[:] = 0xFFFFFFFF  # whatever was there must be gone
    matcher.fill_mask(mask, budget)
    beyond = matcher.grammar.vocabulary.size % 32
    assert not beyond or not int(mask[-1]) >> beyond, "bits beyond the vocabulary"
    return mask


def check_position(matcher: Matcher, rng: random.Random) -> dict[int, int]:
    """The mask, with and without budgets, is what every single token says by itself. Returns the
    allowed text ids with the bound behind each."""
    vocabulary = matcher.grammar.vocabulary
    eos = set(vocabulary.eos_ids)
    allowed = set(mask_ids(matcher))
    behind: dict[int, int] = {}
    for token in range(vocabulary.size):
        fork = matcher.fork()
        took = fork.accept(token)
        assert took == (token in allowed), (token, vocabulary.token(token), took)
        if token in eos:
            assert took == matcher.is_complete
            assert not took or fork.is_finished
        elif took:
            assert token not in vocabulary.special_ids
            assert vocabulary.token(token)
            behind[token] = fork.tokens_to_finish()
    assert matcher.allowed_count() == len(allowed)
    bound = matcher.tokens_to_finish()
    assert bound >= 0
    if not matcher.is_finished:
        assert allowed, "a dead end"
    if bound == 0:
        assert matcher.is_complete
    else:
        assert min(behind.values()) <= bound - 1, "no token lowers the bound"
    ends = eos & allowed
    for budget in {0, bound, max(bound - 1, 0), bound + 1, bound + rng.randrange(6)}:
        within = {token for token, rest in behind.items() if rest + 1 <= budget}
        assert set(mask_ids(matcher, budget)) == within | ends, f"budget {budget}, bound {bound}"
    return behind


def finish(matcher: Matcher, rng: random.Random, text: bytes, slack: int = 0) -> bytes:
    """Goes on within the bound (and `slack` tokens more) to the end. Returns the whole text."""
    vocabulary = matcher.grammar.vocabulary
    left = matcher.tokens_to_finish() + slack
    while not matcher.is_complete or (left and not matcher.is_finished and rng.random() < 0.5):
        assert left > 0, f"the bound was too low: {text!r}"
        ids = [i for i in mask_ids(matcher, left) if i not in vocabulary.eos_ids]
        if not ids:
            assert matcher.is_complete, f"dead within the budget of {left}: {text!r}"
            break
        token = choose(ids, vocabulary, rng)
        assert matcher.accept(token)
        text += vocabulary.token(token)
        left -= 1
    return text


def checked_walk(grammar: Grammar, rng: random.Random, steps: int) -> list[bytes]:
    """A random walk of some steps and then to the end; every position is checked, and some of the
    tokens not taken are followed to the end too. Returns all of the finished texts."""
    vocabulary = grammar.vocabulary
    matcher = grammar.matcher()
    first = _mask(matcher, None)
    text, taken, finished = b"", 0, []
    budget = matcher.tokens_to_finish() + steps
    while not matcher.is_finished:
        behind = check_position(matcher, rng)
        if matcher.is_complete:
            finished.append(text)
        within = [t for t, rest in behind.items() if rest + 1 <= budget - taken]
        if not within or (matcher.is_complete and rng.random() < 0.3):
            break
        aside = matcher.fork()
        token = choose(behind, vocabulary, rng)
        assert aside.accept(token)
        finished.append(finish(aside, rng, text + vocabulary.token(token)))
        token = choose(within, vocabulary, rng)
        assert matcher.accept(token)
        text += vocabulary.token(token)
        taken += 1
    assert matcher.is_complete
    finished.append(text)
    matcher.rollback(taken)
    assert (_mask(matcher, None) == first).all()
    return finished
