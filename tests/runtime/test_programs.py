"""Random programs on random small engines give exactly what one sequence at a time gives, with
every page accounted for after every step."""

from __future__ import annotations

import math

from fakes import EOS, FakeBackend
from harness import Collector, drain, make_engine, submit, text
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracle import Oracle

from sglite.errors import CancelledError
from sglite.options import Sampling
from sglite.runtime.segment import Append, Constraint, Gen, Piece, Select

SETTINGS = settings(
    max_examples=45, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=False
)
BITS = ["ab", "abc", " the", "yes", "ye", "ö", "\n\n", "1", "a ", "hello the world, ", "abcd" * 9]
CHOICES = ["yes", "no", "yes no", "abc", "abd", "abcde", "the", "the end", "ö", "日本"]
WORDS = ["yes", "yessir", "no", "abcdef", "abd", "1", "12", "123, 4", "ö!", "quite a long one"]

samplings = st.builds(
    Sampling,
    temperature=st.sampled_from([0.0, 0.0, 0.7, 1.5]),
    top_p=st.sampled_from([1.0, 0.9]),
    top_k=st.sampled_from([0, 20]),
    min_p=st.sampled_from([0.0, 0.01]),
    repetition_penalty=st.sampled_from([1.0, 1.0, 1.5]),
    presence_penalty=st.sampled_from([0.0, 0.0, 0.7]),
    frequency_penalty=st.sampled_from([0.0, 0.0, 1.1]),
)
biases = st.dictionaries(
    st.sampled_from([EOS, 100, 101, 259, 260]),
    st.sampled_from([-math.inf, -5.0, 3.0]),
    max_size=2,
).map(lambda bias: tuple(bias.items()))
keys = st.integers(0, 2**64 - 1)
appends = st.builds(
    Append,
    st.lists(
        st.builds(Piece, st.sampled_from(BITS), st.sampled_from(["user", "user", "template"]))
        | st.just(Piece("<turn>", "special"))
        | st.just(Piece("<turn>ab", "template"))
        | st.builds(Piece, st.just(""), st.just("ids"), st.sampled_from([(100, 101), (5,), ()])),
        max_size=4,
    ).map(tuple),
)
free = st.builds(
    Gen,
    st.just("free"),
    keys,
    max_tokens=st.integers(5, 20),
    sampling=samplings,
    stop=st.lists(st.sampled_from(["ab", "y", "bc", "ay", "<turn>"]), max_size=2, unique=True).map(
        tuple
    ),
    until=st.lists(st.sampled_from(["\n\n", "a"]), max_size=1).map(tuple),
    stop_ids=st.sampled_from([(), (5, 100)]),
    ignore_eos=st.booleans(),
    min_tokens=st.sampled_from([0, 0, 1, 5]),
    logit_bias=biases,
    stop_regex=st.sampled_from([(), (), ("[b-d]+e",), ("y.{0,3}b", "ö")]),
    hidden=st.booleans(),
    drops=st.just(0),
)
constrained = st.builds(
    Gen,
    st.just("constrained"),
    keys,
    st.builds(
        lambda words, force: Constraint("regex", "|".join(words), (("force", force),)),
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=5, unique=True),
        st.booleans(),
    ),
    max_tokens=st.integers(1, 16),
    sampling=samplings,
    until=st.lists(st.sampled_from([",", "s", "\n\n"]), max_size=1).map(tuple),
    min_tokens=st.sampled_from([0, 0, 1]),
    hidden=st.booleans(),
)
selects = st.builds(
    Select,
    st.just("pick"),
    st.lists(st.sampled_from(CHOICES), min_size=1, max_size=6, unique=True).map(tuple),
    keys,
    samplings,
    st.sampled_from(["prob", "mean", "greedy", "pmi"]),
    hidden=st.booleans(),
) | st.builds(
    Select,
    st.just("pick"),
    st.just(("yes", "yes no", "abc", "ö")),
    keys,
    samplings,
    st.sampled_from(["prob", "greedy"]),
    until=st.just((".", "\n\n")),
)
segments = st.lists(appends | free | constrained | selects, min_size=1, max_size=4)
engines = st.fixed_dictionaries(
    {
        "prefix_cache": st.booleans(),
        "chunk_tokens": st.sampled_from([1, 2, 7, 16, 64, 512]),
        "max_rows": st.sampled_from([1, 2, 5, 64]),
    }
)
actions = st.lists(
    st.one_of(
        st.tuples(st.just("open"), st.integers(0, 2)),
        st.tuples(st.just("submit"), st.integers(0, 30), segments),
        st.tuples(st.just("submit"), st.integers(0, 30), segments),
        st.tuples(st.just("fork"), st.integers(0, 30), st.integers(1, 3)),
        st.tuples(st.just("close"), st.integers(0, 30)),
        st.tuples(st.just("steps"), st.integers(1, 9)),
    ),
    min_size=2,
    max_size=14,
)


class Expected:
    """The oracle of one sequence; it stops at the first error, as the engine does."""

    def __init__(self, oracle: Oracle) -> None:
        self.oracle = oracle
        self.closed = False
        self.broken = False
        self.work: list[tuple[Collector, list]] = []

    def check(self) -> None:
        for collector, steps in self.work:
            assert collector.terminal == 1
            if isinstance(collector.error, CancelledError):
                assert self.closed
                return
            holes = []
            try:
                if self.broken:
                    raise ValueError("broken before")
                for step in steps:
                    result = self.oracle.run(step)
                    if result is not None:
                        holes.append(result)
            except ValueError:
                self.broken = True
                assert isinstance(collector.error, ValueError)
                continue
            assert collector.error is None, collector.error
            assert [(r.text, r.ids, r.finish) for r in collector.results] == holes
            assert collector.ids == tuple(self.oracle.ids)


@SETTINGS
@given(actions, engines, st.integers(20, 60))
def test_any_program_equals_the_oracle(script, options, pages):
    backend = FakeBackend(pages=pages, max_context=10_000)
    engine = make_engine(backend, **options)
    capacity = (pages - 1) * 16
    numbers = [engine.open()]
    expected = {numbers[0]: Expected(Oracle(capacity))}
    # A fork continues from the oracle's state at that point, so its ancestors' work comes first.
    lineage: dict[int, tuple[int, int]] = {}
    for action, *arguments in script:
        if action == "open":
            numbers.append(engine.open(priority=arguments[0]))
            expected[numbers[-1]] = Expected(Oracle(capacity))
            continue
        if action == "steps":
            for _ in range(arguments[0]):
                engine.step()
            continue
        number = numbers[arguments[0] % len(numbers)]
        own = expected[number]
        if action == "submit":
            collector = submit(engine, number, *arguments[1])
            if own.closed:
                engine.step()
                assert isinstance(collector.error, CancelledError)
            else:
                own.work.append((collector, arguments[1]))
        elif action == "close":
            engine.close(number)
            own.closed = True
        elif not own.closed:
            for child in engine.fork(number, arguments[1]):
                numbers.append(child)
                expected[child] = Expected(Oracle(capacity))
                lineage[child] = (number, len(own.work))
    drain(engine)

    for number in numbers:
        own = expected[number]
        if number in lineage:
            parent, seen = lineage[number]
            history, ancestor = expected[parent], Expected(Oracle(capacity))
            ancestor.oracle, ancestor.broken = _replay(expected, lineage, parent, seen)
            own.oracle, own.broken = ancestor.oracle, ancestor.broken
            if history.closed and any(isinstance(c.error, CancelledError) for c, _ in own.work):
                own.closed = True
        own.check()
    for number in numbers:
        engine.close(number)
    drain(engine)
    stats = engine.stats()
    assert stats["pages_used"] == stats["pages_cached"]
    engine.shutdown()
    assert backend.closed


def _replay(expected, lineage, number, seen) -> tuple[Oracle, bool]:
    """The oracle's state of a sequence after the first `seen` of its segments."""
    if number in lineage:
        oracle, broken = _replay(expected, lineage, *lineage[number])
        oracle = oracle.fork()
    else:
        oracle, broken = Oracle(expected[number].oracle.capacity), False
    for _, steps in expected[number].work[:seen]:
        if broken:
            break
        try:
            for step in steps:
                oracle.run(step)
        except ValueError:
            broken = True
    return oracle, broken


@SETTINGS
@given(
    st.lists(segments, min_size=1, max_size=5),
    st.lists(engines, min_size=2, max_size=2),
    st.integers(20, 40),
)
def test_batched_cold_and_warm_runs_agree(programs, options, pages):
    """The same rows together on one engine and, twice over, alone on another."""
    outcomes = []
    for number, option in enumerate(options):
        engine = make_engine(FakeBackend(pages=pages, max_context=10_000), **option)
        for _ in range(1 + number):
            rows = []
            for steps in programs:
                sequence = engine.open()
                rows.append(submit(engine, sequence, text("hello the world, " * 3), *steps))
                if number:
                    drain(engine)
                    engine.close(sequence)
            drain(engine)
            outcomes.append(
                [
                    ([(r.ids, r.text, r.finish) for r in row.results], row.ids, str(row.error))
                    for row in rows
                ]
            )
        engine.shutdown()
    assert outcomes[0] == outcomes[1] == outcomes[2]
