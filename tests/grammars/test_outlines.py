"""The engine "outlines": the faces of a matcher over an index of outlines-core."""

from __future__ import annotations

import random
import re
import sys

import numpy as np
import pytest
from mask_oracle import allowed, draw

from sglite.errors import GrammarError
from sglite.grammars import Vocabulary, compile_regex, fill_masks


@pytest.mark.parametrize("pattern", ["(abc|12){2,3}", "[ab]+c?", "x(aa)*", "日本?"])
def test_draws_match_within_the_budget(vocab: Vocabulary, pattern: str) -> None:
    grammar = compile_regex(pattern, vocab, engine="outlines")
    rng = random.Random(3)
    for extra in range(8):
        budget = grammar.matcher().tokens_to_finish() + extra
        assert re.fullmatch(pattern, draw(grammar, rng, budget).decode())


def test_the_faces_of_a_matcher(vocab: Vocabulary) -> None:
    grammar = compile_regex("ab?", vocab, engine="outlines")
    matcher = grammar.matcher()
    assert {vocab.token(i) for i in allowed(matcher)} == {b"a", b"ab"}
    assert matcher.allowed_count() == 2
    assert matcher.tokens_to_finish() == 1
    assert not matcher.accept(ord("b"))
    assert not matcher.accept_tokens([ord("a"), ord("a")])
    assert matcher.accept(ord("a"))
    fork = matcher.fork()
    assert matcher.is_complete
    assert not matcher.is_finished
    assert matcher.accept(vocab.eos_ids[0])
    assert matcher.is_finished
    assert allowed(matcher) == set()
    matcher.rollback(2)
    assert matcher.tokens_to_finish() == 1
    assert fork.accept(ord("b"))
    assert fork.is_finished
    assert allowed(fork) == set(vocab.eos_ids)
    assert (fork.forced_bytes(), fork.forced_tokens()) == (b"", [])
    with pytest.raises(ValueError, match="only 2"):
        fork.rollback(3)


def test_a_prefix_comes_first(vocab: Vocabulary) -> None:
    matcher = compile_regex("b|c", vocab, engine="outlines").matcher(b"a")
    assert {vocab.token(i) for i in allowed(matcher)} == {b"a", b"ab"}
    assert matcher.accept_tokens([ord("a"), ord("c")])
    assert matcher.is_finished


def test_a_batch_of_both_engines(vocab: Vocabulary) -> None:
    pair = [compile_regex("ab+", vocab, engine=e).matcher() for e in ("native", "outlines")]
    masks = np.zeros((2, vocab.mask_words), np.uint32)
    fill_masks(pair, masks, np.array([-1, 2], np.int32))
    assert np.array_equal(masks[0], masks[1])


def test_refusals(vocab: Vocabulary, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(GrammarError, match="outlines-core refuses"):
        compile_regex("(?=a)b", vocab, engine="outlines")
    with pytest.raises(GrammarError, match="unknown engine"):
        compile_regex("a", vocab, engine="other")  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "outlines_core", None)
    with pytest.raises(GrammarError, match=r"pip install sglite\[outlines\]"):
        compile_regex("never compiled before", vocab, engine="outlines")
