"""Composed grammars: their languages, and what their captures are, against brute force."""

from __future__ import annotations

import itertools
import json
import random
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mask_oracle import accepts, draw

from sglite.errors import GrammarError
from sglite.grammars import Vocabulary
from sglite.grammars.compose import (
    Part,
    capture,
    choice,
    compile_parts,
    grammar,
    json_schema,
    regex,
    repeat,
    sequence,
    text_until,
)
from sglite.grammars.parts import Capture, Choice, Regex, Repeat, Sequence, Until

PLACE = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
NUMBER = {"type": "integer", "minimum": 0, "maximum": 99}


def test_thinking_before_an_answer(vocab: Vocabulary) -> None:
    answer = choice(capture("place", json_schema(PLACE)), capture("number", json_schema(NUMBER)))
    part = sequence("<think>", text_until("</think>", name="thoughts"), "\n", answer)
    composed = compile_parts(part, vocab)
    text = '<think>a < b, </thin</think>\n{"city": "Łódź"}'.encode()
    assert accepts(composed, text)
    assert composed.captures(text) == {
        "thoughts": [b"a < b, </thin"],
        "place": ['{"city": "Łódź"}'.encode()],
        "number": [],
    }
    assert composed.captures(b"<think></think>\n42")["number"] == [b"42"]
    for bad in [b"<think></think>\n100", b"<think></think></think>\n1", b"<think>\n1", b"42"]:
        assert not accepts(composed, bad)
        with pytest.raises(ValueError, match="whole match"):
            composed.captures(bad)


def test_tool_calls_between_texts(vocab: Vocabulary) -> None:
    call = sequence("<call>", capture("call", grammar('root ::= name "(" args ")"\n'
        'name ::= [a-z]+', rules={"args": json_schema(PLACE)})), "</call>")  # fmt: skip
    part = sequence(repeat(sequence(regex("[a-z .]*"), call), 1, 3), regex("[a-z .]*"))
    composed = compile_parts(part, vocab)
    text = b'first <call>go({"city": "A"})</call> then <call>look({"city": ""})</call> done.'
    assert composed.captures(text) == {"call": [b'go({"city": "A"})', b'look({"city": ""})']}
    assert not accepts(composed, b"first done.")
    rng = random.Random()
    for _ in range(20):
        drawn = draw(composed, rng, budget=150)
        for found in composed.captures(drawn)["call"]:
            name, _, rest = found.decode().partition("(")
            assert name.isalpha()
            assert json.loads(rest[:-1]).keys() == {"city"}


def test_parts_as_rules_of_lark_grammars(vocab: Vocabulary) -> None:
    text = 'start: place (";" place)*\n%ignore " "'
    composed = compile_parts(grammar(text, format="lark", rules={"place": regex("[ab]+")}), vocab)
    assert accepts(composed, b" ab ; a")
    assert not accepts(composed, b"a b")


def test_rules_are_given_or_defined(vocab: Vocabulary) -> None:
    for text, kind in [('root ::= a\na ::= "x"', "gbnf"), ('root: a\na: "x"', "lark")]:
        with pytest.raises(GrammarError, match="'a' is"):
            compile_parts(grammar(text, format=kind, rules={"a": "b"}), vocab)
    with pytest.raises(GrammarError, match="'b' is used but never defined"):
        compile_parts(grammar("root ::= a b", rules={"a": "x"}), vocab)
    with pytest.raises(GrammarError, match="holds a capture"):
        grammar("root ::= a", rules={"a": repeat(text_until("x", name="n"))})


@pytest.mark.parametrize("marker", ["a", "aa", "aab", "abab", "abacab", "é|é", "日本日"])
def test_text_ends_at_the_first_marker(vocab: Vocabulary, marker: str) -> None:
    composed = compile_parts(sequence(text_until(marker, name="text"), "c"), vocab)
    letters = "".join(sorted(set(marker) | {"x"}))
    for length in range(9 if len(letters) < 4 else 7):
        for word in map("".join, itertools.product(letters, repeat=length)):
            expected = word.find(marker) == length - len(marker) >= 0
            text = (word + "c").encode()
            assert accepts(composed, text) == expected, word
            if expected:
                assert composed.captures(text) == {"text": [text[: -len((marker + "c").encode())]]}


def test_a_marker_in_pieces_of_tokens(vocab: Vocabulary) -> None:
    composed = compile_parts(sequence(text_until("abc"), "d"), vocab)
    bcd = next(i for i in range(vocab.size) if vocab.token(i) == b"bcd")
    abc = next(i for i in range(vocab.size) if vocab.token(i) == b"abc")
    matcher = composed.matcher()
    assert matcher.accept_tokens([abc, ord("d")])
    assert matcher.is_finished
    matcher = composed.matcher()
    assert matcher.accept_tokens([ord("a"), bcd])
    assert matcher.is_finished


# Random parts over two letters: `re` says what is a match, all readings are tried for captures.

leaves = st.one_of(
    st.sampled_from(["", "a", "b", "ab"]),
    st.sampled_from([regex("a*"), regex("[ab]"), regex("(ab|a)?")]),
    st.sampled_from([text_until("a"), text_until("ab"), text_until("b", name="free")]),
)


def larger(inner: st.SearchStrategy[Part]) -> st.SearchStrategy[Part]:
    some = st.lists(inner, min_size=1, max_size=3)
    counts = st.sampled_from([(0, None), (1, None), (0, 1), (2, 2), (1, 3), (0, 2), (2, None)])
    return st.one_of(
        some.map(lambda parts: sequence(*parts)),
        some.map(lambda parts: choice(*parts)),
        st.tuples(inner, counts).map(lambda p: repeat(p[0], *p[1])),
        st.tuples(st.sampled_from(["x", "y"]), inner).map(lambda p: capture(*p)),
    )


def as_regex(part: Any) -> str:
    match part:
        case str():
            return part
        case Regex(pattern):
            return f"(?:{pattern})"
        case Until(marker):
            return f"(?:(?!{marker})[ab])*{marker}"
        case Capture(_, inner):
            return as_regex(inner)
        case Sequence(parts):
            return "".join(map(as_regex, parts))
        case Choice(parts):
            return f"(?:{'|'.join(map(as_regex, parts))})"
        case Repeat(inner, low, high):
            return f"(?:{as_regex(inner)}){{{low},{'' if high is None else high}}}"
    raise AssertionError(part)


def fits(part: Any, text: str) -> bool:
    return re.fullmatch(as_regex(part), text) is not None


def read(part: Any, text: str, found: list[tuple[str, str]]) -> None:
    """Every part in turn takes the longest beginning that leaves a readable rest."""
    match part:
        case Capture(name, inner):
            found.append((name, text))
            read(inner, text, found)
        case Until(marker, str(name)):
            found.append((name, text.removesuffix(marker)))
        case Choice(parts):
            read(next(p for p in parts if fits(p, text)), text, found)
        case Sequence((first, *rest)):
            taken = max(n for n in range(len(text) + 1)
                        if fits(first, text[:n]) and fits(sequence(*rest), text[n:]))  # fmt: skip
            read(first, text[:taken], found)
            read(sequence(*rest), text[taken:], found)
        case Repeat(inner, low, high):
            if not text and low == 0:
                return
            rest = repeat(inner, max(low - 1, 0), None if high is None else high - 1)
            taken = max(n for n in range(low == 0, len(text) + 1)
                        if fits(inner, text[:n]) and fits(rest, text[n:]))  # fmt: skip
            read(inner, text[:taken], found)
            read(rest, text[taken:], found)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(part=st.recursive(leaves, larger, max_leaves=6))
def test_random_parts(vocab: Vocabulary, part: Part) -> None:
    composed = compile_parts(part, vocab)
    for length in range(6):
        for word in map("".join, itertools.product("ab", repeat=length)):
            assert accepts(composed, word.encode()) == fits(part, word), (part, word)
            if fits(part, word):
                expected: list[tuple[str, str]] = []
                read(part, word, expected)
                got = composed.captures(word.encode())
                assert {n: [t.decode() for t in ts] for n, ts in got.items() if ts} == {
                    n: [t for name, t in expected if name == n] for n, _ in expected
                }, (part, word)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: choice(),
        lambda: repeat("a", -1),
        lambda: repeat("a", 3, 2),
        lambda: text_until(""),
        lambda: text_until("a" * 2000),
    ],
)
def test_wrong_values(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"needs|has"):
        wrong()


def test_wrong_parts() -> None:
    for wrong in (b"a", None, {"type": "object"}):
        with pytest.raises(TypeError, match="no part"):
            sequence("a", wrong)  # type: ignore[arg-type]


def test_errors_of_parts(vocab: Vocabulary) -> None:
    for part, word in [
        (regex("a("), "closed"),
        (json_schema({"type": "nothing"}), "nothing"),
        (grammar("root ::= ("), "not closed"),
        (choice(sequence("a", regex("[^\\s\\S]"))), "nothing can match"),
    ]:
        with pytest.raises(GrammarError, match=word):
            compile_parts(part, vocab)


def test_compiled_once(vocab: Vocabulary) -> None:
    def part() -> Part:
        return sequence("a", json_schema({"type": "integer"}), grammar('root ::= "x"'))

    assert compile_parts(part(), vocab) is compile_parts(part(), vocab)


def test_captures_of_long_texts(vocab: Vocabulary) -> None:
    part = repeat(sequence(capture("word", regex("[a-z]+")), choice(" ", ", ")))
    text = b"hello, wide world " * 2000
    words = compile_parts(part, vocab).captures(text)["word"]
    assert words == re.findall(rb"[a-z]+", text)
