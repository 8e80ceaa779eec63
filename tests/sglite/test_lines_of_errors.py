"""Every kind of error names the line that the user wrote, in whatever way the program is run."""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import pydantic
import pytest
from pydantic import BaseModel, field_validator
from recorder import MakeScripted

import sglite as sgl
from sglite.grammars import compile_json_schema, compile_regex
from sglite.runtime.engines.byte_tokens import byte_vocabulary
from sglite.tools.formats import script_of

BYTES = byte_vocabulary(("<|end|>",), ("<|end|>",))
LINES = Path(__file__).read_text().splitlines()


def line_of(marker: str) -> int:
    """The line of this file that ends with `# marker`."""
    (found,) = [n for n, line in enumerate(LINES, 1) if line.endswith(f"# {marker}")]
    return found


class Even(BaseModel):
    number: int

    @field_validator("number")
    @classmethod
    def even(cls, value: int) -> int:
        if value % 2:
            raise ValueError("odd")
        return value


def refuse(value: int) -> int:
    raise ValueError("never")


Never = Annotated[int, pydantic.AfterValidator(refuse)]
NOTHING_FITS = {"type": "object", "required": ["x"], "properties": {"x": False}}


@sgl.tool
def lookup(word: str) -> str:
    """Looks up."""
    raise LookupError(word)  # in a tool


def deeper(s: sgl.State, text: str) -> None:
    """What a program is put together from."""
    s += text + sgl.gen("deep", regex="(")  # in a helper


@sgl.function
def inner(s: sgl.State, text: str) -> None:
    s += text
    s += sgl.gen("inner", regex="(")  # in another program


@dataclass
class Case:
    """A program that fails, the marker of its line, and what it fails with. `in_body`: at a line
    that raises, so that a traceback leads there; other errors come when the line is long over.
    `compiles`, and as JSON it is `written` whole.
    """

    program: sgl.Function
    marker: str
    cause: type[Exception] | tuple[type[Exception], ...] | None
    script: dict[str, Any] = field(default_factory=dict)
    compiles: bool = True
    written: bool = True
    capacity: int = 1 << 20
    timeout: float | None = None
    argument: str = "x"
    in_body: bool = False


CASES: dict[str, Case] = {}


def case(cause: Any = None, **said: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A program that fails at the line marked with its own name."""

    def add(body: Callable[..., Any]) -> Callable[..., Any]:
        said.setdefault("marker", body.__name__)
        CASES[body.__name__] = Case(sgl.function(body), cause=cause, **said)
        return body

    return add


# ---- exceptions of the body


@case(ZeroDivisionError, compiles=False, in_body=True)
def body_exception(s: sgl.State, text: str) -> None:
    s += text + sgl.gen("a")
    s["a"]
    s += f"{1 / 0}"  # body_exception


@case(ZeroDivisionError, compiles=False, in_body=True)
def exception_in_a_fork(s: sgl.State, text: str) -> None:
    s += text
    for i, branch in enumerate(s.fork(3)):
        branch += sgl.gen("a")
        branch += str(1 / (1 - i))  # exception_in_a_fork


@case(KeyError, compiles=False)
def exception_in_a_library(s: sgl.State, text: str) -> None:
    import json

    s += text
    json.loads("{}", object_hook=lambda data: data["a"])  # exception_in_a_library


@case(sgl.ProgramError, compiles=False, in_body=True)
def unknown_variable(s: sgl.State, text: str) -> None:
    s += text + sgl.gen("a")
    s["b"]  # unknown_variable


@case(TypeError, compiles=False, in_body=True)
def adds_a_number(s: sgl.State, text: str) -> None:
    s += text
    s += 3  # type: ignore[arg-type]  # adds_a_number


@case(ValueError, in_body=True)
def joins_a_stranger(s: sgl.State, text: str) -> None:
    branches = s.fork(2)
    branches[0] += text
    s.join([s])  # joins_a_stranger


# ---- options and arguments of holes


@case(TypeError, in_body=True)
def unknown_option(s: sgl.State, text: str) -> None:
    s += text
    s += sgl.gen("a", max_token=3)  # type: ignore[call-arg]  # unknown_option


@case(ValueError, in_body=True)
def option_out_of_range(s: sgl.State, text: str) -> None:
    s += text
    s += sgl.gen("a", temperature=-1.0)  # option_out_of_range


@case(ValueError, in_body=True)
def bias_of_no_token(s: sgl.State, text: str) -> None:
    s += text
    s += sgl.gen("a", logit_bias={"more than one": 1.0})  # bias_of_no_token


@case(ValueError, in_body=True)
def choices_that_are_none(s: sgl.State, text: str) -> None:
    s += text
    s += sgl.select("a", [])  # choices_that_are_none


@case(ValueError)
def unknown_special(s: sgl.State, text: str) -> None:
    s += text
    s += sgl.special("<|nobody|>")  # unknown_special
    s += sgl.gen("a")


@case(ValueError, argument="\ud800", in_body=True)
def text_that_is_none(s: sgl.State, text: str) -> None:
    s += "before"
    s += f"a {text} b"  # text_that_is_none


@case(TypeError, in_body=True)
def not_an_option(s: sgl.State, text: str) -> None:
    s += text
    s += sgl.gen("a", stop=3)  # type: ignore[arg-type]  # not_an_option


# ---- constraints


@case(sgl.GrammarError)
def bad_pattern(s: sgl.State, text: str) -> None:
    s += text + sgl.gen("fine", regex="a")
    s += "and" + sgl.gen("a", regex="(")  # bad_pattern
    s += sgl.gen("also fine", regex="b")


@case(sgl.GrammarError)
def bad_schema(s: sgl.State, text: str) -> None:
    s += text
    s += sgl.gen("a", json=NOTHING_FITS)  # bad_schema


@case(sgl.GrammarError)
def bad_type(s: sgl.State, text: str) -> None:
    s += text
    s += sgl.gen("a", Annotated[int, pydantic.Field(ge=5, le=1)])  # bad_type


@case(sgl.GrammarError)
def bad_grammar(s: sgl.State, text: str) -> None:
    s += text
    s += sgl.gen("a", grammar="root ::= nowhere")  # bad_grammar


@case(sgl.GrammarError)
def bad_stop(s: sgl.State, text: str) -> None:
    s += text
    s += sgl.gen("a", stop_regex="(")  # bad_stop


@case(sgl.GrammarError, marker="in a helper")
def in_a_helper(s: sgl.State, text: str) -> None:
    s += "first"
    deeper(s, text)


@case(sgl.GrammarError, marker="in another program")
def in_another_program(s: sgl.State, text: str) -> None:
    s += "first"
    s += inner(text)


@case(sgl.GrammarError, marker="in another program")
def called_with_the_state(s: sgl.State, text: str) -> None:
    inner(s, text)


# ---- what happens while it runs


@case(KeyError, script={"b": lambda _: {}["x"]})
def engine_failure(s: sgl.State, text: str) -> None:
    s += text + sgl.gen("a")
    s += "then" + sgl.gen("b")  # engine_failure
    s += sgl.gen("c")


@case(KeyError, script={"b": lambda _: {}["x"]})
def engine_failure_in_a_fork(s: sgl.State, text: str) -> None:
    s += text
    one, two = s.fork(2)
    one += sgl.gen("a")
    two += sgl.gen("b")  # engine_failure_in_a_fork
    s.join([one, two])


@case(sgl.CapacityError, capacity=60)
def capacity(s: sgl.State, text: str) -> None:
    s += text + sgl.gen("a")
    s += "y" * 60 + sgl.gen("b")  # capacity


@case(sgl.CapacityError, capacity=60)
def capacity_at_the_end(s: sgl.State, text: str) -> None:
    s += text + sgl.gen("a")
    s += "y" * 60  # capacity_at_the_end


@case(sgl.DeadlineError, timeout=0.05, script={"b": lambda _: time.sleep(0.15) or "x"})
def deadline(s: sgl.State, text: str) -> None:
    s += text + sgl.gen("a")
    s += sgl.gen("b")  # deadline
    s += sgl.gen("c")


@case(pydantic.ValidationError, script={"a": '{"number": 5}'})
def refused_value(s: sgl.State, text: str) -> None:
    s += text
    s += sgl.gen("a", Even)  # refused_value
    s += "more"


@case(pydantic.ValidationError, script={"a": '{"number": 5}'})
def refused_value_that_is_read(s: sgl.State, text: str) -> None:
    s += text
    s += sgl.gen("a", Even)  # refused_value_that_is_read
    s += f"{s['a']}"


@case(ValueError, written=False)
def refused_part(s: sgl.State, text: str) -> None:
    s += text
    s += sgl.gen("a", grammar=sgl.typed(Never, name="v"))  # refused_part


# ---- turns and tools


@case(None, in_body=True)
def turn_in_a_turn(s: sgl.State, text: str) -> None:
    with s.user():
        s += text
        s += sgl.user("no")  # turn_in_a_turn


@case(TypeError, compiles=False, in_body=True)
def a_call_that_is_none(s: sgl.State, text: str) -> None:
    s += sgl.user(text, tools=[lookup])
    s += sgl.assistant(sgl.gen("a"))
    s.run_tools(s["a"])  # a_call_that_is_none


@case(None, compiles=False, in_body=True)
def late_tools(s: sgl.State, text: str) -> None:
    s += sgl.user(text)
    s += sgl.user("and", tools=[lookup])  # late_tools


@case(sgl.GrammarError, marker="in another program", compiles=False)
def a_run_in_a_run(s: sgl.State, text: str) -> None:
    s += text
    inner.run(text)


@case(ValueError, compiles=False, in_body=True)
def policy_that_is_none(s: sgl.State, text: str) -> None:
    s += text
    s.on_overflow = "oldest"  # policy_that_is_none


@case(ValueError, compiles=False, in_body=True)
def no_branches(s: sgl.State, text: str) -> None:
    s += text
    s.fork(0)  # no_branches


# ---- coroutines


@case(ZeroDivisionError, compiles=False, in_body=True)
async def async_exception(s: sgl.State, text: str) -> None:
    s += text + sgl.gen("a")
    await s.read("a")
    s += f"{1 / 0}"  # async_exception


@case(KeyError, compiles=False, script={"b": lambda _: {}["x"]})
async def async_engine_failure(s: sgl.State, text: str) -> None:
    s += text + sgl.gen("a") + sgl.gen("b")  # async_engine_failure
    await s.wait()


@case(sgl.GrammarError, compiles=False)
async def async_constraint(s: sgl.State, text: str) -> None:
    s += text
    s += sgl.gen("a", regex="(")  # async_constraint
    await s.read("a")


@case(None, compiles=False)
async def read_without_await(s: sgl.State, text: str) -> None:
    s += text
    s += sgl.gen("a")  # read_without_await
    s["a"]


@case(
    sgl.DeadlineError, compiles=False, timeout=0.05, script={"b": lambda _: time.sleep(0.15) or "x"}
)
async def async_deadline(s: sgl.State, text: str) -> None:
    s += text + sgl.gen("a")
    s += sgl.gen("b")  # async_deadline
    await s.read("b")


# ---- the ways to run


def by_run(program: sgl.Function, argument: str, timeout: float | None) -> sgl.ProgramError:
    with pytest.raises(sgl.ProgramError) as caught:
        program.run(argument, timeout=timeout)
    return caught.value


def by_batch(program: sgl.Function, argument: str, timeout: float | None) -> sgl.ProgramError:
    with pytest.raises(sgl.BatchError) as caught:
        program.run_batch([{"text": argument}], timeout=timeout)
    (row,) = caught.value.rows
    assert row.error is not None
    assert (caught.value.filename, caught.value.line) == (row.error.filename, row.error.line)
    return row.error


def by_stream(program: sgl.Function, argument: str, timeout: float | None) -> sgl.ProgramError:
    with pytest.raises(sgl.ProgramError) as caught:
        list(program.stream(argument, timeout=timeout))
    return caught.value


def by_arun(program: sgl.Function, argument: str, timeout: float | None) -> sgl.ProgramError:
    with pytest.raises(sgl.ProgramError) as caught:
        asyncio.run(program.arun(argument, timeout=timeout))
    return caught.value


def by_graph(program: sgl.Function, argument: str, timeout: float | None) -> sgl.ProgramError:
    return by_run(program.compile(), argument, timeout)


def by_json(program: sgl.Function, argument: str, timeout: float | None) -> sgl.ProgramError:
    text = program.compile().to_json()
    graph = sgl.Graph.from_json(text, types={"Even": Even})
    return by_run(graph, argument, timeout)


WAYS = {
    "run": by_run,
    "batch": by_batch,
    "stream": by_stream,
    "arun": by_arun,
    "graph": by_graph,
    "json": by_json,
}


def causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def users_line_of(error: BaseException) -> int | None:
    """The last line of this file in the traceback of what an error was made of."""
    frames = traceback.extract_tb([*causes(error)][-1].__traceback__)
    return [frame.lineno for frame in frames if frame.filename == __file__][-1]


def raised_by(call: Callable[[], object]) -> Exception | None:
    try:
        call()
    except Exception as error:
        return error
    return None


def ways_of(case: Case) -> list[str]:
    ways = [*WAYS] if case.compiles else [way for way in WAYS if way not in ("graph", "json")]
    return ways if case.written else [way for way in ways if way != "json"]


@pytest.mark.parametrize(
    ("name", "way"), [(name, way) for name, case in CASES.items() for way in ways_of(case)]
)
def test_an_error_names_the_line(scripted: MakeScripted, name: str, way: str) -> None:
    case = CASES[name]
    of_graph = way in ("graph", "json")
    scripted(case.script, capacity=case.capacity)
    line = line_of(case.marker)
    if of_graph:
        traced = raised_by(case.program.compile)
        if traced is not None:  # as it is
            assert case.in_body
            assert isinstance(traced, case.cause or sgl.ProgramError)
            assert users_line_of(traced) == line
            return
    error = WAYS[way](case.program, case.argument, case.timeout)
    assert (error.filename, error.line) == (__file__, line), str(error)
    assert f"{__file__}:{line}" in str(error)
    if case.cause is not None:
        assert any(isinstance(each, case.cause) for each in causes(error)), [*causes(error)]
    if case.in_body and not of_graph:
        assert users_line_of(error) == line


@sgl.function
def asks_an_argument(s: sgl.State, text: str) -> None:
    s += text
    if text == "x":  # asks_an_argument
        s += "y"


@sgl.function
def asks_in_a_program(s: sgl.State, text: str) -> None:
    s += "first"
    asks_an_argument(s, text)


@pytest.mark.parametrize("program", [asks_an_argument, asks_in_a_program])
def test_a_graph_break_names_the_line(program: sgl.Function) -> None:
    with pytest.raises(sgl.GraphBreak) as caught:
        program.compile()
    line = line_of("asks_an_argument")
    assert (caught.value.filename, caught.value.line) == (__file__, line)
    assert f"{__file__}:{line}" in str(caught.value)
    assert users_line_of(caught.value) == line


def test_what_a_tool_raises_leads_to_its_line(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        s += sgl.user("x", tools=[lookup])
        s.use_tools("a")

    scripted(script_of({"a": [sgl.ToolCall("lookup", {"word": "x"}), "done"]}))
    (result,) = program.run().tool_results
    assert isinstance(result.error, LookupError)
    assert users_line_of(result.error) == line_of("in a tool")


def test_a_body_that_sleeps_past_its_time(scripted: MakeScripted) -> None:
    @sgl.function
    def sleeps(s: sgl.State) -> None:
        s += sgl.gen("a")
        s["a"]
        s += "text"  # the last thing that was added
        time.sleep(0.2)

    scripted()
    with pytest.raises(sgl.DeadlineError) as caught:
        sleeps.run(timeout=0.05)
    error = caught.value
    assert isinstance(error, sgl.ProgramError)
    assert error.line == line_of("the last thing that was added")


@sgl.function
def fine(s: sgl.State, text: str) -> None:
    s += text + sgl.gen("a")


def closed_model() -> sgl.Model:
    model = sgl.Model("scripted", backend="scripted")
    model.close()
    return model


ELSEWHERE: dict[str, tuple[type[Exception], Callable[[], object]]] = {
    "closed": (sgl.ModelError, lambda: fine.run("x", model=closed_model())),  # closed
    "no file": (sgl.ModelError, lambda: sgl.Model("/no/such.gguf")),  # no file
    "no backend": (sgl.ModelError, lambda: sgl.Model("x", backend="gpu")),  # no backend
    "no argument": (TypeError, lambda: fine.run()),  # no argument
    "another argument": (TypeError, lambda: fine.run("x", texts=3)),  # another argument
    "no options": (TypeError, lambda: fine.run("x", options=3)),  # type: ignore  # no options
    "no such option": (ValueError, lambda: sgl.Options(max_tokens=0)),  # no such option
    "rows": (TypeError, lambda: fine.run_batch("rows")),  # type: ignore  # rows
    "order": (ValueError, lambda: fine.run_batch([], order="x")),  # type: ignore  # order
    "a graph": (ValueError, lambda: sgl.Graph.from_json("{}")),  # a graph
    "a trace": (ValueError, lambda: sgl.replay("{}")),  # a trace
    "a journal": (sgl.JournalError, lambda: fine.run_batch([], journal=__file__)),  # a journal
    "a schema": (sgl.GrammarError, lambda: compile_json_schema(False, BYTES)),  # a schema
    "a pattern": (sgl.GrammarError, lambda: compile_regex("(", BYTES)),  # a pattern
    "a type": (TypeError, lambda: sgl.gen("x", 3)),  # a type
    "a tool": (ValueError, lambda: sgl.tool(lambda x: x)),  # a tool
    "a program": (TypeError, lambda: sgl.function(lambda: None)),  # a program
    "passes": (ValueError, lambda: fine.compile(passes=["x"])),  # passes
    "a value": (KeyError, lambda: fine.run("x")["b"]),  # a value
    "a failed row": (sgl.ProgramError, lambda: failed_row()["a"]),  # a failed row
    "left early": (sgl.CancelledError, lambda: left_early().result(5)),  # left early
}


def failed_row() -> sgl.Result:
    (row,) = CASES["bad_pattern"].program.run_batch([{"text": ""}], errors="return")
    return row


def left_early() -> sgl.Started:
    run = fine.start("x")
    run.cancel()
    return run


@pytest.mark.parametrize("name", ELSEWHERE)
def test_other_errors_are_raised_where_they_are_written(scripted: MakeScripted, name: str) -> None:
    kind, call = ELSEWHERE[name]
    scripted(delay=0.01)
    with pytest.raises(kind) as caught:
        call()
    frames = traceback.extract_tb(caught.value.__traceback__)
    ours = [frame.lineno for frame in frames if frame.filename == __file__]
    assert ours[-1] == line_of(name)
