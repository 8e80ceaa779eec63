"""Constraints over the vocabularies of real tokenisers."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from sglite.grammars import Grammar, Matcher, Vocabulary, compile_json_schema, compile_regex
from sglite.grammars.quotes import Quote, compile_quote
from sglite.runtime.models.gguf import GGUFFile
from sglite.runtime.models.tokenizer import Tokenizer

pytestmark = pytest.mark.model

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "order_id": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{5}$"},
        "customer": {"type": "string", "maxLength": 40},
        "country": {"enum": ["DE", "FR", "日本"]},
        "quantity": {"type": "integer", "minimum": 1, "maximum": 999},
        "paid": {"type": "boolean"},
        "items": {
            "type": "array",
            "maxItems": 2,
            "items": {
                "type": "object",
                "properties": {
                    "sku": {"type": "string", "maxLength": 12},
                    "net": {"type": "number"},
                },
                "required": ["sku"],
            },
        },
    },
    "required": ["order_id", "customer", "country", "quantity", "paid", "items"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module", params=["smollm2_path", "gemma_path"])
def real(request: pytest.FixtureRequest) -> Vocabulary:
    path: Path = request.getfixturevalue(request.param)
    with GGUFFile.open(path) as gguf:
        tokenizer = Tokenizer.from_gguf(gguf)
        return Vocabulary.from_tokens(
            tokenizer.token_bytes,
            eos_ids=tokenizer.eos_ids,
            special_ids=tokenizer.special_ids,
            encode=tokenizer.encode_bytes,
        )


def ids_of(matcher: Matcher, budget: int | None) -> list[int]:
    mask = matcher.grammar.vocabulary.empty_mask()
    matcher.fill_mask(mask, budget)
    bits = np.unpackbits(mask.view(np.uint8), bitorder="little")
    return [int(i) for i in np.flatnonzero(bits)]


def complete(grammar: Grammar, rng: random.Random, budget: int, use_forced: bool) -> bytes:
    vocabulary = grammar.vocabulary
    matcher = grammar.matcher()
    text, steps = b"", 0
    while not matcher.is_finished:
        forced = matcher.forced_tokens() if use_forced else []
        token = forced[0] if forced else rng.choice(ids_of(matcher, budget - steps))
        assert matcher.accept(token)
        if token in vocabulary.eos_ids:
            break
        text += vocabulary.token(token)
        steps += 1
    assert use_forced or steps <= budget
    return text


@pytest.mark.parametrize("order", ["declared", "any"])
def test_random_completions_are_valid_within_the_budget(real: Vocabulary, order: Any) -> None:
    seed = random.randrange(2**32)
    print("seed", seed)
    rng = random.Random(seed)
    grammar = compile_json_schema(SCHEMA, real, property_order=order)
    least = grammar.matcher().tokens_to_finish()
    for i in range(8):
        text = complete(grammar, rng, least + rng.randrange(40), use_forced=i % 2 == 1)
        jsonschema.validate(json.loads(text), SCHEMA)


def test_forced_tokens_are_those_of_the_whole_text(real: Vocabulary) -> None:
    """What is forced at the beginning is how the tokeniser itself begins the finished text."""
    assert real.encode is not None
    rng = random.Random(5)
    grammar = compile_json_schema(SCHEMA, real)
    forced = grammar.matcher().forced_tokens()
    assert forced
    for _ in range(5):
        text = complete(grammar, rng, 200, use_forced=False)
        assert list(real.encode(text))[: len(forced)] == forced


def test_masks_of_counted_strings_are_those_of_a_plain_walk(real: Vocabulary) -> None:
    """Masks that repetitions share must be what every token says by itself."""
    rng = random.Random(9)
    grammar = compile_regex('"[^"\\n]{0,24}", x', real)
    matcher = grammar.matcher()
    tokens = [real.token(i) for i in range(real.size)]
    text = set(ids_of_mask(real.text_mask))
    at = ""
    while len(at) < 24:
        allowed = set(ids_of(matcher, None))
        for token in rng.sample(sorted(text), 300) + sorted(allowed)[:200]:
            assert (token in allowed) == matcher.fork().accept(token), tokens[token]
        assert matcher.allowed_count() == len(allowed)
        step = rng.choice(["a", " ", "é", "0"])
        assert all(
            matcher.accept(tokens.index(bytes([b])))
            for b in ('"' + step if not at else step).encode()
        )
        at += step


def test_later_places_in_a_counted_string_share_the_first_mask(real: Vocabulary) -> None:
    """A ratio of times, far from its limit: without sharing it is near 1, with it above 20."""
    schema = {"type": "array", "items": {"type": "string", "maxLength": 200}}
    matcher = compile_json_schema(schema, real).matcher()
    mask = real.empty_mask()
    tokens = {real.token(i): i for i in reversed(range(real.size))}
    spent = []
    for text in [b"[", b'"', *[b"a"] * 10, b'"', b",", b" ", b'"', *[b"b"] * 10]:
        assert matcher.accept(tokens[text])
        begin = time.perf_counter()
        matcher.fill_mask(mask)
        spent.append(time.perf_counter() - begin)
    assert sorted(spent[2:12])[5] * 4 < spent[1]
    assert sorted(spent[15:])[5] * 4 < spent[1]


def ids_of_mask(mask: Any) -> list[int]:
    bits = np.unpackbits(mask.view(np.uint8), bitorder="little")
    return [int(i) for i in np.flatnonzero(bits)]


@pytest.mark.parametrize("whole_words", [False, True])
def test_random_quotes_of_a_long_document(real: Vocabulary, whole_words: bool) -> None:
    rng = random.Random(7)
    words = ["".join(rng.choices("abcdefghij", k=rng.randint(2, 8))) for _ in range(2000)]
    document = " ".join(rng.choices(words, k=15_000)) + "\nÉl «come» pan 東京.\n"
    quote = Quote(document, whole_words)
    grammar = compile_quote(quote, real)
    schema = {"type": "array", "items": {"type": "string", **quote.schema()}, "minItems": 1}
    listed = compile_json_schema(schema, real)
    for _ in range(20):
        text = complete(grammar, rng, 12, use_forced=False).decode()
        assert text in document
        assert quote.places(text)[1] > 0
        for item in json.loads(complete(listed, rng, 24, use_forced=False)):
            assert item in document
            assert quote.places(item)[1] > 0
    at = document.index("Él «come»")
    assert quote.places("Él «come» pan") == (at, 1)
    begun = grammar.matcher()
    assert real.encode is not None
    assert begun.accept_tokens(list(real.encode("Él «come» pan 東京".encode())))
    assert begun.is_complete
