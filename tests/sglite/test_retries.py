"""Holes that are tried again: what the model reads, what stays, and every way to run them."""

from __future__ import annotations

import asyncio
import json
import pickle
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel, Field, field_validator
from recorder import MakeScripted, Recorder, Scripted

import sglite as sgl
from sglite.runtime.segment import Gen


def _even(value: int) -> int:
    if value % 2:
        raise ValueError(f"{value} is odd")
    return value


Even = Annotated[int, AfterValidator(_even)]


class Visit(BaseModel):
    nights: Even
    guest: str = Field(default="I", max_length=20)


def visit(nights: int, guest: str = "I") -> dict[str, Any]:
    return {"nights": nights, "guest": guest}


ONE, TWO, THREE = (json.dumps(visit(n)) for n in (1, 2, 3))


@sgl.function
def lines(s: sgl.State, note: str = "n") -> None:
    s += f"Note: {note}\nAs JSON: " + sgl.gen("visit", Visit, retries=2) + "\nSo:" + sgl.gen("end")


@sgl.function
def chat(s: sgl.State, note: str = "n") -> None:
    s += sgl.user(note)
    s += sgl.assistant("As JSON: " + sgl.gen("visit", Visit, retries=2) + ".")
    s += sgl.user("Thanks") + sgl.assistant(sgl.gen("end"))


def remembering(*answers: Any) -> tuple[list[str], Callable[[str], Any]]:
    """Answers, and the texts that they were given to."""
    texts: list[str] = []
    left = list(answers)

    def answer(text: str) -> Any:
        texts.append(text)
        return left.pop(0)

    return texts, answer


def said(row: sgl.Result, name: str = "visit") -> list[tuple[str, tuple[str, ...]]]:
    return [(attempt.text, attempt.errors) for attempt in row.meta(name).attempts]


def keys(engine: Recorder, name: str = "visit") -> list[int]:
    steps = [step for _, segment in engine.segments for step in segment.steps]
    return [step.key for step in steps if isinstance(step, Gen) and step.name == name]


def test_lines_tell_the_model_what_was_wrong_and_are_gone_afterwards(
    scripted: MakeScripted,
) -> None:
    texts, answer = remembering(visit(1), visit(3), visit(2))
    ends, end = remembering("!")
    scripted({"visit": answer, "end": end})
    row = lines.run(note="Maria")
    told = "\nThis was not accepted:\n- nights: {} is odd\nCorrected:\nAs JSON: "
    start = "Note: Maria\nAs JSON: "
    assert texts == [
        start,
        start + ONE + told.format(1),
        start + ONE + told.format(1) + THREE + told.format(3),
    ]
    assert ends == [f"{start}{TWO}\nSo:"]
    assert row.text() == f"{start}{TWO}\nSo:!"
    assert bytes(row.ids).decode() == row.text()
    assert row["visit"] == Visit(nights=2)
    assert said(row) == [
        (ONE, ("nights: 1 is odd",)),
        (THREE, ("nights: 3 is odd",)),
        (TWO, ()),
    ]


def test_turns_tell_the_model_what_was_wrong_and_are_gone_afterwards(
    scripted: MakeScripted,
) -> None:
    texts, answer = remembering(visit(1), visit(3), visit(2))
    ends, end = remembering("!")
    scripted({"visit": answer, "end": end})
    row = chat.run(note="Maria")
    opening = "<|im_start|>assistant\nAs JSON: "
    told = (
        "<|im_end|>\n<|im_start|>user\nThis was not accepted:\n- nights: {} is odd\n"
        "Write it again, corrected.<|im_end|>\n" + opening
    )
    start = "<|im_start|>user\nMaria<|im_end|>\n" + opening
    assert texts == [
        start,
        start + ONE + told.format(1),
        start + ONE + told.format(1) + THREE + told.format(3),
    ]
    assert ends == [
        f"{start}{TWO}.<|im_end|>\n<|im_start|>user\nThanks<|im_end|>\n<|im_start|>assistant\n"
    ]
    assert [turn["content"] for turn in row.messages()] == [
        "Maria",
        f"As JSON: {TWO}.",
        "Thanks",
        "!",
    ]


def test_what_stood_before_the_value_stands_there_again(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        s += "First\n" + sgl.gen("name") + ": " + sgl.gen("visit", Visit, retries=1)
        s += sgl.user("q")
        s += sgl.assistant(sgl.gen("think") + "\nso " + sgl.gen("other", Visit, retries=1))

    texts, answer = remembering(visit(1), visit(2))
    others, other = remembering(visit(1), visit(4))
    scripted({"visit": answer, "other": other, "name": "Al", "think": "hm"})
    row = program.run()
    assert texts[1].endswith("\nCorrected:\n: "), "not the value of another hole"
    assert others[1].endswith("<|im_start|>assistant\nhm\nso "), "in a turn all of it"
    assert row["visit"].nights == 2
    assert row["other"].nights == 4


def test_a_first_value_that_is_taken_changes_nothing(scripted: MakeScripted) -> None:
    def program(retries: int) -> sgl.Function:
        @sgl.function
        def program(s: sgl.State) -> None:
            s += "a" + sgl.gen("x") + "b" + sgl.gen("visit", Visit, retries=retries) + "c"
            s += sgl.gen("y")

        return program

    def asked(retries: int) -> tuple[list[Any], sgl.Result]:
        engine = scripted({"visit": visit(4)})
        row = program(retries).run(options=sgl.Options(seed=3))
        steps = [(type(step).__name__[-3:], getattr(step, "key", step)) for step in engine.steps()]
        return steps, row

    plain, row = asked(0)
    tried, again = asked(2)
    assert [key for _, key in plain] == [key for _, key in tried]
    assert (row.text(), row.ids, row.usage) == (again.text(), again.ids, again.usage)
    assert row.meta("visit").attempts == ()
    assert said(again) == [(json.dumps(visit(4)), ())]


def test_usage_counts_every_attempt(scripted: MakeScripted) -> None:
    scripted({"visit": [visit(1), visit(2)]})
    row = lines.run()
    meta = row.meta("visit")
    assert meta.usage.decoded_tokens == len(ONE) + len(TWO)
    assert sum(attempt.usage.prompt_tokens for attempt in meta.attempts) == meta.usage.prompt_tokens
    assert row.usage.decoded_tokens == len(ONE) + len(TWO) + len(row["end"])


def test_attempts_have_keys_of_their_own_that_depend_on_the_seed_alone(
    scripted: MakeScripted,
) -> None:
    script = {"visit": [visit(1), visit(3), visit(2)]}
    runs = []
    for seed in (1, 1, 2):
        engine = scripted(script)
        lines.run(options=sgl.Options(seed=seed))
        runs.append(keys(engine))
    assert len({*runs[0]}) == 3
    assert runs[0] == runs[1]
    assert not {*runs[0]} & {*runs[2]}


def test_giving_up_names_the_hole_the_line_and_all_attempts(scripted: MakeScripted) -> None:
    scripted({"visit": visit(5), "end": "never"})
    with pytest.raises(sgl.RetryError) as failure:
        lines.run()
    error = failure.value
    assert isinstance(error, sgl.ProgramError)
    assert "gen('visit') was refused 3 times; the last time it wrote" in str(error)
    assert "nights: 5 is odd" in str(error)
    assert error.node == "gen('visit')"
    assert error.filename == __file__
    assert error.line == lines.body.__code__.co_firstlineno + 2
    assert [attempt.errors for attempt in error.attempts] == [("nights: 5 is odd",)] * 3
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.attempts, copy.line) == (str(error), error.attempts, error.line)

    (row,) = lines.run_batch([{}], errors="return")
    assert isinstance(row.error, sgl.RetryError)
    assert row.meta("visit").attempts == error.attempts
    assert row.usage.decoded_tokens == 3 * len(ONE)
    assert "end" in row
    with pytest.raises(sgl.RetryError):
        row["visit"]
    with pytest.raises(sgl.RetryError):
        row["end"]


def test_one_row_that_gives_up_stops_no_other(scripted: MakeScripted) -> None:
    def answer(text: str) -> Any:
        number = int(text.partition("Note: ")[2].partition("\n")[0])
        refused = text.count("not accepted")
        return visit(5 if number % 3 == 0 else 2 if refused == number % 3 else 1)

    scripted({"visit": answer})
    rows = lines.run_batch([{"note": str(i)} for i in range(60)], errors="return")
    for number, row in enumerate(rows):
        if number % 3 == 0:
            assert isinstance(row.error, sgl.RetryError)
        else:
            assert row["visit"].nights == 2
            assert len(said(row)) == number % 3 + 1


def test_a_static_program_holds_no_thread(scripted: MakeScripted) -> None:
    left: list[int] = []

    def answer(text: str) -> Any:
        if "not accepted" in text and not left:
            time.sleep(0.5)  # whoever judges values has nothing to do meanwhile
            left.append(sum(thread.name == "sglite-worker" for thread in threading.enumerate()))
        return visit(2 if "not accepted" in text else 1)

    scripted({"visit": answer})
    rows = chat.run_batch([{"note": str(i)} for i in range(100)])
    assert all(row["visit"].nights == 2 for row in rows)
    assert left[0] < 10, "a hundred rows are under way"


def test_streams_say_that_the_text_so_far_is_void(scripted: MakeScripted) -> None:
    scripted({"visit": [visit(1), visit(2)]})
    events = [event for event in lines.stream() if getattr(event, "name", "") == "visit"]
    assert [event for event in events if not isinstance(event, sgl.Partial)] == [
        sgl.Text("visit", ONE),
        sgl.Retried("visit", ("nights: 1 is odd",)),
        sgl.Text("visit", TWO),
        sgl.Filled("visit", Visit(nights=2)),
    ]
    partial = [event.value.nights for event in events if isinstance(event, sgl.Partial)]
    assert partial == [1, 2]
    scripted({"visit": visit(1)})
    last = list(lines.stream(errors="return"))[-2:]
    assert isinstance(last[0], sgl.Failed)
    assert isinstance(last[0].error, sgl.RetryError)
    assert isinstance(last[1], sgl.End)
    with pytest.raises(sgl.RetryError):
        list(lines.stream())


def test_async_programs(scripted: MakeScripted) -> None:
    @sgl.function
    async def program(s: sgl.State, note: str) -> int:
        s += f"Note: {note}\n" + sgl.gen("visit", Visit, retries=1)
        first = await s.read("visit")
        s += "\nagain: " + sgl.gen("visit", Visit, retries=1)
        left, right = s.fork(2)
        right += "\nthird: " + sgl.gen("visit", Visit, retries=1)
        await right.wait()
        left += "!"
        return first.nights + right["visit"].nights

    scripted({"visit": lambda text: visit(4 if text.count("accepted") else 1)})
    assert program.run("a").returned == 8
    rows = asyncio.run(program.arun_batch([{"note": str(i)} for i in range(30)]))
    assert [row.returned for row in rows] == [8] * 30
    assert all(len(meta.attempts) == 2 for row in rows for meta in row.metas("visit"))
    for row in rows:
        assert row.text().count("accepted") == 0


def test_forks_go_on_from_the_value_that_was_taken(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> list[int]:
        s += "a" + sgl.gen("visit", Visit, retries=1)
        one, two = s.fork(2)  # before anything is known of the value
        one += " b" + sgl.gen("x")
        two += " c" + sgl.gen("visit", Visit, retries=1)
        deeper = two.fork(1)[0]
        deeper += sgl.gen("y")
        s.join([one, two])
        s += "d" + sgl.gen("z")
        return [deeper.text(), one.text()]

    seen, answer = remembering("x", "y", "z")
    scripted({"visit": lambda t: visit(2 if "accepted" in t else 1), "y": answer, "x": "X"})
    row = program.run()
    assert row.returned == [f"a{TWO} c{TWO}x", f"a{TWO} bX"]
    assert seen == [f"a{TWO} c{TWO}"]
    assert row.text() == f"a{TWO}d<z>"


def test_samples_are_tried_each_for_itself(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        s += "a" + sgl.gen("visit", Visit, retries=1, n=3, temperature=1.0)

    engine = scripted({"visit": lambda text: visit(2 if "accepted" in text else 1)})
    row = program.run()
    assert [value.nights for value in row["visit"]] == [2, 2, 2]
    assert len({*keys(engine)}) == 6
    assert row.text() == "a"


def test_a_hidden_value_is_shown_to_the_model_that_corrects_it(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        s += "a" + sgl.gen("visit", Visit, retries=1, hidden=True)
        s += "b" + sgl.gen("end")
        s += "c" + sgl.gen("last", Visit, retries=1, hidden=True)

    texts, answer = remembering(visit(1), visit(2))
    ends, end = remembering("!")
    scripted({"visit": answer, "end": end, "last": visit(2)})
    row = program.run()
    assert texts[1].startswith(f"a{ONE}\nThis was not accepted")
    assert ends == ["ab"]
    assert row.text() == "ab!c"
    assert bytes(row.ids).decode() == "ab!c"


def test_parts_of_a_pattern_are_judged(scripted: MakeScripted) -> None:
    pattern = sgl.capture("whole", "n=", sgl.typed(Even, name="n"))

    @sgl.function
    def program(s: sgl.State) -> None:
        s += sgl.gen("line", grammar=pattern, retries=1)

    scripted({"line": ["n=3", "n=4"]})
    row = program.run()
    assert (row["n"], row["line"]) == (4, "n=4")
    assert said(row, "line") == [("n=3", ("3 is odd",)), ("n=4", ())]


@dataclass
class Pair:
    low: int
    high: int

    def __post_init__(self) -> None:
        if self.low >= self.high:
            raise ValueError("low is not below high")


@pytest.mark.parametrize(
    ("kind", "bad", "good", "error"),
    [
        (Pair, {"low": 2, "high": 1}, {"low": 1, "high": 2}, "low is not below high"),
        (Even, 3, 4, "3 is odd"),
        (list[Even], [2, 5], [2, 4], "1: 5 is odd"),
        (dict[str, Even], {"a": 1}, {"a": 2}, "a: 1 is odd"),
    ],
)
def test_whatever_has_validators(
    scripted: MakeScripted, kind: Any, bad: Any, good: Any, error: str
) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        s += "x: " + sgl.gen("x", kind, retries=1)

    scripted({"x": [bad, good]})
    row = program.run()
    assert said(row, "x") == [(json.dumps(bad), (error,)), (json.dumps(good), ())]


def test_many_and_long_errors_are_cut(scripted: MakeScripted) -> None:
    def long(value: int) -> int:
        _even(value)
        raise ValueError("x" * 1000)

    @sgl.function
    def program(s: sgl.State) -> None:
        s += sgl.gen("x", list[Annotated[int, AfterValidator(long)]], retries=1)

    scripted({"x": [[1] * 20, [2]]})
    (row,) = program.run_batch([{}], errors="return")
    first, second = row.meta("x").attempts
    assert first.errors == (*(f"{i}: 1 is odd" for i in range(8)), "and 12 more errors")
    assert second.errors == (f"0: {'x' * 297}...",)


def test_a_validator_that_breaks_is_no_refusal(scripted: MakeScripted) -> None:
    def broken(value: int) -> int:
        raise [ZeroDivisionError("oh"), SystemExit("bye")][value]

    @sgl.function
    def program(s: sgl.State) -> None:
        s += sgl.gen("x", Annotated[int, AfterValidator(broken)], retries=5)

    engine = scripted({"x": [0, 1]})
    for word in ("oh", "bye"):
        with pytest.raises(sgl.ProgramError, match=word) as failure:
            program.run()
        assert not isinstance(failure.value, sgl.RetryError)
    assert len(keys(engine, "x")) == 2


def test_validators_may_run_programs_that_try_again(scripted: MakeScripted) -> None:
    @sgl.function
    def judge(s: sgl.State, value: int) -> None:
        s += f"{value}" + sgl.gen("verdict", Even, retries=1)

    def asked(value: int) -> int:
        assert judge.run(value)["verdict"] == 2
        return _even(value)

    @sgl.function
    def program(s: sgl.State) -> int:
        s += sgl.gen("x", Annotated[int, AfterValidator(asked)], retries=1)
        return int(s["x"])

    def even_when_told(text: str) -> int:
        return 2 if "accepted" in text else 1

    scripted({"verdict": even_when_told, "x": even_when_told})
    rows = program.run_batch([{}] * 100)
    assert [row.returned for row in rows] == [2] * 100


@pytest.mark.parametrize("how", ["timeout", "cancel"])
def test_a_run_ends_while_a_value_is_judged(scripted: MakeScripted, how: str) -> None:
    judging, go_on = threading.Event(), threading.Event()

    def slow(value: int) -> int:
        judging.set()
        go_on.wait(10)
        return value

    @sgl.function
    def program(s: sgl.State) -> None:
        s += "a" + sgl.gen("x", Annotated[int, AfterValidator(slow)], retries=1) + "b"
        branch = s.fork(1)[0]
        branch += sgl.gen("y")

    scripted({"x": 1})
    started = time.monotonic()
    run = program.start(timeout=0.2 if how == "timeout" else None)
    assert judging.wait(5)
    if how == "cancel":
        run.cancel()
    with pytest.raises(sgl.DeadlineError if how == "timeout" else sgl.CancelledError):
        run.result()
    assert time.monotonic() - started < 5
    go_on.set()


def test_what_comes_later_can_fail(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State, bad: bool) -> None:
        s += "a" + sgl.gen("x", Even, retries=1)
        s += "b" + sgl.gen("y", json={"type": "nonsense"} if bad else int)

    scripted({"x": [1, 2, 1, 2], "y": "no"})
    with pytest.raises(sgl.ProgramError, match=r"gen\('y'\)"):
        program.run(bad=True)
    with pytest.raises(sgl.ProgramError, match=r"gen\('y'\).*does not match"):
        program.run(bad=False)


def test_no_room_for_another_attempt(scripted: MakeScripted) -> None:
    scripted({"visit": visit(1)}, capacity=100)
    with pytest.raises(sgl.RetryError, match="refused 1 time, and there is no room") as failure:
        lines.run()
    assert "1 is odd" in str(failure.value)


def test_a_fallback_tries_again_for_itself(caplog: pytest.LogCaptureFixture) -> None:
    script = {"visit": lambda text: visit(2 if "accepted" in text else 1)}
    with Scripted(script, name="there") as there, Scripted(script, capacity=90) as here:
        here._fallback = there
        row = lines.run(model=here)
        assert row.model["name"] == "there"
        assert [len(meta.attempts) for meta in row.metas("visit")] == [2]
        for model in here, there:
            assert sorted(model.engine.opened) == sorted(model.engine.closed)
        assert here.engine.opened
    assert "is run again on there" in caplog.text


@pytest.mark.model
def test_no_room_for_another_attempt_on_a_model(smollm2_path: Path) -> None:
    def never(value: int) -> int:
        raise ValueError("no " * 90)

    @sgl.function
    def program(s: sgl.State, words: int) -> None:
        s += "word " * words + sgl.gen("x", Annotated[int, AfterValidator(never)], retries=3)

    with sgl.Model(smollm2_path, context=128, kv_memory=1 << 24) as model:
        for words in (10, 110):  # what was wrong is too long alone, or with what there is
            with pytest.raises(sgl.RetryError, match="there is no room to try it again") as failure:
                program.run(words, model=model)
            assert len(failure.value.attempts) < 4
        with pytest.raises(sgl.ProgramError, match="tokens") as failed:
            program.run(200, model=model)
        assert isinstance(failed.value.__cause__, sgl.CapacityError)


def test_compiled_programs_try_again(scripted: MakeScripted) -> None:
    graph = lines.compile()
    again = sgl.Graph.from_json(graph.to_json(), types={"Visit": Visit})
    assert again.steps == graph.steps
    for program in (graph, again, lines.compile(passes=())):
        scripted({"visit": [visit(1), visit(2)]})
        row = program.run(note="x")
        assert row["visit"] == Visit(nights=2)
        assert len(said(row)) == 2
    scripted({"visit": visit(1)})
    plain = sgl.Graph.from_json(graph.to_json()).run(note="x")
    assert plain["visit"] == visit(1), "there is no type that could refuse it"


def test_a_number_that_is_known_when_it_runs(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State, n: int) -> None:
        s += "a" + sgl.gen("x", Visit, retries=n)

    graph = program.compile()
    scripted({"x": [visit(1), visit(2), visit(1)]})
    assert graph.run(n=1)["x"].nights == 2
    with pytest.raises(sgl.ProgramError, match="its type refuses"):
        graph.run(n=0)


def test_rows_come_back_from_their_traces(scripted: MakeScripted) -> None:
    scripted({"visit": [visit(1), visit(2)]})
    row = chat.run()
    for types in ({"Visit": Visit}, {}):
        back = sgl.replay(row.trace(), types=types)
        assert back.meta("visit") == row.meta("visit")
        assert (back.text(), back.usage) == (row.text(), row.usage)
    scripted({"visit": [visit(1), visit(2)]})
    assert sgl.replay(row.trace(), sgl.current_model(), types={"Visit": Visit}).difference is None
    scripted({"visit": visit(1)})
    (failed,) = chat.run_batch([{}], errors="return")
    back = sgl.replay(failed.trace(), types={"Visit": Visit})
    assert str(back.error) == str(failed.error)
    assert back.meta("visit") == failed.meta("visit")


def test_a_journal_has_the_attempts(scripted: MakeScripted, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    scripted({"visit": [visit(1), visit(2)]})
    (row,) = lines.run_batch([{"note": "x"}], journal=path)
    engine = scripted({})
    (back,) = lines.run_batch([{"note": "x"}], journal=path)
    assert engine.opened == []
    assert back.meta("visit") == row.meta("visit")
    assert back.usage == row.usage


def test_a_conversation_that_drops_turns(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        for number in range(8):
            s += sgl.user(f"question {number} " + "x" * 100)
            s += sgl.assistant(sgl.gen("visit", Visit, retries=1, max_tokens=60))

    scripted({"visit": lambda text: visit(2 if "accepted" in text else 1)}, capacity=900)
    row = program.run(options=sgl.Options(on_overflow="drop_oldest"))
    assert [value.nights for value in row.all("visit")] == [2] * 8
    assert len(row.messages()) == 16
    assert len(row.ids) < 900


@sgl.tool
def look(word: str) -> str:
    """Looks a word up."""
    return word


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"retries": -1, "type": int}, "retries= must be at least 0"),
        ({"retries": 1}, "for a type whose validators"),
        ({"retries": 1, "regex": "a"}, "for a type whose validators"),
        ({"retries": 1, "type": int, "think": "#", "hide_thought": True}, "hide_thought"),
        ({"retries": 1, "tools": [look]}, "does not go with tools="),
    ],
)
def test_arguments_that_mean_nothing(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sgl.gen("x", **arguments)
    with pytest.raises(TypeError, match="takes a whole number"):
        sgl.gen("x", int, retries=True)


def test_a_thought_stays_and_the_value_is_tried_again(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        s += "Q\n" + sgl.gen("x", Even, think="\nAnswer: ", retries=1) + "."

    texts, answer = remembering(1, 2)
    scripted({"x": answer, "x.thought": "hm"})
    row = program.run()
    assert row.text() == "Q\nhm\nAnswer: 2."
    assert texts[1].startswith("Q\nhm\nAnswer: 1\nThis was not accepted:\n- 1 is odd\nCorrected:\n")


class _Reusing(BaseModel):
    value: int

    @field_validator("value")
    @classmethod
    def known(cls, value: int) -> int:
        if value != 7:
            raise ValueError("not the number of the program")
        return value


def test_turns_in_which_no_user_can_answer(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        s += sgl.user("Number: " + sgl.gen("x", _Reusing, retries=1))

    texts, answer = remembering({"value": 1}, {"value": 7})
    scripted({"x": answer})
    assert program.run().text().count("im_start") == 1
    assert texts[1].count("im_start") == 1, "lines in the same turn"
    assert texts[1].endswith("\nCorrected:\nNumber: ")
