"""Left recursion of every kind, against membership by brute force."""

from __future__ import annotations

import ast
import random
import time

import pytest
from cfg_oracle import Rules, judge
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from limits import SLOWDOWN
from mask_oracle import accepts, allowed, draw

from sglite.errors import GrammarError
from sglite.grammars import Grammar, Vocabulary, compile_grammar

NAMES = ["root", "p", "q", "r"]


def gbnf(rules: Rules) -> str:
    def side(alternative: tuple[str, ...]) -> str:
        return " ".join(s if s in rules else f'"{s}"' for s in alternative) or '""'

    return "\n".join(f"{n} ::= {' | '.join(map(side, rules[n]))}" for n in rules)


def check(rules: Rules, vocab: Vocabulary, alphabet: str = "ab", longest: int = 4) -> None:
    """Every word up to that length is judged right, and every prefix is live or refused."""
    expected = judge(rules, "root", alphabet, longest)
    text = gbnf(rules)
    if not expected[""][0]:
        with pytest.raises(GrammarError, match="nothing can match"):
            compile_grammar(text, vocab)
        return
    grammar = compile_grammar(text, vocab)
    for word, (live, complete) in expected.items():
        matcher = grammar.matcher()
        assert matcher.accept_tokens(list(word.encode())) == live, (text, word)
        if live:
            assert matcher.is_complete == complete, (text, word)
            assert (matcher.tokens_to_finish() == 0) == complete, (text, word)
            if len(word) < 3:
                check_mask(grammar, word)


def check_mask(grammar: Grammar, word: str) -> None:
    """The mask is what is accepted, and from a bound above nothing some token lowers it."""
    matcher = grammar.matcher()
    assert matcher.accept_tokens(list(word.encode()))
    ids = allowed(matcher)
    assert ids == {i for i in range(grammar.vocabulary.size) if matcher.fork().accept(i)}
    bound = matcher.tokens_to_finish()
    if bound:
        lower = allowed(matcher, bound)
        assert lower
        assert matcher.accept(min(lower))
        assert matcher.tokens_to_finish() < bound


alternatives = st.lists(st.sampled_from([*NAMES, *NAMES, "a", "b"]), max_size=3).map(tuple)
grammars = st.fixed_dictionaries(
    {name: st.lists(alternatives, min_size=1, max_size=3) for name in NAMES}
)


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(rules=grammars)
def test_random_grammars(vocab: Vocabulary, rules: Rules) -> None:
    check(rules, vocab)


# Hidden behind rules that can be empty, around in circles, and together.
KINDS: dict[str, Rules] = {
    "direct": {"root": [["root", "a"], ["b"]]},
    "twice": {"root": [["root", "root"], ["a"], ["b"]]},
    "middle": {"root": [["root", "a", "root"], ["b"]]},
    "indirect": {"root": [["p", "a"], ["b"]], "p": [["q", "b"]], "q": [["root", "a"], ["b"]]},
    "hidden": {"root": [["p", "root", "a"], ["b"]], "p": [["b", "a"], []]},
    "hidden and empty": {"root": [["p", "root", "p"], []], "p": [["a"], [], ["root", "b"]]},
    "a unit circle": {"root": [["p"], ["a"]], "p": [["q"], ["root", "b"]], "q": [["root"]]},
    "dead": {"root": [["p"], ["a"], ["root", "p"]], "p": [["p"], ["p", "a"], ["root", "p"]]},
    "two circles": {"root": [["root", "a"], ["p"]], "p": [["p", "b"], ["q", "p"], []],
                    "q": [["q", "a"], ["b"]]},
    "calls itself inside": {"root": [["root", "a"], ["b", "p"]], "p": [["a", "root", "b"], []]},
}  # fmt: skip


@pytest.mark.parametrize("rules", KINDS.values(), ids=KINDS)
def test_kinds(vocab: Vocabulary, rules: Rules) -> None:
    check(rules, vocab, longest=6)


def test_a_rule_of_nothing_but_itself(vocab: Vocabulary) -> None:
    for text in ["root ::= root", 'root ::= root "a"', "root ::= p\np ::= root | p p"]:
        with pytest.raises(GrammarError, match="nothing can match"):
            compile_grammar(text, vocab)


EXPRESSIONS = r"""
root ::= sum
sum ::= sum [+-] product | product
product ::= product [*/%] power | power
power ::= call "**" power | call | [1-9]+
call ::= call "(" sum ")" | call "." name | call "[" sum "]" | atom
atom ::= name | "(" sum ")"
name ::= [a-z]
"""


def test_expressions_are_those_of_python(vocab: Vocabulary) -> None:
    grammar = compile_grammar(EXPRESSIONS, vocab)
    rng = random.Random()
    for _ in range(30):
        text = draw(grammar, rng, budget=30)
        ast.parse(text.decode(), mode="eval")
        assert accepts(grammar, text)
    for text in ["a.b(c)[1]**2-3", "((a))(2)", "f(f(f(x)))", "1-2-3*4*5%6"]:
        assert accepts(grammar, text.encode()), text
    for text in ["", "-1", "a..b", "a(", "()", "a b", "1+"]:
        assert not accepts(grammar, text.encode()), text


def test_long_chains_stay_flat(vocab: Vocabulary) -> None:
    matcher = compile_grammar(EXPRESSIONS, vocab).matcher()
    began = time.process_time()
    assert matcher.accept_tokens(list(b"a+b.c*d(e)-" * 2000 + b"x"))
    assert matcher.is_complete
    assert time.process_time() - began < 5 * SLOWDOWN


def test_levels_of_precedence_do_not_multiply(vocab: Vocabulary) -> None:
    lines = [f'l{i} ::= l{i} "<{i}>" l{i + 1} | l{i + 1}' for i in range(300)]
    text = "\n".join(["root ::= l0", *lines, 'l300 ::= "x" | "(" l0 ")"'])
    began = time.process_time()
    grammar = compile_grammar(text, vocab)
    assert accepts(grammar, b"x<299>x<3>(x<3>x)<0>x")
    assert not accepts(grammar, b"x<300>x")
    assert time.process_time() - began < 5 * SLOWDOWN


def test_a_circle_of_many_rules_is_refused(vocab: Vocabulary) -> None:
    lines = [
        f'r{i} ::= r{(i + 1) % 1000} "a" | "b" r{(i * 7) % 1000} "c" | "d"' for i in range(1000)
    ]
    began = time.process_time()
    with pytest.raises(GrammarError, match="left-recursive through 1000 rules"):
        compile_grammar("\n".join(["root ::= r0", *lines]), vocab)
    assert time.process_time() - began < 2 * SLOWDOWN
