"""The oracle of the other tests, judged itself: by the official suite and by the odd cases."""

from __future__ import annotations

import json
import os
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import referencing.jsonschema as specifications
from ecma import BadPattern, is_pattern, search
from hypothesis import given
from hypothesis import strategies as st
from referencing import Registry, Resource
from validator import DRAFTS, OutOfReach, Validator, exact, identity, is_multiple, load

SUITE = os.environ.get("SGLITE_JSON_SCHEMA_SUITE", "")
FOLDERS = {
    "draft4": "http://json-schema.org/draft-04/schema#",
    "draft6": "http://json-schema.org/draft-06/schema#",
    "draft7": "http://json-schema.org/draft-07/schema#",
    "draft2019-09": "https://json-schema.org/draft/2019-09/schema",
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
}
ELSEWHERE = {
    # Core 7.2.1 leaves it to the implementation to assert formats; here it does.
    "is only an annotation by default",
    # Draft 7, validation, 8.2: content is an annotation that "MAY" be validated.
    "an invalid JSON document",
    "an invalid base64 string (% is not a valid character)",
    "a validly-encoded invalid JSON document",
    "an invalid base64 string that is valid JSON",
    # Draft 4 alone tells 1.0 from 1; see `validator`.
    "a float is not an integer even without fractional part",
    # Vocabularies of metaschemas: nobody asks the engine to read those.
    "no validation: invalid number, but it still validates",
}


@pytest.mark.skipif(
    not SUITE,
    reason="SGLITE_JSON_SCHEMA_SUITE does not name json/tests/ of the sdist of jsonschema",
)
@pytest.mark.parametrize("folder", FOLDERS)
def test_the_official_suite_with_all_that_is_optional(folder: str) -> None:
    registry = _remotes(Path(SUITE).parent / "remotes", folder)
    wrong = []
    files = sorted((Path(SUITE) / folder).rglob("*.json"))
    assert len(files) > 40
    for file in files:
        for group in json.loads(file.read_text()):
            schema = group["schema"]
            if isinstance(schema, dict):
                schema = {"$schema": FOLDERS[folder], **schema}
            validator = Validator(schema, registry)
            for test in group["tests"]:
                if any(words in test["description"] for words in ELSEWHERE):
                    continue
                if validator.is_valid(exact(test["data"])) != test["valid"]:
                    wrong.append(f"{file.stem}: {group['description']}: {test['description']}")
    assert wrong == []


def _remotes(folder: Path, draft: str) -> Registry[Any]:
    spec = specifications.specification_with(FOLDERS[draft])
    registry: Registry[Any] = Registry()
    for file in folder.rglob("*.json"):
        uri = "http://localhost:1234/" + file.relative_to(folder).as_posix()
        resource = Resource.from_contents(json.loads(file.read_text()), spec)
        try:
            Registry().with_resource(uri, resource).crawl()
        except TypeError:  # boolean schemas, which draft 4 does not know
            continue
        registry = registry.with_resource(uri, resource)
    return registry


@pytest.mark.parametrize(
    "text",
    ['{"a":1,"a":1}', '{"a":1,"\\u0061":2}', '[{"b":{"a":1,"a":2}}]', '"\\ud800"', '{"\\udc00":1}',
     "NaN", "[Infinity]", "01", "1.", '"\t"', "", "[1,]", '"\\ud800x"', "\ufeff1"],
)  # fmt: skip
def test_what_is_no_json(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        load(text)
    assert not Validator(True).accepts(text)


def test_json_that_is_odd_but_right() -> None:
    assert load('"\\ud83d\\ude00"') == "😀"
    assert load(b' {"a" : [ ] }\n') == {"a": []}
    with pytest.raises(ValueError, match="utf-8"):
        load(b'"\xff"')
    assert load("1e99999999") > load("9" * 5000)
    assert Validator({"multipleOf": 7}).accepts("7e99999999")
    assert not Validator({"multipleOf": 7}).accepts("1e99999999")
    assert Validator({"type": "integer"}).accepts("10e-1")
    assert not Validator({"type": "integer"}).accepts("1e-99999999")
    for beyond in ("1e999999999999999999", "1.5e-999999999999999999"):
        with pytest.raises(OutOfReach):
            load(beyond)


def test_a_part_that_names_its_draft_is_judged_like_the_whole() -> None:
    part = {"$schema": "http://json-schema.org/draft-07/schema#", "type": "integer"}
    whole = {**part, "type": "array", "items": part}
    assert Validator(whole).accepts("[0e7, 1e2]")
    assert not Validator(whole).accepts("[1e-2]")


@given(st.integers(-(10**9), 10**9), st.integers(-6, 6), st.integers(1, 10**6), st.integers(-6, 6))
def test_multiples_are_those_of_fractions(a: int, p: int, b: int, q: int) -> None:
    value, unit = load(f"{a}e{p}"), load(f"{b}e{q}")
    whole = (Fraction(value) / Fraction(unit)).denominator == 1
    assert is_multiple(value, unit) == whole
    assert is_multiple(load(f"{a * b}e{p + q}"), unit) == (
        (Fraction(a) * Fraction(10) ** p).denominator == 1
    )


@pytest.mark.parametrize(
    ("schema", "yes", "no"),
    [
        ({"multipleOf": 0.01}, [19.99, 4.35, 0, 1], [0.001, 19.995]),
        ({"const": 1}, [1, 1.0], [True, 1.5, "1"]),
        ({"const": [False]}, [[False]], [[0], [0.0], False]),
        ({"enum": [{"a": 1}]}, [{"a": 1.0}], [{"a": True}, {}]),
        ({"$schema": FOLDERS["draft4"], "enum": [[False]]}, [[False]], [[0]]),
        ({"uniqueItems": True}, [[1, True], [[1], [True]], [{}, []]],
         [[1, 1.0], [[1], [True], [1]], [{"a": 1, "b": 2}, {"b": 2.0, "a": 1}]]),
        ({"pattern": "^a$"}, ["a"], ["a\n"]),
        ({"pattern": "\\d"}, ["1"], ["٣"]),
        ({"patternProperties": {"\\d$": False}}, [{"1\n": 1}, {"٣": 1}], [{"1": 1}]),
        ({"patternProperties": {"(a)": True, "(b)\\1": True}, "additionalProperties": False},
         [{"a": 1, "bb": 1}], [{"b": 1}]),
        ({"$schema": FOLDERS["draft4"], "type": "integer"}, [1, 1.0], [1.5]),
        ({"type": "integer"}, [1, 1.0], [1.5]),
        ({"anyOf": [{"properties": {"a": True}}, True], "unevaluatedProperties": False},
         [{"a": 1}], [{"b": 1}]),
        ({"anyOf": [{"items": {"type": "null"}}, {"prefixItems": [True]}],
          "unevaluatedItems": False}, [[None, None], [1]], [[1, 1]]),
        ({"not": {"not": {"properties": {"a": True}}}, "unevaluatedProperties": False},
         [{}], [{"a": 1}]),
        ({"contains": {"const": 1}, "unevaluatedItems": False}, [[1, 1]], [[1, 2]]),
        ({"$schema": FOLDERS["draft2019-09"], "contains": {"const": 1},
          "unevaluatedItems": False}, [], [[1]]),
        ({"maxLength": 1}, ["😀"], ["e\u0301"]),
        ({"$schema": FOLDERS["draft7"], "definitions": {"x": True}, "$ref": "#/definitions/x",
          "type": "null"}, [1, None], []),
        ({"format": "nobody knows"}, ["x"], []),
        ({"format": "date"}, ["2024-02-29", 1], ["2023-02-29"]),
    ],
)  # fmt: skip
def test_the_odd_cases(schema: Any, yes: list[Any], no: list[Any]) -> None:
    validator = Validator(schema)
    assert [v for v in yes if not validator.is_valid(exact(v))] == []
    assert [v for v in no if validator.is_valid(exact(v))] == []


def test_every_draft_is_found_by_its_name() -> None:
    named = {Validator({"$schema": uri}).draft for uri in FOLDERS.values()}
    assert named == set(DRAFTS)
    assert Validator({"$schema": "x"}).draft == Validator(True).draft == "2020-12"


values = st.recursive(
    st.sampled_from([None, True, False, 0, 1, 1.0, 1.5, "", "1", "a"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=4,
)


@given(values, values)
def test_equality_is_that_of_json_schema(one: Any, two: Any) -> None:
    def same(a: Any, b: Any) -> bool:
        if isinstance(a, bool) or isinstance(b, bool) or type(a) is not type(b):
            numbers = {type(a), type(b)} == {int, float}
            return a is b or (numbers and a == b)
        if isinstance(a, list):
            return len(a) == len(b) and all(map(same, a, b))
        if isinstance(a, dict):
            return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
        return bool(a == b)

    assert (identity(exact(one)) == identity(exact(two))) == same(one, two)


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("^a$", ["a"], ["a\n", "\na"]),
        (".", ["\x85", "😀"], ["\n", "\r", "\u2028", "\u2029", ""]),
        (r"^\s$", ["\ufeff", "\u00a0", "\v"], ["\x85", "\u200b", "\x1c"]),
        (r"^[^\S]$", ["\u3000"], ["a"]),
        (r"^\w$", ["_"], ["é", "-"]),
        (r"^[\W]$", ["é", "^", "["], ["_", "z"]),
        (r"^\p{L}+$", ["éa"], ["1"]),
        (r"^[\p{Lu}1-3]+$", ["É2"], ["é", "4"]),
        (r"^\P{L}$", ["1"], ["a"]),
        (r"^[\w-]+$", ["a-b"], ["."]),
        ("^[^]$", ["\n"], [""]),
        ("[]", [], ["", "a"]),
        (r"\bfoo\b", ["a foo."], ["afoo"]),
        (r"^\u{1F600}$|^\ud83d\ude01$", ["😀", "😁"], ["\u1f60"]),
        ("^a{,2}$", ["a{,2}"], ["aa"]),
        (r"^\cA\x41\u0042\0$", ["\x01AB\0"], []),
        (r"^[\b]$", ["\b"], ["b"]),
        ("(?<n>a)b", ["ab"], ["b"]),
        ("^(?!a)(?=.b)", ["xb"], ["ab"]),
        ("^[&&~~||[a-]$", ["&", "~", "|", "-", "[", "a"], ["b", "", "&&"]),
        ("^🐲*$", ["🐲🐲"], ["🐲x"]),
        (r"a\/b#c d", ["a/b#c d"], ["a/b"]),
    ],
)  # fmt: skip
def test_patterns_are_those_of_ecma_262(pattern: str, yes: list[str], no: list[str]) -> None:
    assert [t for t in yes if not search(pattern, t)] == []
    assert [t for t in no if search(pattern, t)] == []


@pytest.mark.parametrize(
    "pattern", [r"\a", r"^a\Z", "a++", "(?P<a>x)", "(?i)a", "(?>a)", "[b-a]", "(", "*", "[a", "a**"]
)
def test_what_is_no_pattern(pattern: str) -> None:
    assert not is_pattern(pattern)
    with pytest.raises(BadPattern):
        search(pattern, "")
