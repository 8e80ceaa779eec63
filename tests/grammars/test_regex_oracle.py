"""Patterns by brute force: random ones against `re`, `interegular` and outlines-core.

All texts of a small alphabet up to a length are asked of each; a prefix is alive exactly if some
text that begins with it matches.
"""

from __future__ import annotations

import itertools
import re

import interegular
import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st
from limits import examples
from trials import mask_ids

from sglite.errors import GrammarError
from sglite.grammars import Grammar, Vocabulary, compile_regex

ALPHABET = "abA1"
LONGEST = 5
TEXTS = ["".join(t) for n in range(LONGEST + 1) for t in itertools.product(ALPHABET, repeat=n)]
TOKENS = [*ALPHABET, "B", "!", "ab", "ba", "aab", "A1", "11", "bb", "aaaa", "1b", "a!"]
VOCABULARY = Vocabulary.from_tokens([t.encode() for t in TOKENS] + [b""], eos_ids=[len(TOKENS)])
IDS = {token: i for i, token in enumerate(TOKENS)}

# Sets name characters of the alphabet only: the vocabulary has no others.
ATOMS = ["a", "b", "A", "1", "[ab]", "[a-b1]", "(?:)", "(?:ab|1)", "(?:a|ab)", "[A1]", "(?i:a)",
         "(?i:[ab])", "(?:|b)", "(a)"]  # fmt: skip
COUNTS = ["*", "+", "?", "{2}", "{1,2}", "{2,}", "{0}", "{,2}", "*?", "+?", "??", "{1,3}?", "{0,1}"]


def _deeper(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map("(?:{0[0]}|{0[1]})".format),
        st.tuples(inner, inner).map("({0[0]}|{0[1]})".format),
        st.tuples(inner, st.sampled_from(COUNTS)).map("(?:{0[0]}){0[1]}".format),
        inner.map("^(?:{})$".format),
        inner.map("(?:^{}|b)".format),
    )


patterns = st.recursive(st.sampled_from(ATOMS), _deeper, max_leaves=6)
searching = settings(
    max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck)
)


def compiled(pattern: str, engine: str = "native") -> Grammar | None:
    try:
        return compile_regex(pattern, VOCABULARY, engine=engine)  # type: ignore[arg-type]
    except GrammarError as error:
        event("refused: " + (error.reason or "?")[:40])
        return None


def begins_of(texts: list[str]) -> set[str]:
    return {text[:i] for text in texts for i in range(len(text) + 1)}


@searching
@given(patterns)
def test_texts_are_those_of_re(pattern: str) -> None:
    matches = [text for text in TEXTS if re.fullmatch(pattern, text)]
    grammar = compiled(pattern)
    if grammar is None:
        assert not matches or "^" in pattern  # anchors inside of a repetition may be refused
        return
    right, alive = set(matches), begins_of(matches)
    for text in TEXTS:
        matcher = grammar.matcher()
        took = matcher.accept_tokens([IDS[c] for c in text])
        assert (took and matcher.is_complete) == (text in right), text
        assert took or text not in alive, text


CONDITIONS = [
    r"\b",
    r"\B",
    "(?<=a)",
    "(?<!1)",
    "(?<=[bA])",
    "(?=a)",
    "(?!b|1a)",
    "(?m:^)",
    "(?m:$)",
]
conditional = st.recursive(st.sampled_from([*ATOMS, *CONDITIONS]), _deeper, max_leaves=6)


@searching
@given(conditional)
def test_conditions_are_those_of_re(pattern: str) -> None:
    matches = [text for text in TEXTS if re.fullmatch(pattern, text)]
    grammar = compiled(pattern)
    if grammar is None:
        assert not matches or "^" in pattern
        return
    right, alive = set(matches), begins_of(matches)
    for text in TEXTS:
        if r"\B" in pattern and not text:
            continue  # before version 3.14 `re` found none in the empty text
        matcher = grammar.matcher()
        took = matcher.accept_tokens([IDS[c] for c in text])
        assert (took and matcher.is_complete) == (text in right), text
        assert took or text not in alive, text


@searching
@given(patterns)
def test_prefixes_are_alive_exactly_if_some_match_begins_with_them(pattern: str) -> None:
    grammar = compiled(pattern)
    assume(grammar is not None and "^" not in pattern)
    assert grammar is not None
    machine = interegular.parse_pattern(pattern.replace("{,", "{0,")).to_fsm()
    for text in TEXTS[: 1 + 4 + 16 + 64]:
        state = _walk(machine, machine.initial, text)
        matcher = grammar.matcher()
        took = matcher.accept_tokens([IDS[c] for c in text])
        assert took == _alive(machine, state), text
        if not took:
            continue
        assert matcher.is_complete == (state in machine.finals)
        steps = {i for t, i in IDS.items() if _alive(machine, _walk(machine, state, t))}
        ends = {len(TOKENS)} if matcher.is_complete else set()
        assert set(mask_ids(matcher)) == steps | ends, text
        assert matcher.tokens_to_finish() >= _least(machine, state), text


def _walk(machine: interegular.FSM, state: int | None, text: str) -> int | None:
    for char in text:
        if state is None:
            return None
        state = machine.map.get(state, {}).get(machine.alphabet[char])
    return state


def _alive(machine: interegular.FSM, state: int | None) -> bool:
    return state is not None and _least(machine, state) < 1000


def _least(machine: interegular.FSM, state: int | None) -> int:
    """The fewest tokens to a match; 1000 if there are none."""
    seen, edge = {state}, {state}
    for count in range(1000):
        if edge & set(machine.finals):
            return count
        edge = {_walk(machine, s, t) for s in edge for t in TOKENS} - seen - {None}
        if not edge:
            break
        seen |= edge
    return 1000


@searching
@given(patterns)
def test_the_second_engine_agrees(pattern: str) -> None:
    # It reads empty groups as no text, and forbids a token that ends one byte behind a match:
    # with a mark at the end, no match goes on.
    assume(not any(odd in pattern for odd in ("(?i", "^", "(?:|", "(?:)", "{,2}", "{0}")))
    grammar, other = compiled(f"(?:{pattern})!"), compiled(f"(?:{pattern})!", "outlines")
    assume(grammar is not None and other is not None)
    assert grammar is not None
    assert other is not None
    for text in TEXTS[: 1 + 4 + 16 + 64 + 256]:
        first, second = grammar.matcher(), other.matcher()
        ids = [IDS[c] for c in text]
        took = first.accept_tokens(ids)
        assert second.accept_tokens(ids) == took, text
        if took:
            assert mask_ids(first) == mask_ids(second), text


@pytest.mark.parametrize(
    ("pattern", "alphabet"),
    [
        (r"\w+", "aé_٣- "),
        (r"\W\d?", "a1٣- "),
        (r"[^\W\d_]+", "aé1_-"),
        (r"\s\S", "a \u00a0\u3000\x1c"),
        (r"(?i)ßk", "ßẞsSkK\u212a"),
        (r"(?i)[à-é]+", "Éàe÷È"),
        (r"(?s).{2}", "a\n日"),
        (r".{1,2}", "a\n\r\u2028😀"),
        (r"[^ab]{2}", "abc\n"),
        (r"(?a)\w\D", "aé1٣"),
        (r"[\x00-\x1f]|\t", "\t\n\x00 a"),
        (r"a|b|^c$|(?:d)", "abcd"),
        (r"(?:a*)*b", "ab"),
        (r"(?:a|aa)+$", "ab"),
        (r"(a?){3}(b|)", "ab"),
        (r"a{2,3}?a", "ab"),
        (r"[]a-]+", "]a-b"),
        (r"[a\]^-]+", "a]^-b"),
    ],
)
def test_classes_over_alphabets_of_their_own(
    vocab: Vocabulary, pattern: str, alphabet: str
) -> None:
    grammar = compile_regex(pattern, vocab)
    for length in range(5):
        for letters in itertools.product(alphabet, repeat=length):
            text = "".join(letters)
            matcher = grammar.matcher()
            took = matcher.accept_tokens(list(text.encode())) and matcher.is_complete
            assert took == bool(re.fullmatch(pattern, text)), text
