"""Every method of `select` gives what separate passes over each choice give."""

from __future__ import annotations

import math

import pytest
from fakes import EOS, FakeBackend, FakeTokenizer
from harness import drain, make_engine, run, submit, text
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import Oracle, _log_softmax

from sglite.options import Sampling
from sglite.runtime.engines.base import StepRefused
from sglite.runtime.segment import Select

CHOICES = ["yes", "no", "yes no", "y", "abc", "abd", "abcdabcd", "ö", " the", " the end", "the"]
METHODS = ["prob", "mean", "greedy", "pmi"]


def score(hole: Select, prompt: str = "hello ", **options):
    oracle = Oracle(10_000)
    oracle.run(text(prompt))
    expected = oracle.run(hole)
    result = run(make_engine(**options), text(prompt), hole).results[0]
    assert (result.text, result.ids, result.finish) == expected
    return result, oracle


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.sampled_from(CHOICES), min_size=1, max_size=8, unique=True),
    st.sampled_from(METHODS),
    st.sampled_from([(), (".",), ("\n\n", " t")]),
    st.sampled_from([1, 3, 512]),
    st.sampled_from(["hello ", "zab", "hello t", "y"]),
)
def test_scores_equal_separate_passes(choices, method, until, chunk, prompt):
    until = until if method in ("prob", "greedy") else ()
    hole = Select("s", tuple(choices), method=method, until=until)
    result, oracle = score(hole, prompt, chunk_tokens=chunk)
    assert list(result.scores) == choices == list(result.distribution)
    assert list(result.scores.values()) == pytest.approx(oracle.scores, rel=1e-5, abs=1e-5)
    assert list(result.distribution.values()) == pytest.approx(oracle.distribution, rel=1e-4)
    assert sum(result.distribution.values()) == pytest.approx(1)


def test_text_of_the_prompt_is_in_no_score():
    """Healing puts the last token of the prompt before every choice: it counts to none."""
    for method in METHODS:
        choices = (" yes", " no", " the end")
        result, _ = score(Select("s", choices, method=method), prompt="zab")
        assert result.healed == "ab"
        plain, _ = score(Select("s", choices, method=method), prompt="zabcd")
        assert plain.healed == ""
        if method == "mean":
            oracle = Oracle(1000)
            oracle.run(text("zab"))
            logprob = _log_softmax(oracle.ids)[result.ids[1]]
            assert result.ids[0] == oracle.ids[-1]
            chosen = result.text
            assert result.scores[chosen] == pytest.approx(
                (logprob + _rest(oracle.ids, result.ids[1:])) / (len(result.ids) - 1), abs=1e-5
            )


def _rest(before, ids):
    return sum(_log_softmax([*before, *ids[:at]])[token] for at, token in enumerate(ids) if at)


@pytest.mark.parametrize("method", METHODS)
def test_a_temperature_draws_from_the_distribution(method):
    counts = dict.fromkeys(("yes", "no", "abc"), 0)
    engine = make_engine(check=False)
    for key in range(400):
        hole = Select(
            "s", tuple(counts), key * 0x9E3779B97F4A7C15 % 2**64, Sampling(temperature=1), method
        )
        result = run(engine, text("hello "), hole).results[0]
        counts[result.text] += 1
    for choice, count in counts.items():
        share = result.distribution[choice]
        assert abs(count / 400 - share) < 4.5 * (share * (1 - share) / 400) ** 0.5 + 1e-9


def test_a_terminator_is_part_of_the_probability_of_every_choice():
    """Without one, a choice that begins another one counts all that does not go on into that."""
    choices = ("ye", "yes", "no")
    plain, _ = score(Select("s", choices, method="prob"))
    ended, _ = score(Select("s", choices, method="prob", until=(".",)))
    assert all(ended.scores[c] < plain.scores[c] for c in choices)


def test_what_the_greedy_way_finds_need_not_be_the_most_probable():
    differ = 0
    for number in range(40):
        hole = Select("s", tuple(CHOICES), method="greedy")
        result, _ = score(hole, prompt=f"{number} ")
        differ += result.text != max(result.distribution, key=result.distribution.get)
    assert differ


def test_pmi_is_zero_where_the_prompt_says_nothing():
    """A prompt that is only the beginning of a text: each choice is scored against itself."""
    result = run(make_engine(), Select("s", ("yes", "no"), method="pmi")).results[0]
    assert list(result.scores.values()) == pytest.approx([0.0, 0.0])
    assert result.distribution == pytest.approx({"yes": 0.5, "no": 0.5})


def test_pmi_without_a_token_that_begins_a_text_takes_the_end_of_one():
    engine = make_engine(tokenizer=FakeTokenizer(add_bos=False, bos_id=None))
    result = run(engine, text("zz"), Select("s", ("yes", "no"), method="pmi")).results[0]
    oracle = Oracle(1000, FakeTokenizer().encode("zz"))
    alone = Oracle(1000, [EOS])
    plain = Select("s", ("yes", "no"))
    oracle.run(plain), alone.run(plain)
    expected = [a - b for a, b in zip(oracle.scores, alone.scores, strict=True)]
    assert list(result.scores.values()) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_a_thousand_choices_are_one_hole(method):
    choices = tuple(f"{a}{b}{c}" for a in "abcdefghij" for b in "klmnopqrst" for c in "uvwxyzABCD")
    backend = FakeBackend(pages=400)
    engine = make_engine(backend, check=False)
    row = submit(engine, engine.open(), text("hello " * 10), Select("s", choices, method=method))
    drain(engine)
    result = row.results[0]
    assert len(result.distribution) == 1000
    inner = 10 + 100
    passes = 2 if method == "pmi" else 1
    prompt = result.usage.prompt_tokens
    assert backend.computed <= prompt + passes * (inner + 2)
    assert engine.stats()["steps"] < 30 * passes
    oracle = Oracle(10_000)
    oracle.run(text("hello " * 10))
    for choice in choices[::333]:
        one = Select("s", (choice, choices[0]), method=method)
        branch = oracle.fork()
        branch.run(one)
        if method in ("mean", "pmi"):
            assert result.scores[choice] == pytest.approx(branch.scores[0], abs=1e-5)


def test_pages_are_given_back_and_rows_of_a_batch_agree():
    plans = [
        (text(f"{n} hello "), Select("s", tuple(CHOICES), n, Sampling(temperature=1), method))
        for n in range(4)
        for method in METHODS
    ]
    engine = make_engine(FakeBackend(pages=40, max_context=4096))
    rows = [submit(engine, engine.open(), *plan) for plan in plans]
    drain(engine)
    for plan, row in zip(plans, rows, strict=True):
        oracle = Oracle(10_000)
        oracle.run(plan[0])
        assert oracle.run(plan[1]) == (row.results[0].text, row.results[0].ids, "select")
    for number in range(len(plans)):
        engine.close(number)
    drain(engine)
    assert engine.stats()["pages_used"] == engine.stats()["pages_cached"]


@pytest.mark.parametrize(
    ("hole", "message"),
    [
        (Select("s", ("a",), method="mode"), "one of prob, mean, greedy, pmi"),
        (Select("s", ("a",), method="mean", until=(".",)), "goes with method='prob' or 'greedy'"),
        (Select("s", ("a",), until=("",)), "until text must not be empty"),
    ],
)
def test_what_no_method_can_do_is_refused(hole, message):
    with pytest.raises(StepRefused, match=message):
        run(make_engine(), text("z"), hole)


def test_one_choice_has_a_score_too():
    result, oracle = score(Select("s", ("abcdabcd",), method="mean"))
    assert result.distribution == {"abcdabcd": 1.0}
    assert result.scores["abcdabcd"] == pytest.approx(oracle.scores[0], abs=1e-5)
    assert math.isfinite(result.scores["abcdabcd"])
