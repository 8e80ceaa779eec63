"""Compiled programs do what the program does, bit for bit, and never guess."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recorder import MakeScripted, Scripted

import sglite as sgl
from sglite.language import ir


def heading(text: str) -> str:
    return f"# {text}\n"


@sgl.function
def ask(s: sgl.State, question: str, most: int = 12) -> str:
    s += f"Q: {question}\nA:" + sgl.gen("answer", max_tokens=most, stop=f"\n{question[:2]}")
    value: str = s["answer"].strip()
    return value


@sgl.function
def everything(
    s: sgl.State, doc: str, n: int = 7, names: tuple[str, ...] = ("a", "b"), *, end: Any = None
) -> Any:
    s += heading(doc) + "Count: " + sgl.gen("count", int, until=".") + "."
    for name in names:
        s += (
            f"{name:>3}|{doc!r:.5}|{n:03d}|{doc:{'>'}{n}}{{}}"
            + str(n)
            + doc
            + "/".join([doc, name])
        )
        s += sgl.select("pick", [f" {name}", f"{doc}!"]) + sgl.gen(max_tokens=n)
    left, right = s.fork(2)
    left += doc.upper() + f" {s['count']:04d} " + sgl.gen("side", Literal["l", "r"])
    inner = right.fork(["x", "y"])
    inner["x"] += sgl.gen("deep", regex="[a-c]+")
    right.join(inner)
    right += doc.replace("o", f"{n}") + sgl.gen("side")
    s.join([left, right])
    s += sgl.system("Be ", doc) + sgl.special("<|im_end|>")
    with s.user():
        s += s["side"][1] + doc[:3] + doc.split(",")[0]
        s += ask(doc)
    with s.assistant():
        s += sgl.gen("reply", temperature=0.5, top_p=0.9, top_k=4, min_p=0.1, stop=["x", "y"])
    return {"answers": [ask(s, doc + "?", most=3), s["deep"]], "end": end}


def steps(model: Scripted, program: Any, *args: Any, **kwargs: Any) -> tuple[Any, sgl.Result]:
    """All steps that the engine was given, with their keys, and the row."""
    engine = model.engine
    engine.segments.clear()
    engine.opened.clear()
    row = program.run(*args, options=sgl.Options(seed=3), model=model, **kwargs)
    return [engine.steps(sequence) for sequence in engine.opened], row


CONSTANTS = {"names": ("a", "b"), "n": 7}


@settings(deadline=None)
@given(st.text(max_size=12).filter(lambda t: "\ud800" not in t), st.integers())
def test_the_graph_hands_over_the_same_steps(doc: str, end: int) -> None:
    model = Scripted(None)
    graph = everything.compile(**CONSTANTS)
    wanted, row = steps(model, everything, doc, **CONSTANTS, end=end)
    for program in (graph, sgl.Graph.from_json(graph.to_json())):
        found, again = steps(model, program, doc, end=end)
        assert found == wanted
        assert again.variables == row.variables
        assert (again.text(), again.ids, again.returned) == (row.text(), row.ids, row.returned)
        assert again.messages() == row.messages()
        assert [s.node for s in again.graph.steps] != []
    model.close()


def test_what_a_row_recorded_runs_again(scripted: MakeScripted) -> None:
    scripted()
    row = everything.run("doc", names=["a"])
    again = sgl.Graph.from_json(row.graph.to_json()).run(options=sgl.Options(seed=row.seed))
    assert (again.text(), again.variables) == (row.text(), row.variables)
    assert again.graph == row.graph


def test_batches_streams_and_calls_of_graphs(scripted: MakeScripted) -> None:
    scripted()
    graph = ask.compile(most=4)
    rows = graph.run_batch([{"question": str(i)} for i in range(5)])
    assert [row.text() for row in rows] == [f"Q: {i}\nA:<answer>" for i in range(5)]
    events = list(graph.stream("why"))
    assert isinstance(events[-1], sgl.End)

    @sgl.function
    def twice(s: sgl.State, what: str) -> Any:
        s += graph(f"{what} one")
        return [graph(s, what), s["answer"]]

    for row in (twice.run("so"), twice.compile().run("so"), twice.compile(what="so").run()):
        assert row.text() == "Q: so one\nA:<answer>Q: so\nA:<answer>"
        assert row.returned == ["<answer>", "<answer>"]


def test_arguments_stay_arguments(scripted: MakeScripted) -> None:
    scripted()
    graph = everything.compile(names=[])
    assert [p.name for p in graph.parameters] == ["doc", "n", "end"]
    assert graph.run("doc", 3).returned["end"] is None
    with pytest.raises(TypeError, match="missing a required argument: 'doc'"):
        graph.run()
    with pytest.raises(TypeError, match=r"no argument 'nmaes' to.*, did you mean 'names'"):
        everything.compile(nmaes=[])
    with pytest.raises(sgl.ProgramError, match=r"doc\.upper\(\) is for texts, got 3") as error:
        graph.run(doc=3)
    assert error.value.filename == __file__


BREAKS: dict[str, Callable[[Any, Any], object]] = {
    "truth": lambda s, x: s.__iadd__("a" if x else "b"),
    "is": lambda s, x: s.__iadd__("a" if x is None else "b"),
    "is not": lambda s, x: s.__iadd__("a" if None is not x else "b"),
    "equal": lambda s, x: s.__iadd__("a" if x == "a" else "b"),
    "less": lambda s, x: s.__iadd__("a" if x < 3 else "b"),
    "in": lambda s, x: s.__iadd__("a" if "a" in x else "b"),
    "member": lambda s, x: s.__iadd__("a" if x in ("a", None) else "b"),
    "key": lambda s, x: s.__iadd__({"a": "b"}.get(x, "c")),
    "length": lambda s, x: s.__iadd__("a" * len(x)),
    "loop": lambda s, x: [s.__iadd__(each) for each in x],
    "type": lambda s, x: s.__iadd__("a" if isinstance(x, str) else "b"),
    "exact type": lambda s, x: s.__iadd__("a" if type(x) is str else "b"),
    "call": lambda s, x: x(),
    "attribute": lambda s, x: s.__iadd__(x.name),
    "attribute by name": lambda s, x: s.__iadd__("a" if hasattr(x, "a") else "b"),
    "arithmetic": lambda s, x: s.__iadd__(f"{x * 2}"),
    "sum": lambda s, x: s.__iadd__(f"{x + 2}"),
    "number": lambda s, x: s.__iadd__("a" * int(x)),
    "range": lambda s, x: [s.__iadd__("a") for _ in range(x)],
    "percent": lambda s, x: s.__iadd__("%s" % x),  # noqa: UP031
    "format": lambda s, x: s.__iadd__("{}".format(x)),  # noqa: UP032
    "text in a list": lambda s, x: s.__iadd__(str([x])[:3] + "a" if str([x]) else ""),
    "search": lambda s, x: s.__iadd__("a" if f"<{x}>".find("a") else "b"),
    "starts": lambda s, x: s.__iadd__("a" if f"<{x}>".startswith("<") else "b"),
    "size of a text": lambda s, x: s.__iadd__("a" * len(f"<{x}>")),
    "json": lambda s, x: s.__iadd__(json.dumps({"a": x})),
    "name": lambda s, x: s.__iadd__(sgl.gen(x)),
    "name read": lambda s, x: s[x],
    "branches": lambda s, x: s.fork(x),
    "turn": lambda s, x: s.__iadd__(sgl.role(x, "a")),
    "whole text": lambda s, x: s.text(),
    "meta": lambda s, x: s.meta("v"),
    "unpacking": lambda s, x: s.__iadd__("".join([*x])),
    "sorting": lambda s, x: s.__iadd__("".join(sorted([x, "a"]))),
}


@pytest.mark.parametrize("what", BREAKS)
@pytest.mark.parametrize("source", ["argument", "generated"])
def test_what_a_graph_cannot_say_breaks(scripted: MakeScripted, what: str, source: str) -> None:
    body = BREAKS[what]
    if source == "argument":
        program = sgl.function(body)
    else:

        @sgl.function
        def program(s: sgl.State) -> None:
            s += sgl.gen("v")
            body(s, s["v"])

    with pytest.raises((sgl.GraphBreak, sgl.ProgramError)) as error:
        program.compile()
    assert isinstance(error.value, sgl.GraphBreak)
    assert error.value.filename == __file__
    assert error.value.line == body.__code__.co_firstlineno
    assert f"{__file__}:{error.value.line}" in str(error.value)


def test_what_depends_on_the_model_or_the_loop_breaks() -> None:
    async def waiting(s: sgl.State) -> None:
        s += sgl.gen("x")

    def trimming(s: sgl.State) -> None:
        s.on_overflow = "drop_oldest"

    def counting(s: sgl.State) -> None:
        s += f"{s.tokens_left}"

    def calling(s: sgl.State) -> None:
        s.use_tools("x", [double])

    for body in (waiting, trimming, counting, calling):
        with pytest.raises(sgl.GraphBreak) as error:
            sgl.function(body).compile()
        assert error.value.filename == __file__
        assert error.value.line is not None
        assert 0 <= error.value.line - body.__code__.co_firstlineno <= 1


@sgl.tool
def double(x: int) -> int:
    return 2 * x


def test_a_hole_with_tools(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State, question: str) -> None:
        s += sgl.user(question) + sgl.assistant(sgl.gen("x", tools=[double], tool_choice="double"))

    call = '<tool_call>\n{"name": "double", "arguments": {"x": 4}}\n</tool_call>'
    scripted({"x": call})
    graph = program.compile()
    one = sgl.Options(seed=1)  # the ids of calls come from it
    assert graph.run("2 * 4?", options=one)["x"] == program.run("2 * 4?", options=one)["x"]
    assert graph.run("2 * 4?")["x"].arguments == {"x": 4}
    with pytest.raises(ValueError, match="it has tools"):
        graph.to_json()


def test_a_break_that_the_program_catches_is_one(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State, x: str) -> None:
        try:
            s += "a" if x else "b"
        except Exception:
            s += "c"

    with pytest.raises(sgl.GraphBreak):
        program.compile()


def test_matching_and_helpers_without_a_source(scripted: MakeScripted) -> None:
    @sgl.function
    def matching(s: sgl.State, x: str) -> None:
        match x:
            case None:
                s += "a"
            case _:
                s += "b"

    space: dict[str, Any] = {}
    exec("def helper(x):\n    return 'a' if x is None else 'b'", space)

    @sgl.function
    def blind(s: sgl.State, x: str) -> None:
        s += space["helper"](x)

    for program in (matching, blind):
        with pytest.raises(sgl.GraphBreak):
            program.compile()
    assert blind.compile(x=None).show().splitlines()[1].startswith("  text 'a'")


def test_graphs_compile_again_with_more_constants(scripted: MakeScripted) -> None:
    scripted()
    graph = everything.compile(names=("a", "b"))
    fixed = graph.compile(n=7, end=None)
    assert [p.name for p in fixed.parameters] == ["doc"]
    assert fixed.run("d").text() == everything.run("d", names=("a", "b"), n=7).text()
    assert any(isinstance(node, ir.Insert) for node in fixed.nodes)


def test_what_a_graph_returns(scripted: MakeScripted) -> None:
    scripted()
    with pytest.raises(sgl.GraphBreak, match="returns object"):
        sgl.function(lambda s: object()).compile()
    row = sgl.function(lambda s, x: [s, {x: 1}, (x, 2.5, None)]).compile(x="k").run()
    assert isinstance(row.returned[0], sgl.State)
    assert row.returned[1:] == [{"k": 1}, ("k", 2.5, None)]


class Sign:
    def __init__(self, text: Any) -> None:
        self.text = "none" if text is None else f"<{text}>"

    def __call__(self, other: Any) -> Any:
        return f"{self.text}{other}"

    def guess(self, other: Any) -> str:
        return "a" if other is None else "b"


@dataclass
class Pair:
    left: Any
    right: Any

    def both(self) -> Any:
        return f"{self.left}-{self.right}"


def test_objects_and_partials_are_seen_through(scripted: MakeScripted) -> None:
    scripted()

    @sgl.function
    def program(s: sgl.State, x: Any, what: str) -> None:
        if what == "class":
            s += Sign(x).text
        elif what == "call":
            s += Sign("a")(x)
        elif what == "method":
            s += Sign("a").guess(x)
        elif what == "partial":
            s += functools.partial(heading, x)()
        elif what == "partial of a guess":
            s += functools.partial(Sign("a").guess, x)()
        elif what == "dataclass":
            s += Pair(x, right="r").both()

    for what in ("call", "partial", "dataclass"):
        graph = program.compile(what=what)
        assert graph.run("X").text() == program.run("X", what).text()
    for what in ("class", "method", "partial of a guess"):
        with pytest.raises(sgl.GraphBreak, match="what it is"):
            program.compile(what=what)


def test_programs_in_a_file_that_is_not_all_python(tmp_path: Path, scripted: MakeScripted) -> None:
    scripted()
    page = tmp_path / "page.md"
    source = "if True:\n    @function\n    def program(s, x):\n        s += f'<{x}>'\n"
    page.write_text(f"# A page (of text\n{source}\nand more (text\n")
    space: dict[str, Any] = {"function": sgl.function}
    exec(compile("\n" + source, str(page), "exec", dont_inherit=True), space)
    graph = space["program"].compile()
    assert graph.run("a").text() == "<a>"
    assert graph.nodes[0].place == (str(page), 5)


@sgl.function
def options(s: sgl.State, n: int, mark: str) -> Any:
    s += "a" + sgl.gen("x", min_tokens=1, stop_regex="z+", logit_bias={97: 1.5}, logprobs=2)
    s += sgl.gen("y", int, think="</t>", think_tokens=9, seed=4, presence_penalty=0.5)
    s += sgl.gen("h", hidden=True, max_tokens=n) + sgl.gen("many", n=2, stop=mark)
    s += sgl.gen("q", int, think=("<t>", "</t>"), hide_thought=True, max_tokens=n)
    s += sgl.select("p", ["a", "b"], method="mean") + sgl.gen("most", n=2, max_tokens=4)
    s += f"{s['y']}{s['y.thought']}{s['q.thought']}{s['many'][1]}{s['most'][0]}"
    return s["h"]


@pytest.mark.parametrize("passes", [(), None])
def test_every_option_of_a_hole(passes: Any) -> None:
    with Scripted({"y.thought": "hm</t>", "q.thought": "so</t>"}) as model:
        wanted, row = steps(model, options, 7, "!")
        graph = options.compile(passes=passes)
        for each in (graph, sgl.Graph.from_json(graph.to_json()), graph.compile(n=7)):
            arguments = (7, "!") if len(each.parameters) == 2 else ("!",)
            found, again = steps(model, each, *arguments)
            assert found == wanted
            assert (again.variables, again.text()) == (row.variables, row.text())
            assert again.returned == row.returned == "<h>"
        assert sgl.replay(row.trace()).variables == row.variables
        assert sgl.replay(row.trace(), model).difference is None


def test_the_tree_of_a_compiled_program() -> None:
    lines = [line.split("  (line")[0] for line in ask.compile().show().splitlines()]
    assert lines == [
        "ask(question: 'str', most: 'int' = 12)",
        "  insert 'Q: ' + {question} + '\\nA:'",
        "  gen('answer'): \"max_tokens=most, stop='\\\\n' + {question[:2]}\"",
    ]
