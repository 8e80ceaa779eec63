"""What a hole can be asked for beyond its constraint: a least length, marks, bias, penalties,
the outcomes beside the one that was drawn, and leaving the state again."""

from __future__ import annotations

import math
import time
from types import SimpleNamespace

import numpy as np
import pytest
from fakes import BOS, EOS, SPECIAL, TOKEN_BYTES, TURN, FakeBackend, FakeTokenizer, FakeVocabulary
from harness import drain, make_engine, run, submit, text
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import Oracle
from test_engine import LONG, gen, oracle_of, outcome, small_vocabulary, words

from sglite.errors import DeadlineError, GrammarError
from sglite.kernels.reference import sampling as reference
from sglite.options import Sampling
from sglite.runtime.engine import LocalEngine
from sglite.runtime.engines.base import StepRefused
from sglite.runtime.outcomes import most_probable
from sglite.runtime.segment import Append, Constraint, Gen, Piece, Select

HOT = Sampling(temperature=1.2)


def token(piece: str) -> int:
    return TOKEN_BYTES.index(piece.encode())


# Ends


@pytest.mark.parametrize("least", [0, 1, 7])
def test_free_text_has_its_least_length_whatever_would_end_it(least):
    ends = {"stop": ("a", "y"), "stop_ids": (token("ab"),), "stop_regex": ("[b-e]+",)}
    for key in range(40):
        hole = Gen("x", key, max_tokens=12, sampling=HOT, min_tokens=least, **ends)
        result = run(make_engine(), text("z"), hole).results[0]
        assert len(result.ids) >= least
        assert not {EOS, *hole.stop_ids} & set(result.ids)
        if least:
            assert len(result.ids) == 12 or result.finish in ("eos", "stop")


def test_a_constrained_hole_goes_on_as_long_as_it_can():
    for key in range(30):
        hole = Gen("w", key, Constraint("regex", "a|ab|abc|abcd|no"), 8, HOT, min_tokens=3)
        result = run(make_engine(), text("z"), hole).results[0]
        assert result.text in ("abcd", "no", "abc", "ab", "a")
        if result.text in ("a", "ab", "abc"):  # one token of its own each
            assert result.finish == "grammar", result
            raise AssertionError("it could have gone on")


def test_a_real_grammar_is_not_ended_before_the_least_length():
    for key in range(20):
        hole = Gen("w", key, Constraint("regex", "[a-c]+"), 12, HOT, until=("c.",), min_tokens=6)
        result = run(small_engine(), text("z"), hole).results[0]
        assert len(result.ids) >= 6
        assert set(result.text) <= set("abc")


def test_the_least_length_cannot_be_above_the_most():
    with pytest.raises(StepRefused, match="min_tokens must be from 0 to max_tokens=8, got 9"):
        run(make_engine(), text("z"), gen(min_tokens=9))


def test_a_stop_text_that_is_a_special_token_ends_the_hole_at_that_token():
    finishes = set()
    for key in range(60):
        hole = Gen("x", key, max_tokens=30, sampling=HOT, stop=("<turn>",), ignore_eos=key % 2 == 0)
        biased = Gen("x", key, **{**_fields(hole), "logit_bias": ((TURN, 6.0),)})
        row = run(make_engine(), text("z"), biased)
        result = row.results[0]
        assert TURN not in row.ids
        assert (result.finish == "stop") == (result.stop == "<turn>")
        finishes.add(result.finish)
        if hole.ignore_eos:
            assert result.finish != "eos"
    assert "stop" in finishes


def _fields(hole: Gen) -> dict:
    left_out = ("name", "key", "logit_bias")
    return {f: getattr(hole, f) for f in hole.__dataclass_fields__ if f not in left_out}


def small_engine(**options) -> LocalEngine:
    options = {"check": True, "threaded": False} | options
    return LocalEngine("fake", FakeBackend(), FakeTokenizer(), small_vocabulary(), **options)


def test_in_a_constrained_hole_what_begins_a_match_counts_to_the_end():
    ended = 0
    for key in range(40):
        hole = Gen("w", key, Constraint("regex", "[a-c]+"), 8, HOT, stop_regex=("[d-z ]+x",))
        plain = Gen("w", key, Constraint("regex", "[a-c]+"), 8, HOT)
        results = [run(small_engine(), text("z"), h).results[0] for h in (hole, plain)]
        assert set(results[0].text) <= set("abc")
        ended += results[0].finish == "eos"
    assert ended
    with pytest.raises(StepRefused) as refused:
        run(small_engine(), text("z"), Gen("w", 0, Constraint("regex", "a+"), stop_regex=("(",)))
    assert isinstance(refused.value.error, GrammarError)


# Logits


def test_a_bias_forbids_and_forces():
    free = run(make_engine(), text("z"), gen()).results[0].ids
    banned = tuple((t, -math.inf) for t in set(free))
    result = run(make_engine(), text("z"), gen(logit_bias=banned)).results[0]
    assert not set(free) & set(result.ids)
    forced = run(make_engine(), text("z"), gen(logit_bias=((token("q"), 100.0),))).results[0]
    assert forced.text == "q" * 8


def test_a_bias_that_leaves_nothing_says_so():
    hole = words("yes", logit_bias=tuple((t, -math.inf) for t in range(3, len(TOKEN_BYTES))))
    engine = make_engine()
    bad = submit(
        engine,
        engine.open(),
        text("z"),
        Gen("w", 0, Constraint("regex", "ya|no|ab"), logit_bias=hole.logit_bias),
    )
    good = submit(engine, engine.open(), text("z"), gen())
    drain(engine)
    assert isinstance(bad.error, ValueError)
    assert "'w': logit_bias forbids every id" in str(bad.error)
    assert outcome(good) == oracle_of(text("z"), gen())


@pytest.mark.parametrize(
    ("bias", "message"),
    [
        (((99999, 1.0),), "not in the vocabulary"),
        (((5, math.inf),), "must be a number or -inf"),
        (((5, math.nan),), "must be a number or -inf"),
        (((5, 1.0), (5, 2.0)), "twice"),
    ],
)
def test_biases_that_make_no_sense_are_refused(bias, message):
    with pytest.raises(StepRefused, match=message):
        run(make_engine(), text("z"), gen(logit_bias=bias))


def test_shaping_a_row_does_not_touch_the_others():
    shaped = Sampling(
        temperature=1.0, repetition_penalty=1.8, presence_penalty=0.5, frequency_penalty=0.9
    )
    plans = [
        (
            text(f"{n}zz" * 10),
            gen(
                key=n,
                max_tokens=60,
                sampling=shaped if n % 2 else HOT,
                logit_bias=((token("a"), 2.0),) if n % 3 else (),
                top_logprobs=2 if n % 5 == 0 else 0,
            ),
        )
        for n in range(5)
    ]
    engines = [make_engine(FakeBackend(pages=p, max_context=4096)) for p in (200, 10)]
    for engine in engines:
        rows = [submit(engine, engine.open(), *plan) for plan in plans]
        drain(engine)
        assert [outcome(row) for row in rows] == [oracle_of(*plan) for plan in plans]
    assert engines[1].stats()["preemptions"] > 0


def test_a_penalty_makes_repetitions_rarer():
    def repeats(**options) -> int:
        sampling = Sampling(temperature=1.0, **options)
        ids = [
            run(make_engine(), text("z"), gen(key=k, max_tokens=40, sampling=sampling))
            .results[0]
            .ids
            for k in range(4)
        ]
        return sum(len(i) - len(set(i)) for i in ids)

    plain = repeats()
    assert plain > 9
    assert repeats(repetition_penalty=3.0) < plain / 2
    assert repeats(presence_penalty=4.0) < plain / 2
    assert repeats(frequency_penalty=4.0) < plain / 2


# The outcomes beside the drawn one


def test_top_logprobs_are_those_of_the_masked_distribution():
    holes = [
        gen(ignore_eos=False, top_logprobs=9, sampling=HOT, min_tokens=2, max_tokens=30, key=3),
        words("yes", "yessir", "no", "abcdef", top_logprobs=5),
        gen(stop=("ab",), top_logprobs=2),
    ]
    for hole in holes:
        oracle = Oracle(1000)
        oracle.run(text("z"))
        expected = oracle.run(hole)
        result = run(make_engine(), text("z"), hole).results[0]
        assert (result.text, result.ids, result.finish) == expected
        assert len(result.top_logprobs) == len(result.ids)
        tops = iter(oracle.tops)
        for drawn, logprob, top in zip(
            result.ids, result.logprobs, result.top_logprobs, strict=True
        ):
            if top == {drawn: 0.0} and logprob == 0.0:
                continue  # forced, or encoded anew before a stop text
            whole = next(tops)
            assert list(top) == list(whole)[: hole.top_logprobs]
            assert list(top.values()) == pytest.approx(list(whole.values())[: len(top)], abs=1e-4)
            assert whole[drawn] == pytest.approx(logprob, abs=1e-4)
    ends = [-1 in top for top in run(make_engine(), text("z"), holes[0]).results[0].top_logprobs]
    assert ends[:2] == [False, False]
    assert any(ends)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 9), st.booleans())
def test_most_probable_outcomes_equal_the_plain_definition(seed, count, rest):
    rng = np.random.default_rng(seed)
    logits = rng.integers(-4, 4, 70).astype(np.float32)
    allowed = rng.random(70) < rng.choice([0.05, 0.5, 1.0])
    allowed[rng.integers(70)] = True
    ends = rng.choice(70, rng.integers(0, 4), replace=False).tolist()
    mask = reference.pack_mask(allowed)
    found = reference.outcomes(logits, mask, ends, rest) if (allowed.sum() > 5) else None
    if found is None:
        return
    order = sorted(range(len(found.ids)), key=lambda i: (-found.logits[i], i))[:count]
    top = most_probable(logits, mask, ends, rest, count)
    assert list(top) == [int(found.ids[i]) for i in order]
    assert list(top.values()) == pytest.approx(found.logprobs()[order].tolist(), abs=1e-5)


# What leaves the state


def test_a_hidden_hole_leaves_the_state_as_it_was():
    engine = make_engine()
    hidden = gen("h", hidden=True, max_tokens=20)
    steps = (text(LONG, " t"), hidden, Select("s", ("he", "x"), hidden=True), gen("y"))
    row = run(engine, *steps)
    plain = run(make_engine(), steps[0], steps[3])
    assert outcome(row)[2] == outcome(plain)[0]
    assert row.ids == plain.ids
    assert outcome(row)[:2] == oracle_of(*steps)[:2]
    assert row.results[0].text
    assert [r.healed for r in row.results] == [" t", " t", " t"]
    prompts = [r.usage.prompt_tokens for r in row.results]
    assert sum(prompts) == plain.results[0].usage.prompt_tokens + 2 * 0 + prompts[1] + prompts[2]


def test_steps_are_dropped_when_the_hole_that_needed_them_has_ended():
    engine = make_engine()
    open_, close = (Append((Piece(t, "template"),)) for t in ("<turn>", "</s>"))
    steps = (text("hello"), open_, gen("t", max_tokens=30), close, words("yes", "no", drops=3))
    row = run(engine, *steps, text("zz"), gen("y"))
    seen = oracle_of(*steps[:4], words("yes", "no"))
    assert outcome(row)[:2] == seen
    value = row.results[1].ids
    state = (BOS, *FakeTokenizer().encode("hello"), *value, *FakeTokenizer().encode("zz"))
    assert row.ids[: len(state)] == state
    oracle = Oracle(1000, state)
    assert outcome(row)[2] == oracle.run(gen("y"))


def test_the_memory_of_what_left_is_given_back():
    engine = make_engine(FakeBackend(pages=8, max_context=4096), prefix_cache=False)
    sequence = engine.open()
    for _ in range(5):
        row = submit(engine, sequence, text("z"), gen(max_tokens=60, hidden=True))
        drain(engine)
        assert row.results[0].finish == "length"
    assert row.ids == (BOS, *[token("z")] * 5)


# Ids that were generated before


def test_ids_stand_in_the_prompt_as_they_are():
    row = run(make_engine(), text("z"), gen())
    again = Append((Piece("z"), Piece(row.results[0].text, "ids", row.results[0].ids), Piece(" t")))
    first = run(make_engine(), text("z"), gen(), text(" t"), gen("y"))
    second = run(make_engine(), again, gen("y"))
    assert second.ids == first.ids
    spelled = (token("a"), token("b"))  # the tokeniser would write one token
    assert run(make_engine(), Append((Piece("ab", "ids", spelled),))).ids == (BOS, *spelled)
    with pytest.raises(StepRefused, match="id 99999 is not in the vocabulary"):
        run(make_engine(), Append((Piece("", "ids", (99999,)),)))


def test_ids_are_never_healed():
    prompt = Append((Piece("z"), Piece(" t", "ids", (token(" "), token("t")))))
    row = run(make_engine(), prompt, words("he end"))
    assert row.results[0].healed == ""
    assert row.ids[:4] == (BOS, token("z"), token(" "), token("t"))


# Deadlines


def test_what_is_not_done_at_its_deadline_fails_forks_included(monkeypatch):
    engine = make_engine(FakeBackend(pages=200))
    late = engine.open(deadline=time.monotonic() + 1000)
    first = submit(engine, late, text(LONG), gen(max_tokens=2))
    children = engine.fork(late, 2)
    rows = [submit(engine, c, text("z"), gen(max_tokens=300)) for c in children]
    queued = submit(engine, late, text("z"), gen(max_tokens=300), Select("s", ("a", "b")))
    other = submit(engine, engine.open(), text(LONG), gen(max_tokens=30))
    in_time = submit(engine, engine.open(deadline=time.monotonic() + 9000), text("z"), gen())
    while not first.terminal:
        engine.step()
    later = SimpleNamespace(monotonic=lambda: time.monotonic() + 2000)
    monkeypatch.setattr("sglite.runtime.lifecycle.time", later)
    drain(engine)
    assert first.error is None
    for row in (*rows, queued):
        assert row.terminal == 1
        assert isinstance(row.error, DeadlineError)
    assert outcome(other) == oracle_of(text(LONG), gen(max_tokens=30))
    assert outcome(in_time) == oracle_of(text("z"), gen())
    after = submit(engine, late, gen())
    unborn = submit(engine, engine.fork(late, 1)[0], gen())
    drain(engine)
    assert isinstance(after.error, DeadlineError)
    assert isinstance(unborn.error, DeadlineError)
    for number in range(8):
        engine.close(number)
    drain(engine)
    assert engine.stats()["pages_used"] == engine.stats()["pages_cached"]


def test_a_deadline_that_has_passed_runs_nothing():
    backend = FakeBackend()
    engine = make_engine(backend)
    row = submit(engine, engine.open(deadline=time.monotonic() - 1), text("z"), gen())
    drain(engine)
    assert isinstance(row.error, DeadlineError)
    assert backend.batches == []


def test_the_engine_says_how_many_ids_a_sequence_can_have():
    assert make_engine(FakeBackend(pages=5, max_context=4096)).capacity == 64
    assert make_engine(FakeBackend(pages=50, max_context=100)).capacity == 100
    assert SPECIAL["<turn>"] == TURN
    assert FakeVocabulary().eos_ids == (EOS,)
