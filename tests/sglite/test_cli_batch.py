"""`sglite run --batch`: every row once, in order, whatever happens to the process."""

from __future__ import annotations

import io
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from children import child
from click.testing import CliRunner

from sglite.cli import main
from sglite.cli.batch import _InOrder

COMMAND = str(Path(sys.executable).with_name("sglite"))

PROGRAM = """
import time
from datetime import date
import sglite as sgl

@sgl.function
def f(s, doc: str, day: date | None = None, tags: list[str] = (), pause: float = 0.0):
    s += f"{doc} {day!r} {tags!r}" + sgl.gen("x")
    if doc == "bad":
        raise ValueError("not this one")
    time.sleep(pause)
    return [doc, day, list(tags)]

@sgl.function
def other(s, a, /, doc: str): ...

@sgl.function
async def later(s, doc: str):
    s += doc + sgl.gen("x")
    return len(await s.read("x"))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "batch_it.py").write_text(PROGRAM)
    return tmp_path


def run(*arguments: str, stdin: str | bytes | None = None) -> tuple[int, str, str]:
    sys.modules.pop("batch_it", None)
    target = () if arguments[0].startswith("batch_it") else ("batch_it.py:f",)
    line = ["run", "--backend", "scripted", *target, *arguments]
    done = CliRunner().invoke(main, line, input=stdin)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout, done.stderr


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def write(name: str, rows: list[Any]) -> None:
    Path(name).write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def test_rows_in_order(folder: Path) -> None:
    write("in.jsonl", [{"doc": f"d{i}", "pause": (i % 3) / 1000} for i in range(200)])
    code, out, err = run("--batch", "in.jsonl")
    assert (code, err) == (0, "")
    assert lines(out) == [
        {"index": i, "values": {"x": "<x>"}, "returned": [f"d{i}", None, []], "error": None}
        for i in range(200)
    ]
    code, shown, err = run("--batch", "in.jsonl", "-o", "out.jsonl", "--progress")
    assert (code, shown) == (0, "")
    assert "200/200" in err
    assert Path("out.jsonl").read_text() == out
    assert sorted(p.name for p in folder.glob("out*")) == ["out.jsonl"]
    code, async_out, _ = run("batch_it.py:later", "--batch", "-", stdin='{"doc": "a"}\n' * 50)
    assert [(row["index"], row["returned"]) for row in lines(async_out)] == [
        (i, 3) for i in range(50)
    ]


def test_values_of_rows(folder: Path) -> None:
    row = {"doc": "d", "day": "2026-05-03", "tags": ["a"]}
    text = "\ufeff\n" + json.dumps(row) + "\n\n" + json.dumps({"doc": "e", "tags": []})
    code, out, err = run("--batch", "-", "--tags", "all", stdin=text.encode())
    assert (code, err) == (0, "")
    assert [each["returned"] for each in lines(out)] == [
        ["d", "2026-05-03", ["a"]],
        ["e", None, []],
    ]
    cells = '\ufeffdoc,day,tags\n"one, ""two""",2026-05-03,"[""b""]"\nthree,,\n,,\n'
    Path("in.csv").write_text(cells, encoding="utf-8")
    code, out, err = run("--batch", "in.csv", "--tags", "all")
    assert (code, err) == (0, "")
    assert [each["returned"] for each in lines(out)] == [
        ['one, "two"', "2026-05-03", ["b"]],
        ["three", None, ["all"]],
        ["", None, ["all"]],
    ]
    assert run("--batch", "-", stdin="") == (0, "", "")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"doc": 1', "line 3: is no JSON"),
        (b'["doc"]', "line 3: is no JSON object; write one object on each line"),
        (b'{"doc": "\xff"}', "line 3: is no UTF-8"),
        (b'{"dok": "d"}', "line 3: there is no argument 'dok', did you mean 'doc'?"),
        (b"{}", "line 3: the argument 'doc' is missing"),
        (b'{"doc": 5}', "line 3: doc: Input should be a valid string"),
        (b'{"doc": "d", "tags": ["a", 1]}', "line 3: tags: 1: Input should be a valid string"),
        (b"[" * 100_000, "line 3: is no JSON"),
    ],
)
def test_a_bad_line_is_found_before_anything_is_run(
    folder: Path, line: bytes, message: str
) -> None:
    Path("in.jsonl").write_bytes(b'{"doc": "a"}\n\n' + line + b'\n{"doc": "b"}\n')
    code, out, err = run("--batch", "in.jsonl", "-o", "out.jsonl")
    assert (code, out) == (1, "")
    assert err.startswith(f"Error: in.jsonl, {message}")
    assert not list(folder.glob("out*"))
    journal = folder / "out.jsonl.journal"
    journal.write_text("of another batch")
    assert run("--batch", "in.jsonl", "-o", "out.jsonl", "--overwrite")[0] == 1
    assert journal.read_text() == "of another batch"


def test_other_mistakes_of_files(folder: Path) -> None:
    for cells, message in (
        ("doc,day\na\n", "line 2: has 1 cells, the first 2"),
        ("dok\na\n", "line 2: there is no argument 'dok'"),
        ('doc\n"a\n', "is no CSV"),
        ("doc,day\na,soon\n", "line 2: day: Input should be a valid date"),
    ):
        Path("in.csv").write_text(cells)
        code, _, err = run("--batch", "in.csv")
        assert code == 1
        assert message in err
    assert "No such file" in run("--batch", "none.jsonl")[2]
    write("in.jsonl", [{"doc": "d"}])
    assert "there is no folder nowhere" in run("--batch", "in.jsonl", "-o", "nowhere/out.jsonl")[2]
    assert "is a folder" in run("--batch", "in.jsonl", "-o", str(folder))[2]
    Path("there.jsonl").write_text("")
    assert "No such file" in run("--batch", "none", "-o", "there.jsonl", "--overwrite")[2]
    assert "passed by position" in run("batch_it.py:other", "--batch", "in.jsonl")[2]
    code, out, err = run("--batch", "-", stdin='{"doc": "a"}\n{"doc": 3}\n')
    assert (code, len(lines(out))) == (1, 1)  # standard input cannot be read ahead
    assert "standard input, line 2: doc" in err


def test_rows_that_fail(folder: Path) -> None:
    write("in.jsonl", [{"doc": doc} for doc in ("a", "bad", "c", "bad")])
    code, out, err = run("--batch", "in.jsonl")
    assert code == 1
    assert "Error: 2 rows failed. Row 1: f() failed: ValueError: not this one" in err
    assert err.endswith('    raise ValueError("not this one")\n')
    rows = lines(out)
    assert [row["index"] for row in rows] == [0, 1, 2, 3]
    assert [row["error"] is None for row in rows] == [True, False, True, False]
    assert rows[1]["error"]["file"] == str(folder / "batch_it.py")
    assert rows[1]["error"]["line"] == 1 + PROGRAM.splitlines().index(
        '        raise ValueError("not this one")'
    )
    assert rows[1]["returned"] is None
    write("in.jsonl", [{"doc": "bad"}, *[{"doc": "d", "pause": 0.05}] * 2000])
    code, out, _ = run("--batch", "in.jsonl", "--errors", "raise")
    assert code == 1
    assert 1 <= len(lines(out)) < 1000


def test_going_on(folder: Path) -> None:
    write("in.jsonl", [{"doc": doc, "day": "2026-05-03"} for doc in ("a", "bad", "c")])
    batch = ("--batch", "in.jsonl", "-o", "out.jsonl")
    assert run(*batch)[0] == 1
    before = Path("out.jsonl").read_text()
    journal = Path("out.jsonl.journal")
    assert len(journal.read_text().splitlines()) == 4
    assert run(*batch)[0] == 1
    assert Path("out.jsonl").read_text() == before
    assert len(journal.read_text().splitlines()) == 5  # the failed row alone

    changed = PROGRAM.replace("{doc} ", "{doc}, ")
    (folder / "batch_it.py").write_text(changed)
    code, _, err = run(*batch)
    assert code == 1
    assert "has changed: program: f" in err
    assert "--overwrite begins anew" in err
    assert Path("out.jsonl").read_text() == before  # and nothing was lost
    (folder / "batch_it.py").write_text(PROGRAM)
    assert "options: temperature" in run(*batch, "--temperature", "0.5")[2]
    assert "seed" in run(*batch, "--seed", "5")[2]

    write("in.jsonl", [{"doc": doc, "day": "2026-05-03"} for doc in ("a", "b", "c")])
    assert run(*batch)[0] == 0
    assert not journal.exists()
    rows = lines(Path("out.jsonl").read_text())
    assert [row["returned"][0] for row in rows] == ["a", "b", "c"]
    first = lines(before)
    assert (rows[0], rows[2]) == (first[0], first[2])

    code, _, err = run(*batch)
    assert code == 1
    assert "out.jsonl is there" in err
    code, _, err = run("--batch", "in.jsonl", "-o", "./in.jsonl", "--overwrite")
    assert code == 1
    assert "in.jsonl has the rows themselves" in err
    assert run(*batch, "--overwrite")[0] == 0
    assert lines(Path("out.jsonl").read_text()) == rows
    assert run("--batch", "in.jsonl", "--journal", "j", "-o", "-")[0] == 0
    assert len(Path("j").read_text().splitlines()) == 4  # a file that was named stays


@pytest.mark.skipif(os.name != "posix", reason="kill -9")
def test_killing_the_process_loses_and_repeats_no_row(folder: Path) -> None:
    count = 400
    write("in.jsonl", [{"doc": f"d{i}", "pause": 0.005} for i in range(count)])
    command = [COMMAND, "run", "batch_it.py:f", "--backend", "scripted"]
    command += ["--batch", "in.jsonl", "-o", "out.jsonl"]
    output, journal = Path("out.jsonl"), Path("out.jsonl.journal")
    seen: set[int] = set()
    for round_ in (1, 2):
        with child(command, folder) as batch:
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline:
                written = (
                    lines(output.read_bytes().rpartition(b"\n")[0].decode())
                    if output.exists()
                    else []
                )
                if len(written) >= 80 * round_:
                    break
                time.sleep(0.01)
            batch.send_signal(signal.SIGKILL)
        seen |= {row["index"] for row in written}
        done = [json.loads(x)["row"] for x in journal.read_bytes().split(b"\n")[1:-1]]
        assert seen <= {*done}
        assert len(done) < count
    before = len(journal.read_bytes().splitlines())
    with child(command, folder, stderr=subprocess.PIPE) as batch:
        while batch.poll() is None and len(journal.read_bytes().splitlines()) < before + 20:
            time.sleep(0.005)
        assert batch.poll() is None
        batch.send_signal(signal.SIGINT)
        _, err = batch.communicate(timeout=30)
    assert batch.returncode == 130
    assert err == "the same command goes on where it ended\ninterrupted\n"
    done = [json.loads(x)["row"] for x in journal.read_bytes().split(b"\n")[1:-1]]
    assert len(done) == len({*done})  # nothing was done twice
    subprocess.run(command, cwd=folder, check=True)
    rows = lines(output.read_text())
    assert [row["index"] for row in rows] == [*range(count)]
    assert [row["returned"][0] for row in rows] == [f"d{i}" for i in range(count)]
    assert not journal.exists()


def test_lines_in_any_order_are_written_in_theirs() -> None:
    rng = random.Random()
    for _ in range(50):
        made = [
            bytes([65 + i % 26]) * rng.randrange(1, 9) + b"\n" for i in range(rng.randrange(40))
        ]
        order = rng.sample(range(len(made)), len(made))
        file = io.BytesIO()
        with _InOrder(file, in_memory=20) as ordered:
            for index in order:
                ordered.add(index, made[index])
        assert file.getvalue() == b"".join(made)
