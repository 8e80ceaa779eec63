"""The fixture for users' tests: as it is used, and what it says when a test is wrong."""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import date
from enum import Enum
from pathlib import Path
from typing import Literal

import pytest
from pydantic import BaseModel

import sglite as sgl
from sglite.testing import ScriptedModel

ROOT = Path(__file__).resolve().parents[2]


class Point(BaseModel):
    x: int
    day: date


class Color(Enum):
    RED = "red"


@sgl.function
def capital(s, country):
    s += sgl.system("You know countries.")
    s += sgl.user(f"The capital of {country}?")
    s += sgl.assistant(sgl.gen("city", max_tokens=4, stop="."))


@sgl.function
def typed(s):
    s += "On" + sgl.gen("day", date) + ", at" + sgl.gen("point", Point)
    s += "in" + sgl.gen("color", Color) + sgl.select("label", [" a", " b"])
    s += sgl.gen("sample", n=2) + sgl.gen("size", Literal["s", "m"])


def test_what_was_asked() -> None:
    script = {"city": lambda text: "Oslo" if "Norway" in text else "Bern"}
    with ScriptedModel(script) as model:
        options = sgl.Options(temperature=0.5)
        assert capital.run("Norway", model=model, options=options)["city"] == "Oslo"
        assert capital.run("Malta", model=model)["city"] == "Bern"
        first, second = model.asked
        model.check()
    assert first.prompt.endswith("The capital of Norway?<|im_end|>\n<|im_start|>assistant\n")
    assert model.prompts == [first.prompt, second.prompt]
    assert (first.name, first.answer, first.hole.max_tokens) == ("city", "Oslo", 4)
    assert (first.sampling.temperature, second.sampling.temperature) == (0.5, 0.0)
    assert isinstance(first.hole, sgl.runtime.segment.Gen)
    assert first.hole.stop == (".",)
    assert (first.choices, first.constraint, first.schema) == ((), None, None)


def test_answers_of_every_kind() -> None:
    point = Point(x=1, day=date(2026, 5, 3))
    script = {
        "day": date(2026, 11, 30),
        "point": point,
        "color": Color.RED,
        "label": {" a": 0.25, " b": 0.75},
        "sample": ["one", "two"],
        "size": "m",
    }
    with ScriptedModel(script) as model:
        row = typed.run(model=model)
        model.check()
    assert row["day"] == date(2026, 11, 30)
    assert row["point"] == point
    assert row["color"] is Color.RED
    assert row["label"] == " b"
    assert row.meta("label").distribution == {" a": 0.25, " b": 0.75}
    assert row["sample"] == ["one", "two"]
    asked = {each.name: each for each in model.asked}
    assert asked["label"].choices == (" a", " b")
    assert asked["point"].schema["required"] == ["x", "day"]
    assert asked["size"].constraint is not None


def test_calls_of_tools_and_streams() -> None:
    @sgl.tool
    def add(a: int, b: int) -> int:
        return a + b

    @sgl.function
    def agent(s):
        s += sgl.system("Use tools.", tools=[add])
        s += sgl.user("17 and 25?")
        return s.use_tools("answer")

    script = {"answer": [sgl.ToolCall("add", {"a": 17, "b": 25}), "It is 42."]}
    with ScriptedModel(script) as model:
        *events, end = agent.stream(model=model)
        model.check()
    assert isinstance(end, sgl.End)
    assert end.row.returned == "It is 42."
    assert end.row.tool_results[0].value == 42
    assert any(isinstance(event, sgl.Text) for event in events)
    assert "42" in model.asked[1].prompt


def test_an_exception_as_an_answer() -> None:
    down = sgl.ModelError("the machine is down")
    with ScriptedModel({"city": ["Oslo", down]}) as model:
        rows = capital.run_batch([{"country": "A"}] * 2, model=model, errors="return")
        assert sorted(row.error is None for row in rows) == [False, True]
        (failed,) = [row for row in rows if row.error is not None]
        assert failed.error is not None
        assert failed.error.__cause__ is down
        model.check()
    with (
        ScriptedModel({"city": lambda text: OSError("gone")}) as model,
        pytest.raises(sgl.ProgramError, match="gone"),
    ):
        capital.run("A", model=model)


def test_a_hole_without_an_answer_is_named_even_where_its_error_is_given_back() -> None:
    with ScriptedModel({"citi": "Oslo"}) as model:
        with pytest.raises(sgl.ProgramError) as error:
            capital.run("A", model=model)
        assert error.value.filename == __file__
        assert "no answer for the hole 'city', did you mean 'citi'?" in str(error.value)
        with pytest.raises(AssertionError) as missing:
            model.check()
        assert "no answer for the hole 'city'" in str(missing.value)
        assert "1 answer for 'citi' that nothing asked for" in str(missing.value)
    with ScriptedModel({"city": ["Oslo"]}) as model:
        rows = capital.run_batch([{"country": "A"}] * 3, model=model, errors="return")
        assert sum(row.error is None for row in rows) == 1
        with pytest.raises(AssertionError, match="no more answers for the hole 'city'"):
            model.check()


def test_what_is_left_over() -> None:
    with ScriptedModel({"city": ["Oslo", "Bern", "Rome"]}) as model:
        capital.run("A", model=model)
        with pytest.raises(AssertionError, match="has 2 answers for 'city' that nothing asked"):
            model.check()
    for script, strict in (({"city": ["Oslo", "Bern"], "x": 1}, False), (None, True), ({}, False)):
        with ScriptedModel(script, strict=strict) as model:
            assert capital.run("A", model=model)["city"] == ("Oslo" if script else "<city>")
            model.check()
    with ScriptedModel({}) as model, pytest.raises(sgl.ProgramError, match="answers for: none"):
        capital.run("A", model=model)


TESTS = """
import pytest
import sglite as sgl

@sgl.function
def capital(s, country):
    s += f"The capital of {country} is" + sgl.gen("city")

def test_good(sgl_scripted):
    sgl_scripted({"city": "Oslo"})
    assert capital.run("A")["city"] == "Oslo"
    model = sgl_scripted({"city": "Bern"})
    assert capital.run("A")["city"] == "Bern"
    assert model.prompts == ["The capital of A is"]

def test_nothing_is_in_use_after_it():
    with pytest.raises(sgl.ModelError):
        sgl.current_model()

def test_left_over(sgl_scripted):
    sgl_scripted({"city": ["Oslo", "Bern"]})
    capital.run("A")

def test_left_over_loosely(sgl_scripted):
    sgl_scripted({"city": ["Oslo", "Bern"]}, strict=False)
    capital.run("A")

def test_hidden(sgl_scripted):
    sgl_scripted({"town": "Oslo"})
    capital.run_batch([{"country": "A"}], errors="return")

def test_that_fails_itself(sgl_scripted):
    sgl_scripted({"city": ["Oslo", "Bern"]})
    assert capital.run("A")["city"] == "Rome"
"""


# Warnings are errors, but for one that an editable install alone makes.
INI = """
[pytest]
filterwarnings =
    error
    ignore:Module already imported so cannot be rewritten; _editable
"""


def run_pytest(folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "pytest", "-p", "sglite.testing.plugin"]
    (folder / "pytest.ini").write_text(INI)
    done = subprocess.run(
        [*command, "-q", "-rA", "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def test_the_plugin(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    shown = run_pytest(tmp_path)
    outcomes = {name: outcome for outcome, name in re.findall(r"^(\w+) \S+?::(\w+)", shown, re.M)}
    assert outcomes == {
        "test_good": "PASSED",
        "test_nothing_is_in_use_after_it": "PASSED",
        "test_left_over": "FAILED",
        "test_left_over_loosely": "PASSED",
        "test_hidden": "FAILED",
        "test_that_fails_itself": "FAILED",
    }, shown
    assert "the script has 1 answer for 'city' that nothing asked for" in shown
    assert "no answer for the hole 'city'" in shown
    assert "'Oslo' == 'Rome'" in shown
    assert "3 failed, 3 passed" in shown
    assert "Warning" not in shown


def test_the_guide(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "language.md").read_text()
    section = text[text.index("\n## Testing") + 1 :]
    (block,) = re.findall(r"^```python\n(.*?)^```", section.partition("\n## ")[0], re.M | re.S)
    program = re.search(r"^@sgl.function\ndef capital.*?\n\n\n", text, re.M | re.S)
    assert program is not None
    head = f"import pytest\n\nimport sglite as sgl\n\n\n{program[0]}"
    (tmp_path / "test_guide.py").write_text(head + block)
    assert f"{block.count('def test_')} passed" in run_pytest(tmp_path)


def test_pytest_starts_without_loading_sglite() -> None:
    code = (
        "import sys, sglite.testing.plugin;"
        "heavy = ('sglite', 'torch', 'numpy', 'pydantic');"
        "print(sorted(name for name in sys.modules if name.startswith(heavy)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['sglite', 'sglite.testing', 'sglite.testing.plugin']\n"


def test_the_plugin_is_installed_under_its_module() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    assert (
        '[project.entry-points.pytest11]\n"sglite.testing.plugin" = "sglite.testing.plugin"' in text
    )
