"""GBNF: languages of small grammars, and refusals with line and column."""

from __future__ import annotations

import itertools

import pytest
from mask_oracle import accepts

from sglite.errors import GrammarError
from sglite.grammars import Vocabulary, compile_grammar

ARITHMETIC = r"""
# sums of products, spread over lines
root   ::= sum "\n"
sum    ::= product ("+" product)*
product ::= (
    factor |   # one
    factor "*" product
)
factor ::= [0-9]{1,2} | "(" sum ")"
"""


def test_recursion_groups_and_comments(vocab: Vocabulary) -> None:
    grammar = compile_grammar(ARITHMETIC, vocab)
    for text in ["1\n", "12+3*(4+5)\n", "((7))\n", "1*2*3+4\n"]:
        assert accepts(grammar, text.encode()), text
    for text in ["", "1", "+1\n", "123\n", "(1\n", "1**2\n"]:
        assert not accepts(grammar, text.encode()), text


def test_balanced_words_are_exactly_the_dyck_language(vocab: Vocabulary) -> None:
    grammar = compile_grammar('root ::= ("(" root ")" root)?', vocab)
    for n in range(9):
        for word in itertools.product("()", repeat=n):
            depth, right = 0, True
            for char in word:
                depth += 1 if char == "(" else -1
                right = right and depth >= 0
            text = "".join(word).encode()
            assert accepts(grammar, text) == (right and depth == 0), text


@pytest.mark.parametrize(
    ("text", "yes", "no"),
    [
        (r'root ::= [^"\\\n]+', ["aé日"], ['"', "\\", "\n", ""]),
        (r'root ::= "\x41\u00e9\U0001F600\"\\\t"', ['Aé😀"\\\t'], ["A"]),
        ("root ::= [a-c-]*", ["", "a-c"], ["d"]),
        ("root ::= a b? | \n  b\na ::= \"x\"\nb::=\"y\"{2,}", ["x", "xyy", "yyy"], ["y", "xy"]),
        ("root ::= . .", ["é日"], ["a"]),
        ('root ::= "a"{2}', ["aa"], ["a", "aaa"]),
        ('root ::= "a"{0,1} "b"', ["b", "ab"], ["aab"]),
        ('root ::= "" | "a"', ["", "a"], ["b"]),
    ],
)  # fmt: skip
def test_pieces(vocab: Vocabulary, text: str, yes: list[str], no: list[str]) -> None:
    grammar = compile_grammar(text, vocab)
    assert [t for t in yes if not accepts(grammar, t.encode())] == []
    assert [t for t in no if accepts(grammar, t.encode())] == []


def test_another_start(vocab: Vocabulary) -> None:
    text = 'root ::= "a"\nother ::= "b"'
    assert accepts(compile_grammar(text, vocab, start="other"), b"b")
    with pytest.raises(GrammarError, match="no rule 'third'"):
        compile_grammar(text, vocab, start="third")


@pytest.mark.parametrize(
    ("text", "place", "word"),
    [
        ('root ::= "a" missing', "1:14", "'missing' is used"),
        ('root ::= "a"\nroot ::= "b"', "2:1", "twice"),
        ("root = a", "1:6", "::="),
        ('root ::= "a', "1:10", "closed"),
        ("root ::= [a", "1:10", "closed"),
        ('root ::= ("a"', "1:10", "closed"),
        ('root ::= "a")', "1:13", "unexpected"),
        ('root ::= "\\q"', "1:11", "escape"),
        ('root ::= "\\ud800"', "1:11", "no character"),
        ("root ::= [b-a]", "1:10", "backwards"),
        ('root ::= "a"{2,1}', "1:13", "maximum"),
        ('root ::= "a"{x}', "1:13", "{m}"),
        ("root ::= *", "1:10", "unexpected"),
        ("", "1:1", "no rule 'root'"),
        ('root ::= "a" root', "", "nothing can match"),
    ],
)
def test_refusals(vocab: Vocabulary, text: str, place: str, word: str) -> None:
    with pytest.raises(GrammarError) as caught:
        compile_grammar(text, vocab)
    assert word in caught.value.reason
    assert caught.value.pointer == place
