"""The vocabulary against plain loops over its tokens."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from sglite.grammars import Grammar, GrammarError, Vocabulary, compile_regex


@pytest.mark.parametrize("seed", range(5))
def test_lookups_are_those_of_a_plain_loop(seed: int) -> None:
    rng = random.Random(seed)
    n = 200
    tokens = [bytes(rng.choices(b"abc", k=rng.randrange(6))) for _ in range(n)]
    special = rng.sample(range(n), 5)
    eos = rng.sample(range(n), 2)
    vocabulary = Vocabulary.from_tokens(tokens, eos_ids=eos, special_ids=special)
    text_ids = [i for i in range(n) if tokens[i] and i not in {*special, *eos}]
    bits = np.unpackbits(vocabulary.text_mask.view(np.uint8), bitorder="little")
    assert np.flatnonzero(bits).tolist() == text_ids
    assert vocabulary.size == len(vocabulary) == n
    assert vocabulary.mask_words == (n + 31) // 32
    assert vocabulary.eos_ids == tuple(sorted(eos))
    for _ in range(50):
        text = bytes(rng.choices(b"abcd", k=rng.randrange(5)))
        expected = [
            i
            for i in text_ids
            if text and (text.startswith(tokens[i]) or tokens[i].startswith(text))
        ]
        found = vocabulary.tokens_beginning(text)
        assert found.dtype == np.int32
        assert found.tolist() == expected
        longer = any(len(tokens[i]) > len(text) and tokens[i].startswith(text) for i in text_ids)
        assert vocabulary.extends(text) == longer


def test_wrong_input_is_refused() -> None:
    with pytest.raises(ValueError, match="eos_ids has id 5"):
        Vocabulary.from_tokens([b"a"], eos_ids=[5])
    with pytest.raises(ValueError, match="special_ids has id -1"):
        Vocabulary.from_tokens([b"a"], special_ids=[-1])
    with pytest.raises(TypeError, match="token 1 is str"):
        Vocabulary.from_tokens([b"a", "b"])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="token 0 has 70000 bytes"):
        Vocabulary.from_tokens([b"a" * 70000])
    with pytest.raises(IndexError):
        Vocabulary.from_tokens([b"a"]).token(1)


def test_an_empty_vocabulary_is_possible() -> None:
    vocabulary = Vocabulary.from_tokens([])
    assert vocabulary.tokens_beginning(b"a").tolist() == []
    assert not vocabulary.extends(b"")


def test_equal_constraints_are_compiled_once(vocab: Vocabulary) -> None:
    assert compile_regex("a+", vocab) is compile_regex("a+", vocab)
    assert compile_regex("a+", vocab) is not compile_regex("a*", vocab)
    first = compile_regex("evicted", vocab)
    for i in range(300):
        compile_regex(f"x{i}", vocab)
    assert compile_regex("evicted", vocab) is not first


def test_threads_wait_for_one_compilation(vocab: Vocabulary) -> None:
    begun, go_on = threading.Event(), threading.Event()
    calls: list[str] = []

    def slow() -> Grammar:
        calls.append("slow")
        begun.set()
        assert go_on.wait(30)
        return compile_regex("b+", vocab)

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(vocab.compiled, "key", slow)
        assert begun.wait(30)
        second = pool.submit(vocab.compiled, "key", slow)
        go_on.set()
        assert first.result(30) is second.result(30)
    assert calls == ["slow"]


def test_a_failed_compilation_is_not_kept(vocab: Vocabulary) -> None:
    def fail() -> Grammar:
        raise GrammarError("no")

    with pytest.raises(GrammarError):
        vocab.compiled("fails", fail)
    made = compile_regex("c+", vocab)
    assert vocab.compiled("fails", lambda: made) is made
