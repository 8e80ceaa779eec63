"""Masks against the question that they answer: whether a fork accepts the token."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from mask_oracle import allowed

from sglite.grammars import Grammar, Vocabulary, compile_json_schema

WORDS = [
    "a", "an", "name", "Name", "id_", "e", "tst", "x7", "42", "0", "9", "-", "_", ".", ".txt",
    "/", "//", "@", "@ex", " ", " t", "%4", "%", ":", ",", '"', '":', '",', '": "', "{", '{"', "}",
    "},", "]", "[", "[]", "\n", "\n  ", "    ", "\t", "true", "null", "é", "日本", "a日", "😀",
    "\\", '\\"', "\\n", "\\u", "00", "41", "\\/", "bcdef", "ghijklmnop", "qrstuvwxyz", "ABCDEFGH",
]  # fmt: skip

STRINGS = [
    "^[a-z][a-z0-9_]*$",
    "^[^/\\n\\r]+$",
    "^/(html|js)/[^/\\n]+$",
    "^.*\\.txt$",
    "^[0-9A-Za-z]{4}-[0-9A-Za-z]{4}$",
    "^[0-9a-zA-Z_-]{1,255}$",
    "^[0-9a-zA-Z]{30,60}$",
    "^(?!name$).*$",
    "^\\w+(-\\w+)*$",
    "^[A-Z][a-z]*( [A-Z][a-z]*)*$",
    "^[^a]*$",
    "[a-z]{2}",
    "^[\\u0080-\\uffff a-z]+$",
    "^([a-z]{3})*$",
    "^[a-zA-Z\"\\\\]+$",
    "^a[^\\u65e5]*$",
]  # fmt: skip

SCHEMAS: list[dict[str, Any]] = [
    {"type": "string", "format": "hostname"},
    {"type": "string", "format": "email"},
    {"type": "string", "format": "uri"},
    {
        "patternProperties": {"^[a-z]+$": {"type": "integer"}, "^(?!name$).*$": {}},
        "properties": {"name": {"type": "string"}, "nametag": {}},
        "additionalProperties": False,
        "type": "object",
    },
    {
        "type": "object",
        "properties": {"a": {"type": "number"}, "an": {"enum": [True, None, "an"]}, "tst": {}},
        "required": ["a"],
        "additionalProperties": False,
    },
    {
        "type": "object",
        "properties": {f"name{i}": {"type": "boolean"} for i in range(20)},
        "propertyNames": {"pattern": "^[a-zA-Z0-9_]*$"},
    },
    {
        "type": "object",
        "properties": {"a": {"type": "null"}, "an": {}, "name": {"enum": [1]}, "e": False},
        "required": ["an"],
    },
    {
        "type": "object",
        "properties": {"id_": {"type": "string"}, "x7": {"type": "object"}, "tst": {}},
        "additionalProperties": {"type": "object", "properties": {"a": {}, "x7": {}}},
    },
    {"type": "array", "uniqueItems": True, "items": {"pattern": "^[a-z]+$", "type": "string"}},
    {"type": "array", "items": {"type": "array", "items": {"type": "integer"}, "maxItems": 3}},
    {},
]  # fmt: skip


def fresh() -> random.Random:
    seed = random.randrange(2**32)
    print("seed", seed)
    return random.Random(seed)


def vocabulary(rng: random.Random) -> Vocabulary:
    tokens = {bytes([b]) for b in range(256)} | {word.encode() for word in WORDS}
    while len(tokens) < 900:
        token = "".join(rng.choices(WORDS, k=rng.randint(1, 5))).encode()
        tokens.add(token[: rng.randint(1, len(token))] if rng.random() < 0.2 else token)
    ordered = sorted(tokens)
    rng.shuffle(ordered)
    return Vocabulary.from_tokens([*ordered, b""], eos_ids=[len(ordered)])


def check(grammar: Grammar, rng: random.Random, steps: int) -> None:
    matcher = grammar.matcher()
    text = b""
    for _ in range(steps):
        found = allowed(matcher)
        size = grammar.vocabulary.size
        expected = {i for i in range(size) if matcher.fork().accept(i)}
        assert found == expected, (text, [grammar.vocabulary.token(i) for i in found ^ expected])
        going_on = sorted(found - {*grammar.vocabulary.eos_ids})
        if not going_on:
            return
        # Long tokens lead to more places.
        token = max(rng.choices(going_on, k=2), key=lambda i: len(grammar.vocabulary.token(i)))
        assert matcher.accept(token)
        text += grammar.vocabulary.token(token)


@pytest.mark.parametrize("spelling", ["any", "canonical"])
@pytest.mark.parametrize("pattern", STRINGS)
def test_masks_of_strings_and_keys(pattern: str, spelling: Any) -> None:
    rng = fresh()
    vocab = vocabulary(rng)
    string = {"type": "string", "pattern": pattern}
    keys = {
        "type": "object",
        "patternProperties": {pattern: {"type": "integer"}},
        "properties": {"name": {}, "a": {"type": "null"}},
        "additionalProperties": False,
    }
    for schema in (string, keys):
        grammar = compile_json_schema(schema, vocab, "any", "flexible", spelling)
        for _ in range(4):
            check(grammar, rng, 6)


@pytest.mark.parametrize("whitespace", ["single", "compact", "flexible"])
@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda s: json.dumps(s)[:40])
def test_masks_of_whole_texts(schema: dict[str, Any], whitespace: Any) -> None:
    rng = fresh()
    vocab = vocabulary(rng)
    for order in ("any", "declared"):
        grammar = compile_json_schema(schema, vocab, order, whitespace, "any")
        for _ in range(5):
            check(grammar, rng, 8)


def test_white_space_has_a_cap_in_every_token() -> None:
    """Runs of up to 32, over tokens of every length."""
    tokens = [bytes([b]) for b in range(256)] + [b" " * n for n in range(2, 40)]
    vocab = Vocabulary.from_tokens([*tokens, b""], eos_ids=[len(tokens)])
    grammar = compile_json_schema({"type": "array"}, vocab, "any", "flexible", "any")
    lengths = {i: len(t) for i, t in enumerate(tokens) if not t.strip(b" ")}
    for before in (0, 1, 5, 31, 32):
        matcher = grammar.matcher()
        assert matcher.accept_tokens([*b"[1", *[ord(" ")] * before])
        found = allowed(matcher)
        assert {i for i in lengths if i in found} == {
            i for i, length in lengths.items() if before + length <= 32
        }
