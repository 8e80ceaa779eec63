"""The ready grammars against Python's own parsers: examples, and texts drawn at random."""

from __future__ import annotations

import ast
import csv
import datetime
import io
import json
import random
import re
from collections.abc import Callable

import pytest
from mask_oracle import accepts, draw

from sglite.errors import GrammarError
from sglite.grammars import Vocabulary, library


def is_arithmetic(text: str) -> bool:
    if not set(text) <= set("0123456789.+-*/() "):
        return False
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError:
        return False
    known = (ast.Expression, ast.BinOp, ast.UnaryOp, ast.Constant, ast.operator, ast.unaryop)
    return all(isinstance(node, known) for node in ast.walk(tree))


def is_date(text: str) -> bool:
    try:
        return datetime.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def is_datetime(text: str) -> bool:
    try:
        datetime.datetime.fromisoformat(text)
    except ValueError:
        return False
    return bool(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", text))


def is_csv_row(text: str) -> bool:
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error:
        return False
    return len(rows) == 1 and rows[0] != []


def is_json(text: str) -> bool:
    try:
        json.dumps(json.loads(text)).encode().decode()
    except ValueError:
        return False
    return True


def is_tool_call(text: str) -> bool:
    if not is_json(text):
        return False
    call = json.loads(text)
    return (
        list(call) == ["name", "arguments"]
        and re.fullmatch(r"[A-Za-z_][\w.-]{0,63}", call["name"]) is not None
        and isinstance(call["arguments"], dict)
    )


JUDGES: dict[str, Callable[[str], bool]] = {
    "arithmetic": is_arithmetic,
    "csv_row": is_csv_row,
    "iso_date": is_date,
    "iso_datetime": is_datetime,
    "json": is_json,
    "tool_call": is_tool_call,
}

EXAMPLES: dict[str, tuple[list[str], list[str]]] = {
    "arithmetic": (
        ["1", "-1", "1+2*(3.5-4)/5", " 2 ** -3 ** 2 ", "--1", "0.50", "((1))"],
        ["", "1+", "(1", "01", "1 2", "a", "1.", ".5", "()", "2*/3", "1//2"],
    ),
    "csv_row": (
        ["a", "a,b", ",", ",,x", '"a,b",c', '"say ""x""",', 'a b,"line\r\nend"', "é,日本"],
        ["", 'a"b', '"a', '"a"b', "a\nb", "a\n", '"a""'],
    ),
    "iso_date": (
        ["2026-11-30", "2024-02-29", "2000-02-29", "0001-01-01", "9999-12-31", "0004-02-29"],
        ["2026-02-29", "1900-02-29", "0000-01-01", "2026-04-31", "2026-13-01", "2026-00-10",
         "2026-1-1", "20261130", "2026-11-31", "2026-11-00", "2026-11-30T"],
    ),
    "iso_datetime": (
        ["2026-11-30T08:15:00", "2024-02-29T23:59:59Z", "2026-11-30T08:15:00.123456+05:30",
         "2026-11-30T00:00:00.5-00:00"],
        ["2026-11-30", "2026-11-30T24:00:00", "2026-11-30T08:60:00", "2026-11-30T08:15",
         "2026-11-30T08:15:00.", "2026-11-30T08:15:00.1234567", "2026-02-30T08:15:00"],
    ),
    "json": (
        ["null", ' {"a" : [1, -0.5e+3, {}], "b":"\\u00e9\\ud83d\\ude00é"}\n', "[]", '""', "0"],
        ["", "{", "[1,]", "01", "+1", "1.", "'a'", '"\n"', '"\\ud800"', '"\\ude00"', '"\\x"',
         '{"a":}', '{a:1}', "nul", "[1 2]"],
    ),
    "tool_call": (
        ['{"name": "search", "arguments": {}}',
         '{"name": "a.b-c_1", "arguments": {"q": [1, "x"], "n": null}}'],
        ["{}", '{"name": "", "arguments": {}}', '{"name": "a", "arguments": []}',
         '{"name": "a"}', '{"arguments": {}, "name": "a"}', '{"name": "1a", "arguments": {}}'],
    ),
}  # fmt: skip


def test_the_list_is_what_is_tested() -> None:
    assert library.names() == sorted(JUDGES) == sorted(EXAMPLES)


@pytest.mark.parametrize("name", JUDGES)
def test_every_grammar_says_what_it_is(name: str) -> None:
    assert library.text(name).startswith(("# A", "# One", "// A"))


@pytest.mark.parametrize("name", JUDGES)
def test_examples(vocab: Vocabulary, name: str) -> None:
    grammar = library.load(name, vocab)
    yes, no = EXAMPLES[name]
    for text in yes:
        assert JUDGES[name](text), text
        assert accepts(grammar, text.encode()), text
    for text in no:
        assert not accepts(grammar, text.encode()), text


@pytest.mark.parametrize("name", JUDGES)
def test_what_is_drawn_is_right(vocab: Vocabulary, name: str) -> None:
    grammar = library.load(name, vocab)
    rng = random.Random()
    for _ in range(60):
        text = draw(grammar, rng, budget=rng.randrange(60, 120), stop=0.2).decode()
        assert JUDGES[name](text), text


@pytest.mark.parametrize("name", ["iso_date", "iso_datetime"])
def test_dates_with_one_character_changed(vocab: Vocabulary, name: str) -> None:
    grammar = library.load(name, vocab)
    rng = random.Random()
    for _ in range(400):
        day = datetime.datetime(1, 1, 1) + datetime.timedelta(days=rng.randrange(3_652_059))
        text = day.date().isoformat() if name == "iso_date" else day.isoformat()
        assert accepts(grammar, text.encode()), text
        at = rng.randrange(len(text))
        changed = text[:at] + rng.choice("0123456789") + text[at + 1 :]
        assert accepts(grammar, changed.encode()) == JUDGES[name](changed), changed


def test_unknown_names(vocab: Vocabulary) -> None:
    for use in (library.text, lambda name: library.load(name, vocab)):
        with pytest.raises(GrammarError, match=r"no grammar 'yaml'; it has arithmetic"):
            use("yaml")
