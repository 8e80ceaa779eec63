"""What is dangerous is refused when it is compiled, or never: see hostile.py."""

from __future__ import annotations

import contextlib
import json
import time
from typing import Any

import pytest
from hostile import SECONDS, trial
from hypothesis import given, settings
from hypothesis import strategies as st
from limits import examples
from mask_oracle import accepts
from trials import small_vocabulary

from sglite.errors import GrammarError
from sglite.grammars import Vocabulary, compile_json_schema

VOCABULARY = small_vocabulary()


@settings(max_examples=examples(40), deadline=None)
@given(seed=st.integers(0, 2**32))
def test_nothing_is_refused_within_a_text(seed: int) -> None:
    assert trial(seed, VOCABULARY, texts=1, longest=40) in ("compiled", "refused")


OVERLAPPING = [r"a(?:\w)*", r"^(?:.){17}(?=a)a(?:é|b)é", r"^(?:(?=(?=.)\w)(?:[ab]|.))*", r"^\w$"]


@pytest.mark.parametrize(
    "schema",
    [
        {"uniqueItems": True, "items": {"type": "string", "pattern": "^é+.(?:z1é){5000,6000}$"}},
        {"uniqueItems": True, "items": {"type": "string", "pattern": "^(z1)*(ab){5000}$"}},
        {"uniqueItems": True, "items": {"type": "string", "pattern": "^(ab){0,900}z{0,900}$"}},
        {"patternProperties": {p: {"const": i} for i, p in enumerate(OVERLAPPING)}},
        {"not": {"patternProperties": {r"(?:\Bz1.)*": {"type": "null"}}}},  # ran out of stack
        {"pattern": r"(?:(?:(?!\bé)(?:[ab]){17}|(?:(?:é){0,1000}|\w))){60,}"},
    ],
)
def test_what_took_long_is_soon_known(schema: dict[str, Any]) -> None:
    began = time.process_time()
    with contextlib.suppress(GrammarError):
        compile_json_schema(schema, VOCABULARY)
    assert time.process_time() - began < SECONDS


def test_many_objects_that_must_differ(vocab: Vocabulary) -> None:
    item = {"type": "object", "properties": {n: {"type": "string"} for n in "abc"}}
    grammar = compile_json_schema({"items": item, "uniqueItems": True}, vocab)
    values = [{"a": f"x{i}", "b": "q", "c": str(i % 7)} for i in range(100)]
    assert accepts(grammar, json.dumps(values).encode())
    assert not accepts(grammar, json.dumps([*values, values[50]]).encode())


def test_numbers_with_great_exponents_differ_too(vocab: Vocabulary) -> None:
    schema = {"type": "array", "items": {"type": "number"}, "uniqueItems": True}
    grammar = compile_json_schema(schema, vocab, spelling="any")
    assert accepts(grammar, b"[1e3000000, 2e3000000, 1e3000001]")
    assert not accepts(grammar, b"[1e3000000, 10e2999999]")
    assert accepts(grammar, b"[1e50000, 1e50001]")
    assert not accepts(grammar, b"[1e50000, 1e50000]")


def test_twenty_patterns_of_keys(vocab: Vocabulary) -> None:
    patterns = {f"^p{i}_": {"const": i} for i in range(20)}
    schema = {"type": "object", "patternProperties": patterns, "additionalProperties": False}
    grammar = compile_json_schema(schema, vocab)
    assert accepts(grammar, b'{"p3_x": 3, "p19_": 19}')
    assert not accepts(grammar, b'{"p3_x": 19}')


def test_an_enum_of_thousands_of_objects(vocab: Vocabulary) -> None:
    grammar = compile_json_schema(
        {"enum": [{"a": i, "b": {"c": str(i)}} for i in range(5000)]}, vocab
    )
    assert accepts(grammar, b'{"a": 1765, "b": {"c": "1765"}}')
    assert not accepts(grammar, b'{"a": 1765, "b": {"c": "1234"}}')
