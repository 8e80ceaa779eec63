"""The examples run: quickly on the scripted engine, and as a user runs them on the small model."""

from __future__ import annotations

import importlib.util
import json
import sqlite3
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from sglite.testing.plugin import MakeScripted

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
ORDER = {
    "order_number": "AB-12345",
    "customer": "I",
    "quantity": 24,
    "article": "p",
}


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # pydantic looks annotations up there
    spec.loader.exec_module(module)
    return module


def test_extract_prints_records_and_counters(
    sgl_scripted: MakeScripted, capsys: pytest.CaptureFixture[str]
) -> None:
    sgl_scripted({"order": ORDER})
    load("extract").main([])
    shown = capsys.readouterr().out
    assert '"quantity": 24' in shown
    letters = (EXAMPLES / "data" / "letters.jsonl").read_text().splitlines()
    assert shown.count('"order_number":"AB-12345"') == len(letters) == 6
    for word in ("computed", "reused", "forced", "first token after", "tokens per second"):
        assert word in shown


def test_extract_takes_files(
    sgl_scripted: MakeScripted, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    sgl_scripted({"order": [ORDER, {**ORDER, "quantity": "many"}, ORDER]})
    batch = tmp_path / "mine.jsonl"
    batch.write_text("\n".join(json.dumps({"letter": f"letter {i}"}) for i in range(3)))
    load("extract").main([batch])
    shown = capsys.readouterr().out
    assert shown.count('"order_number"') == 3  # two records, and the refused answer in its error
    assert "does not match" in shown


def test_triage_prints_probabilities(
    sgl_scripted: MakeScripted, capsys: pytest.CaptureFixture[str]
) -> None:
    sgl_scripted({"label": {" billing": 3, " praise": 1}})
    load("triage").main(["I paid twice."])
    assert (
        capsys.readouterr().out
        == "billing   billing  75%  delivery   0%  praise  25%  | I paid twice.\n"
    )


def test_chat_keeps_the_conversation(
    sgl_scripted: MakeScripted,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sgl_scripted({"answer": ["Paris.", "The tower.", "330 metres.", "You are welcome."]})
    chat = load("chat")
    chat.main([])
    shown = capsys.readouterr().out
    assert "> What is the capital of France?\nParis.\n" in shown
    assert "3 answers" in shown
    lines = iter(["thanks", ""])
    monkeypatch.setattr("builtins.input", lambda prompt: next(lines))
    chat.main(["--interactive"])
    assert "You are welcome." in capsys.readouterr().out


def test_fork_joins_its_branches(
    sgl_scripted: MakeScripted, capsys: pytest.CaptureFixture[str]
) -> None:
    sgl_scripted({"reason": ["a.", " b. c"], "choice": {"two": 3, "one": 1}})
    load("fork").main(["one", "two"])
    shown = capsys.readouterr().out.splitlines()
    assert shown[:4] == ["one: a.", "two: b.", "   25% one", "   75% two"]
    assert "tokens read" in shown[4]


def call(name: str, **arguments: str) -> str:
    body = json.dumps({"name": name, "arguments": arguments})
    return f"<tool_call>\n{body}\n</tool_call>"


def test_agent_calls_its_tools(
    sgl_scripted: MakeScripted, capsys: pytest.CaptureFixture[str]
) -> None:
    query = "SELECT name FROM products WHERE price > 20"
    answers = [
        [call("calculate", expression="23 * (17 - 7)"), "230."],
        [call("search_files", word="seed trays"), call("search_files", word="zebra"), "One."],
        [call("query_products", sql=query), "Three."],
        [call("query_products", sql="SELECT 1; DROP TABLE products"), "No."],
    ]
    sgl_scripted({"answer": [text for turn in answers for text in turn]})
    load("agent").main([])
    shown = capsys.readouterr().out
    assert "calculate(expression='23 * (17 - 7)') -> 230\n230.\n" in shown
    assert "letters.jsonl:2: " in shown
    assert "no line has 'zebra'" in shown
    assert '[["lamp"],["chair"],["globe"]]' in shown
    assert "You can only execute one statement" in shown


def test_the_tools_of_the_agent_are_safe() -> None:
    agent = load("agent")
    agent.make_database()
    assert agent.calculate("-2 * (3 + 4.5) // 2 % 7") == -2 * (3 + 4.5) // 2 % 7
    for text in ("9**9**9", "__import__('os')", "a", "[1]", "1 if 1 else 2"):
        with pytest.raises(ValueError, match="is no arithmetic"):
            agent.calculate(text)
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT max(i) FROM n"
    for sql in ("DROP TABLE products", "INSERT INTO products VALUES (1, 2, 3)", endless):
        with pytest.raises(sqlite3.OperationalError, match=r"readonly|interrupted"):
            agent.query_products(sql)
    assert agent.query_products("SELECT count(*) FROM products") == [(4,)]
    agent.DATABASE.unlink()


def arrival(ship: str, port: str, cargo: str) -> dict[str, str]:
    return {"ship": ship, "port": port, "cargo": cargo}


def test_long_document_merges_records_with_their_places(
    sgl_scripted: MakeScripted, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    entries = ["1 May. The brig Ada came from Oslo with ice.", "The Bee, from Rome. " * 3]
    doc = tmp_path / "log.txt"
    doc.write_text("\n\n".join(entries))

    def answer(text: str) -> list[dict[str, str]]:
        window = text.rpartition("<|im_start|>user\n")[2]
        if "Ada" in text and "three different things" in window:
            return [arrival("Ada", "Oslo", "ice")]
        name = "Ada" if "Ada" in text else "Bee"
        return [arrival(name, name, name)]

    sgl_scripted({"arrivals": answer})
    example = load("long_document")
    example.main([doc])
    shown = capsys.readouterr().out
    assert "Ada\n  ship  Ada            100% at    16  ...1 May. The brig Ada came" in shown
    assert "  cargo ice            100% at    40  " in shown
    assert "Bee\n" not in shown
    assert "2 windows, 4 attempts, 1 without a likely record" in shown


@pytest.mark.model
@pytest.mark.parametrize("name", ["extract", "triage", "chat", "fork", "agent", "long_document"])
def test_example_on_the_small_model(name: str, smollm2_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "reused" in done.stdout or name == "triage"
