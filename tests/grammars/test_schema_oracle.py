"""JSON Schema by brute force: Hypothesis-made schemas over a small vocabulary, every option.

What is drawn from the masks is valid and never stuck; what is valid is taken, however it is
tokenised, and what is not valid never; every mask is what every token says by itself.
"""

from __future__ import annotations

import functools
import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, note, settings
from hypothesis import strategies as st
from instances import instances
from limits import examples
from schemas import old_schemas, schemas
from trials import checked_walk, small_vocabulary
from validator import Validator, exact, load
from writing import orders, restyled, spelled, tokenised, written

from sglite.errors import GrammarError
from sglite.grammars import Grammar, compile_json_schema

VOCABULARY = small_vocabulary()

options = st.fixed_dictionaries(
    {
        "property_order": st.sampled_from(["declared", "any"]),
        "whitespace": st.sampled_from(["single", "compact", "flexible"]),
        "spelling": st.sampled_from(["canonical", "any"]),
    }
)
seeds = st.integers(0, 2**32)


def searching(usual: int) -> Any:
    """Settings for a property that is slow per example."""
    return settings(
        max_examples=examples(usual), deadline=None, suppress_health_check=list(HealthCheck)
    )


def compiled(schema: Any, options: dict[str, Any], values: list[Any]) -> Grammar | None:
    """The grammar, or None where it is refused; "nothing can match" only where nothing does."""
    try:
        return compile_json_schema(schema, VOCABULARY, **options)
    except GrammarError as error:
        refusal = error
    check_refusal(refusal, schema, values)
    return None


def check_refusal(error: GrammarError, schema: Any, values: list[Any]) -> None:
    assert error.reason
    assert isinstance(error.pointer, str)
    event("refused: " + " ".join(w for w in error.reason.split() if w.isalpha())[:60])
    if "nothing can match" in error.reason:
        truth = Validator(schema)
        assert [v for v in values if writable(v) and truth.is_valid(v)] == []


def writable(value: Any) -> bool:
    """Whether the vocabulary has the bytes that the value needs in every style."""
    text = written(value, "compact", False, random.Random(0), plain=True)
    return spelled(text.encode(), VOCABULARY) is not None


@searching(250)
@given(schema=schemas(), options=options, seed=seeds)
def test_draws_are_valid_and_never_stuck(schema: Any, options: Any, seed: int) -> None:
    draws_are_valid_and_never_stuck(schema, options, seed)


@searching(80)
@given(schema=old_schemas(), options=options, seed=seeds)
def test_draws_are_valid_in_old_drafts(schema: Any, options: Any, seed: int) -> None:
    draws_are_valid_and_never_stuck(schema, options, seed)


def late_refusals_are_named(check: Callable[[Any, Any, int], None]) -> Callable[..., None]:
    """A search among values that is given up late is a GrammarError that says so, and no answer."""

    @functools.wraps(check)
    def checked(schema: Any, options: Any, seed: int) -> None:
        try:
            check(schema, options, seed)
        except GrammarError as error:
            if "needs" not in error.reason:
                raise
            event("given up late: " + error.reason[:60])

    return checked


@late_refusals_are_named
def draws_are_valid_and_never_stuck(schema: Any, options: Any, seed: int) -> None:
    rng = random.Random(seed)
    grammar = compiled(schema, options, [])
    if grammar is None:
        return
    truth = Validator(schema)
    for _ in range(2):
        for text in checked_walk(grammar, rng, rng.randrange(16)):
            assert truth.complaint(text) is None, text
            if options["whitespace"] != "flexible":
                same = restyled(text.decode(), options["whitespace"], options["spelling"] == "any")
                assert text.decode() == same


@searching(200)
@given(schema=schemas(), options=options, seed=seeds)
def test_takes_exactly_the_valid_instances(schema: Any, options: Any, seed: int) -> None:
    takes_exactly_the_valid_instances(schema, options, seed)


@searching(80)
@given(schema=old_schemas(), options=options, seed=seeds)
def test_takes_exactly_the_valid_instances_of_old_drafts(
    schema: Any, options: Any, seed: int
) -> None:
    takes_exactly_the_valid_instances(schema, options, seed)


@late_refusals_are_named
def takes_exactly_the_valid_instances(schema: Any, options: Any, seed: int) -> None:
    rng = random.Random(seed)
    values = [exact(value) for value in instances(schema, rng, 40)]
    grammar = compiled(schema, options, values)
    if grammar is None:
        return
    truth = Validator(schema)
    declared, any_spelling = options["property_order"] == "declared", options["spelling"] == "any"
    write = functools.partial(written, whitespace=options["whitespace"], rng=rng)
    for value in filter(writable, values):
        ways = orders(value) if declared else [value]
        if not ways:
            continue
        plain = [write(way, any_spelling=False, plain=True) for way in ways]
        valid = truth.accepts(plain[0])
        event(f"valid: {valid}")
        taken = [took(grammar, text, rng) for text in plain]
        note(f"{value!r} is {valid}, in its orders taken: {taken}")
        assert any(taken) == valid
        for way, in_order in zip(ways, taken, strict=True):
            text = write(way, any_spelling=any_spelling)
            assert truth.accepts(text) == valid, text
            if in_order or not valid or not declared:
                assert took(grammar, text, rng) == valid, text


def took(grammar: Grammar, text: str, rng: random.Random) -> bool:
    """Whether a text is taken, which no way to cut it into tokens may change."""
    answers = set()
    for ids in (
        spelled(text.encode(), VOCABULARY),
        tokenised(text.encode(), VOCABULARY, rng),
        tokenised(text.encode(), VOCABULARY, rng),
    ):
        assert ids is not None, text
        matcher = grammar.matcher()
        if not matcher.accept_tokens(ids):
            answers.add(False)
            assert mask_is_empty_or_live(grammar, ids)
        else:
            answers.add(matcher.is_complete)
    assert len(answers) == 1, f"{text!r} in several ways: {answers}"
    return answers.pop()


def mask_is_empty_or_live(grammar: Grammar, ids: list[int]) -> bool:
    """What refused a text took none of it, and stops one by one at the same place."""
    matcher = grammar.matcher()
    for n, token in enumerate(ids):
        if not matcher.accept(token):
            again = grammar.matcher()
            return again.accept_tokens(ids[:n]) and not again.accept(token)
    return False


@functools.cache
def _free_values() -> list[Any]:
    rng = random.Random(1)
    return [exact(v) for v in instances(True, rng, 300)]


@pytest.mark.parametrize("order", ["declared", "any"])
@pytest.mark.parametrize("whitespace", ["single", "compact", "flexible"])
@pytest.mark.parametrize("spelling", ["canonical", "any"])
def test_every_value_is_taken_by_the_schema_true(
    order: Any, whitespace: Any, spelling: Any
) -> None:
    grammar = compile_json_schema(
        True, VOCABULARY, property_order=order, whitespace=whitespace, spelling=spelling
    )
    rng = random.Random(2)
    for value in filter(writable, _free_values()):
        text = written(value, whitespace, spelling == "any", rng)
        assert load(text) == value
        assert took(grammar, text, rng), text
    for text in ['{"a":1,"a":2}', '{"a":1,"b":2,"\\u0061":3}', "01", "[1,]", '"\\ud800"', "1."]:
        spaced = text.replace(",", ", ").replace(":", ": ") if whitespace == "single" else text
        assert not took(grammar, spaced, rng), text
    assert json.loads(written(exact([0.5, {"a": "é"}]), whitespace, False, rng)) == [
        0.5,
        {"a": "é"},
    ]
