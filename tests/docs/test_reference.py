"""The lists of the guide say what the code does."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import HttpUrl

import sglite as sgl
from sglite.grammars import Vocabulary, compile_json_schema, compile_regex, regex_syntax
from sglite.grammars.schema import document, formats
from sglite.runtime.segment import FinishReason

GUIDE = (Path(__file__).resolve().parents[2] / "docs" / "language.md").read_text()
BYTES = Vocabulary.from_tokens([bytes([b]) for b in range(256)] + [b"<end>"], [256], [256])


def bullet(start: str) -> str:
    """The text of the bullet that begins like that."""
    return GUIDE[GUIDE.index(f"- {start}") :].partition("\n- ")[0].partition("\n\n")[0]


def table(header: str, column: int = 1) -> list[str]:
    """The code spans in a column of the first table after this text."""
    lines = GUIDE[GUIDE.index(header) :].split("\n|", 1)[1].partition("\n\n")[0].splitlines()
    return [span for line in lines[1:] for span in spans(line.split("|")[column])]


def spans(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def listed_keywords() -> list[str]:
    return spans(bullet("JSON Schema keywords that are **not**").partition(".\n")[0])


def test_the_unsupported_keywords_are_all_there() -> None:
    assert sorted(listed_keywords()) == sorted(document._UNSUPPORTED)


@pytest.mark.parametrize("keyword", listed_keywords())
def test_an_unsupported_keyword_is_refused(keyword: str) -> None:
    schema = {keyword: 2}
    with pytest.raises(sgl.GrammarError, match=re.escape(repr(keyword))):
        compile_json_schema(schema, BYTES)


def test_the_formats_are_all_there_and_right() -> None:
    supported, unsupported = (
        spans(part) for part in bullet("Values of `format`").split("**Not**", 1)
    )
    assert supported.pop(0) == "format"
    assert sorted(supported + unsupported) == sorted(formats.KNOWN)
    for name in supported:
        compile_json_schema({"type": "string", "format": name}, BYTES)
    for name in unsupported:
        with pytest.raises(sgl.GrammarError, match=f"format {name!r}"):
            compile_json_schema({"type": "string", "format": name}, BYTES)


def listed_patterns() -> list[str]:
    return spans(bullet("Patterns, in").partition("**no**")[2])


@pytest.mark.parametrize("pattern", listed_patterns())
def test_an_unsupported_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(sgl.GrammarError):
        compile_regex(f"x{pattern}" if pattern[:2] != "(?" else pattern, BYTES)


def test_every_feature_that_is_refused_by_name_is_listed() -> None:
    source = inspect.getsource(regex_syntax)
    groups = re.findall(r'^ +\("([^"]+)", "(?:a |an )?([a-z ]+)"\),$', source, re.MULTILINE)
    assert len(groups) >= 7
    for sign, name in groups:
        assert any(f"(?{sign}" in pattern for pattern in listed_patterns()), name


@pytest.mark.parametrize("kind", [set[int], frozenset[str], HttpUrl])
def test_a_type_without_a_schema_that_can_be_written(kind: Any) -> None:
    constraint = sgl.gen("x", kind).constraint
    assert constraint is not None
    with pytest.raises(sgl.GrammarError):
        compile_json_schema(constraint.source, BYTES)
    name = getattr(kind, "__name__", "")
    assert any(span.startswith(name) for span in spans(bullet("So these types")))


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
