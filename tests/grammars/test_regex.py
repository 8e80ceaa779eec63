"""Patterns against Python's own `re`: languages, masks, refusals."""

from __future__ import annotations

import itertools
import re

import interegular
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mask_oracle import accepts, allowed

from sglite.errors import GrammarError
from sglite.grammars import Vocabulary, compile_regex

ALPHABET = "abc1"
TOKENS = ["a", "b", "c", "1", "ab", "bc", "abc", "a1", "ca", "bb"]


def small_vocabulary() -> Vocabulary:
    return Vocabulary.from_tokens([t.encode() for t in TOKENS] + [b""], eos_ids=[len(TOKENS)])


SMALL = small_vocabulary()

atoms = st.sampled_from(["a", "b", "c", "1", "[ab]", "[^a]", ".", r"\d", r"\w", "(?:ab|c)"])


@st.composite
def patterns(draw: st.DrawFn, depth: int = 2) -> str:
    kind = draw(st.sampled_from(["atom", "concat", "alt", "repeat"] if depth else ["atom"]))
    if kind == "atom":
        return draw(atoms)
    inner = patterns(depth=depth - 1)
    if kind == "concat":
        return draw(inner) + draw(inner)
    if kind == "alt":
        return f"({draw(inner)}|{draw(inner)})"
    count = draw(st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{2,}", "{0}", "*?", "+?"]))
    return f"(?:{draw(inner)}){count}"


def words(limit: int) -> list[str]:
    return ["".join(w) for n in range(limit + 1) for w in itertools.product(ALPHABET, repeat=n)]


WORDS = words(6)


@settings(max_examples=60, deadline=None)
@given(patterns())
def test_masks_allow_exactly_what_some_match_begins_with(pattern: str) -> None:
    # Over the alphabet of SMALL: negated sets can use other bytes, so patterns are cut to it.
    whole = f"(?=[{ALPHABET}]*$)(?:{pattern})"
    matches = [w for w in WORDS if re.fullmatch(whole, w)]
    tree = interegular.parse_pattern(f"(?:{pattern})").to_fsm()
    try:
        grammar = compile_regex(_cut(pattern), SMALL)
    except GrammarError:
        grammar = None
    if grammar is None:
        assert not matches
        return
    begins = {w[:i] for w in matches for i in range(len(w) + 1)}
    for word in WORDS[: 1 + 4 + 16 + 64]:
        matcher = grammar.matcher()
        ids = [TOKENS.index(c) for c in word]
        alive = matcher.accept_tokens(ids)
        if word in begins:
            assert alive
        if not alive:
            assert word not in begins
            continue
        assert matcher.is_complete == (word in set(matches)) == tree.accepts(word)
        expected = {i for i, t in enumerate(TOKENS) if _extends(tree, word + t)}
        ends = {len(TOKENS)} if word in matches else set()
        assert allowed(matcher) == expected | ends
        assert matcher.allowed_count() == len(expected | ends)


def _cut(pattern: str) -> str:
    """The pattern with every set cut to the alphabet."""
    for wide, narrow in (("[^a]", "[bc1]"), (r"\d", "1"), (r"\w", "[abc1]"), (".", "[abc1]")):
        pattern = pattern.replace(wide, narrow)
    return pattern


def _extends(tree: interegular.FSM, begin: str) -> bool:
    """Whether some word over the alphabet that starts with `begin` is accepted."""
    state = tree.initial
    for char in begin:
        symbol = tree.alphabet[char]
        if state not in tree.map or symbol not in tree.map[state]:
            return False
        state = tree.map[state][symbol]
    seen, todo = {state}, [state]
    while todo:
        at = todo.pop()
        if at in tree.finals:
            return True
        for char in ALPHABET:
            after = tree.map.get(at, {}).get(tree.alphabet[char])
            if after is not None and after not in seen:
                seen.add(after)
                todo.append(after)
    return False


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        (r"a+(bcd)?", ["a", "aabcd"], ["", "abc", "bcd"]),
        (r"(?i)straße", ["STRAßE", "strAße"], ["strasse"]),
        (r"\d\s\w", ["٣ é", "1\u00a0_"], ["1é", "1 -"]),
        (r"(?a)\d\w", ["1a"], ["٣a", "1é"]),
        (r".", ["é", "日", "\U0001f600", "\r"], ["\n", "", "ab"]),
        (r"(?s).", ["\n"], [""]),
        (r"[^\W\d]+", ["abc", "é"], ["1", "-"]),
        (r"[]a]", ["]", "a"], ["b"]),
        (r"[a\-z]", ["-", "a", "z"], ["b"]),
        (r"[\x41-\u0043]", ["A", "C"], ["D"]),
        (r"^a$|^b", ["a", "b"], ["ab"]),
        (r"(?P<n>x)(?:y)", ["xy"], ["x"]),
        (r"a{,2}", ["", "aa"], ["aaa"]),
        (r"a{2,3}b", ["aab", "aaab"], ["ab"]),
        (r"a{x}", ["a{x}"], ["a"]),
        (r"(a|^b)c", ["ac", "bc"], ["abc"]),
        (r"\A\.\Z", ["."], ["a"]),
        (r"\0\07\x07", ["\0\x07\x07"], [""]),
        (r"|a", ["", "a"], ["b"]),
        (r"(?i:A)b", ["ab", "Ab"], ["AB"]),
        (r"(?!ab)[abc]+", ["ac", "b", "caba"], ["ab", "abc", ""]),
        (r"a(?=b|c).*", ["ab", "acd"], ["a", "ad"]),
        (r"[ab ]*\bb", ["b", "a b"], ["ab", "bb", "a"]),
        (r"(?x) a  b # c", ["ab"], ["a b", "ab # c"]),
        (r"(?m)^a$\n*^b?$", ["a\n", "a\nb", "a\n\nb"], ["a", "ab"]),
        (r"(?m:^)a|b(?m:$)\nc", ["a", "b\nc"], ["b"]),
        (r"\w+(?<=a)-?(?<!x)", ["a", "xa-"], ["x", "ax-", ""]),
        (r"(?:(?<![0-9])[0-9]|a)*", ["1a2", "aa", ""], ["12", "a11"]),
        (r"(?i)(?<=ß)s|ſ", ["S", "s"], ["ßs"]),
    ],
)
def test_language_is_that_of_re(
    vocab: Vocabulary, pattern: str, yes: list[str], no: list[str]
) -> None:
    grammar = compile_regex(pattern, vocab)
    for text in yes:
        assert re.fullmatch(pattern, text)
        assert accepts(grammar, text.encode()), text
    for text in no:
        assert not re.fullmatch(pattern, text)
        assert not accepts(grammar, text.encode()), text


@pytest.mark.parametrize(
    ("pattern", "place", "word"),
    [
        ("(?<=bb)a", "1:1", "lookbehind"),
        ("(?<!b|)a", "1:1", "lookbehind"),
        (r"(a)\1", "1:4", "backreference"),
        ("(?P<x>a)(?P=x)", "1:9", "backreference"),
        ("a++", "1:3", "possessive"),
        ("(?>a)", "1:1", "atomic"),
        ("(?(1)a)", "1:1", "conditional"),
        ("a)", "1:2", "unmatched"),
        ("(a", "1:1", "closed"),
        ("[a", "1:1", "closed"),
        ("*a", "1:1", "nothing to repeat"),
        ("a{3,2}", "1:2", "maximum"),
        ("[b-a]", "1:1", "backwards"),
        (r"\q", "1:1", "escape"),
        ("[[:alpha:]]", "1:1", "POSIX"),
        ("a{1000001}", "1:2", "1000000"),
    ],
)
def test_refusals_name_the_place(vocab: Vocabulary, pattern: str, place: str, word: str) -> None:
    with pytest.raises(GrammarError) as caught:
        compile_regex(pattern, vocab)
    assert caught.value.pointer == place
    assert word in caught.value.reason


def test_a_pattern_that_matches_nothing_is_refused(vocab: Vocabulary) -> None:
    with pytest.raises(GrammarError, match="nothing can match"):
        compile_regex("a^b", vocab)


def test_a_missing_single_byte_is_named() -> None:
    vocabulary = Vocabulary.from_tokens([b"a", b"b", b"bz"])
    with pytest.raises(GrammarError, match=r"0x7A \(z\)"):
        compile_regex("[a-b]z", vocabulary)
    compile_regex("[ab]+", vocabulary)


def test_bytes_that_no_token_holds_are_no_part_of_wide_sets() -> None:
    tokens = [bytes([i]) for i in range(256) if i not in (0x04, 0xF1)]
    vocabulary = Vocabulary.from_tokens(tokens)
    ids = {t: i for i, t in enumerate(tokens)}
    matcher = compile_regex("(?s).", vocabulary).matcher()
    assert ids[b"\xf0"] in allowed(matcher)
    assert matcher.allowed_count() == 128 - 1 + (0xF4 - 0xC2 + 1) - 1
    with pytest.raises(GrammarError, match="0xF1"):
        compile_regex("\U00050000", vocabulary)


def test_long_repetitions_compile_quickly_and_count_exactly(vocab: Vocabulary) -> None:
    grammar = compile_regex("a{0,2000}", vocab)
    pair = vocab.tokens_beginning(b"aa")
    matcher = grammar.matcher()
    two = next(int(i) for i in pair if vocab.token(int(i)) == b"aa")
    assert all(matcher.accept(two) for _ in range(1000))
    assert matcher.is_finished
    assert not matcher.accept(two)
