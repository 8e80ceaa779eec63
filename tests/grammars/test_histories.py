"""Histories of matchers: forks, rollbacks and new generations against a plain list of ids."""

from __future__ import annotations

import random
import resource
from collections.abc import Callable

import pytest
from limits import measured
from mask_oracle import allowed
from test_matcher import GRAMMARS

from sglite.grammars import Grammar, Matcher, Vocabulary, compile_json_schema, compile_regex

ANY_RECORD = {
    "type": "object",
    "properties": {k: {"type": "integer"} for k in "abcdefgh"},
    "required": ["a", "b"],
}


@pytest.fixture(params=list(GRAMMARS))
def make(request: pytest.FixtureRequest) -> Callable[[Vocabulary], Grammar]:
    return GRAMMARS[request.param]


def fresh(vocab: Vocabulary) -> Vocabulary:
    """The same vocabulary without compiled grammars: what a test does to one stays in the test."""
    tokens = [vocab.token(i) for i in range(vocab.size)]
    return Vocabulary.from_tokens(tokens, vocab.eos_ids, vocab.special_ids)


def facts(matcher: Matcher) -> tuple[object, ...]:
    return (
        allowed(matcher),
        matcher.allowed_count(),
        matcher.is_complete,
        matcher.is_finished,
        matcher.tokens_to_finish(),
        matcher.forced_bytes(),
        allowed(matcher, matcher.tokens_to_finish()),
    )


@pytest.mark.parametrize("limit", [None, 0, 20_000])
def test_matchers_stand_where_their_ids_lead(
    make: Callable[[Vocabulary], Grammar], vocab: Vocabulary, limit: int | None
) -> None:
    """A pool of forks that go on, back and end at random, in one or in many generations."""
    rng = random.Random(limit)
    grammar, plain = make(fresh(vocab)), make(vocab)
    if limit is not None:
        grammar._native.limit_memory(limit)
    pool: list[tuple[Matcher, bytes, list[int]]] = [
        (grammar.matcher(prefix), prefix, []) for prefix in (b"", b"", b"ab")
    ]
    for _ in range(150):
        matcher, prefix, ids = rng.choice(pool)
        action = rng.random()
        if action < 0.2 and len(pool) < 12:
            pool.append((matcher.fork(), prefix, list(ids)))
        elif action < 0.4:
            count = rng.randint(0, len(ids))
            matcher.rollback(count)
            del ids[len(ids) - count :]
        elif action < 0.45 and len(pool) > 3:
            pool.remove((matcher, prefix, ids))
        else:
            for _ in range(rng.randint(1, 5)):
                options = sorted(allowed(matcher))
                if not options:
                    break
                ids.append(rng.choice(options))
                assert matcher.accept(ids[-1])
        expected = plain.matcher(prefix)
        assert expected.accept_tokens(ids)
        assert facts(matcher) == facts(expected)
    generations = grammar._native.generation
    assert generations == 0 if limit is None else generations > 0 or limit > 0


def test_what_is_found_stays_within_the_limit(vocab: Vocabulary) -> None:
    grammar = compile_json_schema(ANY_RECORD, fresh(vocab), property_order="any")
    limit = 100_000
    grammar._native.limit_memory(limit)
    rng = random.Random(5)
    for _ in range(60):
        matcher = grammar.matcher()
        for _ in range(30):
            options = sorted(allowed(matcher) - set(vocab.eos_ids))
            if not options or not matcher.accept(rng.choice(options)):
                break
        assert grammar._native.memory < 2 * limit
    assert grammar._native.generation > 1


@measured
def test_ten_thousand_matchers_are_small(vocab: Vocabulary) -> None:
    """With 200 ids each, half of them forked off behind the first 100."""
    grammar = compile_regex("(?:[a-z]{3} )*", vocab)

    def resident() -> int:
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * resource.getpagesize()

    before = resident()
    matchers = []
    for _ in range(5_000):
        matcher = grammar.matcher()
        assert matcher.accept_tokens(list(b"abc " * 25))
        matchers += [matcher, matcher.fork()]
    for i, matcher in enumerate(matchers):
        assert matcher.accept_tokens(list(bytes([97 + i % 26]) + b"bc " + b"xyz " * 24))
    assert resident() - before < 100e6
    mask = allowed(matchers[0])
    assert all(allowed(m) == mask for m in random.Random(1).sample(matchers, 20))


def test_long_histories_are_let_go_of_without_deep_recursion(vocab: Vocabulary) -> None:
    grammar = compile_regex("a*", vocab)
    matcher = grammar.matcher()
    for _ in range(20):
        assert matcher.accept_tokens([ord("a")] * 20_000)
    fork = matcher.fork()
    del matcher
    fork.rollback(399_999)
    with pytest.raises(ValueError, match="only 1 were"):
        fork.rollback(2)


def test_ids_beyond_any_vocabulary_are_refused(vocab: Vocabulary) -> None:
    matcher = compile_regex("a*", vocab).matcher()
    for wrong in (2**31, 2**40, 2**80, -1, -(2**40), -(2**80)):
        assert not matcher.accept(wrong)
        assert not matcher.accept_tokens([97, wrong])
    with pytest.raises(TypeError):
        matcher.accept("a")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        matcher.accept(1.0)  # type: ignore[arg-type]
    assert matcher.tokens_to_finish() == 0
    assert allowed(matcher, 2**80) == allowed(matcher)
