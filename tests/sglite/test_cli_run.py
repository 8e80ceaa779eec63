"""`sglite run`: options out of a signature, what is printed, and what is said of mistakes."""

from __future__ import annotations

import contextvars
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from children import child
from click.testing import CliRunner

import sglite as sgl
from sglite.cli import main

COMMAND = str(Path(sys.executable).with_name("sglite"))

PROGRAM = '''
from __future__ import annotations
from datetime import date
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Optional
from pydantic import BaseModel, Field
import sglite as sgl
if TYPE_CHECKING:
    from nowhere import State

class Color(Enum):
    RED = "red"
    THREE = 3

class Point(BaseModel):
    x: int

@sgl.function
def show(
    s: State, text: str, bare, number: Annotated[int, Field(ge=1)] = 3, share: float = 0.5,
    loud: bool = False, color: Color = Color.RED, kind: Literal["a", 2] = "a",
    tags: list[str] = (), counts: tuple[int, ...] = (1, 2), day: Optional[date] = None,
    where: Path = Path("."), point: Point | None = None, table: dict[str, int] | None = None,
    level=1, names=("x", "y"), maybe: int | None = 4, max_words: int = 9, *, json: bool = True,
    seed: int = 1, help: str = "",
):
    """Shows what it was given.

    Args:
        text: any text
    """
    got = {k: v for k, v in locals().items() if k != "s"}
    s += "Given:" + sgl.gen("x", max_tokens=3)
    return repr(got)
'''

TWO = '''
import sglite as sgl

@sgl.function
def first(s, a: int, /, b: int = 2):
    """The first one."""
    s += f"{a} {b}" + sgl.gen("x") + sgl.gen("n", int)

@sgl.function
def second(s, words: list[str], nothing: int | None):
    s += f"{words} {nothing}" + sgl.gen("y")
    if words == ["bad"]:
        raise ValueError("not this word")
    return {"words": words}

def plain(s): ...
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sglite.model._latest", None)
    (tmp_path / "show_it.py").write_text(PROGRAM)
    (tmp_path / "two.py").write_text(TWO)
    before, paths = {*sys.modules}, [*sys.path]
    yield tmp_path
    sys.path[:] = paths
    for name in {*sys.modules} - before:
        if (
            getattr(sys.modules[name], "__file__", None)
            and tmp_path in Path(str(sys.modules[name].__file__)).parents
        ):
            del sys.modules[name]


def run(*arguments: str, stdin: str | None = None) -> tuple[int, str, str]:
    done = CliRunner().invoke(main, ["run", "--backend", "scripted", *arguments], input=stdin)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout, done.stderr


def given(*arguments: str) -> dict[str, object]:
    code, out, err = run("--json", "show_it.py", "--text", "t", "--bare", "b", *arguments)
    assert code == 0, err
    module = sys.modules["show_it"]
    scope = {**vars(module), "PosixPath": Path, "datetime": __import__("datetime")}
    text = json.loads(out)["returned"].replace("<Color.RED: 'red'>", "Color.RED")
    value = eval(text.replace("<Color.THREE: 3>", "Color.THREE"), scope)
    assert isinstance(value, dict)
    sys.modules.pop("show_it")
    return value


def test_defaults_stay(folder: Path) -> None:
    said = given()
    assert said.pop("color").name == "RED"  # type: ignore[attr-defined]
    assert said == {
        "text": "t", "bare": "b", "number": 3, "share": 0.5, "loud": False, "kind": "a",
        "tags": (), "counts": (1, 2), "day": None, "where": Path("."), "point": None,
        "table": None, "level": 1, "names": ("x", "y"), "maybe": 4, "max_words": 9, "json": True,
        "seed": 1, "help": "",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("written", "name", "value"),
    [
        (["--text", '"5"'], "text", '"5"'),
        (["--bare", "5"], "bare", "5"),
        (["--number", "7"], "number", 7),
        (["--share", "1e-3"], "share", 1e-3),
        (["--loud"], "loud", True),
        (["--no-json"], "json", False),
        (["--kind", "2"], "kind", 2),
        (["--tags", "a", "--tags", "b c"], "tags", ["a", "b c"]),
        (["--counts", "5", "--counts", "6"], "counts", (5, 6)),
        (["--where", "a/b"], "where", Path("a/b")),
        (["--table", '{"k": 1}'], "table", {"k": 1}),
        (["--table", "null"], "table", None),
        (["--level", "2"], "level", 2),
        (["--names", "z"], "names", ("z",)),
        (["--maybe", "8"], "maybe", 8),
        (["--max-words", "8"], "max_words", 8),
        (["--seed", "8"], "seed", 8),
        (["--help", "me"], "help", "me"),
    ],
)
def test_values(folder: Path, written: list[str], name: str, value: object) -> None:
    got = given(*written)[name]
    assert got == value
    assert type(got) is type(value)


def test_objects_enums_and_dates(folder: Path) -> None:
    import datetime

    said = given("--day", "2026-02-03", "--color", "3")
    assert said["day"] == datetime.date(2026, 2, 3)
    assert said["color"].name == "THREE"  # type: ignore[attr-defined]
    _, out, _ = run("--json", "show_it.py", "--text", "", "--bare", "", "--point", '{"x": "1"}')
    assert "'point': Point(x=1)" in json.loads(out)["returned"]


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (["--number", "x"], "'--number': Input should be a valid integer"),
        (["--number", "0"], "'--number': Input should be greater than or equal to 1"),
        (["--kind", "c"], "'c' is none of 'a', '2'"),
        (["--counts", "x"], "'--counts': Input should be a valid integer"),
        (["--day", "2026-02-30"], "'--day': Input should be a valid date"),
        (["--point", "{}"], "'--point': x: Field required"),
        (["--point", "x"], "'--point': Invalid JSON"),
        (["--tex", "x"], "--text"),
        (["--top-p", "0"], "top_p must be in (0, 1]"),
        (["--max-tokens", "0"], "max_tokens must be at least 1"),
        (["--on-overflow", "x"], "on_overflow takes"),
        (["--stream", "--batch", "x"], "--stream is for one run"),
    ],
)
def test_mistakes_on_the_line(folder: Path, written: list[str], message: str) -> None:
    code, out, err = run("show_it.py", "--text", "t", "--bare", "b", *written)
    assert (code, out) == (2, "")
    assert message in err
    assert run("show_it.py", "--text", "t")[2].endswith("Error: Missing option '--bare'.\n")


def test_help_of_a_program(folder: Path) -> None:
    code, out, _ = run("--help", "show_it.py")
    assert code == 0
    assert out.startswith("Usage: ")
    words = " ".join(out.split())
    for part in (
        "run show_it.py [OPTIONS] Shows what it was given. Arguments: --text TEXT any text "
        "[required] --bare TEXT [required] --number INT [default: 3]",
        "--loud / --no-loud --color [red|3] [default: red] --kind [a|2] [default: a]",
        "--counts INT", "--day DATE", "--point JSON", "Options: --model NAME", "--temperature",
    ):  # fmt: skip
        assert part in words
    assert out.count("--seed") == 1  # the program's
    assert "The first one." in run("two.py:first", "--help")[1]
    assert "FILE:FUNCTION" in run("--help")[1]


def test_a_name_of_ours_stands_before_the_program(folder: Path) -> None:
    code, out, _ = run(
        "--json", "--seed", "7", "show_it.py", "--text", "", "--bare", "", "--seed", "9"
    )
    row = json.loads(out)
    assert (code, row["seed"]) == (0, 7)
    assert "'seed': 9" in row["returned"]
    row = json.loads(run("two.py:second", "--words", "a", "--json", "--seed", "3")[1])
    assert row["seed"] == 3
    assert row["values"] == {"y": "<y>"}
    assert row["text"] == "['a'] None<y>"
    assert row["model"] == "scripted"
    assert {*row} == {"values", "returned", "text", "usage", "model", "seed", "timing"}


def test_what_is_printed(folder: Path) -> None:
    for stream in ("--stream", "--no-stream"):
        code, out, _ = run("two.py:second", "--words", "a", stream)
        assert (code, out) == (0, 'y: <y>\nreturned: {"words": ["a"]}\n')
    assert run("two.py:first")[2].endswith("Missing option '--a'.\n")
    assert run("two.py:first", "--a", "5", "--b", "6", "--no-stream")[1] == "x: <x>\nn: 0\n"


def test_a_program_that_fails(folder: Path) -> None:
    for stream in ("--stream", "--no-stream"):
        code, _, err = run("two.py:second", "--words", "bad", stream)
        assert code == 1
        line = TWO.splitlines().index('        raise ValueError("not this word")') + 1
        place = f"({folder / 'two.py'}:{line})"
        assert err == (
            f"Error: second() failed: ValueError: not this word {place}\n"
            '    raise ValueError("not this word")\n'
        )


def test_programs_that_are_not_there(folder: Path) -> None:
    def message(target: str) -> str:
        code, _, err = run(target)
        assert code == 1
        return err

    line = TWO.splitlines().index("@sgl.function") + 1
    assert f"name one, such as two.py:first\n  first  line {line}\n" in message("two.py")
    assert "no program 'secnd', did you mean 'second'?\n  first" in message("two.py:secnd")
    assert "'plain' of two.py is no program; write @sgl.function above" in message("two.py:plain")
    assert "no file tw.py, did you mean 'two.py'?" in message("tw.py:first")
    assert "no module 'nowhere_at_all'" in message("nowhere_at_all.x:first")
    (folder / "empty.py").write_text("")
    assert "empty.py has no program; write @sgl.function" in message("empty.py")
    (folder / "broken.py").write_text("x = (\n")
    assert "broken.py is no Python" in message("broken.py")
    (folder / "raises.py").write_text("def f():\n    return 1 / 0\n\n\nf()\n")
    assert "ZeroDivisionError" in message("raises.py")
    assert message("raises.py").endswith("raises.py:2)\n    return 1 / 0\n")
    (folder / "ends.py").write_text("import sys\nsys.exit(0)\n")
    assert 'if __name__ == "__main__"' in message("ends.py")
    (folder / "relative.py").write_text("from . import x\n")
    assert "name it as a module" in message("relative.py")
    (folder / "g.json").write_text("{}")
    assert message("g.json").startswith("Error: g.json: ")
    assert "leave out :x" in message("g.json:x")
    assert CliRunner().invoke(main, ["run"]).exit_code == 2


def test_modules_and_graphs(folder: Path) -> None:
    (folder / "package").mkdir()
    (folder / "package" / "__init__.py").write_text("")
    (folder / "package" / "inner.py").write_text(TWO)
    code, out, err = run("package.inner:first", "--a", "1", "--no-stream")
    assert (code, out) == (0, "x: <x>\nn: 0\n"), err

    @sgl.function
    def described(s, city, style="short"):
        s += f"{city}, {style}" + sgl.gen("word")

    (folder / "graph.json").write_text(described.compile().to_json())
    code, out, err = run("graph.json", "--city", "Oslo", "--json")
    assert code == 0, err
    assert json.loads(out)["text"] == "Oslo, short<word>"
    assert "--style TEXT  [default: short]" in run("graph.json", "--help")[1]


def test_the_model(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "uses.py").write_text(
        TWO + "sgl.use(sgl.Model('mine', backend='scripted', script={'y': 'from mine'}))\n"
    )

    def line(*arguments: str) -> str:
        command = ["run", *arguments, "--words", "a", "--no-stream"]
        # What a file puts in use stays so, as long as its process.
        context = contextvars.copy_context()
        return context.run(CliRunner().invoke, main, command).output

    monkeypatch.setenv("SGLITE_MODEL", "nothing.gguf")
    assert "nothing.gguf" in line("two.py:second")
    assert "y: from mine" in line("uses.py:second")
    assert "y: <y>" in line("--backend", "scripted", "uses.py:second")
    assert "--url needs --model" in line("--url", "http://localhost:9/v1", "two.py:second")
    assert "url=" in line("--url", "http://localhost:9/v1", "--backend", "cpu", "two.py:second")


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_an_interrupt(folder: Path) -> None:
    (folder / "slow.py").write_text(
        "import time\nimport sglite as sgl\n\n@sgl.function\ndef slow(s):\n"
        "    s += 'x' + sgl.gen('y')\n    print('running', flush=True)\n    time.sleep(60)\n"
    )
    command = [COMMAND, "run", "slow.py", "--backend", "scripted"]
    with child(command, folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as slow:
        assert slow.stdout is not None
        assert slow.stdout.readline() == "running\n"
        started = time.monotonic()
        slow.send_signal(signal.SIGINT)
        _, err = slow.communicate(timeout=20)
    assert (slow.returncode, err) == (130, "interrupted\n")
    assert time.monotonic() - started < 10


@pytest.mark.model
def test_on_the_small_model(folder: Path, smollm2_path: Path) -> None:
    (folder / "capital.py").write_text(
        "import sglite as sgl\n\n@sgl.function\ndef capital(s, country):\n"
        "    s += f'The capital of {country} is' + sgl.gen('city', max_tokens=4, stop='.')\n"
    )
    done = subprocess.run(
        [COMMAND, "run", "capital.py", "--country", "France"],
        cwd=folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("city: Paris\n", "")
