"""The scripted engine keeps the contract of an engine, and its answers match their constraints."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from queue import SimpleQueue
from typing import Any

import jsonschema
import numpy as np
import pytest

from sglite.errors import (
    CancelledError,
    CapacityError,
    DeadlineError,
    GrammarError,
    ModelError,
)
from sglite.runtime.engines.base import StepRefused
from sglite.runtime.engines.scripted import ScriptedEngine
from sglite.runtime.segment import (
    Append,
    Constraint,
    Event,
    Gen,
    HoleDone,
    Piece,
    Segment,
    SegmentDone,
    SegmentFailed,
    Select,
    Step,
    TextDelta,
)


@pytest.fixture
def engine() -> Iterator[ScriptedEngine]:
    made = ScriptedEngine()
    yield made
    made.shutdown()


def events_of(engine: ScriptedEngine, sequence: int, *steps: Step) -> list[Event]:
    queue: SimpleQueue[Event] = SimpleQueue()
    engine.submit(sequence, Segment(steps), queue.put)
    events = []
    while not (events and isinstance(events[-1], SegmentDone | SegmentFailed)):
        events.append(queue.get(timeout=10))
    assert queue.empty()
    return events


def answer(script: dict[str, Any], *steps: Step) -> Any:
    """The last result, or the error, of steps on a new engine."""
    engine = ScriptedEngine(script=script)
    try:
        events = events_of(engine, engine.open(), *steps)
    finally:
        engine.shutdown()
    last = events[-1]
    if isinstance(last, SegmentFailed):
        return last.error
    return next(e.result for e in reversed(events) if isinstance(e, HoleDone))


def text(content: str) -> Append:
    return Append((Piece(content),))


def regex(pattern: str) -> Constraint:
    return Constraint("regex", pattern)


def test_events_come_in_order_and_end_with_the_state(engine: ScriptedEngine) -> None:
    sequence = engine.open()
    first = events_of(engine, sequence, text("ab"), Gen("x"), text("c"), Gen("y"))
    assert [type(e) for e in first] == [TextDelta, HoleDone, TextDelta, HoleDone, SegmentDone]
    assert [e.step for e in first if isinstance(e, TextDelta | HoleDone)] == [1, 1, 3, 3]
    assert first[-1] == SegmentDone(tuple(b"ab<x>c<y>"))
    assert events_of(engine, sequence, text("!"))[-1] == SegmentDone(tuple(b"ab<x>c<y>!"))


def test_special_tokens_come_from_templates_and_special_pieces_alone(
    engine: ScriptedEngine,
) -> None:
    pieces = (
        Piece("<|im_start|>u\n", "template"),
        Piece("<|im_end|>"),
        Piece("<|im_end|>", "special"),
    )
    done = events_of(engine, engine.open(), Append(pieces))[-1]
    assert done == SegmentDone((257, *b"u\n", *b"<|im_end|>", 258))
    with pytest.raises(StepRefused, match="no special token"):
        engine.submit(engine.open(), Segment((Append((Piece("<|x|>", "special"),)),)), print)


def test_a_fork_sees_what_came_before_it_and_no_more(engine: ScriptedEngine) -> None:
    parent = engine.open()
    queue: SimpleQueue[Event] = SimpleQueue()
    engine.submit(parent, Segment((text("a"), Gen("x"))), queue.put)
    left, right = engine.fork(parent, 2)
    engine.submit(parent, Segment((text("later"),)), queue.put)
    assert events_of(engine, left, text("L"))[-1] == SegmentDone(tuple(b"a<x>L"))
    assert events_of(engine, right, text("R"))[-1] == SegmentDone(tuple(b"a<x>R"))


@pytest.mark.parametrize(
    "pattern", ["a{3}b", "(foo|ba)x*", r"-?(0|[1-9][0-9]*)", "[^a]{2}", "é+", r"[0-9]{4}-[0-9]{2}"]
)
def test_unscripted_holes_get_a_short_text_that_matches(pattern: str) -> None:
    result = answer({}, Gen("x", constraint=regex(pattern)))
    assert re.fullmatch(pattern, result.text)
    assert result.finish == "grammar"
    assert len(result.text) <= 7
    assert bytes(result.ids).decode() == result.text


def test_unscripted_records_are_valid() -> None:
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 2},
            "age": {"type": "integer", "minimum": 3},
            "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 2},
        },
        "required": ["name", "age", "tags"],
        "additionalProperties": False,
    }
    result = answer({}, Gen("x", constraint=Constraint("json_schema", json.dumps(schema))))
    jsonschema.validate(json.loads(result.text), schema)


def test_scripted_answers_are_checked() -> None:
    hole = Gen("x", constraint=regex("ab+"))
    assert answer({"x": "abb"}, hole).text == "abb"
    error = answer({"x": "aXb"}, hole)
    assert isinstance(error, ValueError)
    assert "refused at byte 1" in str(error)
    assert "cut off" in str(answer({"x": "a"}, hole))
    assert answer({"x": 42}, Gen("x", constraint=regex("[0-9]+"))).text == "42"


def test_lists_are_used_up_and_functions_see_the_text() -> None:
    script = {"x": ["one", "two"], "y": lambda so_far: so_far.upper()}
    result = answer(script, Gen("x"), text("-"), Gen("x"), Gen("y"))
    assert result.text == "ONE-TWO"
    assert "only 2 answers" in str(answer(script, Gen("x"), Gen("x"), Gen("x")))


def test_the_earliest_end_cuts_free_text() -> None:
    hole = Gen("x", stop=("\n", "\n\n"), until=(";",))
    result = answer({"x": "ab;c\n"}, hole)
    assert (result.text, result.finish, result.stop) == ("ab", "until", ";")
    result = answer({"x": "ab\n\nc;"}, hole)
    assert (result.text, result.finish, result.stop) == ("ab", "stop", "\n")
    result = answer({"x": "ab"}, hole)
    assert (result.text, result.finish, result.stop) == ("ab", "eos", None)


def test_select_takes_a_choice_or_weights() -> None:
    hole = Select("x", ("a", "b", "c"))
    assert answer({}, hole).distribution == pytest.approx({"a": 1 / 3, "b": 1 / 3, "c": 1 / 3})
    assert answer({"x": "b"}, hole).text == "b"
    result = answer({"x": {"c": 3, "a": 1}}, hole)
    assert (result.text, result.finish) == ("c", "select")
    assert result.distribution == {"a": 0.25, "b": 0.0, "c": 0.75}
    assert "none of" in str(answer({"x": "d"}, hole))


def test_a_failed_sequence_takes_no_more(engine: ScriptedEngine) -> None:
    engine._script["x"] = ["once"]
    sequence = engine.open()
    failed = events_of(engine, sequence, Gen("x"), text("a"), Gen("x"))[-1]
    assert isinstance(failed, SegmentFailed)
    assert failed.step == 2
    assert isinstance(events_of(engine, sequence, text("b"))[-1], SegmentFailed)
    assert isinstance(events_of(engine, engine.fork(sequence, 1)[0], text("b"))[-1], SegmentFailed)


def test_closing_cancels_work_under_way(engine: ScriptedEngine) -> None:
    reached, go_on = threading.Event(), threading.Event()

    def slow(_: str) -> str:
        reached.set()
        assert go_on.wait(10)
        return "x"

    engine._script["x"] = slow
    sequence = engine.open()
    queue: SimpleQueue[Event] = SimpleQueue()
    engine.submit(sequence, Segment((Gen("x"), Gen("x"))), queue.put)
    engine.submit(sequence, Segment((text("a"),)), queue.put)
    assert reached.wait(10)
    engine.close(sequence)
    engine.close(sequence)
    go_on.set()
    ends = []
    while len(ends) < 2:
        event = queue.get(timeout=10)
        if isinstance(event, SegmentDone | SegmentFailed):
            ends.append(event)
    assert all(isinstance(e, SegmentFailed) for e in ends)
    assert all(isinstance(e.error, CancelledError) for e in ends if isinstance(e, SegmentFailed))


def test_shutdown_ends_everything_with_an_event() -> None:
    engine = ScriptedEngine(delay=0.01)
    queue: SimpleQueue[Event] = SimpleQueue()
    for _ in range(5):
        engine.submit(engine.open(), Segment((Gen("x"), Gen("y"))), queue.put)
    engine.shutdown()
    engine.shutdown()
    ends = 0
    while not queue.empty():
        ends += isinstance(queue.get(), SegmentDone | SegmentFailed)
    assert ends == 5
    with pytest.raises(ModelError, match="shut down"):
        engine.open()
    engine.close(0)


def test_a_constraint_that_cannot_be_compiled_is_refused_at_once(engine: ScriptedEngine) -> None:
    steps = (text("a"), Gen("x"), Gen("x", constraint=regex("(")), Gen("x"))
    with pytest.raises(StepRefused) as refused:
        engine.submit(engine.open(), Segment(steps), print)
    assert refused.value.step == 2
    assert isinstance(refused.value.error, GrammarError)


def test_the_vocabulary_has_every_byte(engine: ScriptedEngine) -> None:
    vocabulary = engine.vocabulary
    assert [vocabulary.token(i) for i in range(256)] == [bytes([i]) for i in range(256)]
    assert vocabulary.eos_ids == (256, 258)
    mask = np.unpackbits(vocabulary.text_mask.view(np.uint8), bitorder="little")
    assert mask.sum() == 256
    assert vocabulary is engine.vocabulary


def test_stop_patterns_hidden_holes_and_dropped_steps(engine: ScriptedEngine) -> None:
    script = {"x": "one 12. two", "h": "hidden", "t": "thought", "y": "end"}
    scripted = ScriptedEngine(script=script)
    try:
        sequence = scripted.open()
        steps = (
            Gen("x", stop_regex=(r"\d+\.",), top_logprobs=2),
            text("a"),
            Gen("h", hidden=True),
            text("("),
            Gen("t"),
            text(")"),
            Gen("y", drops=3),
            Append((Piece("bc", "ids", (98, 99)),)),
        )
        events = events_of(scripted, sequence, *steps)
    finally:
        scripted.shutdown()
    results = {e.result.name: e.result for e in events if isinstance(e, HoleDone)}
    assert (results["x"].text, results["x"].finish, results["x"].stop) == ("one ", "stop", "12.")
    assert len(results["x"].top_logprobs) == len(results["x"].ids)
    assert results["h"].text == "hidden"
    assert events[-1] == SegmentDone(tuple(b"one aendbc"))


def test_a_deadline_ends_what_is_not_done() -> None:
    engine = ScriptedEngine(delay=0.2)
    try:
        late = engine.open(deadline=time.monotonic() + 0.5)
        fork = engine.fork(late, 1)[0]
        in_time = engine.open(deadline=time.monotonic() + 60)
        events = events_of(engine, late, text("a"), Gen("x"), Gen("y"), Gen("z"))
        assert any(isinstance(e, HoleDone) for e in events)
        assert isinstance(events[-1], SegmentFailed)
        assert isinstance(events[-1].error, DeadlineError)
        forked = events_of(engine, fork, Gen("x"))[-1]
        assert isinstance(forked, SegmentFailed)
        assert isinstance(forked.error, DeadlineError)
        assert isinstance(events_of(engine, in_time, Gen("x"))[-1], SegmentDone)
    finally:
        engine.shutdown()


def test_a_sequence_holds_so_many_bytes() -> None:
    engine = ScriptedEngine(capacity=4)
    try:
        assert engine.capacity == 4
        last = events_of(engine, engine.open(), text("abcd"), text("e"))[-1]
        assert isinstance(last, SegmentFailed)
        assert isinstance(last.error, CapacityError)
        assert last.step == 1
    finally:
        engine.shutdown()


def test_arguments_out_of_range_are_refused_as_by_every_engine(engine: ScriptedEngine) -> None:
    for bad in (Gen("x", min_tokens=200), Select("s", ()), Gen("x", stop_regex=("a*",))):
        with pytest.raises(StepRefused):
            engine.submit(engine.open(), Segment((bad,)), print)
