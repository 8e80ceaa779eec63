"""Input made to break the compilers is refused as an error of sglite, soon, with its place."""

from __future__ import annotations

import functools
import json
import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest
from limits import SLOWDOWN
from mask_oracle import accepts

from sglite.errors import GrammarError
from sglite.grammars import Vocabulary, compile_grammar, compile_json_schema, compile_regex

DEPTH = 5000


def nested(wrap: Callable[[Any], Any]) -> Any:
    return functools.reduce(lambda inner, _: wrap(inner), range(DEPTH), {"type": "null"})


@pytest.mark.parametrize(
    "schema",
    [
        nested(lambda s: {"type": "object", "properties": {"a": s}}),
        nested(lambda s: {"type": "array", "items": s}),
        nested(lambda s: {"anyOf": [s]}),
        "[" * DEPTH + "]" * DEPTH,
        '{"const": ' + "[" * DEPTH + "]" * DEPTH + "}",
    ],
    ids=["properties", "items", "anyOf", "text", "const"],
)
def test_deep_schemas_are_refused(vocab: Vocabulary, schema: Any) -> None:
    with pytest.raises(GrammarError, match="nested too deeply"):
        compile_json_schema(schema, vocab)


def test_deep_patterns_and_grammars_are_refused(vocab: Vocabulary) -> None:
    with pytest.raises(GrammarError, match="nested deeper than 200"):
        compile_regex("(" * DEPTH + "a" + ")" * DEPTH, vocab)
    with pytest.raises(GrammarError, match="grammar is nested too deeply"):
        compile_grammar("root ::= " + "(" * DEPTH + '"a"' + ")" * DEPTH, vocab)


@pytest.mark.parametrize(
    "schema",
    [
        {"const": "a\ud800"},
        {"enum": [["\udcff"]]},
        {"properties": {"\ud800": {}}, "required": ["\ud800"], "type": "object"},
    ],
)
def test_lone_surrogates_of_schemas_are_refused(vocab: Vocabulary, schema: Any) -> None:
    with pytest.raises(GrammarError, match="lone surrogate"):
        compile_json_schema(schema, vocab)


def test_a_pattern_of_names_that_no_text_matches(vocab: Vocabulary) -> None:
    grammar = compile_json_schema(
        {"type": "object", "patternProperties": {"^\ud800$": {}}, "additionalProperties": False},
        vocab,
    )
    assert accepts(grammar, b"{}")
    assert not accepts(grammar, b'{"a": 1}')


def test_lone_surrogates_of_grammars_are_refused(vocab: Vocabulary) -> None:
    with pytest.raises(GrammarError, match="lone surrogate"):
        compile_grammar('root ::= "a\ud800"', vocab)


@pytest.mark.parametrize("keyword", ["minLength", "maxLength", "minItems", "maxItems"])
@pytest.mark.parametrize("value", [10**9, 10**30])
def test_counts_that_no_automaton_holds_are_refused_at_once(
    vocab: Vocabulary, keyword: str, value: int
) -> None:
    kind = "string" if keyword.endswith("Length") else "array"
    began = time.monotonic()
    with pytest.raises(GrammarError, match="more than 100000") as caught:
        compile_json_schema({"properties": {"a": {"type": kind, keyword: value}}}, vocab)
    assert caught.value.pointer == f"/properties/a/{keyword}"
    assert time.monotonic() - began < 2 * SLOWDOWN  # it was built before, in ten seconds


def test_integers_beyond_any_float_are_bounds_too(vocab: Vocabulary) -> None:
    grammar = compile_json_schema({"type": "integer", "minimum": 10**400}, vocab)
    assert accepts(grammar, str(10**400).encode())
    assert not accepts(grammar, str(10**400 - 1).encode())


def test_ten_thousand_values(vocab: Vocabulary) -> None:
    schema = {"enum": [f"value number {i}" for i in range(10_000)] + list(range(10_000))}
    began = time.monotonic()
    grammar = compile_json_schema(schema, vocab)
    assert time.monotonic() - began < 10 * SLOWDOWN  # it was quadratic: more than a minute
    for text in ('"value number 9999"', "777", "9999", '"value number 0"'):
        assert accepts(grammar, text.encode())
    for text in ('"value number 10000"', "10000", "07", '"value"'):
        assert not accepts(grammar, text.encode())


@pytest.mark.parametrize(
    "values", [[1, True, 0, False], [[1], [True], [2]], [{"a": 1}, {"a": True}, {"a": [0]}]]
)
def test_listed_values_are_told_apart_as_json_does(vocab: Vocabulary, values: list[Any]) -> None:
    schema = {"enum": values, "allOf": [{"enum": values[:1]}]}
    grammar = compile_json_schema(schema, vocab)
    validator = jsonschema.Draft202012Validator(schema)
    for value in values:
        assert accepts(grammar, json.dumps(value).encode()) == validator.is_valid(value), value


def test_an_error_survives_the_way_between_processes() -> None:
    error = GrammarError("cannot be", "/a/b")
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.pointer, copy.reason) == (str(error), "/a/b", "cannot be")


def late() -> Any:
    """A schema whose strings are found to need too long a search in the midst of a text."""
    patterns = [f"^(a|b)*a(a|b){{{n}}}$" for n in (11, 13, 17, 19, 23)]
    return {"type": "string", "allOf": [{"pattern": pattern} for pattern in patterns]}


def test_what_would_need_a_search_in_a_text_is_refused_before(vocab: Vocabulary) -> None:
    for schema in (late(), {"anyOf": [late(), {"type": "array"}]}):
        with pytest.raises(GrammarError, match=r"too many states|too long"):
            compile_json_schema(schema, vocab)


HARD = r"(?:(?:(?!\bé)(?:[ab]){17,17}|(?:(?:é){0,1000}|\w))){60,}"


@pytest.mark.parametrize("pattern", [HARD, r"(a)\1"])
@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        (lambda p: {"properties": {"x": {"pattern": p}}}, "/properties/x/pattern"),
        (lambda p: {"items": {"not": {"pattern": p}}}, "/items/not/pattern"),
        (lambda p: {"items": {"minLength": 2, "pattern": p}}, "/items/pattern"),
        (lambda p: {"anyOf": [{"maxLength": 2}, {"pattern": p}]}, "/anyOf/1/pattern"),
        (lambda p: {"propertyNames": {"pattern": p}}, "/propertyNames/pattern"),
        (lambda p: {"patternProperties": {p: {"type": "null"}}}, "/patternProperties/*"),
    ],
)  # fmt: skip
def test_a_pattern_is_refused_at_its_own_place(
    vocab: Vocabulary, pattern: str, schema: Callable[[str], Any], pointer: str
) -> None:
    began = time.process_time()
    with pytest.raises(GrammarError) as caught:
        compile_json_schema(schema(pattern), vocab)
    assert caught.value.pointer == pointer.replace("*", pattern)
    assert pattern == HARD or "at character 1:4" in caught.value.reason
    assert time.process_time() - began < 1.5 * SLOWDOWN


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ('{"enum": [' + "0," * 500_000 + "0]}", "more than 500000 values"),
        ('{"minimum": 1e4000000000}', "exponent is beyond 1000000 at character 12"),
    ],
)
def test_texts_that_are_too_large_to_read(vocab: Vocabulary, schema: str, reason: str) -> None:
    with pytest.raises(GrammarError, match=reason):
        compile_json_schema(schema, vocab)


_SMALL_STACK = """
import threading
from sglite.errors import GrammarError
from sglite.grammars import Vocabulary, compile_grammar, compile_json_schema, compile_regex

vocabulary = Vocabulary.from_tokens([bytes([i]) for i in range(256)], eos_ids=[0])


def nested(begin, middle, end, compile, most):
    done = 0
    for depth in range(10, most, 10):
        try:
            compile(begin * depth + middle + end * depth, vocabulary)
            done = depth
        except GrammarError:
            pass
    print(begin, done)


def work():
    nested("(", "a", ")", compile_regex, 600)
    nested("(a|", "a", ")*", compile_regex, 600)
    nested("(?=a", "", ")a", compile_regex, 600)
    for key in ("not", "items", "additionalProperties"):
        nested('{"%s":' % key, '{"type":"string"}', "}", compile_json_schema, 600)
    nested('{"anyOf":[', '{"type":"string"}', "]}", compile_json_schema, 600)
    nested('{"const":[', "1", "]}", compile_json_schema, 600)
    nested("[", "1", "]", lambda text, v: compile_json_schema('{"const":' + text + "}", v), 1200)
    nested("(", '"a"', ")", lambda text, v: compile_grammar("root ::= " + text, v), 600)


threading.stack_size(512 * 1024)
thread = threading.Thread(target=work)
thread.start()
thread.join()
"""


def test_depth_fits_into_the_smallest_stacks() -> None:
    """Threads have 512 KiB where the system gives no more; beyond the limits there is an error."""
    done = subprocess.run([sys.executable, "-c", _SMALL_STACK], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    depths = [int(line.rpartition(" ")[2]) for line in done.stdout.splitlines()]
    assert len(depths) == 10
    assert min(depths[:2]) >= 190
