"""The options of `gen` and `select`, from the call to what an engine is asked and the row has."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
from recorder import MakeScripted, user

import sglite as sgl
from sglite.language.primitives import METHODS
from sglite.runtime.engines.scripted import CHAT_TEMPLATE
from sglite.runtime.segment import Append, Gen, Piece, Select

THINKING_TEMPLATE = CHAT_TEMPLATE + "{# thoughts stand in <think>...</think> #}"


def hole_of(engine: Any, number: int = 0) -> Any:
    return [step for step in engine.steps() if not isinstance(step, Append)][number]


def holes_of(engine: Any, sequence: int) -> list[Any]:
    return [step for step in engine.steps(sequence) if not isinstance(step, Append)]


# What an engine is asked


def test_every_option_of_a_hole_reaches_the_engine(scripted: MakeScripted) -> None:
    engine = scripted()

    @sgl.function
    def program(s: sgl.State) -> None:
        s += "a" + sgl.gen(
            "x",
            max_tokens=9,
            min_tokens=2,
            stop=["s", "t"],
            stop_ids=[7],
            stop_regex=r"\d+\.",
            until="u",
            ignore_eos=True,
            temperature=0.5,
            top_p=0.9,
            top_k=5,
            min_p=0.1,
            repetition_penalty=1.2,
            presence_penalty=0.3,
            frequency_penalty=-0.4,
            logit_bias={65: 1, "B": -math.inf},
            logprobs=3,
            hidden=True,
        )
        s += sgl.select("c", ["a", "b"], method="greedy", until=".", temperature=2, hidden=True)

    program.run(options=sgl.Options(seed=1))
    gen, select = hole_of(engine), hole_of(engine, 1)
    assert gen == Gen(
        name="x",
        key=gen.key,
        max_tokens=9,
        min_tokens=2,
        sampling=sgl.Options(
            temperature=0.5,
            top_p=0.9,
            top_k=5,
            min_p=0.1,
            repetition_penalty=1.2,
            presence_penalty=0.3,
            frequency_penalty=-0.4,
        ).sampling(),
        stop=("s", "t"),
        stop_ids=(7,),
        stop_regex=(r"\d+\.",),
        until=("u",),
        ignore_eos=True,
        logit_bias=((65, 1.0), (66, -math.inf)),
        top_logprobs=3,
        hidden=True,
    )
    assert (select.method, select.until, select.hidden) == ("greedy", (".",), True)
    assert select.sampling.temperature == 2


def test_penalties_may_come_from_the_run(scripted: MakeScripted) -> None:
    engine = scripted()

    @sgl.function
    def program(s: sgl.State) -> None:
        s += "a" + sgl.gen("x", presence_penalty=0.5) + sgl.gen("y")

    program.run(options=sgl.Options(presence_penalty=2, frequency_penalty=1))
    assert hole_of(engine).sampling.presence_penalty == 0.5
    assert hole_of(engine).sampling.frequency_penalty == 1
    assert hole_of(engine, 1).sampling.presence_penalty == 2


def test_a_seed_of_its_own_makes_a_hole_the_same_in_every_run(scripted: MakeScripted) -> None:
    engine = scripted()

    @sgl.function
    def program(s: sgl.State) -> None:
        s += "a" + sgl.gen("x", seed=5) + sgl.gen("y") + sgl.select("c", ["a", "b"], seed=6)

    for seed in (1, 2):
        program.run(options=sgl.Options(seed=seed))
    first, second = (
        [step.key for step in engine.steps(opened) if not isinstance(step, Append)]
        for opened in engine.opened
    )
    assert first[0] == second[0]
    assert first[1] != second[1]
    assert first[2] == second[2]


@pytest.mark.parametrize("name", METHODS)
def test_methods_go_by_their_names_and_by_those_of_sglang(
    scripted: MakeScripted, name: str
) -> None:
    engine = scripted()

    @sgl.function
    def program(s: sgl.State) -> None:
        s += "a" + sgl.select("c", ["a", "b"], method=name)

    program.run()
    assert hole_of(engine).method == METHODS[name]
    assert METHODS["token_length_normalized"] == "mean"
    assert METHODS["greedy_token_selection"] == "greedy"
    assert METHODS["unconditional_likelihood_normalized"] == "pmi"


def test_a_bias_by_text_is_of_one_token(scripted: MakeScripted) -> None:
    scripted()

    @sgl.function
    def program(s: sgl.State, bias: dict[Any, float]) -> None:
        s += "a" + sgl.gen("x", logit_bias=bias)

    with pytest.raises(sgl.ProgramError, match="the text 'ab', which is 2 tokens of scripted") as e:
        program.run({"ab": 1})
    assert e.value.line is not None
    with pytest.raises(sgl.ProgramError, match="names the token 65 twice"):
        program.run({"A": 1, 65: 2})


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"min_tokens": -1}, ValueError, "min_tokens= must be at least 0, got -1"),
        ({"min_tokens": 9, "max_tokens": 3}, ValueError, "min_tokens=9 is above max_tokens=3"),
        ({"min_tokens": True}, TypeError, "min_tokens= takes a whole number"),
        ({"n": 0}, ValueError, "n= must be at least 1, got 0"),
        ({"n": 2.0}, TypeError, "n= takes a whole number, got 2.0"),
        ({"logprobs": -1}, ValueError, "logprobs= must be at least 0"),
        ({"logit_bias": [1]}, TypeError, "logit_bias= takes a dict"),
        ({"logit_bias": {1.5: 1}}, TypeError, "has the key 1.5"),
        ({"logit_bias": {5: "x"}}, TypeError, "has 'x' for 5"),
        ({"logit_bias": {5: math.inf}}, ValueError, "has inf for 5"),
        ({"logit_bias": {5: math.nan}}, ValueError, "has nan for 5"),
        ({"repetition_penalty": 0}, ValueError, "repetition_penalty must be a finite number > 0"),
        ({"presence_penalty": math.inf}, ValueError, "presence_penalty must be a finite number"),
        ({"seed": "x"}, TypeError, "seed must be a whole number"),
        ({"stop_regex": ""}, ValueError, "stop_regex= takes texts that are not empty"),
        ({"stop_regex": 3}, TypeError, "stop_regex= takes a text or a list"),
        ({"think": ("a", "b", "c")}, TypeError, "think= takes True, the text that ends"),
        ({"think": ""}, TypeError, "think= takes True"),
        ({"think": True, "think_tokens": 0}, ValueError, "think_tokens= must be at least 1"),
        ({"hide_thought": True}, ValueError, "hide_thought=True goes with think="),
        ({"min_token": 3}, TypeError, "no argument 'min_token', did you mean 'min_tokens'"),
    ],
)
def test_a_wrong_option_is_an_error_where_it_is_written(
    arguments: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=re.escape(message)):
        sgl.gen("x", **arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "men"}, "method= is one of prob, mean"),
        ({"method": "men"}, "did you mean 'mean'"),
        ({"method": "mean", "until": "."}, "until= goes with method='prob' or 'greedy'"),
        ({"until": [""]}, "until= takes texts that are not empty"),
    ],
)
def test_a_wrong_option_of_select_is_one_too(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        sgl.select("c", ["a", "b"], **arguments)


def test_a_stop_pattern_that_cannot_be_is_an_error_of_its_hole(scripted: MakeScripted) -> None:
    scripted()

    @sgl.function
    def program(s: sgl.State) -> None:
        s += "a" + sgl.gen("x", stop_regex="b*")

    with pytest.raises(sgl.ProgramError, match=r"gen\('x'\).*matches the empty text") as error:
        program.run()
    assert isinstance(error.value.__cause__, sgl.GrammarError)


# Samples


def test_samples_are_a_list_and_none_of_them_enters_the_text(scripted: MakeScripted) -> None:
    engine = scripted({"x": ["one", "two", "three"], "y": "end"})

    @sgl.function
    def program(s: sgl.State) -> None:
        s += "a" + sgl.gen("x", n=3, temperature=1.0) + "b" + sgl.gen("y")

    row = program.run()
    assert row["x"] == ["one", "two", "three"] == row.all("x")
    assert row.text() == "abend"
    assert [m.text for m in row.metas("x")] == ["one", "two", "three"]
    own = next(s for s in engine.opened if any(step.name == "y" for step in holes_of(engine, s)))
    assert engine.steps(own)[0] == user("ab")
    keys = {step.key for s in engine.opened for step in holes_of(engine, s)}
    assert len(keys) == 4, "each sample is drawn for itself"


def test_samples_have_the_type_of_their_hole_and_can_be_read(scripted: MakeScripted) -> None:
    scripted({"x": [3, 5]})

    @sgl.function
    def program(s: sgl.State) -> None:
        s += "a" + sgl.gen("x", int, n=2)
        s += f" sum {sum(s['x'])}"

    row = program.run()
    assert row["x"] == [3, 5]
    assert row.text() == "a sum 8"
    assert program.run is not None


def test_one_sample_is_a_list_of_one(scripted: MakeScripted) -> None:
    scripted({"x": "one"})

    @sgl.function
    def program(s: sgl.State) -> None:
        s += "a" + sgl.gen("x", n=1)

    assert program.run()["x"] == ["one"]


def test_samples_of_a_hole_without_a_name_and_inside_of_a_turn(scripted: MakeScripted) -> None:
    scripted({"x": ["1", "2", "3", "4"]})

    @sgl.function
    def program(s: sgl.State) -> None:
        s += sgl.user("hello")
        s += sgl.assistant("so: ", sgl.gen("x", n=2))
        s += "\n" + sgl.gen(n=2)
        with s.user():
            s += "and" + sgl.gen("x", n=2)

    row = program.run()
    assert row.all("x") == ["1", "2", "3", "4"]
    assert [m["content"] for m in row.messages()] == ["hello", "so: ", "and"]


# Hidden holes


def test_a_hidden_value_is_kept_and_its_text_is_not(scripted: MakeScripted) -> None:
    engine = scripted({"x": "secret", "c": "b", "y": "end"})

    @sgl.function
    def program(s: sgl.State) -> None:
        s += "a" + sgl.gen("x", hidden=True) + "-" + sgl.select("c", ["a", "b"], hidden=True)
        s += sgl.gen("y")
        assert "secret" not in s.text()

    row = program.run()
    assert (row["x"], row["c"], row.text()) == ("secret", "b", "a-end")
    assert row.ids == tuple(b"a-end")
    assert [step.hidden for step in engine.steps() if not isinstance(step, Append)] == [
        True,
        True,
        False,
    ]


# Thoughts


def think(s: sgl.State, **asked: Any) -> None:
    s += sgl.user("2 + 2?")
    with s.assistant():
        s += sgl.gen("x", int, **asked)
    s += sgl.user("Sure?") + sgl.gen("y")


def test_a_thought_comes_before_its_value(scripted: MakeScripted) -> None:
    engine = scripted({"x.thought": "so two</think> and", "x": 4}, chat_template=THINKING_TEMPLATE)
    row = sgl.function(think).run(think=True, think_tokens=50)
    assert row["x"] == 4
    assert row["x.thought"] == "so two"
    assert row.meta("x.thought").stop == "</think>"
    assert "assistant\n<think>so two</think>4<|im_end|>" in row.text()
    thought = hole_of(engine)
    assert (thought.name, thought.constraint, thought.max_tokens) == ("x.thought", None, 50)
    assert thought.stop == ("</think>",)
    assert hole_of(engine, 1).constraint is not None
    assert "".join(map(chr, row.ids[:-5])).count("<think>") == 1


def test_a_hidden_thought_leaves_the_prompt_with_the_value(scripted: MakeScripted) -> None:
    scripted({"x.thought": "so two</think>", "x": 4, "y": "yes"}, chat_template=THINKING_TEMPLATE)
    row = sgl.function(think).run(think=True, hide_thought=True)
    plain = sgl.function(think).run()
    assert row["x.thought"] == "so two"
    assert row["x"] == 4
    assert row.text() == plain.text()
    assert row.ids == plain.ids
    assert row.messages()[1] == {"role": "assistant", "content": "4"}


@pytest.mark.parametrize(
    ("marks", "written"),
    [
        ("##", "so##4"),
        ("\nSo: ", "so\nSo: 4"),
        (("<<", ">>"), "<<so>>4"),
        ("<|im_start|>", "so<|im_start|>4"),
    ],
)
def test_the_marks_of_a_thought_may_be_named(
    scripted: MakeScripted, marks: Any, written: str
) -> None:
    end = marks if isinstance(marks, str) else marks[1]
    engine = scripted({"x.thought": f"so{end.rstrip()} and on", "x": 4})

    @sgl.function
    def program(s: sgl.State) -> None:
        s += "a:" + sgl.gen("x", int, think=marks)

    row = program.run()
    assert row.text() == f"a:{written}"
    closing = [step for step in engine.steps() if isinstance(step, Append)][-1]
    assert closing.pieces[0].kind == "template"
    if marks == "<|im_start|>":
        assert 257 in row.ids, "a mark that is a special token is written as that token"


def test_a_mark_that_stands_there_already_is_not_written_twice(scripted: MakeScripted) -> None:
    scripted({"x.thought": "so</think>", "x": 4}, chat_template=THINKING_TEMPLATE)

    @sgl.function
    def program(s: sgl.State) -> None:
        s += "a <think>\n" + sgl.gen("x", int, think=True)

    assert program.run().text() == "a <think>\nso</think>4"


def test_a_template_without_known_marks_says_so(scripted: MakeScripted) -> None:
    scripted()
    with pytest.raises(sgl.ProgramError, match=r"no mark of a thought.*think=\"</think>\""):
        sgl.function(think).run(think=True)


def test_thoughts_come_with_samples(scripted: MakeScripted) -> None:
    scripted({"x.thought": ["a#", "b#"], "x": [1, 2]})

    @sgl.function
    def program(s: sgl.State) -> None:
        s += "q" + sgl.gen("x", int, think="#", n=2)

    row = program.run()
    assert (row["x"], row["x.thought"], row.text()) == ([1, 2], ["a", "b"], "q")


# The graph


def test_the_graph_has_what_the_options_stand_for(scripted: MakeScripted) -> None:
    scripted({"x.thought": "t", "x": 4})

    @sgl.function
    def program(s: sgl.State) -> None:
        s += "q" + sgl.gen("x", int, think="#", hide_thought=True)
        s += sgl.gen("y", n=2, min_tokens=1) + sgl.select("c", ["a"], method="pmi")

    graph = str(program.run().graph)
    for part in ("gen('x.thought')", "special('#')", "gen('x')", "fork(2)", "select('c')"):
        assert part in graph, graph


def test_a_select_has_scores(scripted: MakeScripted) -> None:
    scripted({"c": {"a": 0.25, "b": 0.75}})

    @sgl.function
    def program(s: sgl.State) -> None:
        s += "q" + sgl.select("c", ["a", "b", "d"])

    meta = program.run().meta("c")
    assert meta.scores == {"a": math.log(0.25), "b": math.log(0.75), "d": -math.inf}
    assert Select("c", ("a",)).method == "prob"
    assert Piece("x").ids == ()
