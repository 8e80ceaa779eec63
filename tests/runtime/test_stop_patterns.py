"""Patterns that end free text: the match that ends first, however the bytes are cut into tokens."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sglite.errors import GrammarError
from sglite.runtime.output import StopText, ValueText
from sglite.runtime.stop_patterns import stop_pattern

PATTERNS = ["b+a", "ä.b", "a{2,3}b", "(ab|ba)+\n", "[^a]€", "\\n\\n+", "b.*b", "€|ä€", "a$"]


def spans(text: str, pattern: str) -> list[tuple[int, int]]:
    """Byte end and start of every match of at least one character."""
    found = []
    for start in range(len(text)):
        for end in range(start + 1, len(text) + 1):
            if re.fullmatch(pattern, text[start:end]):
                found.append((len(text[:end].encode()), len(text[:start].encode())))
    return found


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    parts, at = [], 0
    for size in sizes:
        parts.append(data[at : at + size])
        at += size
    return [*parts, data[at:]]


@given(
    st.text(alphabet="abä€\n", max_size=14),
    st.lists(st.integers(0, 4), max_size=30),
    st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=2, unique=True),
    st.lists(st.sampled_from(["ab", "€"]), max_size=1),
    st.integers(0, 3),
)
def test_the_match_that_ends_first_ends_the_value(text, sizes, patterns, stops, skip):
    skip = len(text[:skip].encode())
    value = ValueText(
        [StopText(s.encode(), s, False) for s in stops], skip, [stop_pattern(p) for p in patterns]
    )
    shown, match = "", None
    for part in cut(text.encode(), sizes):
        match = value.feed(part)
        if match is not None:
            break
        delta = value.take()
        assert "\ufffd" not in delta
        shown += delta
    every = [span for p in patterns for span in spans(text, p)]
    every += [span for s in stops for span in spans(text, re.escape(s))]
    expected = min((span for span in every if span[1] >= skip), default=None)
    if expected is None:
        assert match is None
    else:
        end, start = expected
        assert match is not None
        assert match.start == start
        assert match.stop.data == text.encode()[start:end]
        value.cut(start)
    assert (shown + value.close()).encode() == text.encode()[skip : expected and expected[1]]


def test_text_is_held_back_only_while_it_may_become_a_match():
    value = ValueText(patterns=[stop_pattern("END[0-9]+!")])
    shown = []
    for part in (b"aE", b"ND1", b"2x", b"yEND"):
        assert value.feed(part) is None
        shown.append(value.take())
    assert shown == ["a", "", "END12x", "y"]
    match = value.feed(b"7!z")
    assert match is not None
    assert match.stop.text == "END7!"


def test_a_match_may_begin_and_end_inside_of_tokens_and_after_bytes_that_are_no_text():
    value = ValueText(patterns=[stop_pattern("ö+\\.")])
    data = "aöö.b".encode()
    assert value.feed(b"\xc3\xff" + data[:2]) is None
    assert value.feed(data[2:4]) is None
    match = value.feed(data[4:])
    assert match is not None
    assert (match.start, match.stop.text) == (3, "öö.")


def test_nothing_that_was_passed_over_is_part_of_a_match():
    value = ValueText([StopText(b"ab", "ab", False)], patterns=[stop_pattern("x+y")])
    assert value.feed(b"ab xx") is not None
    value = ValueText([StopText(b"ab", "ab", False)], patterns=[stop_pattern("x+y")])
    value.feed(b"ab xx a")
    value.pass_over()
    assert value.take() == "ab xx a"
    assert value.feed(b"b y") is None
    assert value.feed(b"xy").start == 10


def test_patterns_that_could_never_be_stops_are_refused():
    with pytest.raises(GrammarError, match="matches the empty text"):
        stop_pattern("a*")
    with pytest.raises(GrammarError, match="refer"):
        stop_pattern(r"(a)\1")


def test_a_pattern_with_too_many_beginnings_under_way_is_an_error_and_does_not_hang():
    value = ValueText(patterns=[stop_pattern("a[ab]{2000}b")])
    with pytest.raises(ValueError, match="more than 1024 matches under way"):
        value.feed(b"a" * 1500)


def test_a_pattern_without_end_keeps_one_beginning():
    value = ValueText(patterns=[stop_pattern("(?s:a.*\\.)")])
    assert value.feed(b"xa" * 4000) is None
    assert len(value._searches[0]._under_way) == 1
    assert value.take() == "x"
    match = value.feed(b".")
    assert match is not None
    assert match.start == 1
