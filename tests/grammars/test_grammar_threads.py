"""Threads that use one grammar, and even one matcher, at once: `make test-races` looks closer."""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Callable

import numpy as np
import pytest
from limits import examples
from mask_oracle import allowed
from test_matcher import GRAMMARS
from trials import ids_of

from sglite.grammars import Grammar, Matcher, Vocabulary, fill_masks

THREADS = 4


def together(work: Callable[[int], None]) -> None:
    """Runs work(0), work(1), ... at once; what one of them raises is raised here."""
    errors: list[BaseException] = []
    begin = threading.Barrier(THREADS)

    def run(number: int) -> None:
        try:
            begin.wait()
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in errors:
        raise error


@pytest.fixture(params=list(GRAMMARS))
def make(request: pytest.FixtureRequest) -> Callable[[Vocabulary], Grammar]:
    return GRAMMARS[request.param]


def fresh(vocab: Vocabulary) -> Vocabulary:
    """The same vocabulary without compiled grammars."""
    tokens = [vocab.token(i) for i in range(vocab.size)]
    return Vocabulary.from_tokens(tokens, vocab.eos_ids, vocab.special_ids)


def walk(matcher: Matcher, rng: random.Random, steps: int) -> list[int]:
    """Ids that were accepted one after the other."""
    taken: list[int] = []
    for _ in range(steps):
        options = sorted(allowed(matcher) - set(matcher.grammar.vocabulary.eos_ids))
        if not options:
            break
        token = rng.choice(options)
        assert matcher.accept(token)
        taken.append(token)
    return taken


@pytest.mark.parametrize("limit", [None, 0])
def test_matchers_of_one_grammar_do_not_notice_each_other(
    make: Callable[[Vocabulary], Grammar], vocab: Vocabulary, limit: int | None
) -> None:
    """Forks, rollbacks and batches of masks; without memory, every generation ends at once."""
    grammar, plain = make(fresh(vocab)), make(vocab)
    if limit is not None:
        grammar._native.limit_memory(limit)
    taken: list[list[int]] = [[] for _ in range(THREADS)]

    def work(number: int) -> None:
        rng = random.Random(number)
        for _ in range(examples(6)):
            matcher = grammar.matcher(b"ab" if number % 2 else b"")
            ids = walk(matcher, rng, 6)
            fork = matcher.fork()
            walk(fork, rng, 3)
            back = rng.randint(0, len(ids))
            matcher.rollback(back)
            del ids[len(ids) - back :]
            masks = np.zeros((3, vocab.mask_words), np.uint32)
            budget = matcher.tokens_to_finish()
            fill_masks([matcher, fork, matcher], masks, np.array([-1, -1, budget], np.int32))
            fork.forced_bytes()
            taken[number] = ids
            expected = plain.matcher(b"ab" if number % 2 else b"")
            assert expected.accept_tokens(ids)
            assert set(ids_of(masks[0])) == allowed(expected)
            assert set(ids_of(masks[2])) == allowed(expected, budget)
            assert matcher.is_complete == expected.is_complete

    together(work)


def test_one_matcher_of_several_threads(
    make: Callable[[Vocabulary], Grammar], vocab: Vocabulary
) -> None:
    """Nobody can say where it stands in between, but it stands where some ids lead."""
    grammar = make(fresh(vocab))
    shared = grammar.matcher()

    def work(number: int) -> None:
        rng = random.Random(number)
        for _ in range(examples(100)):
            kind = rng.randrange(8)
            if kind == 0:
                with contextlib.suppress(ValueError):
                    shared.rollback(rng.randint(0, 3))
            elif kind == 1:
                fork = shared.fork()
                fork.accept_tokens(sorted(allowed(fork))[:1])
            elif kind == 2:
                shared.tokens_to_finish()
                shared.is_complete, shared.is_finished, shared.key(), shared.allowed_count()
            elif kind < 5:  # without the GIL, so that the others go on meanwhile
                masks = np.zeros((1, vocab.mask_words), np.uint32)
                fill_masks([shared], masks, np.array([rng.choice([-1, 9])], np.int32))
            else:
                ids = sorted(allowed(shared))
                shared.accept(rng.choice(ids) if ids else 0)

    together(work)
    shared.fork()
    allowed(shared)
    with pytest.raises(ValueError, match="cannot roll back"):
        shared.rollback(10**6)
