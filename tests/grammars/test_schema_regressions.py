"""Texts that some engine judged wrongly once, each with the right answer."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import pytest
from mask_oracle import accepts
from trials import check_position, small_vocabulary
from validator import Validator
from writing import spelled

from sglite.errors import GrammarError
from sglite.grammars import Grammar, Vocabulary, compile_json_schema

VOCABULARY = small_vocabulary()
DRAFT_4 = "http://json-schema.org/draft-04/schema#"
FREE: dict[str, Any] = {"property_order": "any", "whitespace": "flexible", "spelling": "any"}


@dataclass(frozen=True, slots=True)
class Case:
    """A schema with texts that it takes and texts that it does not."""

    name: str
    schema: Any
    yes: list[str] = field(default_factory=list)
    no: list[str] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=lambda: FREE)


TREE = {"properties": {"a": {"$ref": "#"}, "b": {"type": "integer"}}, "additionalProperties": False}
CASES = [
    # Keys that stand twice, in whatever spelling.
    Case("free key twice", True, ['{"a":1,"b":1}'], ['{"a":1,"a":1}', '{"a":1,"\\u0061":1}']),
    Case("free key twice, plain", {"type": "object"}, ['{"a": 1, "b": 1}'],
         ['{"a": 1, "a": 1}', '{"": 1, "": 1}', '{"b": [{"a": 1, "a": 1}]}'], {}),
    Case("empty key twice", {"additionalProperties": {"enum": [[[]]]}}, ['{"":[[]]}'],
         ['{"":[[]],"":[[]]}']),
    Case("declared key again as an extra one", {"properties": {"a": {"type": "integer"}}},
         ['{"a":1,"ab":"b"}', '{"\\u0061":1}'],
         ['{"a":1,"a":"b"}', '{"\\u0061":"b"}', '{"a":1,"\\u0061":1}']),
    Case("two members are two keys", {"minProperties": 2}, ['{"a":1,"b":1}', "1"],
         ['{"a":1,"a":1}', '{"a":1}', "{}"]),
    Case("key of patternProperties twice",
         {"patternProperties": {"^a": {"type": "null"}}, "additionalProperties": False},
         ['{"a":null,"ab":null}'], ['{"a":null,"a":null}', '{"b":null}']),
    # Numbers.
    Case("integers by value", {"type": "integer"}, ["1", "1.0", "1e0", "10e-1", "-0", "0.0e5"],
         ["1.5", "1e-1", "15e-1"]),
    Case("constants by value", {"const": -1}, ["-1", "-1.0", "-1e0", "-1e-0", "-10e-1", "-0.1e1"],
         ["1", "-1.5", "-10", "-1e1"]),
    Case("exponents under bounds", {"minimum": 10, "maximum": 12, "type": "number"},
         ["10", "1e1", "1.2e1", "0.11E+2", "110e-1"], ["1", "1e2", "13", "1.21e1", "9.99"]),
    Case("exponents under multipleOf", {"multipleOf": 0.5, "type": "number"},
         ["1.5", "15e-1", "1e99", "0", "-0.5"], ["0.25", "25e-2", "1e-1"]),
    Case("cents", {"multipleOf": 0.01, "type": "number", "minimum": 0, "maximum": 20},
         ["19.99", "4.35", "0.1", "20"], ["19.999", "0.001", "20.01"]),
    Case("zero in all spellings", {"enum": [0]}, ["0", "-0", "0.0", "0e9", "-0.00E-3"],
         ["1", "false", "0.1"]),
    Case("integers by value in draft 4", {"$schema": DRAFT_4, "type": "integer"},
         ["1", "-0", "1.0", "10.00", "1e0"], ["1.5", "1e-1"]),
    Case("booleans are no numbers", {"enum": [0, True]}, ["0", "true", "0.0"], ["1", "false"]),
    # Texts.
    Case("pattern is a search", {"type": "string", "pattern": "b+"}, ['"abc"', '"b"'], ['"a"']),
    Case("pattern and lengths", {"type": "string", "pattern": "^a", "maxLength": 2},
         ['"a"', '"ab"'], ['"abb"', '"b"']),
    Case("lengths through escapes", {"type": "string", "minLength": 1, "maxLength": 1},
         ['"\\u0061"', '"\\ud83d\\ude00"', '"\\n"', '"é"'], ['""', '"\\u0061b"']),
    Case("escapes of printable characters", {"const": "a/"}, ['"\\u0061\\/"', '"a\\u002F"'],
         ['"\\u0061"']),
    Case("lone surrogates", {"type": "string"}, ['"\\ud83d\\ude00"'],
         ['"\\ud83d"', '"\\ude00"', '"\\ud83d\\u0061"', '"\\ud83dx"']),
    Case("calendar", {"type": "string", "format": "date"}, ['"2024-02-29"', '"1999-12-31"'],
         ['"2023-02-29"', '"2024-02-31"', '"1900-02-29"']),
    Case("end of a pattern", {"type": "string", "pattern": "^a$"}, ['"a"'], ['"a\\n"']),
    # Objects.
    Case("required without properties", {"required": ["a", "b", "ab"]},
         ['{"a": 1, "b": 1, "ab": 1}'], ['{"a": 1, "b": 1}'], {}),
    Case("required, unique and extra keys in any order",
         {"properties": {"a": {}}, "required": ["b", "a"], "maxProperties": 3},
         ['{"z":1,"b":1,"a":1}', '{"a":1,"b":1}'], ['{"z":1,"ab":1,"b":1}', '{"a":1}']),
    Case("room for required keys", {"required": ["a", "b"], "maxProperties": 2},
         ['{"a":1,"b":2}', '{"b":2,"a":1}'], ['{"z":1}', '{"a":1,"z":2}']),
    Case("overlapping patterns",
         {"patternProperties": {"^a": {"type": "integer"}, "b$": {"minimum": 2}}},
         ['{"ab":2,"a":1,"b":"x"}'], ['{"ab":1}', '{"ab":"x"}', '{"b":1}']),
    Case("patterns over declared keys",
         {"properties": {"ab": {"minimum": 2}}, "patternProperties": {"b": {"type": "integer"}}},
         ['{"ab":2}'], ['{"ab":1}', '{"ab":2.5}']),
    Case("names of keys", {"propertyNames": {"pattern": "^(?=.*b)a"}}, ['{"ab":1}', "{}"],
         ['{"a":1}', '{"\\u0061":1}']),
    Case("keys that need others", {"dependentRequired": {"b": ["a", "z", "b"], "ab": []}},
         ['{"b": 1, "a": 1, "z": 1}', '{"ab": 1}'], ['{"b": 1}', '{"b": 1, "a": 1}']),
    Case("keys that need others, in declared order",
         {"dependentRequired": {"b": ["a"]}}, ['{"a":1}'], ['{"b":1}'],
         {"whitespace": "compact"}),
    Case("schemas that depend on a key",
         {"dependentSchemas": {"a": {"properties": {"b": {"type": "null"}}}}},
         ['{"b":1}', '{"a":1,"b":null}', '{"b":null,"a":1}'], ['{"b":1,"a":1}', '{"a":1,"b":1}']),
    Case("unevaluated behind a branch",
         {"anyOf": [{"properties": {"a": {"const": 1}}, "required": ["a"]},
                    {"properties": {"b": True}, "required": ["b"]}],
          "unevaluatedProperties": False},
         ['{"a":1}', '{"b":2}', '{"b":2,"a":1}'], ['{"a":2,"b":1}', '{"a":1,"z":1}', "{}"]),
    # Arrays.
    Case("unique items", {"uniqueItems": True, "items": {"enum": [1, True, "1"]}},
         ["[1,true]", "[]", '["1",1,true]'], ["[1,1]", "[1,1.0]", "[1,true,1]"]),
    Case("unique items of any kind", {"type": "array", "uniqueItems": True},
         ["[1,true]", "[[1],[true]]", "[{},[]]"],
         ["[1,1.0]", '["a","\\u0061"]', '[{"a":1,"b":2},{"b":2.0,"a":1}]']),
    Case("unique items in one of two ways",
         {"anyOf": [{"uniqueItems": True}, {"maxItems": 2}, {"contains": {"const": "a"}}]},
         ["[0,0]", '["a","a"]', "[[],[]]", "[0,1,2]", '[0,0,"a"]', '[0,1,1,"a"]'],
         ["[0,0,1]", "[0,1,1]", "[[],1,[]]"]),
    Case("contains unique items", {"contains": {"uniqueItems": True, "type": "array"}},
         ["[[0,0],[0]]", "[[[0,0],[0,0]],[]]", "[[0,1]]"], ["[[0,0]]", '[["a",1,"a"],0]', "[]"]),
    Case("distinct items that are left",
         {"uniqueItems": True, "items": {"enum": [1, 2]}, "minItems": 2, "type": "array"},
         ["[1,2]", "[2,1]"], ["[1]", "[1,1]", "[1,2,1]"]),
    Case("contains some", {"contains": {"const": 1}, "minContains": 2, "maxContains": 2,
                           "type": "array"},
         ["[1,1]", "[1,2,1.0]"], ["[1]", "[1,1,1]", "[]"]),
    Case("contains none", {"contains": {"const": 1}, "minContains": 0, "maxContains": 0,
                           "type": "array"},
         ["[]", "[2]"], ["[1]", "[2,1.0]"]),
    Case("contains evaluates", {"contains": {"const": 1}, "unevaluatedItems": {"type": "null"},
                                "type": "array"},
         ["[1,null]", "[1]"], ["[1,2]", "[null]"]),
    Case("more than twenty items", {"items": {"const": 1}}, ["[" + ",".join("1" * 30) + "]"],
         ["[" + ",".join("1" * 30) + ",2]"]),
    # Logic.
    Case("not", {"not": {"required": ["a"]}, "type": "object"}, ["{}", '{"b":1}'], ['{"a":1}']),
    Case("not over parts", {"not": {"additionalProperties": {"type": "null"}}, "type": "object"},
         ['{"a":1}', '{"b":null,"a":1}'], ["{}", '{"a":null}']),
    Case("exactly one", {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
         ['{"a":1}', '{"b":1,"z":1}'], ['{"a":1,"b":1}', "{}", "1"]),
    Case("exactly one of overlapping ranges",
         {"oneOf": [{"minimum": 1}, {"maximum": 2}], "type": "number"},
         ["0.5", "2.5"], ["1", "1.5", "2e0"]),
    Case("a recursive branch",
         {"oneOf": [{"type": "array", "items": {"$ref": "#"}}, {"type": "null"}]},
         ["[[null],[]]", "null"], ["[1]", "[[[1]]]"]),
    Case("if, then, else",
         {"if": {"properties": {"a": {"const": 1}}, "required": ["a"]},
          "then": {"required": ["b"]}, "else": {"required": ["z"]}, "type": "object"},
         ['{"a":1,"b":2}', '{"b":2,"a":1.0}', '{"z":1}'], ['{"a":1}', "{}", '{"a":2,"b":1}']),
    Case("siblings of a reference",
         {"$defs": {"x": {"minimum": 2}}, "$ref": "#/$defs/x", "type": "integer"},
         ["2"], ["1", "2.5", '"a"']),
    Case("all of them", {"allOf": [{"minLength": 1}, {"maxLength": 1}], "type": "string"},
         ['"a"'], ['""', '"ab"']),
    Case("a dynamic reference",
         {"$id": "http://example.org/root", "$dynamicAnchor": "node", "type": ["array", "null"],
          "$ref": "tree",
          "$defs": {"tree": {"$id": "tree", "$dynamicAnchor": "node",
                             "items": {"$dynamicRef": "#node"}}}},
         ["[[null]]", "null"], ["[1]", "[[{}]]"]),
    Case("recursion", TREE, ['{"a":{"a":{"b":1}}}', '{"b":1,"a":{}}'],
         ['{"a":{"z":1}}', '{"a":{"b":"a"}}']),
    Case("dependencies in the newest draft", {"dependencies": {"a": ["b"]}, "type": "object"},
         ['{"a":1,"b":1}', "{}"], ['{"a":1}']),
    # How it is written.
    Case("single spaces", {"enum": [[1, {"a": 1}]]}, ['[1, {"a": 1}]'],
         ['[1,{"a":1}]', '[1, {"a":1}]', ' [1, {"a": 1}]'], {"whitespace": "single"}),
    Case("canonical integers", {"type": "integer"}, ["10", "0"], ["1.0", "1e1"], {}),
]  # fmt: skip


@pytest.fixture(scope="module")
def bytewise() -> Vocabulary:
    """Every single byte: some texts have characters that the small vocabulary has not."""
    return Vocabulary.from_tokens([bytes([i]) for i in range(256)] + [b""], eos_ids=[256])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_texts_are_judged_right(bytewise: Vocabulary, case: Case) -> None:
    truth = Validator(case.schema)
    assert [t for t in case.yes if not truth.accepts(t)] == []
    if case.options is FREE:
        assert [t for t in case.no if truth.accepts(t)] == []
    grammar = compile_json_schema(case.schema, bytewise, **case.options)  # type: ignore[arg-type]
    assert [t for t in case.yes if not takes(grammar, t)] == []
    assert [t for t in case.no if takes(grammar, t)] == []


def takes(grammar: Grammar, text: str) -> bool:
    matcher = grammar.matcher()
    return matcher.accept_tokens(list(text.encode())) and matcher.is_complete


def spellings(value: int, rng: random.Random) -> str:
    """A way to write an integer above 0, with zeros, a point and an exponent."""
    zeros = rng.choice([0, 0, 1, 2, 3, 9])
    digits = str(value) + "0" * zeros
    places = rng.choice([0, 0, 1, 2, 4, 16])
    point = len(digits) - places
    if places == 0:
        text = digits
    elif point > 0:
        text = f"{digits[:point]}.{digits[point:]}"
    else:
        text = "0." + "0" * -point + digits
    exponent = places - zeros
    sign = "-" if exponent < 0 else rng.choice(["", "+", "-"] if exponent == 0 else ["", "+"])
    return f"{text}{rng.choice('eE')}{sign}{'0' * rng.randrange(3)}{abs(exponent)}"


@pytest.mark.parametrize("seed", range(4))
def test_no_spelling_of_a_number_that_is_left_out_is_taken(bytewise: Vocabulary, seed: int) -> None:
    rng = random.Random(seed)
    bases: list[dict[str, Any]] = [
        {},
        {"type": "integer"},
        {"minimum": 0, "maximum": 10**7},
        {"type": "integer", "maximum": 10 ** rng.randint(6, 22)},
        {"multipleOf": 0.5},
        {"multipleOf": 0.001},
    ]
    for base in bases:
        value = rng.choice([7, 61, 100, 4500, rng.randrange(1, 10**6)])
        other = compile_json_schema({**base, "not": {"const": value}}, bytewise, **FREE)
        items = {"items": base, "uniqueItems": True, "type": "array"}
        once = compile_json_schema(items, bytewise, **FREE)
        for _ in range(40):
            text = spellings(value, rng)
            assert not takes(other, text), (text, base)
            assert not takes(once, f"[{value},{text}]"), (text, base)
            matcher = once.matcher()
            if matcher.accept_tokens(list(f"[{value},{text}".encode())):
                assert matcher.allowed_count() > 0, (text, base)


@pytest.mark.parametrize("value", [1.5, 0.25])
def test_no_spelling_of_a_fraction_that_is_left_out_is_taken(
    bytewise: Vocabulary, value: float
) -> None:
    grammar = compile_json_schema({"not": {"const": value}}, bytewise, **FREE)
    digits = str(value).replace(".", "").lstrip("0")
    for power in range(20):
        assert not takes(grammar, f"0.{'0' * power}{digits}e{power + 1 - (value < 1)}")
        assert not takes(grammar, f"{digits}{'0' * power}e-{power + (1 if value > 1 else 2)}")


@pytest.mark.parametrize(
    "schema",
    [
        {"minProperties": 2, "properties": {"a": {}}, "additionalProperties": False,
         "type": "object"},
        {"uniqueItems": True, "items": {"enum": [1, 1.0]}, "minItems": 2, "type": "array"},
        {"uniqueItems": True, "items": {"type": "boolean"}, "minItems": 3, "type": "array"},
        {"contains": {"const": 1}, "items": {"const": 2}, "type": "array"},
        {"minContains": 3, "maxItems": 2, "contains": {}, "type": "array"},
        {"oneOf": [True, True]},
        {"not": {}},
        {"not": {"not": {"not": True}}},
        {"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 2},
        {"type": "integer", "multipleOf": 5, "minimum": 11, "maximum": 14},
        {"type": "number", "multipleOf": 0.5, "exclusiveMinimum": 1, "exclusiveMaximum": 1.5},
        {"type": "string", "pattern": "^a{3}$", "maxLength": 2},
        {"type": "string", "format": "ipv4", "maxLength": 6},
        {"required": ["a", "b", "z"], "maxProperties": 2, "type": "object"},
        {"propertyNames": {"maxLength": 0}, "required": ["a"], "type": "object"},
        {"patternProperties": {"^a": False}, "required": ["ab"], "type": "object"},
        {"items": {"$ref": "#"}, "minItems": 1, "type": "array"},
        {"if": True, "then": False},
    ],
)  # fmt: skip
@pytest.mark.parametrize("order", ["declared", "any"])
def test_what_nothing_satisfies_is_an_error(bytewise: Vocabulary, schema: Any, order: Any) -> None:
    with pytest.raises(GrammarError, match="nothing can match"):
        compile_json_schema(schema, bytewise, property_order=order)


@pytest.mark.parametrize(
    ("schema", "begin", "dead"),
    [
        # A key whose every completion is used up is forbidden while it is typed.
        ({"properties": {"ab": {}, "b": {}}, "additionalProperties": False}, '{"ab":1,"', "a"),
        ({"propertyNames": {"enum": ["ab", "b"]}}, '{"ab":1,"', "a"),
        ({"propertyNames": {"enum": ["a"]}}, '{"a":1', ","),
        ({"propertyNames": {"pattern": "^a?$"}}, '{"a":1,"', "a"),
        # Room for what is required.
        ({"required": ["a", "b"], "maxProperties": 2}, '{"', "z"),
        ({"required": ["a"], "maxProperties": 1}, '{"a', "b"),
        # Items that are used up.
        ({"uniqueItems": True, "items": {"enum": [1, 12, 2]}, "type": "array"}, "[1,2,12", ","),
        ({"uniqueItems": True, "items": {"enum": ["ab", "b"]}}, '["ab","', "a"),
        ({"uniqueItems": True, "items": {"type": "boolean"}}, "[true,", "t"),
        ({"contains": {"const": 1}, "maxContains": 1, "items": {"enum": [1, 2]}}, "[1,", "1"),
    ],
)  # fmt: skip
def test_no_prefix_is_alive_without_a_completion(schema: Any, begin: str, dead: str) -> None:
    grammar = compile_json_schema(schema, VOCABULARY, property_order="any", whitespace="compact")
    matcher = grammar.matcher()
    ids = spelled(begin.encode(), VOCABULARY)
    assert ids is not None
    assert matcher.accept_tokens(ids)
    allowed = {VOCABULARY.token(i) for i in check_position(matcher, random.Random(1))}
    assert not [t for t in allowed if t.startswith(dead.encode())]


@pytest.mark.parametrize(
    ("schema", "begin"),
    [
        # Keys that are made up to price what is missing: the lightest that is free, and its value.
        ({"dependencies": {"a": False}, "minProperties": 2, "type": "object"}, '{"":"z"'),
        ({"dependencies": {"a": []}, "minProperties": 2, "type": "object"}, '{"":"z"'),
        ({"minProperties": 3, "type": "object"}, '{"":1,"a":1'),
        ({"not": {"patternProperties": {"^a": False}}, "type": "object"}, '{"\\'),
        ({"patternProperties": {"^a$": {"minItems": 9, "type": "array"}, "^bbbb$": {"const": 1}},
          "additionalProperties": False, "minProperties": 1, "type": "object"}, "{"),
        ({"patternProperties": {"^(ab|zzz)$": {"const": 1}}, "additionalProperties": False,
          "minProperties": 1, "type": "object"}, "{"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("order", ["declared", "any"])
def test_bounds_hold_where_keys_are_made_up(schema: Any, begin: str, order: Any) -> None:
    grammar = compile_json_schema(schema, VOCABULARY, property_order=order, whitespace="compact")
    ids = spelled(begin.encode(), VOCABULARY)
    assert ids is not None
    for seed in range(8):
        rng = random.Random(seed)
        matcher = grammar.matcher()
        assert matcher.accept_tokens(ids)
        while not matcher.is_complete:
            behind = check_position(matcher, rng)
            assert matcher.accept(min(behind, key=lambda i: (behind[i], rng.random())))


def test_a_schema_that_asks_for_too_long_a_text_is_not_called_impossible(vocab: Vocabulary) -> None:
    item = {"type": "string", "minLength": 1000}
    with pytest.raises(GrammarError, match="no value of fewer than 2"):
        compile_json_schema({"type": "array", "minItems": 1_000_000, "items": item}, vocab)
    with pytest.raises(GrammarError, match="nothing can match"):
        compile_json_schema({"type": "array", "minItems": 2, "maxItems": 1}, vocab)


@pytest.mark.parametrize("name", ["~é", "a~!b", "~"])
def test_a_tilde_of_a_reference_that_escapes_nothing_is_itself(
    vocab: Vocabulary, name: str
) -> None:
    schema = {"$defs": {name: {"const": 1}, "/": {}}, "$ref": f"#/$defs/{name}"}
    assert accepts(compile_json_schema(schema, vocab), b"1")
    assert not accepts(compile_json_schema(schema, vocab), b"2")
