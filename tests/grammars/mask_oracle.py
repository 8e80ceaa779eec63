"""Reading masks the slow way, for tests."""

from __future__ import annotations

import random

from sglite.grammars import Grammar, Matcher


def allowed(matcher: Matcher, budget: int | None = None) -> set[int]:
    """The ids in the mask."""
    vocabulary = matcher.grammar.vocabulary
    mask = vocabulary.empty_mask()
    matcher.fill_mask(mask, budget)
    return {i for i in range(vocabulary.size) if mask[i >> 5] >> (i & 31) & 1}


def draw(grammar: Grammar, rng: random.Random, budget: int | None, stop: float = 0.5) -> bytes:
    """A random text out of the masks, within the budget."""
    matcher = grammar.matcher()
    vocabulary = grammar.vocabulary
    text, steps = b"", 0
    while not matcher.is_finished:
        ids = allowed(matcher, None if budget is None else budget - steps)
        assert ids, f"dead end after {text!r}"
        ends = [i for i in vocabulary.eos_ids if i in ids]
        token = rng.choice(sorted(ids))
        if ends and rng.random() < stop:
            token = ends[0]
        assert matcher.accept(token)
        if token in vocabulary.eos_ids:
            break
        text += vocabulary.token(token)
        steps += 1
        assert budget is None or steps <= budget
    return text


def accepts(grammar: Grammar, text: bytes) -> bool:
    """Whether the grammar accepts the text, fed byte by byte."""
    matcher = grammar.matcher()
    ids = {grammar.vocabulary.token(i): i for i in range(256)}
    return all(matcher.accept(ids[bytes([b])]) for b in text) and matcher.is_complete
