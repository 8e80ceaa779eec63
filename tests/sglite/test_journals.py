"""Journals: a batch goes on where it ended, and never on the results of another one."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel
from recorder import MakeScripted

import sglite as sgl
from sglite.running.identity import digest


class Record(BaseModel):
    name: str
    number: int


@sgl.function
def program(s: sgl.State, doc: str) -> dict[str, int]:
    s += sgl.user(doc)
    s += sgl.assistant(sgl.gen("record", Record) + sgl.gen("kind", Literal["a", "b"]))
    branches = s.fork(2)
    branches[0] += sgl.gen("note")
    s.join(branches)
    s += sgl.select("choice", [" yes", " no"])
    return {"length": len(doc)}


def rows_of(n: int) -> list[dict[str, str]]:
    return [{"doc": f"d{i}"} for i in range(n)]


def test_a_batch_that_is_run_again_does_nothing_twice(
    scripted: MakeScripted, tmp_path: Path
) -> None:
    engine = scripted({"choice": {" yes": 0.75, " no": 0.25}})
    path = tmp_path / "rows.jsonl"
    first = program.run_batch(rows_of(6), journal=path)
    opened = len(engine.opened)
    again = program.run_batch(rows_of(8), journal=str(path))
    assert len(engine.opened) == opened + 2 * 3  # two new rows, each with two branches
    for before, after in zip(first, again, strict=False):
        assert after.error is None
        assert (after.row, after.seed) == (before.row, before.seed)
        assert after.text() == before.text()
        assert after.messages() == before.messages()
        assert after.ids == before.ids
        assert after.usage == before.usage
        assert after.returned == before.returned
        assert after["record"] == before["record"].model_dump()
        assert after["kind"] == before["kind"]
        assert after["note"] == before["note"] == ["<note>", None]
        assert after.meta("choice") == before.meta("choice")
        assert after.all("note") == before.all("note")
        assert after.timing.total == pytest.approx(before.timing.total)
        assert set(after.variables) == set(before.variables)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line.get("row") for line in lines].count(3) == 1
    assert lines[1]["values"]["kind"] in ("a", "b")


@pytest.mark.parametrize("order", ["rows", "completed"])
def test_coroutines_have_a_journal_too(scripted: MakeScripted, tmp_path: Path, order: str) -> None:
    @sgl.function
    async def coroutine(s: sgl.State, doc: str) -> str:
        s += doc + sgl.gen("x")
        return str(await s.read("x"))

    engine = scripted()
    path = tmp_path / "rows.jsonl"
    for _ in range(2):
        rows: Any = asyncio.run(coroutine.arun_batch(rows_of(5), journal=path))  # type: ignore
        assert [row.returned for row in rows] == ["<x>"] * 5
        rows = coroutine.run_batch(rows_of(5), journal=path, order=order)  # type: ignore
        assert sorted(row.row for row in rows) == list(range(5))
    assert len(engine.opened) == 5


def test_failed_rows_are_kept_and_run_again(scripted: MakeScripted, tmp_path: Path) -> None:
    answers: list[Any] = ["no number", *"12345"]

    @sgl.function
    def numbers(s: sgl.State, doc: str) -> None:
        s += doc + sgl.gen("n", int)

    scripted({"n": answers})
    path = tmp_path / "rows.jsonl"
    rows = numbers.run_batch(rows_of(3), journal=path, errors="return")
    assert [row.error is not None for row in rows] == [True, False, False]
    assert '"error"' in path.read_text()
    rows = numbers.run_batch(rows_of(3), journal=path)
    assert [row["n"] for row in rows] == [3, 1, 2]


def test_other_arguments_are_another_row(scripted: MakeScripted, tmp_path: Path) -> None:
    engine = scripted()
    path = tmp_path / "rows.jsonl"
    program.run_batch(rows_of(3), journal=path)
    changed = [{"doc": "d0"}, {"doc": "new"}, {"doc": "d2"}]
    before = len(engine.opened)
    rows = program.run_batch(changed, journal=path)
    assert "new" in rows[1].text()
    assert len(engine.opened) == before + 3

    class Thing: ...

    with pytest.raises(TypeError, match="row 0 cannot be kept in a journal: a Thing"):
        program.run_batch([{"doc": Thing()}], journal=path)


GREETING = "hello"
WORDS = ["a", "b"]


def helper(s: sgl.State) -> None:
    s += GREETING


def variant(source: str, **scope: Any) -> sgl.Function:
    """A program from source that `inspect` finds, as a changed file would be."""
    import linecache

    name = f"<program {time.monotonic_ns()}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    namespace: dict[str, Any] = {"__name__": "variants", "sgl": sgl, **scope}
    exec(compile(source, name, "exec"), namespace)
    made = namespace["f"]
    assert isinstance(made, sgl.Function)
    return made


SOURCE = """
def greet(s):
    s += WORD

@sgl.function
def f(s, doc):  # a comment
    greet(s)
    s += doc + sgl.gen("x")
"""


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"source": SOURCE.replace('gen("x")', 'gen("x", max_tokens=3)')}, "program: f"),
        ({"source": SOURCE.replace("s += WORD", "s += WORD + '!'")}, "program: greet"),
        ({"scope": {"WORD": "bye"}}, "program: WORD"),
        ({"options": sgl.Options(temperature=0.5)}, r"options: temperature \(None then, 0.5 now"),
        ({"options": sgl.Options(seed=1)}, r"seed \("),
        ({"model": "other"}, r"model: name \('scripted' then, 'other' now\)"),
    ],
)
def test_what_has_changed_is_refused_by_name(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    path = tmp_path / "rows.jsonl"

    def run(
        source: str = SOURCE,
        scope: dict[str, Any] | None = None,
        options: sgl.Options | None = None,
        model: str = "scripted",
    ) -> list[sgl.Result]:
        f = variant(source, **(scope or {"WORD": "hi"}))
        with sgl.Model(model, backend="scripted") as scripted:
            return f.run_batch(rows_of(2), journal=path, options=options, model=scripted)

    run()
    run(source=SOURCE.replace("# a comment", "# another one, and    layout"))
    run(options=sgl.Options(priority=2, timeout=60))  # which change no value
    text = path.read_text()
    with pytest.raises(sgl.JournalError, match=message):
        run(**change)
    assert path.read_text() == text


def test_a_model_file_that_changed_is_refused(tmp_path: Path) -> None:
    from sglite.running.identity import digest_of_model

    file = tmp_path / "m.gguf"
    file.write_bytes(bytes(range(256)) * 4000)

    class Fake:
        name = "m"
        path = str(file)
        failure = None

    before = digest_of_model(Fake())  # type: ignore[arg-type]
    assert before == digest_of_model(Fake())  # type: ignore[arg-type]
    data = bytearray(file.read_bytes())
    data[500_000] ^= 1
    file.write_bytes(data)
    assert digest_of_model(Fake()) != before  # type: ignore[arg-type]


def test_damaged_and_foreign_files(scripted: MakeScripted, tmp_path: Path) -> None:
    engine = scripted()
    path = tmp_path / "rows.jsonl"
    program.run_batch(rows_of(4), journal=path)
    whole = path.read_bytes()
    rng = range(len(whole) - len(whole.splitlines(True)[-1]) + 1, len(whole), 97)
    for end in rng:  # the last line is torn
        path.write_bytes(whole[:end])
        opened = len(engine.opened)
        assert len(program.run_batch(rows_of(4), journal=path)) == 4
        assert len(engine.opened) == opened + 3
        assert len(path.read_bytes().splitlines()) == 5
    path.write_bytes(whole[:20])  # killed while the first line was written
    assert len(program.run_batch(rows_of(2), journal=path)) == 2
    for foreign in (b"text\n", b"text", b'{"row": 1}\n', whole[:200] + b"\nx\n" + whole[200:]):
        path.write_bytes(foreign)
        with pytest.raises(sgl.JournalError, match="name another file"):
            program.run_batch(rows_of(2), journal=path)
        assert path.read_bytes() == foreign


def test_two_batches_cannot_share_a_journal(scripted: MakeScripted, tmp_path: Path) -> None:
    scripted()
    path = tmp_path / "rows.jsonl"
    rows = program.run_batch(rows_of(9), journal=path, order="completed")
    next(rows)
    if os.name == "posix":
        with pytest.raises(sgl.JournalError, match="in use"):
            program.run_batch(rows_of(9), journal=path)
    rows.close()  # type: ignore[attr-defined]
    assert len(program.run_batch(rows_of(9), journal=path)) == 9


CHILD = """
import sys, time
import sglite as sgl
from pathlib import Path

@sgl.function
def f(s, doc):
    s += doc + sgl.gen("x")
    if len(sys.argv) > 2:
        time.sleep(0.002)

def main():
    with sgl.use(sgl.Model("scripted", backend="scripted")) as model:
        rows = ({"doc": f"document {i}"} for i in range(400))
        for row in f.run_batch(rows, journal=sys.argv[1], order="completed"):
            print(row.row, flush=True)
main()
"""


@pytest.mark.skipif(os.name != "posix", reason="kill -9")
def test_killing_the_process_loses_and_repeats_no_row(tmp_path: Path) -> None:
    path, script = tmp_path / "rows.jsonl", tmp_path / "child.py"
    script.write_text(CHILD)
    seen: set[int] = set()
    for _ in range(2):
        child = subprocess.Popen(
            [sys.executable, str(script), str(path), "slow"], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        for _ in range(60):
            seen.add(int(child.stdout.readline()))
        child.send_signal(signal.SIGKILL)
        child.communicate()
    done = [json.loads(x)["row"] for x in path.read_bytes().split(b"\n")[1:-1]]
    assert seen <= set(done)  # nothing is lost
    end = subprocess.run(
        [sys.executable, str(script), str(path)], capture_output=True, text=True, check=True
    )
    assert sorted(map(int, end.stdout.split())) == list(range(400))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    rows = [line["row"] for line in lines[1:]]
    assert sorted(rows) == list(range(400))  # and nothing was done twice


def test_digests_tell_values_apart() -> None:
    @dataclass
    class Point:
        x: int

    values: list[Any] = [
        0, 0.0, False, None, "", "0", b"0", [], (), {}, [0], [[0]], ["a", "b"], ["ab"], {"a": 1},
        {"a": {"b": 1, "c": 2}}, {"a": {"c": 2, "b": 1}}, {1, 2}, frozenset({1, 2}), Point(1),
        Point(2), Record(name="a", number=1), Record(name="a", number=2), Path("a"), 1j,
    ]  # fmt: skip
    assert len({digest(value) for value in values}) == len(values)
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    loop: list[Any] = []
    loop.append(loop)
    for strange in (object(), loop, lambda: 0):
        with pytest.raises(TypeError):
            digest(strange)
