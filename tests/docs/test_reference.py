"""The lists of the guides say what the code does."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import HttpUrl, conlist, constr

import sglite as sgl
from sglite.grammars import Vocabulary, _native, compile_json_schema, compile_regex
from sglite.runtime.segment import FinishReason

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "language.md").read_text()
PAGE = (ROOT / "docs" / "constraints.md").read_text()
KEYWORDS = (ROOT / "grammars" / "native" / "json" / "keywords.cpp").read_text()
BYTES = Vocabulary.from_tokens([bytes([b]) for b in range(256)] + [b"<end>"], [256], [256])


def spans(text: str) -> list[str]:
    return [span.replace("\\|", "|") for span in re.findall(r"`([^`]+)`", text)]


def table(header: str, column: int = 1) -> list[str]:
    """The code spans in a column of the first table of the guide after this text."""
    lines = GUIDE[GUIDE.index(header) :].split("\n|", 1)[1].partition("\n\n")[0].splitlines()
    return [span for line in lines[1:] for span in spans(line.split("|")[column])]


def section(title: str) -> str:
    return PAGE[PAGE.index(f"## {title}") :].partition("\n## ")[0]


def test_every_keyword_is_listed() -> None:
    text = section("JSON Schema, keyword").partition("\n### ")[0]
    rows = [line for line in text.splitlines() if line[:3] == "| `"]
    listed = {span for row in rows for span in spans(row.split("|")[1])}
    known = set(re.findall(r'^    \{"([$A-Za-z-]+)"', KEYWORDS, re.MULTILINE))
    assert len(known) >= 40
    names = {"$id", "$anchor", "$dynamicAnchor", "$defs", "definitions"}
    assert listed == known | names


def test_the_formats_are_all_there() -> None:
    text = section("JSON Schema, keyword").partition("These are enforced")[2].partition("\n")[0]
    assert spans(text) == _native.format_names()


@pytest.mark.parametrize("name", _native.format_names())
def test_a_format_can_be_written(name: str) -> None:
    compile_json_schema({"type": "string", "format": name}, BYTES)


def patterns(row: str) -> list[str]:
    table = section("Patterns")
    return spans(table[table.index(f"| {row}") :].partition("|\n")[0].partition(" | ")[2])


@pytest.mark.parametrize("pattern", patterns("refused"))
def test_an_unsupported_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(sgl.GrammarError) as error:
        compile_regex(pattern, BYTES)
    assert re.fullmatch(r"1:\d+", error.value.pointer)
    with pytest.raises(sgl.GrammarError):
        compile_json_schema({"pattern": pattern}, BYTES)


def test_patterns_that_are_supported_in_one_syntax() -> None:
    for pattern in (r"\Aab\Z", "(?a)a", "(?u)a", "(?x) a", "(?#b)a"):
        compile_regex(pattern, BYTES)
        with pytest.raises(sgl.GrammarError):
            compile_json_schema({"pattern": pattern}, BYTES)
    compile_json_schema({"pattern": r"\u{1F600}"}, BYTES)
    with pytest.raises(sgl.GrammarError):
        compile_regex(r"\u{1F600}", BYTES)


@pytest.mark.parametrize("pattern", [r"\p{L}", r"\P{Lu}", "(?m)^a", "(?<=^|,)a", "(?<!b)a"])
def test_patterns_that_are_supported_in_both_syntaxes(pattern: str) -> None:
    compile_json_schema({"pattern": pattern}, BYTES)
    compile_regex(pattern, BYTES)


@pytest.mark.parametrize("keyword", ["divisibleBy", "disallow", "extends", "$recursiveRef"])
def test_a_keyword_of_other_drafts_is_refused(keyword: str) -> None:
    assert f"`{keyword}`" in section("What is refused")
    with pytest.raises(sgl.GrammarError, match=re.escape(repr(keyword))):
        compile_json_schema({keyword: 2}, BYTES)


@pytest.mark.parametrize(
    "kind",
    [
        set[int],
        frozenset[str],
        HttpUrl,
        constr(pattern="^a+$", max_length=9),
        conlist(int, max_length=3),
    ],
)
def test_the_types_of_pydantic_have_a_schema_that_can_be_written(kind: Any) -> None:
    constraint = sgl.gen("x", kind).constraint
    assert constraint is not None
    compile_json_schema(constraint.source, BYTES)


def test_a_pattern_in_a_schema_is_searched() -> None:
    def takes(constraint: dict[str, Any], text: bytes) -> bool:
        matcher = compile_json_schema({"type": "string", **constraint}, BYTES).matcher()
        return matcher.accept_tokens(list(text)) and matcher.is_complete

    assert takes({"pattern": "[A-Z]{2}"}, b'"xABx"')
    assert not takes({"pattern": "^[A-Z]{2}$"}, b'"xABx"')
    assert takes({"pattern": "^[A-Z]{2}$"}, b'"AB"')


def test_the_tables_are_whole() -> None:
    finishes = table("says why the hole ended")
    assert [finish.strip('"') for finish in finishes if finish.startswith('"')] == [
        "eos", "stop", "until", "grammar", "length", "context", "select"
    ]  # fmt: skip
    assert {finish.strip('"') for finish in finishes} - {"finish"} == {*get_args(FinishReason)}
    assert table("## Models") == [*inspect.signature(sgl.Model).parameters]
    exported = [getattr(sgl, name) for name in sgl.__all__]
    errors = {e.__name__ for e in exported if isinstance(e, type) and issubclass(e, Exception)}
    assert {*table("## Errors"), "SgliteError"} == errors
