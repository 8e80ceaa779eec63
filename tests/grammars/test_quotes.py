"""Quotes against the plain meaning of "stands in the document"."""

import json
import random
import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sglite.errors import GrammarError
from sglite.grammars import Vocabulary, compile_json_schema, compose, explain
from sglite.grammars.compose import compile_parts
from sglite.grammars.quotes import KEYWORD, Quote, compile_quote

BYTES = Vocabulary.from_tokens([bytes([b]) for b in range(256)] + [b"<end>"], [256], [256])
ALPHABET = 'ab é東😀 \n"\\.'
TOKENS = Vocabulary.from_tokens(
    [bytes([b]) for b in range(256)]
    + [t.encode() for t in ("ab", "ba", "aa", " a", "é東", 'a"', '",', '"}', "\\n", "\\\\", "b é")]
    + ["東".encode()[:2], "😀".encode()[1:], b"<end>"],
    [269],
    [269],
)
documents = st.text(alphabet=ALPHABET, min_size=1, max_size=14)


def is_word(character: str) -> bool:
    unspaced = "\u2e80" <= character <= "\u9fff"
    mark = unicodedata.category(character).startswith("M")
    return not unspaced and (mark or bool(re.match(r"\w", character)))


def is_quote(text: str, document: str, words: bool, low: int = 1, high: int = 10**9) -> bool:
    if not low <= len(text) <= high or not text:
        return False
    for at in range(len(document) - len(text) + 1):
        if not document.startswith(text, at):
            continue
        end = at + len(text)
        if not words or (
            not (text[0].isspace() or text[-1].isspace())
            and not (at > 0 and is_word(document[at - 1]) and is_word(document[at]))
            and not (end < len(document) and is_word(document[end - 1]) and is_word(document[end]))
        ):
            return True
    return False


def quotes_of(document: str, words: bool, low: int, high: int) -> set[str]:
    cuts = range(len(document) + 1)
    every = {document[i:j] for i in cuts for j in cuts if i < j}
    return {text for text in every if is_quote(text, document, words, low, high)}


def matches(grammar, text: str) -> bool:
    matcher = grammar.matcher()
    return matcher.accept_tokens(list(text.encode())) and matcher.is_complete


def draw(grammar, vocab: Vocabulary, rng: random.Random, budget: int) -> str:
    """A text along random allowed tokens, which ends within the budget."""
    matcher, data, mask = grammar.matcher(), b"", vocab.empty_mask()
    while not matcher.is_finished:
        assert matcher.tokens_to_finish() <= budget
        matcher.fill_mask(mask, budget=budget)
        ids = [i for i in range(vocab.size) if mask[i >> 5] >> (i & 31) & 1]
        assert ids, "a dead end"
        token = rng.choice(ids)
        assert matcher.accept(token)
        if token not in vocab.eos_ids:
            data += vocab.token(token)
            budget -= 1
    return data.decode()


@given(documents, st.booleans(), st.integers(1, 4), st.integers(0, 4), st.data())
def test_a_quote_matches_what_stands_in_the_document(document, words, low, more, data):
    right = quotes_of(document, words, low, low + more)
    if not right:
        with pytest.raises(GrammarError, match=r"no passage|no word"):
            compile_quote(Quote(document, words, low, low + more), BYTES)
        return
    grammar = compile_quote(Quote(document, words, low, low + more), BYTES)
    others = data.draw(st.lists(st.text(alphabet=ALPHABET, max_size=5), max_size=10))
    for text in [*right, *quotes_of(document, False, 1, 10**9), *others]:
        assert matches(grammar, text) == (text in right), text


@settings(max_examples=60)
@given(documents, st.booleans(), st.randoms())
def test_tokens_are_allowed_exactly_if_a_quote_goes_on_so(document, words, rng):
    right = {text.encode() for text in quotes_of(document, words, 1, 10**9)}
    if not right:
        return
    grammar = compile_quote(Quote(document, words), TOKENS)
    matcher, begun, mask = grammar.matcher(), b"", TOKENS.empty_mask()
    while True:
        matcher.fill_mask(mask)
        allowed = [i for i in range(269) if mask[i >> 5] >> (i & 31) & 1]
        beginnings = {q[len(begun) :] for q in right if q.startswith(begun)}
        assert allowed == [
            i for i in range(269) if any(q.startswith(TOKENS.token(i)) for q in beginnings)
        ]
        assert matcher.is_complete == (begun in right)
        if not allowed:
            return
        token = rng.choice(allowed)
        assert matcher.accept(token)
        begun += TOKENS.token(token)


@settings(max_examples=60)
@given(documents, st.booleans(), st.integers(1, 3), st.randoms())
def test_drawn_texts_are_quotes_within_their_budget(document, words, low, rng):
    if not quotes_of(document, words, low, 10**9):
        return
    grammar = compile_quote(Quote(document, words, low), TOKENS)
    least = grammar.matcher().tokens_to_finish()
    text = draw(grammar, TOKENS, rng, least + rng.randrange(4))
    assert is_quote(text, document, words, low)


@settings(max_examples=60)
@given(documents, st.booleans(), st.sampled_from(["canonical", "any"]), st.randoms())
def test_within_json_a_quote_is_written_as_a_string(document, words, spelling, rng):
    right = quotes_of(document, words, 1, 3)
    if not right:
        return
    quote = Quote(document, words, max_length=3)
    schema = {
        "type": "object",
        "properties": {"q": {"type": "string", **quote.schema()}, "n": {"enum": [1, 2]}},
        "required": ["q", "n"],
        "additionalProperties": False,
    }
    grammar = compile_json_schema(schema, TOKENS, spelling=spelling)
    for text in [*right, *quotes_of(document, False, 1, 4)]:
        whole = json.dumps({"q": text, "n": 1}, ensure_ascii=False)
        assert matches(grammar, whole) == (text in right), text
    escaped = json.dumps({"q": rng.choice(sorted(right)), "n": 2})
    if "\\u" in escaped:
        assert matches(grammar, escaped) == (spelling == "any")
    least = grammar.matcher().tokens_to_finish()
    drawn = json.loads(draw(grammar, TOKENS, rng, least + rng.randrange(12)))
    assert drawn["q"] in right
    assert drawn["n"] in (1, 2)


@settings(max_examples=40)
@given(documents, st.booleans(), st.randoms())
def test_masks_within_json_are_those_of_single_steps(document, words, rng):
    if not quotes_of(document, words, 1, 10**9):
        return
    grammar = compile_json_schema({"type": "string", **Quote(document, words).schema()}, TOKENS)
    matcher, mask = grammar.matcher(), TOKENS.empty_mask()
    while not matcher.is_finished:
        matcher.fill_mask(mask)
        allowed = [i for i in range(269) if mask[i >> 5] >> (i & 31) & 1]
        for token in range(269):
            after = matcher.fork()
            assert after.accept(token) == (token in allowed), TOKENS.token(token)
        assert matcher.accept(rng.choice(allowed))


@given(documents, st.booleans(), st.text(alphabet=ALPHABET, min_size=1, max_size=3))
def test_places_of_a_quote(document, words, text):
    quote = Quote(document, words)
    every = [
        at
        for at in range(len(document))
        if document.startswith(text, at)
        # Of the document, this place and its neighbours alone.
        and is_quote(text, document[max(at - 1, 0) : at + len(text) + 1], False)
        and (not words or _stands_alone(document, at, text))
    ]
    assert quote.places(text) == (every[0] if every else -1, len(every))


def _stands_alone(document: str, at: int, text: str) -> bool:
    end = at + len(text)
    return (
        not (text[0].isspace() or text[-1].isspace())
        and not (at > 0 and is_word(document[at - 1]) and is_word(text[0]))
        and not (end < len(document) and is_word(text[-1]) and is_word(document[end]))
    )


ODD = "\0\x1b\x7f\x80\x85\xa0\xad\u0301\u200d\u2028\u2029\u202e\ud7ff\ue000\ufdd0\ufeff"
ODD += "\ufffe\uffff\U0001f3fd\U000e0001\U0010ffff"


@settings(max_examples=60)
@given(
    st.text(
        st.sampled_from(ODD) | st.characters(exclude_categories=["Cs"]), min_size=1, max_size=9
    ),
    st.booleans(),
    st.sampled_from(["canonical", "any"]),
    st.randoms(),
)
def test_any_characters_can_be_quoted(document, words, spelling, rng):
    quote = Quote(document, words)
    try:
        grammar = compile_quote(quote, TOKENS)
        listed = compile_json_schema(
            {"type": "array", "items": {"type": "string", **quote.schema()}, "minItems": 1},
            TOKENS,
            spelling=spelling,
        )
    except GrammarError:
        assert words
        assert not any(map(is_word, document))
        return
    for make in (grammar, listed):
        least = make.matcher().tokens_to_finish()
        drawn = draw(make, TOKENS, rng, least + rng.randrange(12))
        for text in [drawn] if make is grammar else json.loads(drawn):
            assert text
            assert text in document
            assert quote.places(text)[1] > 0
    if not words:
        assert all(matches(grammar, text) for text in quotes_of(document, False, 1, 4))


def test_two_quotes_and_other_texts_at_one_place():
    one, other = Quote("abc").schema(), Quote("bcd", True).schema()
    grammar = compile_json_schema({"anyOf": [one, other, {"const": "none"}]}, BYTES)
    for text, right in (("ab", True), ("bcd", True), ("bd", False), ("cd", False), ("none", True)):
        assert matches(grammar, json.dumps(text)) == right
    both = compile_json_schema({"type": "string", "allOf": [one, Quote("xbc").schema()]}, BYTES)
    assert matches(both, '"bc"')
    assert matches(both, '"c"')
    assert not matches(both, '"ab"')
    neither = compile_json_schema({"type": "string", "not": one, "maxLength": 1}, BYTES)
    assert matches(neither, '"d"')
    assert not matches(neither, '"a"')


def test_items_that_differ_are_different_quotes():
    item = {"type": "string", **Quote("ab").schema()}
    schema = {"type": "array", "items": item, "uniqueItems": True}
    grammar = compile_json_schema(schema, BYTES)
    assert matches(grammar, '["a", "ab", "b"]')
    assert not matches(grammar, '["a", "a"]')


def test_a_quote_is_a_part_like_others():
    part = compose.choice("none", compose.sequence("<", compose.quote("to be"), ">"))
    grammar = compile_parts(part, BYTES)
    assert matches(grammar, "<o b>")
    assert matches(grammar, "none")
    assert not matches(grammar, "<eb>")


def test_scripts_without_spaces_may_be_cut_anywhere():
    grammar = compile_quote(Quote("東京は大きい city", True), BYTES)
    assert matches(grammar, "京は")
    assert matches(grammar, "い city")
    assert not matches(grammar, "い cit")


def test_what_is_refused():
    with pytest.raises(GrammarError, match=r"4000001 bytes .* limit of 4000000"):
        compile_quote(Quote("a" * 4_000_001), BYTES)
    with pytest.raises(GrammarError, match="no word that could be quoted"):
        compile_quote(Quote(" \n", True), BYTES)
    with pytest.raises(GrammarError, match="no passage of at least 4 characters"):
        compile_quote(Quote("abc", min_length=4), BYTES)
    with pytest.raises(GrammarError, match="surrogate"):
        compile_quote(Quote("a\ud800"), BYTES)
    for said in ("text", {"whole_words": True}, {"document": 1}, {"document": "a", "other": 1}):
        with pytest.raises(GrammarError, match=KEYWORD) as error:
            compile_json_schema({"type": "string", KEYWORD: said}, BYTES)
        assert error.value.pointer == f"/{KEYWORD}"
    lacking = Vocabulary.from_tokens([b"a", b"bc", b"<end>"], [2], [2])
    with pytest.raises(GrammarError, match=r"single byte 0x62 \(b\)"):
        compile_quote(Quote("abc"), lacking)
    for wrong in ({"document": ""}, {"min_length": 0}, {"min_length": 3, "max_length": 2}):
        with pytest.raises(ValueError, match=r"empty|least 1|below min_length"):
            compose.quote(**{"document": "abc", **wrong})
    with pytest.raises(TypeError):
        compose.quote(b"abc")


def test_bytes_that_no_token_can_write_stand_in_no_quote():
    plain = Vocabulary.from_tokens([bytes([b]) for b in range(128)] + [b"<end>"], [128], [128])
    grammar = compile_quote(Quote("ab\u00e9cd", min_length=2), plain)
    assert matches(grammar, "ab")
    assert matches(grammar, "cd")
    assert not matches(grammar, "bc")
    with pytest.raises(GrammarError, match="no token for byte 0xA9"):
        compile_quote(Quote("ab\u00e9cd", min_length=3), plain)


def test_a_repeated_letter_is_no_burden():
    document = "a" * 200_000
    grammar = compile_quote(Quote(document, min_length=100_000), TOKENS)
    matcher = grammar.matcher()
    for _ in range(20):
        assert matcher.allowed_count() == 2
        assert matcher.accept(97)
    assert matcher.tokens_to_finish() <= 100_000


def test_explain_says_what_is_quoted():
    text = explain({"type": "string", **Quote("Él come pan", True).schema()})
    assert "a quote of whole words from a document of 11 characters" in text
