"""Whatever is handed to matchers and vocabularies: an error that can be caught, or the right thing.

Longer: SGLITE_FUZZ=20.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from limits import examples
from mask_oracle import allowed
from test_matcher import GRAMMARS

from sglite.grammars import Matcher, Vocabulary, _native, compile_regex

ids = st.integers(-3, 300) | st.integers(-(2**70), 2**70) | st.sampled_from([2**31, 2**32, 2**63])
buffers = st.sampled_from(["right", "right", "short", "long", "none", "type", "strided", "matrix"])
budgets = st.none() | st.integers(-2, 40) | st.sampled_from([2**31 - 1, 2**31, 2**64])


def buffer(kind: str, words: int) -> Any:
    made: Any = np.full(words, 0xFFFFFFFF, np.uint32)
    return {
        "right": made,
        "short": made[:-1].copy(),
        "long": np.append(made, made),
        "none": None,
        "type": made.view(np.int32),
        "strided": np.append(made, made)[::2],
        "matrix": made.reshape(1, -1),
    }[kind]


@pytest.mark.parametrize("name", GRAMMARS)
def test_any_calls_leave_a_matcher_where_its_ids_lead(name: str, vocab: Vocabulary) -> None:
    grammar = GRAMMARS[name](vocab)
    kinds = st.sampled_from(["accept", "some", "step", "step", "rollback", "mask", "fork", "batch"])

    @settings(max_examples=examples(40), deadline=None)
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        pool: list[tuple[Matcher, list[int]]] = [(grammar.matcher(), [])]
        for kind in data.draw(st.lists(kinds, max_size=25)):
            matcher, taken = data.draw(st.sampled_from(pool))
            if kind == "accept":
                token = data.draw(ids)
                if matcher.accept(token):
                    taken.append(token)
            elif kind == "some":
                several = data.draw(st.lists(ids, max_size=3))
                if matcher.accept_tokens(several):
                    taken += several
            elif kind == "step":
                if options := sorted(allowed(matcher)):
                    taken.append(data.draw(st.sampled_from(options)))
                    assert matcher.accept(taken[-1])
            elif kind == "rollback":
                count = data.draw(st.integers(-2, 5) | st.integers(2**62, 2**63 - 1))
                try:
                    matcher.rollback(count)
                    del taken[len(taken) - count :]
                except ValueError:
                    assert not 0 <= count <= len(taken)
            elif kind == "mask":
                layout, budget = data.draw(buffers), data.draw(budgets)
                mask = buffer(layout, vocab.mask_words)
                try:
                    matcher.fill_mask(mask, budget)
                    assert layout == "right"
                except (ValueError, TypeError):
                    assert layout != "right" or (budget is not None and budget < 0)
            elif kind == "fork":
                pool.append((matcher.fork(), list(taken)))
            else:
                shape = (
                    data.draw(st.integers(1, 2)),
                    vocab.mask_words + data.draw(st.integers(-1, 1)),
                )
                masks = np.zeros(shape, np.uint32)
                count = data.draw(st.integers(1, 2))
                try:
                    _native.fill_masks([matcher], masks, np.full(count, -1, np.int32))  # type: ignore[list-item]
                    assert shape == (1, vocab.mask_words)
                except ValueError:
                    assert (shape, count) != ((1, vocab.mask_words), 1)
        for matcher, taken in pool:
            fresh = grammar.matcher()
            assert fresh.accept_tokens(taken)
            assert allowed(matcher) == allowed(fresh)
            assert matcher.is_finished == fresh.is_finished

    check()


tokens = st.lists(st.binary(max_size=4) | st.sampled_from([b"\0", b"\xff\xff", b'"', b"a" * 300]))


@settings(max_examples=examples(100), deadline=None)
@given(tokens, st.lists(st.integers(-2, 12)), st.lists(st.integers(-2, 12)), st.binary(max_size=9))
def test_any_vocabulary_is_made_or_refused(
    texts: list[bytes], eos: list[int], special: list[int], text: bytes
) -> None:
    try:
        vocabulary = Vocabulary.from_tokens(texts, eos, special)
    except ValueError:
        assert any(not 0 <= i < len(texts) for i in eos + special)
        return
    barred = {*eos, *special}
    written = [i for i, t in enumerate(texts) if t and i not in barred]
    assert vocabulary.extends(text) == any(
        texts[i].startswith(text) and texts[i] != text for i in written
    )
    beginning = [
        i for i in written if text and (texts[i].startswith(text) or text.startswith(texts[i]))
    ]
    assert vocabulary.tokens_beginning(text).tolist() == beginning
    for any_spelling in (None, False, True):
        for characters in (0, 1, 5, 2**40):
            vocabulary.native.inside(any_spelling, characters)


def test_no_matcher_is_no_matcher(vocab: Vocabulary) -> None:
    masks, budgets = np.zeros((1, vocab.mask_words), np.uint32), np.full(1, -1, np.int32)
    with pytest.raises((TypeError, ValueError)):
        _native.fill_masks([None], masks, budgets)  # type: ignore[list-item]
    unborn = _native.Matcher.__new__(_native.Matcher)
    with pytest.raises(TypeError), pytest.warns(RuntimeWarning, match="uninitialized"):
        unborn.accept(1)


def test_a_grammar_of_another_vocabulary_is_no_part(vocab: Vocabulary) -> None:
    other = Vocabulary.from_tokens([bytes([i % 256]) for i in range(5000)] + [b""], [5000])
    builder = _native.Builder(vocab.native)
    with pytest.raises(ValueError, match="another vocabulary"):
        builder.embed(compile_regex("a|b", other)._native)


@pytest.mark.parametrize("wrong", [-1, 1, 2**31 - 1])
def test_numbers_of_no_expression_are_refused(vocab: Vocabulary, wrong: int) -> None:
    builder = _native.Builder(vocab.native)
    right = builder.literal(b"a")
    for call in (
        lambda: builder.sequence([right, wrong]),
        lambda: builder.choice([wrong]),
        lambda: builder.repeat(wrong, 0, 1),
        lambda: builder.call(wrong),
        lambda: builder.define(wrong, right),
        lambda: builder.build(wrong, True),
    ):
        with pytest.raises(ValueError, match=r"number|once"):
            call()
