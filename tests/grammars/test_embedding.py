"""Machines inside of networks: they are the same languages as what they stand for laid out."""

from __future__ import annotations

import random

import pytest
from cfg_oracle import judge, words
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mask_oracle import accepts, allowed, draw

from sglite.errors import GrammarError
from sglite.grammars import (
    Grammar,
    Vocabulary,
    compile_grammar,
    compile_json_schema,
    compile_regex,
    free_text,
)
from sglite.grammars.compose import (
    Part,
    choice,
    compile_parts,
    grammar,
    regex,
    repeat,
    sequence,
)

PATTERNS = ["a*", "[ab]", "(ab|a)?", "b+a", "(aa)*b?", ""]
Pair = tuple[Part, Part]
"""A part with machines of its own inside, and the same laid out."""


def pairs(vocab: Vocabulary) -> st.SearchStrategy[Pair]:
    leaves = st.one_of(
        st.sampled_from(PATTERNS).map(lambda p: (compile_regex(p, vocab), regex(p))),
        st.sampled_from(["", "a", "b"]).map(lambda text: (text, text)),
    )

    def larger(inner: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
        some = st.lists(inner, min_size=1, max_size=3)
        counts = st.sampled_from([(0, None), (1, None), (0, 1), (2, 2), (1, 3)])
        return st.one_of(
            some.map(lambda ps: (sequence(*(p for p, _ in ps)), sequence(*(q for _, q in ps)))),
            some.map(lambda ps: (choice(*(p for p, _ in ps)), choice(*(q for _, q in ps)))),
            st.tuples(inner, counts).map(
                lambda p: (repeat(p[0][0], *p[1]), repeat(p[0][1], *p[1]))
            ),
            inner.map(lambda p: (compile_parts(p[0], vocab), p[1])),
        )

    return st.recursive(leaves, larger, max_leaves=6)


def check_same(inside: Grammar, laid: Grammar, longest: int = 5) -> None:
    for word in words("ab", longest):
        one, other = inside.matcher(), laid.matcher()
        live = one.accept_tokens(list(word.encode()))
        assert live == other.accept_tokens(list(word.encode())), word
        if live:
            assert one.is_complete == other.is_complete, word
            assert one.is_finished == other.is_finished, word
            assert allowed(one) == allowed(other), word
            check_bound(inside, word)


def check_bound(inside: Grammar, word: str) -> None:
    matcher = inside.matcher()
    assert matcher.accept_tokens(list(word.encode()))
    bound = matcher.tokens_to_finish()
    assert (bound == 0) == matcher.is_complete
    if bound:
        ids = allowed(matcher, bound)
        assert ids
        assert matcher.accept(min(ids))
        assert matcher.tokens_to_finish() < bound


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_random_parts(vocab: Vocabulary, data: st.DataObject) -> None:
    inside, laid = data.draw(pairs(vocab))
    check_same(compile_parts(inside, vocab), compile_parts(laid, vocab))


RECURSIVE = [
    'root ::= root "a" m | "b"',
    'root ::= m root "a" | "b"',
    'root ::= "a" root m | ""',
    'root ::= p m\np ::= p m "a" | m',
    'root ::= m p "b" | "b"\np ::= root m | "a"',
]


@pytest.mark.parametrize("text", RECURSIVE)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_machines_in_recursive_rules(vocab: Vocabulary, text: str, pattern: str) -> None:
    inside = grammar(text, rules={"m": compile_regex(pattern, vocab)})
    laid = grammar(text, rules={"m": regex(pattern)})
    check_same(compile_parts(inside, vocab), compile_parts(laid, vocab), longest=6)


def test_a_recursive_machine_in_a_recursive_rule(vocab: Vocabulary) -> None:
    inner = compile_grammar('root ::= "(" root ")" | "a" root |', vocab)
    outer = compile_parts(grammar('root ::= root "[" m "]" | m', rules={"m": inner}), vocab)
    rules = {
        "root": [["root", "[", "m", "]"], ["m"]],
        "m": [["(", "m", ")"], ["a", "m"], []],
    }
    for word, (live, complete) in judge(rules, "root", "(a)[]", 4).items():
        matcher = outer.matcher()
        assert matcher.accept_tokens(list(word.encode())) == live, word
        assert not live or matcher.is_complete == complete, word


def test_schemas_at_the_end_and_in_the_middle(vocab: Vocabulary) -> None:
    schema = compile_json_schema({"type": "object", "required": ["ab"]}, vocab)
    composed = compile_parts(sequence("a", schema, choice(";", sequence("bc", schema))), vocab)
    rng = random.Random()
    for _ in range(20):
        text = draw(composed, rng, budget=60)
        assert accepts(composed, text)
    matcher = composed.matcher()
    assert matcher.accept_tokens(list(b'a{"ab": 1}bc'))
    plain = schema.matcher()
    for byte in b'{"ab": tru':
        assert allowed(matcher) == allowed(plain)
        assert matcher.tokens_to_finish() == plain.tokens_to_finish()
        assert matcher.accept(byte)
        assert plain.accept(byte)


def test_tokens_that_span_the_end_of_a_machine(vocab: Vocabulary) -> None:
    composed = compile_parts(sequence(compile_regex("a+", vocab), "bc"), vocab)
    matcher = composed.matcher()
    ids = {vocab.token(i) for i in allowed(matcher)}
    assert ids == {b"a", b"aa", b"ab", b"abc"}
    abc = next(i for i in range(vocab.size) if vocab.token(i) == b"abc")
    assert matcher.accept(abc)
    assert matcher.is_finished


def test_any_text_inside(vocab: Vocabulary) -> None:
    composed = compile_parts(sequence("<", free_text(vocab), ">"), vocab)
    assert accepts(composed, b"<a>b>")
    assert not accepts(composed, b"<a")


def test_a_grammar_for_another_vocabulary(vocab: Vocabulary) -> None:
    other = Vocabulary.from_tokens([bytes([i]) for i in range(256)] + [b""], eos_ids=[256])
    with pytest.raises(GrammarError, match="another vocabulary"):
        compile_parts(sequence("a", compile_regex("b", other)), vocab)
