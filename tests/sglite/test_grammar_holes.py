"""Holes that take grammars: texts, files, the library and parts."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from recorder import MakeScripted

import sglite as sgl
from sglite.grammars import library
from sglite.grammars.compose import capture, choice, compile_parts, json_schema, regex, sequence


@sgl.function
def hole(s: sgl.State, grammar: Any) -> None:
    s += "x: " + sgl.gen("x", grammar=grammar)


LARK = 'start: "a" NUMBER\n%import .numbers.NUMBER\n'
PART = sequence("<", choice(capture("n", regex("[0-9]+")), capture("data", json_schema(True))), ">")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "numbers.lark").write_text('NUMBER: "1".."3"\n')
    path = tmp_path / "main.lark"
    path.write_text(LARK)
    return path


def test_a_file_with_its_imports(scripted: MakeScripted, file: Path) -> None:
    scripted({"x": ["a2", "a4"]})
    assert hole.run(file)["x"] == "a2"
    with pytest.raises(sgl.ProgramError, match="refused at byte 1"):
        hole.run(file)


@pytest.mark.parametrize("name", library.names())
def test_the_library(scripted: MakeScripted, name: str) -> None:
    scripted()
    hole.run(library.path(name))


def test_a_file_that_is_not_there_is_an_error_of_its_line(scripted: MakeScripted) -> None:
    scripted()
    with pytest.raises(sgl.ProgramError, match="cannot read the grammar") as error:
        hole.run(Path("nowhere.gbnf"))
    assert isinstance(error.value.__cause__, sgl.GrammarError)


def test_parts_and_their_captures(scripted: MakeScripted) -> None:
    engine = scripted({"x": '<{"a": 1}>'})
    row = hole.run(PART)
    found = compile_parts(PART, engine.vocabulary).captures(row["x"].encode())
    assert found == {"n": [], "data": [b'{"a": 1}']}


def test_rows_with_parts_are_pickled_and_printed(scripted: MakeScripted, file: Path) -> None:
    scripted()
    for grammar in (PART, file, library.path("csv_row")):
        row = hole.run(grammar)
        assert pickle.loads(pickle.dumps(row))["x"] == row["x"]
        assert "parts" in str(row.graph)
        if grammar is file:
            with pytest.raises(ValueError, match="imports files"):
                row.graph.to_json()
        else:
            again = sgl.Graph.from_json(row.graph.to_json())
            assert again.run()["x"] == row["x"]


def test_what_is_no_grammar() -> None:
    with pytest.raises(TypeError, match="takes a grammar text, a path, a part"):
        sgl.gen("x", grammar=3)  # type: ignore[arg-type]
