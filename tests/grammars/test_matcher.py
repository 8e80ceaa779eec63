"""Faces of the matcher: bounds and budgets, rollback, forks, prefixes, forced tokens, batches."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mask_oracle import allowed, draw

from sglite.errors import GrammarError
from sglite.grammars import (
    Grammar,
    Matcher,
    Vocabulary,
    compile_grammar,
    compile_json_schema,
    compile_regex,
    fill_masks,
    free_text,
)

RECORD: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 2, "maxLength": 5},
        "kind": {"enum": ["abc", "abcd", "null", 12]},
        "n": {"type": "integer", "minimum": 100, "maximum": 1200},
        "kids": {"type": "array", "items": {"$ref": "#"}, "maxItems": 2},
    },
    "required": ["name", "n"],
    "additionalProperties": False,
}

GRAMMARS: dict[str, Callable[[Vocabulary], Grammar]] = {
    "record": lambda v: compile_json_schema(RECORD, v),
    "record in any order": lambda v: compile_json_schema(RECORD, v, property_order="any"),
    "open object": lambda v: compile_json_schema({"type": "object"}, v, whitespace="flexible"),
    "texts in texts": lambda v: compile_json_schema(
        {
            "type": "array",
            "items": {"enum": ["ab", "abc"]},
            "prefixItems": [
                {"type": "array", "minItems": 1, "items": {"type": "string", "maxLength": 3}},
                {"type": "string", "maxLength": 9},
            ],
            "minItems": 2,
        },
        v,
    ),
    "strings as keys and values": lambda v: compile_json_schema(
        {
            "type": "object",
            "properties": {"ab": {"type": "string", "minLength": 2, "maxLength": 30}, "b": {}},
            "additionalProperties": {"type": ["string", "null"], "pattern": "a|^b"},
            "required": ["ab"],
            "maxProperties": 3,
        },
        v,
        property_order="any",
        spelling="any",
    ),
    "pattern": lambda v: compile_regex("(abc|a{3,5}|12(00){2})+é日?", v),
    "gbnf": lambda v: compile_grammar('root ::= "(" root ")" | "abc" [0-9]{2,4}', v),
    "free": free_text,
}


@pytest.fixture(params=list(GRAMMARS))
def grammar(request: pytest.FixtureRequest, vocab: Vocabulary) -> Grammar:
    return GRAMMARS[request.param](vocab)


def walk(grammar: Grammar, rng: random.Random, steps: int) -> list[Matcher]:
    """Matchers at the positions of one random walk, from the beginning on."""
    matcher = grammar.matcher()
    seen = [matcher.fork()]
    for _ in range(steps):
        ids = sorted(allowed(matcher) - set(grammar.vocabulary.eos_ids))
        if not ids:
            break
        assert matcher.accept(rng.choice(ids))
        seen.append(matcher.fork())
    return seen


@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_bounds_fall_and_budgets_forbid_what_is_over_them(vocab: Vocabulary, seed: int) -> None:
    rng = random.Random(seed)
    for make in GRAMMARS.values():
        grammar = make(vocab)
        for matcher in walk(grammar, rng, 8):
            after: dict[int, int] = {}
            for token in allowed(matcher) - set(vocab.eos_ids):
                fork = matcher.fork()
                assert fork.accept(token)
                after[token] = fork.tokens_to_finish()
            bound = matcher.tokens_to_finish()
            assert (bound == 0) == matcher.is_complete
            if bound:
                assert min(after.values()) <= bound - 1
            ends = set(vocab.eos_ids) if matcher.is_complete else set()
            for budget in {0, 1, 2, bound - 1, bound, bound + 1, bound + 2, 1000}:
                if budget >= 0:
                    expected = {t for t, then in after.items() if then <= budget - 1} | ends
                    assert allowed(matcher, budget) == expected


@pytest.mark.parametrize("seed", range(3))
def test_every_draw_ends_within_its_budget(grammar: Grammar, seed: int) -> None:
    rng = random.Random(seed)
    least = grammar.matcher().tokens_to_finish()
    for extra in range(12):
        draw(grammar, rng, least + extra, stop=0.2)  # asserts the budget itself


@pytest.mark.parametrize("seed", range(4))
def test_the_mask_is_what_accept_accepts(grammar: Grammar, seed: int) -> None:
    rng = random.Random(seed)
    for matcher in walk(grammar, rng, 25):
        mask = allowed(matcher)
        assert matcher.allowed_count() == len(mask)
        for token in range(-1, grammar.vocabulary.size + 1):
            fork = matcher.fork()
            assert fork.accept(token) == (token in mask)
            if token not in mask:
                assert allowed(fork) == mask


def test_bounds_of_literals_are_exact(vocab: Vocabulary) -> None:
    assert compile_regex("abcd", vocab).matcher().tokens_to_finish() == 2  # a + bcd
    assert compile_regex("(abc|aaaaaaaa)", vocab).matcher().tokens_to_finish() == 1
    assert compile_regex("[ab]{3}abc", vocab).matcher().tokens_to_finish() == 3  # aa + a + abc


def test_bounds_of_json_are_exact(vocab: Vocabulary) -> None:
    matcher = compile_json_schema({"const": ["true", None]}, vocab).matcher()
    assert matcher.tokens_to_finish() == 7
    for token in (b"[", b'"', b"true", b'"', b", ", b"null", b"]"):
        before = matcher.tokens_to_finish()
        ids = [int(i) for i in vocab.tokens_beginning(token) if vocab.token(int(i)) == token]
        assert matcher.accept(ids[0])
        assert matcher.tokens_to_finish() < before
    assert matcher.tokens_to_finish() == 0


def test_life_and_end(vocab: Vocabulary) -> None:
    eos = vocab.eos_ids[0]
    matcher = compile_regex("a|ab", vocab).matcher()
    assert not matcher.accept(eos)
    assert matcher.accept(ord("a"))
    assert matcher.is_complete
    assert not matcher.is_finished
    assert allowed(matcher) == {ord("b"), *vocab.eos_ids}
    fork = matcher.fork()
    assert matcher.accept(eos)
    assert matcher.is_finished
    assert matcher.is_complete
    assert allowed(matcher) == set()
    assert matcher.allowed_count() == 0
    assert not matcher.accept(ord("b"))
    assert not matcher.accept(eos)
    matcher.rollback(1)
    assert not matcher.is_finished
    assert fork.accept(ord("b"))
    assert fork.is_finished
    assert fork.is_complete
    assert allowed(fork) == set(vocab.eos_ids)
    with pytest.raises(ValueError, match="only 2"):
        fork.rollback(3)
    with pytest.raises(ValueError, match="roll back"):
        fork.rollback(-1)


def test_rollback_and_fork_restore_the_position(grammar: Grammar) -> None:
    rng = random.Random(13)
    seen = walk(grammar, rng, 12)
    last = seen[-1].fork()
    for back, matcher in enumerate(reversed(seen)):
        fork = last.fork()
        fork.rollback(back)
        assert allowed(fork) == allowed(matcher)
        assert fork.tokens_to_finish() == matcher.tokens_to_finish()
        assert fork.forced_bytes() == matcher.forced_bytes()
    assert allowed(last) == allowed(seen[-1])


def test_accept_tokens_is_all_or_nothing(vocab: Vocabulary) -> None:
    matcher = compile_regex("abc*", vocab).matcher()
    assert not matcher.accept_tokens([ord("a"), ord("b"), ord("b")])
    assert allowed(matcher) == allowed(compile_regex("abc*", vocab).matcher())
    assert matcher.accept_tokens([ord("a"), ord("b"), ord("c"), vocab.eos_ids[1]])
    assert matcher.is_finished


@pytest.mark.parametrize("prefix", [b"", b"a", b"ab", "日本é".encode(), "日".encode()[1:], b"aaab"])
def test_a_prefix_comes_before_the_language(vocab: Vocabulary, prefix: bytes) -> None:
    grammar = compile_regex("(bcd|c|aa)*", vocab)
    matcher = grammar.matcher(prefix)
    forced = matcher.forced_bytes()
    assert forced == prefix
    rng = random.Random(3)
    for _ in range(20):
        matcher = grammar.matcher(prefix)
        text = b""
        while not (matcher.is_complete and rng.random() < 0.3):
            bound = matcher.tokens_to_finish()
            ids = sorted(allowed(matcher, bound + 2) - set(vocab.eos_ids))
            token = rng.choice(ids)
            assert matcher.accept(token)
            text += vocab.token(token)
        assert text.startswith(prefix)
        rest = grammar.matcher()
        assert all(rest.accept(b) for b in text[len(prefix) :])
        assert rest.is_complete


def test_a_token_reaches_over_the_end_of_a_prefix(vocab: Vocabulary) -> None:
    matcher = compile_regex("bc+", vocab).matcher(b"a")
    assert {vocab.token(i) for i in allowed(matcher)} == {b"a", b"ab", b"abc"}


def test_free_text_allows_every_text_id(vocab: Vocabulary) -> None:
    matcher = free_text(vocab).matcher()
    text_ids = {i for i in range(vocab.size) if vocab.text_mask[i >> 5] >> (i & 31) & 1}
    assert allowed(matcher) == text_ids | set(vocab.eos_ids)
    assert matcher.is_complete
    healed = free_text(vocab).matcher(b"a")
    assert {vocab.token(i) for i in allowed(healed)} == {b"a", b"ab", b"abc", b"aa", b"al"}
    assert not healed.is_complete


def longest_first(vocab: Vocabulary) -> Callable[[bytes], list[int]]:
    """A greedy tokeniser: the longest text id that fits."""
    ids = {vocab.token(i): i for i in reversed(range(vocab.size)) if vocab.token(i)}

    def encode(text: bytes) -> list[int]:
        found = []
        while text:
            piece = next(text[:n] for n in range(len(text), 0, -1) if text[:n] in ids)
            found.append(ids[piece])
            text = text[len(piece) :]
        return found

    return encode


def test_forced_tokens_are_canonical_and_held_back(vocab: Vocabulary) -> None:
    tokens = [vocab.token(i) for i in range(vocab.size)]
    encode = longest_first(vocab)
    coded = Vocabulary.from_tokens(tokens, vocab.eos_ids, vocab.special_ids, encode)

    def forced(pattern: str) -> list[bytes]:
        matcher = compile_regex(pattern, coded).matcher()
        assert compile_regex(pattern, vocab).matcher().forced_tokens() == []
        ids = matcher.forced_tokens()
        assert matcher.fork().accept_tokens(ids)
        return [tokens[i] for i in ids]

    assert forced("x(abc|abd)") == [b"x"]  # "ab" may yet become "abc"
    assert forced("xab[xy]") == [b"x", b"ab"]  # no token goes on from "ab" with x or y
    assert forced("xabcd") == [b"x", b"abc", b"d"]  # the end: nothing can reach over it
    assert forced("xabcd?") == [b"x", b"abc"]
    assert forced("日(本|x)") == []
    assert forced("日(x|y)") == [tokens[i] for i in encode("日".encode())]
    assert forced("(é|è)") == []  # the forced byte is no whole character
    assert forced("a*") == []
    assert forced("x<eos>") == [b"x"]  # an eos id is never text


def test_forced_tokens_depend_on_the_position_alone(vocab: Vocabulary) -> None:
    tokens = [vocab.token(i) for i in range(vocab.size)]
    coded = Vocabulary.from_tokens(tokens, vocab.eos_ids, vocab.special_ids, longest_first(vocab))
    grammar = compile_json_schema(RECORD, coded)
    matcher = grammar.matcher()
    first = matcher.forced_tokens()
    assert first
    assert all(matcher.accept(i) for i in first)
    assert matcher.forced_tokens() == []
    matcher.rollback(len(first) - 1)
    assert matcher.forced_tokens() == first[1:]
    assert grammar.matcher().forced_tokens() == first


def test_batches_are_the_single_masks(vocab: Vocabulary) -> None:
    rng = random.Random(17)
    matchers = [m for make in GRAMMARS.values() for m in walk(make(vocab), rng, 4)]
    budgets = np.array([rng.choice([-1, 0, 3, 40]) for _ in matchers], np.int32)
    masks = np.full((len(matchers), vocab.mask_words), 0xFFFFFFFF, np.uint32)
    fill_masks(matchers, masks, budgets)
    single = vocab.empty_mask()
    for matcher, row, budget in zip(matchers, masks, budgets, strict=True):
        matcher.fill_mask(single, None if budget < 0 else int(budget))
        assert np.array_equal(single, row)


def test_masks_of_another_kind_are_refused(vocab: Vocabulary) -> None:
    matcher = compile_regex("a", vocab).matcher()
    words = vocab.mask_words
    for wrong in [
        np.zeros(words, np.int32),
        np.zeros(words, np.uint64),
        np.zeros((1, words), np.uint32),
        np.zeros(2 * words, np.uint32)[::2],
        [0] * words,
    ]:
        with pytest.raises(TypeError, match="mask"):
            matcher.fill_mask(wrong)  # type: ignore[arg-type]
    for size in (words - 1, words + 1, 0):
        with pytest.raises(ValueError, match="words"):
            matcher.fill_mask(np.zeros(size, np.uint32))
    locked = vocab.empty_mask()
    locked.flags.writeable = False
    with pytest.raises(TypeError, match="writeable"):
        matcher.fill_mask(locked)
    with pytest.raises(ValueError, match="budget"):
        matcher.fill_mask(vocab.empty_mask(), -1)
    with pytest.raises(ValueError, match="per matcher"):
        fill_masks([matcher], np.zeros((2, words), np.uint32), np.zeros(1, np.int32))
    with pytest.raises(ValueError, match="words"):
        fill_masks([matcher], np.zeros((1, words + 1), np.uint32), np.zeros(1, np.int32))


def test_a_prefix_that_cannot_be_spelled_is_refused() -> None:
    vocabulary = Vocabulary.from_tokens([b"a", b"bc"])
    with pytest.raises(GrammarError, match="0x62"):
        compile_regex("a", vocabulary).matcher(b"b")


def test_threads_share_one_grammar(vocab: Vocabulary) -> None:
    grammar = compile_json_schema(RECORD, vocab, property_order="any", whitespace="compact")
    failed: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            rng = random.Random(seed)
            for _ in range(5):
                draw(grammar, rng, grammar.matcher().tokens_to_finish() + 20)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_kept_grammars_are_bounded_together() -> None:
    vocab = Vocabulary.from_tokens([bytes([b]) for b in range(256)] + [b""], eos_ids=[256])
    vocab._compiled_bytes = 40 << 20
    schema = {"type": "object", "additionalProperties": {"type": "string"}}
    texts = [json.dumps({**schema, "title": f"t{i}"}) for i in range(12)]
    content = json.dumps({f"key {i}": f"value {i}" for i in range(200)}).encode()
    for text in texts:
        grammar = compile_json_schema(text, vocab)
        assert grammar.matcher().accept_tokens(list(content))
        assert grammar.memory > 50_000
    sizes = [future.result().memory for future in vocab._compiled.values()]
    assert 3 < len(sizes) < 10
    assert sum(sizes[:-1]) <= 40 << 20
    assert compile_json_schema(texts[-1], vocab) is grammar
    assert compile_json_schema(texts[0], vocab) is compile_json_schema(texts[0], vocab)
