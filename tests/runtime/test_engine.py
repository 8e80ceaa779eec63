"""What the engine promises beyond the tokens: sharing, fairness, refusals, failures, usage."""

from __future__ import annotations

import json
import re
import threading
import time
from array import array

import pytest
from fakes import BOS, EOS, TOKEN_BYTES, TURN, FakeBackend, FakeTokenizer
from harness import Collector, drain, make_engine, run, submit, text
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import Oracle

from sglite.errors import CancelledError, CapacityError, ModelError
from sglite.grammars import Vocabulary
from sglite.options import Sampling
from sglite.runtime.cache.pages import PagePool
from sglite.runtime.engine import LocalEngine
from sglite.runtime.engines.base import StepRefused
from sglite.runtime.segment import Append, Constraint, Gen, Piece, Segment, Select
from sglite.runtime.sequence import Sequence

LONG = "hello the world, " * 12


def gen(name="x", **options) -> Gen:
    return Gen(name, **({"ignore_eos": True, "max_tokens": 8} | options))


def words(*choices: str, **options) -> Gen:
    return Gen("w", constraint=Constraint("regex", "|".join(choices)), **options)


def oracle_of(*steps):
    oracle = Oracle(10_000)
    return [result for step in steps if (result := oracle.run(step)) is not None]


def outcome(collector: Collector):
    assert collector.error is None, collector.error
    return [(r.text, r.ids, r.finish) for r in collector.results]


# Sharing


def test_rows_that_share_a_prefix_prefill_it_once():
    backend = FakeBackend(pages=200)
    engine = make_engine(backend)
    rows = [
        submit(engine, engine.open(), text(LONG, f"{n}z"), gen(max_tokens=1)) for n in range(20)
    ]
    drain(engine)
    shared = len(FakeTokenizer().encode(LONG)) // 16 * 16
    alone = sum(r.results[0].usage.prompt_tokens for r in rows)
    assert backend.computed <= alone - 19 * shared
    assert sum(r.results[0].usage.cached_tokens for r in rows) >= 19 * shared
    usage = engine.stats()
    assert usage["prompt_tokens"] - usage["cached_tokens"] == backend.computed


def test_forks_prefill_their_parent_once_also_without_a_prefix_cache():
    backend = FakeBackend(pages=200)
    engine = make_engine(backend, prefix_cache=False)
    parent = engine.open()
    submit(engine, parent, text(LONG, "zz"))
    children = engine.fork(parent, 8)
    rows = [submit(engine, c, text(f"{n}z"), gen(max_tokens=1)) for n, c in enumerate(children)]
    drain(engine)
    prompt = rows[0].results[0].usage.prompt_tokens
    assert backend.computed == prompt - 3 + 8 * 3
    assert sum(r.results[0].usage.cached_tokens for r in rows) == 8 * (prompt - 3)
    assert engine.stats()["pages_cached"] == 0


def test_the_second_run_finds_the_first_in_the_cache():
    engine = make_engine()
    steps = (text(LONG, "zz"), gen())
    first, second = run(engine, *steps), run(engine, *steps)
    assert outcome(first) == outcome(second)
    assert first.results[0].usage.cached_tokens == 0
    usage = second.results[0].usage
    assert usage.prompt_tokens - 16 <= usage.cached_tokens < usage.prompt_tokens


def test_a_hole_behind_a_fork_counts_what_came_from_the_cache():
    engine = make_engine()
    steps = (text(LONG, "zz"), gen())
    plain = [run(engine, *steps).results[0].usage for _ in range(2)]
    for expected in plain[1], plain[1]:
        sequence = engine.open()
        submit(engine, sequence, steps[0])
        engine.fork(sequence, 1)
        row = submit(engine, sequence, steps[1])
        drain(engine)
        assert row.results[0].usage == expected


def test_a_multi_turn_sequence_computes_every_id_once():
    backend = FakeBackend()
    engine = make_engine(backend)
    sequence = engine.open()
    for _ in range(4):
        row = submit(engine, sequence, text("\n\nuser: hello the worldz"), gen(max_tokens=5))
        drain(engine)
    assert row.ids is not None
    assert backend.computed == len(row.ids) - 1


# Memory


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 99), st.integers(1, 40)), min_size=3, max_size=6),
    st.integers(12, 22),
    st.booleans(),
    st.sampled_from([8, 64]),
)
def test_preemption_changes_no_token(rows, pages, prefix_cache, chunk):
    engine = make_engine(
        FakeBackend(pages=pages, max_context=4096), prefix_cache=prefix_cache, chunk_tokens=chunk
    )
    hot = Sampling(temperature=1.0)
    plans = [
        (
            text(f"{n}z " * 12),
            gen(max_tokens=m, key=n, sampling=hot),
            text(" or "),
            words("abcde", "yes"),
            text("z"),
            Select("s", ("yes", "no", "yes no"), n, hot),
        )
        for n, m in rows
    ]
    collectors = [submit(engine, engine.open(), *plan) for plan in plans]
    drain(engine)
    for plan, collector in zip(plans, collectors, strict=True):
        assert outcome(collector) == oracle_of(*plan)


def test_pages_run_out_and_the_later_row_waits():
    engine = make_engine(FakeBackend(pages=12, max_context=4096))
    plans = [(text(f"{n}zz" * 10), gen(max_tokens=80)) for n in range(4)]
    rows = [submit(engine, engine.open(), *plan) for plan in plans]
    drain(engine)
    assert engine.stats()["preemptions"] > 0
    for plan, row in zip(plans, rows, strict=True):
        assert outcome(row) == oracle_of(*plan)


def test_what_can_never_fit_is_refused_with_the_numbers():
    engine = make_engine(FakeBackend(pages=5, max_context=4096))
    with pytest.raises(StepRefused, match=r"101 tokens of text.*hold 64"):
        submit(engine, engine.open(), text("z" * 101), gen())
    with pytest.raises(CapacityError, match=r"prompt has 64 tokens.*hold 64"):
        run(engine, text("z" * 63), gen())
    with pytest.raises(CapacityError, match=r"needs at least 3 tokens.*room for 2"):
        run(engine, text("z" * 61), words("zzz"))
    with pytest.raises(CapacityError, match="needs 65 tokens with its longest choice"):
        run(engine, text("z" * 61), Select("s", ("z", "zzz")))
    with pytest.raises(CapacityError, match="1 pages"):
        make_engine(FakeBackend(pages=1))


def test_a_full_context_ends_free_text():
    engine = make_engine(FakeBackend(pages=5, max_context=4096))
    result = run(engine, text("z" * 60), gen(max_tokens=50)).results[0]
    assert (result.finish, len(result.ids)) == ("context", 3)
    result = run(engine, text("z" * 60), gen(max_tokens=3)).results[0]
    assert result.finish == "length"


# Fairness


def finished_order(engine, plans) -> list[int]:
    order: list[int] = []

    def sink_of(number):
        return lambda event: order.append(number) if hasattr(event, "ids") else None

    for number, (priority, steps) in enumerate(plans):
        engine.submit(engine.open(priority=priority), Segment(steps), sink_of(number))
    drain(engine)
    return order


def test_higher_priority_runs_first():
    engine = make_engine(max_rows=1)
    steps = (text("z"), gen(max_tokens=4))
    assert finished_order(engine, [(0, steps), (5, steps), (1, steps)]) == [1, 2, 0]


def test_higher_priority_takes_the_row_of_a_running_sequence_and_gives_it_back():
    engine = make_engine(max_rows=1)
    plan = (text("first "), gen(max_tokens=30))
    low = submit(engine, engine.open(), *plan)
    for _ in range(10):
        engine.step()
    high = submit(engine, engine.open(priority=1), text("z"), gen())
    while not high.terminal:
        assert not low.terminal
        engine.step()
    drain(engine)
    assert outcome(low) == oracle_of(*plan)
    assert engine.stats()["preemptions"] == 1


def test_waiting_makes_up_for_priority():
    """Under a stream of high-priority rows that never ends, a low one is served in time."""
    engine = make_engine(max_rows=1)
    low = submit(engine, engine.open(priority=0), text("low"), gen(max_tokens=2))
    for number in range(1200):
        if low.terminal:
            break
        sequence = engine.open(priority=1)
        submit(engine, sequence, text(f"{number}"), gen(max_tokens=1))
        engine.step()
    assert low.terminal
    assert number > 200


def test_decodes_go_on_while_a_long_prompt_is_prefilled():
    engine = make_engine(FakeBackend(max_context=2000, pages=200), chunk_tokens=16)
    short = submit(engine, engine.open(), text("z"), gen(max_tokens=12))
    engine.step()
    long = submit(engine, engine.open(), text("zq" * 200), gen(max_tokens=1))
    for _ in range(12):
        engine.step()
    assert short.terminal
    assert not long.terminal
    drain(engine)
    assert long.terminal


def test_a_step_costs_the_same_however_many_wait():
    def seconds_per_step(waiting: int) -> float:
        engine = make_engine(FakeBackend(pages=64), max_rows=1, check=False)
        for number in range(waiting):
            submit(engine, engine.open(), text(f"{number}"), gen(max_tokens=200))
        engine.step()
        start = time.perf_counter()
        for _ in range(50):
            engine.step()
        return time.perf_counter() - start

    ratios = [seconds_per_step(3000) / seconds_per_step(3) for _ in range(3)]
    assert min(ratios) < 3, ratios


# Ends


def test_cancelling_at_every_step_gives_everything_back():
    plan = (
        text(LONG),
        gen(),
        text(" z"),
        words("abcde", "yes"),
        text("z"),
        Select("s", ("yes", "no", "yes no", "abc")),
        text("\n\n"),
        gen(),
    )
    total = 0
    while True:
        backend = FakeBackend(pages=60)
        engine = make_engine(backend, chunk_tokens=64)
        other = submit(engine, engine.open(), *plan)
        parent = engine.open()
        victims = [submit(engine, parent, *plan)]
        for child in engine.fork(parent, 2):
            victims.append(submit(engine, child, text("z"), gen()))
        for _ in range(total):
            engine.step()
        finished = all(v.terminal for v in victims)
        for sequence in (parent, parent + 1, parent + 2):
            engine.close(sequence)
        drain(engine)
        for victim in victims:
            assert victim.terminal == 1
            assert victim.error is None or isinstance(victim.error, CancelledError)
        assert outcome(other) == oracle_of(*plan)
        engine.close(0)
        drain(engine)
        assert engine.stats()["pages_used"] == engine.stats()["pages_cached"]
        engine.shutdown()
        if finished:
            break
        total += 1
    assert total > 20


@pytest.mark.parametrize("together", [False, True])
def test_a_failing_forward_fails_only_its_row(together):
    backend = FakeBackend(pages=100)
    backend.poison = TOKEN_BYTES.index(b"#")
    engine = make_engine(backend)
    plan = (text(LONG, "z"), gen())
    good = [submit(engine, engine.open(), *plan)]
    if not together:
        drain(engine)
    bad = submit(engine, engine.open(), text("z#z"), gen())
    good.append(submit(engine, engine.open(), *plan))
    drain(engine)
    assert isinstance(bad.error, FloatingPointError)
    assert bad.failed_step == 1
    for row in good:
        assert outcome(row) == oracle_of(*plan)


def test_a_failing_grammar_or_sink_fails_only_its_row():
    engine = make_engine()
    plan = (text("z"), words("yes", "no", "abcde"), text("z"), gen())

    class Angry(Collector):
        def __call__(self, event):
            if self.results:
                raise OSError("gone")
            super().__call__(event)

    angry = Angry()
    engine.submit(engine.open(), Segment(plan), angry)
    bad = submit(engine, engine.open(), text("z"), words("boom", "bang"))
    good = submit(engine, engine.open(), *plan)
    drain(engine)
    assert isinstance(bad.error, ArithmeticError)
    assert outcome(good) == oracle_of(*plan)
    assert len(angry.results) == 1
    assert engine.stats()["failures"] == 2


def test_a_failed_sequence_takes_no_more_segments():
    engine = make_engine()
    sequence = engine.open()
    first = submit(engine, sequence, text("z"), words("abcdefghi", max_tokens=2))
    second = submit(engine, sequence, text("z"), gen())
    children = engine.fork(sequence, 2)
    third = submit(engine, children[1], gen())
    drain(engine)
    late = submit(engine, sequence, gen())
    drain(engine)
    for row in (first, second, third, late):
        assert row.terminal == 1
        assert isinstance(row.error, ValueError)
    assert "needs at least" in str(first.error)
    assert "max_tokens is 2" in str(first.error)


def test_arguments_out_of_range_are_refused_at_submit():
    engine = make_engine()
    sequence = engine.open()
    for bad, message in [
        (gen(max_tokens=0), "max_tokens must be at least 1"),
        (gen(stop=("",)), "must not be empty"),
        (gen(stop_ids=(99999,)), "not in the vocabulary"),
        (Select("s", ()), "has no choices"),
        (Select("s", ("a", "")), "empty text"),
        (Select("s", ("a", "b", "a")), "'a' twice"),
        (Append((Piece("two words", "special"),)), "one special token"),
    ]:
        with pytest.raises(StepRefused, match=message) as refused:
            submit(engine, sequence, text("a"), bad)
        assert refused.value.step == 1
        assert isinstance(refused.value.error, ValueError)
    with pytest.raises(ValueError, match="at least one branch"):
        engine.fork(sequence, 0)


# Text and tokens


def test_one_bos_whoever_writes_it():
    engine = make_engine()
    for start in (text("ab"), Append((Piece("<s>ab", "template"),))):
        ids = run(engine, start, gen()).ids
        assert ids is not None
        assert ids.count(BOS) == 1
        assert ids[0] == BOS
    assert run(engine, gen()).ids[0] == BOS
    plain = make_engine(tokenizer=FakeTokenizer(add_bos=False))
    assert run(plain, text("zab"), gen()).ids[0] != BOS
    assert run(plain, gen()).ids[0] == BOS
    with pytest.raises(ValueError, match="before any text"):
        run(make_engine(tokenizer=FakeTokenizer(add_bos=False, bos_id=None)), gen())


def test_only_the_beginning_of_a_sequence_has_the_space_of_the_model():
    engine = make_engine(tokenizer=FakeTokenizer(space_prefix=True))
    row = run(engine, text("ab"), words("he end"), text("ab"))
    assert b"".join(TOKEN_BYTES[t] for t in row.ids) == b" abhe endab"


def test_a_healed_value_does_not_repeat_the_prompt():
    row = run(make_engine(), text("z", " t"), words("he end"))
    assert row.results[0].text == "he end"
    assert TOKEN_BYTES[row.results[0].ids[0]] == b" the"
    assert row.ids is not None
    assert b"".join(TOKEN_BYTES[t] for t in row.ids) == b"z the end"


def test_a_stop_text_ends_value_and_state_before_it():
    for key in range(30):
        hole = gen(max_tokens=40, key=key, sampling=Sampling(temperature=1.3), stop=("b",))
        row = run(make_engine(), text("z"), hole)
        result = row.results[0]
        assert "b" not in result.text
        assert b"".join(TOKEN_BYTES[t] for t in row.ids or ()).decode("utf-8", "replace") == (
            "z" + result.text
        )
        assert (result.finish == "stop") == (result.stop == "b")
    assert result.finish == "stop"


def test_forced_ids_take_no_steps_of_their_own():
    backend = FakeBackend()
    engine = make_engine(backend)
    value = "quite a long one that is the only one"
    result = run(engine, text("z"), words(value, value + "!", max_tokens=60)).results[0]
    assert result.usage.forced_tokens > 20
    assert engine.stats()["steps"] == result.usage.decoded_tokens + (result.finish == "eos")
    assert all(p == 0.0 for p in result.logprobs[: result.usage.forced_tokens])


def test_a_value_that_is_wholly_forced_needs_no_forward():
    engine = make_engine()
    row = run(engine, text("z"), words("only"))
    assert row.results[0].text == "only"
    assert row.results[0].finish == "grammar"
    assert engine.stats()["steps"] == 0


def test_logprobs_are_those_of_the_masked_distribution():
    result = run(make_engine(), text("z"), words("yes", "no", "abcde")).results[0]
    assert all(p <= 0 for p in result.logprobs)
    assert result.logprobs[0] < 0


@given(
    st.lists(
        st.sampled_from(["yes", "no", "yes no", "y", "abc", "abd", "abcdabcd", "ö"]),
        min_size=2,
        max_size=8,
        unique=True,
    )
)
@settings(max_examples=30, deadline=None)
def test_select_keeps_the_whole_distribution(choices):
    oracle = Oracle(1000)
    oracle.run(text("hello "))
    hole = Select("s", tuple(choices))
    oracle.run(hole)
    row = run(make_engine(chunk_tokens=3), text("hello "), hole)
    distribution = row.results[0].distribution
    assert distribution is not None
    assert list(distribution) == choices
    assert list(distribution.values()) == pytest.approx(oracle.distribution, rel=1e-6)
    assert sum(distribution.values()) == pytest.approx(1)
    assert row.results[0].text == max(choices, key=lambda c: distribution[c])


def test_select_draws_from_its_distribution():
    engine, counts = make_engine(check=False), {"yes": 0, "no": 0}
    for key in range(400):
        hole = Select("s", ("yes", "no"), key * 0x9E3779B97F4A7C15 % 2**64, Sampling(temperature=1))
        result = run(engine, text("hello the world"), hole).results[0]
        counts[result.text] += 1
    expected = result.distribution["yes"]
    deviation = (expected * (1 - expected) / 400) ** 0.5
    assert abs(counts["yes"] / 400 - expected) < 4.5 * deviation


def test_a_fork_outlives_its_parent():
    engine = make_engine()
    parent = engine.open()
    submit(engine, parent, text(LONG, "z"))
    child = engine.fork(parent, 1)[0]
    row = submit(engine, child, gen())
    engine.step()
    engine.close(parent)
    drain(engine)
    assert outcome(row) == oracle_of(text(LONG, "z"), gen())


def test_each_fork_heals_for_itself():
    engine = make_engine()
    parent = engine.open()
    submit(engine, parent, text(LONG, " t"))
    rows = [submit(engine, child, words("he end")) for child in engine.fork(parent, 2)]
    plain = submit(engine, parent, text("x"), words("he end"))
    drain(engine)
    for row in rows:
        assert TOKEN_BYTES[row.results[0].ids[0]] == b" the"
    assert TOKEN_BYTES[plain.results[0].ids[0]] == b"he"


def test_page_hashes_follow_the_ids():
    sequence, fresh = (Sequence(n, PagePool(2)) for n in range(2))
    sequence.append_literal(array("i", range(40)), 0)
    before = list(sequence.chain(2))
    sequence.truncate(20)
    sequence.append_literal(array("i", range(50, 70)), 0)
    fresh.append_literal(sequence.ids, 0)
    assert sequence.chain(2) == fresh.chain(2)
    assert sequence.chain(2)[0] == before[0]
    assert sequence.chain(2)[1] != before[1]


def test_closing_a_parent_at_work_cancels_its_unborn_forks():
    engine = make_engine()
    parent = engine.open()
    work = submit(engine, parent, text(LONG, "z"), gen())
    row = submit(engine, engine.fork(parent, 1)[0], gen())
    engine.step()
    engine.close(parent)
    drain(engine)
    assert isinstance(work.error, CancelledError)
    assert isinstance(row.error, CancelledError)


def small_vocabulary() -> Vocabulary:
    return Vocabulary.from_tokens(
        TOKEN_BYTES,
        eos_ids=(EOS,),
        special_ids=(BOS, EOS, TURN),
        encode=FakeTokenizer().encode_bytes,
    )


def test_forced_ids_that_spend_the_budget_end_the_hole():
    backend = FakeBackend()
    engine = LocalEngine(
        "fake", backend, FakeTokenizer(), small_vocabulary(), check=True, threaded=False
    )
    spent = Gen("w", constraint=Constraint("regex", "qq(z)?"), max_tokens=2)
    row = run(engine, text("zz"), spent).results[0]
    assert (row.text, row.finish, row.usage.forced_tokens) == ("qq", "length", 2)
    assert backend.batches == []


def test_real_grammars_over_the_small_vocabulary():
    """The engine with `sglite.grammars`: regex and JSON Schema, healing, budgets, forced ids."""
    tokenizer = FakeTokenizer()
    vocabulary = small_vocabulary()
    schema = {
        "type": "object",
        "properties": {"yes": {"type": "integer"}, "no": {"enum": ["ab", 1]}},
        "required": ["yes", "no"],
        "additionalProperties": False,
    }
    engines = [
        LocalEngine(
            "fake",
            FakeBackend(pages=pages),
            tokenizer,
            vocabulary,
            check=True,
            threaded=False,
            chunk_tokens=chunk,
        )
        for pages, chunk in ((200, 512), (9, 8))
    ]
    plans = []
    for key in range(12):
        hot = Sampling(temperature=1.3)
        plans.append(
            (
                text("z" * key, " t"),
                Gen("r", key, Constraint("regex", r"(he|e) ?[a-c]{2,9}"), 24, hot),
                text("\n"),
                Gen("j", key, Constraint("json_schema", json.dumps(schema)), 40, hot),
                text(" t"),
                Gen("f", key, max_tokens=6, sampling=hot),
            )
        )
    outcomes = []
    for engine in engines:
        rows = [submit(engine, engine.open(), *plan) for plan in plans]
        drain(engine)
        outcomes.append([outcome(row) for row in rows])
        for row in rows:
            pattern, record, _ = row.results
            assert re.fullmatch(r"(he|e) ?[a-c]{2,9}", pattern.text), pattern
            value = json.loads(record.text)
            assert isinstance(value["yes"], int)
            assert value["no"] in ("ab", 1)
            assert record.usage.forced_tokens > 3
    assert outcomes[0] == outcomes[1]


# Threads


def wait_for(condition, seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "nothing happens"
        time.sleep(0.002)


def test_many_threads_talk_to_one_engine():
    engine = make_engine(threaded=True)
    plan = (text("hello the world"), gen())
    expected = oracle_of(*plan)
    wrong: list[object] = []

    def user():
        for _ in range(4):
            sequence = engine.open()
            row = submit(engine, sequence, *plan)
            wait_for(lambda row=row: row.terminal)
            if outcome(row) != expected:
                wrong.append(row)
            engine.close(sequence)

    threads = [threading.Thread(target=user) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    engine.shutdown()
    engine.shutdown()


def test_an_idle_engine_sleeps():
    engine = make_engine(threaded=True)
    row = submit(engine, engine.open(), text("z"), gen())
    wait_for(lambda: row.terminal)
    time.sleep(0.05)
    before = time.process_time()
    time.sleep(0.3)
    assert time.process_time() - before < 0.1
    engine.shutdown()


def test_shutdown_answers_everyone():
    backend = FakeBackend(pages=40)
    engine = make_engine(backend, threaded=True, max_rows=1)
    sequences = [engine.open() for _ in range(20)]
    rows = [submit(engine, s, text(LONG), gen(max_tokens=100)) for s in sequences]
    engine.shutdown()
    assert all(row.terminal == 1 for row in rows)
    assert any(isinstance(row.error, CancelledError) for row in rows)
    assert backend.closed
    with pytest.raises(CancelledError, match="shut down"):
        engine.open()
    engine.close(sequences[0])


def test_a_broken_engine_says_so(monkeypatch):
    engine = make_engine(threaded=True)
    monkeypatch.setattr(engine._scheduler, "plan", lambda: 1 // 0)
    sequence = engine.open()
    row = submit(engine, sequence, text("z"), gen())
    wait_for(lambda: row.terminal)
    assert isinstance(row.error, ModelError)
    assert "ZeroDivisionError" in str(row.error)
    with pytest.raises(ModelError, match="broke"):
        engine.open()


def test_the_row_is_the_same_in_every_batch():
    hot = Sampling(temperature=1.2, top_p=0.95)
    plans = [(text(f"row {n}"), gen(key=n, sampling=hot, max_tokens=20)) for n in range(10)]
    together = make_engine(FakeBackend(pages=200))
    rows = [submit(together, together.open(), *plan) for plan in plans]
    drain(together)
    alone = [run(make_engine(), *plan) for plan in plans]
    assert [outcome(row) for row in rows] == [outcome(row) for row in alone]
    assert len({row.results[0].text for row in rows}) == 10


def test_the_oracle_agrees_for_a_plain_plan():
    plan = (text(LONG), gen(max_tokens=30, key=3, sampling=Sampling(temperature=1)))
    assert outcome(run(make_engine(), *plan)) == oracle_of(*plan)


def test_the_first_token_has_its_own_time_also_after_forced_ones():
    backend = FakeBackend(pages=200)
    engine = make_engine(backend)
    forward = backend.forward

    def slow(plan):
        time.sleep(0.01)
        return forward(plan)

    backend.forward = slow
    choices = [f"hello{a}{b}{c}" for a in "qz" for b in "qz" for c in "qz"]
    result = run(engine, text("z"), words(*choices)).results[0]
    assert result.usage.forced_tokens > 0
    assert result.usage.decoded_tokens >= 2
    assert result.started_at < result.first_token_at
    later = result.usage.decoded_tokens - 1
    assert result.finished_at - result.first_token_at >= 0.01 * later


def test_only_the_logits_that_a_draw_reads_are_asked_for():
    backend = FakeBackend()
    engine = make_engine(backend)
    hole = words("yes no", "yes he", "no the", sampling=Sampling(temperature=1), max_tokens=8)
    rows = [submit(engine, engine.open(), text("hello"), hole) for _ in range(3)]
    drain(engine)
    assert backend.partial > 0
    alone = oracle_of(text("hello"), hole)
    assert [outcome(row) for row in rows] == [alone] * 3
