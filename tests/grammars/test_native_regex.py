"""The native parser of patterns against Python's own `re`."""

from __future__ import annotations

import re
import warnings
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sglite.grammars._native import Refused, parse_regex

Tree = tuple[str, list[tuple[int, int]], list[Any], int, int]


class Matcher:
    """Matches a tree against one text, by sets of positions."""

    def __init__(self, text: str) -> None:
        self.text = text

    def ends(self, tree: Tree, at: int) -> set[int]:
        kind, ranges, parts, low, high = tree
        length = len(self.text)
        if kind == "chars":
            return {at + 1} if at < length and _holds(ranges, self.text[at]) else set()
        if kind == "concat":
            found = {at}
            for part in parts:
                found = {end for begin in found for end in self.ends(part, begin)}
            return found
        if kind == "either":
            return {end for part in parts for end in self.ends(part, at)}
        if kind == "repeat":
            return self.repeated(parts[0], at, low, high)
        if kind in ("boundary", "inside"):
            before = at > 0 and _holds(ranges, self.text[at - 1])
            after = at < length and _holds(ranges, self.text[at])
            return {at} if (before != after) == (kind == "boundary") else set()
        holds = {
            "start": lambda: at == 0,
            "end": lambda: at == length,
            "behind": lambda: at > 0 and _holds(ranges, self.text[at - 1]),
            "not_behind": lambda: at == 0 or not _holds(ranges, self.text[at - 1]),
            "ahead": lambda: bool(self.ends(parts[0], at)),
            "not_ahead": lambda: not self.ends(parts[0], at),
        }[kind]
        return {at} if holds() else set()

    def repeated(self, part: Tree, at: int, low: int, high: int) -> set[int]:
        now, found, count = {at}, set(), 0
        if low == 0:
            found |= now
        limit = high if high >= 0 else low + len(self.text) + 1
        while now and count < limit:
            now = {end for begin in now for end in self.ends(part, begin)}
            count += 1
            if count >= low:
                if now <= found and high < 0:
                    break
                found |= now
        return found


def _holds(ranges: list[tuple[int, int]], char: str) -> bool:
    return any(low <= ord(char) <= high for low, high in ranges)


def matches(pattern: str, text: str, *, python: bool = True) -> bool:
    return len(text) in Matcher(text).ends(parse_regex(pattern, python), 0)


def found(pattern: str, text: str) -> bool:
    """Whether an ECMA-262 pattern matches somewhere."""
    tree = parse_regex(pattern, False)
    return any(Matcher(text).ends(tree, at) for at in range(len(text) + 1))


def _compiled(pattern: str) -> re.Pattern[str] | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return re.compile(pattern)
        except (re.error, OverflowError):
            return None


PIECES = [
    *"abz019_- .^$|()[]{}?*+,:=!<>#\\",
    *(r"\d", r"\W", r"\s", r"\b", r"\B", r"\A", r"\Z", r"\n", r"\x41", r"\u00e9", r"\07", r"\101"),
    *("(?:", "(?=", "(?!", "(?i:", "(?-i:", "(?a:", "(?s:", "(?x: ", "(?i)", "(?x)", "(?#n)"),
    *(
        "(?P<n>",
        "(?m)",
        "(?m:",
        "(?<=",
        "(?<!",
        "{2}",
        "{1,2}",
        "{,2}",
        "{1,}",
        "{,}",
        "{",
        "[^",
        "[a-f",
        "é",
        "ß",
        "ſ",
        "K",
        "\n",
    ),
]
TEXTS = [
    "",
    "a",
    "A",
    "ab",
    "b a",
    "aab",
    "z1",
    "é",
    "É",
    "ſ",
    "s",
    "K",
    "k",
    "\n",
    "a\n",
    "-",
    "_",
]
plain_texts = st.text("abAzsSkKſßé019_- .{}[]^$,\n\\", max_size=6)


@settings(max_examples=800, deadline=None)
@given(
    st.lists(st.sampled_from(PIECES), max_size=9).map("".join), st.lists(plain_texts, max_size=4)
)
def test_random_text_is_the_pattern_that_re_takes_it_for(pattern: str, texts: list[str]) -> None:
    compiled = _compiled(pattern)
    try:
        tree = parse_regex(pattern, True)
    except Refused as error:
        reason = str(error)
        # What `re` knows beyond this parser.
        beyond = ("possessive", "not supported", "backreference", "POSIX")
        assert compiled is None or any(word in reason for word in beyond), reason
        return
    if compiled is None:
        # Names are accepted in both spellings, and lookbehind also at the start.
        assume("(?<" in pattern)
        return
    for text in TEXTS + texts:
        # `$` stands before a line's end too in `re`, even at the end of a full match.
        if "$" in pattern and "\n" in text:
            continue
        # Before version 3.14 `re` found no \B in the empty text.
        if "\\B" in pattern and not text:
            continue
        expected = compiled.fullmatch(text) is not None
        assert (len(text) in Matcher(text).ends(tree, 0)) == expected, text


@st.composite
def patterns(draw: st.DrawFn, depth: int = 3) -> str:
    atoms = ["a", "b", "é", "[ab]", "[^a]", ".", r"\d", r"\w", "(?i:s)", "(?i:[a-k])", "$", r"\b"]
    if depth == 0:
        return draw(st.sampled_from(atoms))
    inner = patterns(depth=depth - 1)
    form = draw(
        st.sampled_from(["{a}", "{a}{b}", "(?:{a}|{b})", "(?:{a}){n}", "(?={a}){b}", "(?!{a}){b}"])
    )
    count = draw(st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{2,}", "*?", "+?", "{0}"]))
    return form.replace("{n}", count).replace("{a}", draw(inner)).replace("{b}", draw(inner))


@settings(max_examples=400, deadline=None)
@given(patterns(), st.lists(st.text("abés1K-", max_size=5), min_size=3, max_size=8))
def test_patterns_match_what_re_matches(pattern: str, texts: list[str]) -> None:
    compiled = re.compile(pattern)
    tree = parse_regex(pattern, True)
    for text in texts:
        expected = compiled.fullmatch(text) is not None
        assert (len(text) in Matcher(text).ends(tree, 0)) == expected, text


EVERY = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]


@pytest.mark.parametrize(
    "pattern",
    [
        r"\w",
        r"\W",
        r"\d",
        r"\s",
        r"\S",
        ".",
        "(?a)\\w",
        "(?i)[^k]",
        r"(?i)[\w\u0345-\u0399]",
        "[^\\W\\d_]",
    ],
)
def test_sets_of_re_hold_the_same_characters(pattern: str) -> None:
    ranges = parse_regex(pattern, True)[1]
    compiled = re.compile(pattern)
    expected = [c for c in EVERY if compiled.fullmatch(c)]
    assert [chr(c) for low, high in ranges for c in range(low, high + 1)] == expected


@settings(max_examples=300, deadline=None)
@given(st.characters(exclude_categories=["Cs"]), st.characters(exclude_categories=["Cs"]))
def test_ignoring_case_is_that_of_re(char: str, other: str) -> None:
    low, high = sorted([char, other])
    high = chr(min(ord(high), ord(low) + 2000))
    for pattern in (re.escape(char), f"[{re.escape(low)}-{re.escape(high)}]"):
        ranges = parse_regex(f"(?i){pattern}", True)[1]
        compiled = re.compile(f"(?i){pattern}")
        for text in {char, other, *char.upper(), *char.lower(), *other.upper(), *other.lower()}:
            assert _holds(ranges, text) == (compiled.fullmatch(text) is not None)


@pytest.mark.parametrize("pattern", ["s", "k", "İ", "i", "ς", "µ", "ǆ", "ẞ", "ﬅ", "[a-z]", "[ͅ]"])
def test_odd_variants_in_case_are_those_of_re(pattern: str) -> None:
    ranges = parse_regex(f"(?i){pattern}", True)[1]
    compiled = re.compile(f"(?i){pattern}")
    expected = [c for c in EVERY if compiled.fullmatch(c)]
    assert [chr(c) for low, high in ranges for c in range(low, high + 1)] == expected


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        (r"^[\w-.]+$", ["a-.b"], ["a,b", "é"]),
        (r"^[a-\d]$", ["a", "-", "5"], ["b"]),
        (r"^\u{1F600}\u00e9\uD83D\uDE00$", ["😀é😀"], ["😀é"]),
        (r"^\p{Lu}\p{Letter}\P{gc=Nd}$", ["Aé-"], ["aaa", "Aé1"]),
        (r"^\p{Script=Greek}\p{sc=Cyrl}\p{Script=Han}$", ["αж中"], ["aжa"]),
        (r"^[]$", [], ["", "]"]),
        (r"^[^]$", ["a", "\n", "]"], [""]),
        (r"^.$", ["é", "\x85"], ["\n", "\r", "\u2028", "\u2029"]),
        (r"^\s$", ["\ufeff", "\xa0", "\v"], ["\x1c", "\x85"]),
        (r"^\d\w$", ["1a"], ["٣a", "1é"]),
        (r"^a{,2}$", ["a{,2}"], ["aa", ""]),
        (r"^{a}]$", ["{a}]"], []),
        (r"^\@\-\_\/$", ["@-_/"], []),
        (r"^\cA\cz\0$", ["\x01\x1a\0"], []),
        (r"\bfoo\b", ["a foo", "foo", "éfoo"], ["afoo"]),
        (r"^(?<year>\d{4})(?:-(?P<m>\d\d))?$", ["2020", "2020-01"], ["2020-"]),
        (r"^(?!.*\.\.)(?=.{1,5}$)[a-z.]+$", ["a.b"], ["a..b", "abcdef"]),
        (r"(?i)^straße$", ["STRAßE", "STRAẞE"], ["strasse"]),
        (r"^(?i:a)b$", ["Ab"], ["AB"]),
        (r"^(?=a)*b", ["b"], ["a"]),
        ("a$", ["a"], ["a\n"]),
    ],
)
def test_ecma_patterns(pattern: str, yes: list[str], no: list[str]) -> None:
    assert [text for text in yes if not found(pattern, text)] == []
    assert [text for text in no if found(pattern, text)] == []


@pytest.mark.parametrize("python", [True, False])
@pytest.mark.parametrize(
    ("pattern", "place", "word"),
    [
        ("(?<=bb)a", "1:1", "lookbehind"),
        ("(?<!b*)a", "1:1", "lookbehind"),
        ("(?<!^|b)a", "1:1", "lookbehind"),
        (r"(a)\1", "1:4", "backreference"),
        ("a(?(1)a)", "1:2", "conditional"),
        ("(?>a)", "1:1", "atomic"),
        ("(?x)a", "1:1", None),
        ("a)", "1:2", "unmatched"),
        ("é(a", "1:2", "closed"),
        ("[a", "1:1", "closed"),
        ("*a", "1:1", "nothing to repeat"),
        ("a|{2}", "1:3", "nothing to repeat"),
        ("a**", "1:3", "quantifier of a quantifier"),
        ("a{3,2}", "1:2", "maximum"),
        ("[b-a]", "1:1", "backwards"),
        (r"\q", "1:1", r"escape \q"),
        ("[[:alpha:]]", "1:1", "POSIX"),
        ("a{1000001}", "1:2", "1000000"),
        ("^*", "1:2", "anchor"),
        ("(?P<n>a)(?P<n>b)", "1:9", "twice"),
        ("(?P<1>a)", "1:1", "name"),
        ("a(?i)", "1:2", "start"),
        ("(" * 201 + ")" * 201, "1:201", "200"),
    ],
)
def test_refusals_name_the_place(pattern: str, place: str, word: str | None, python: bool) -> None:
    if word is None and python:
        return
    with pytest.raises(Refused) as caught:
        parse_regex(pattern, python)
    reason, _, found = caught.value.reason.rpartition(" @ ")
    assert (word or "not supported") in reason
    assert found == place


@pytest.mark.parametrize(
    ("pattern", "python", "word"),
    [
        ("a++", True, "possessive"),
        ("a++", False, "quantifier of a quantifier"),
        ("(?P=x)", True, "backreference"),
        (r"[\w-z]", True, "range between sets"),
        (r"\p{Script=Ogham}", False, "Ogham"),
        (r"\p{Lx}", False, "Lx"),
        (r"\Z", False, r"escape \Z"),
        (r"\08", False, "octal"),
        (r"\N{DIGIT ONE}", True, r"\uXXXX"),
        (r"\p{Lx}", True, "Lx"),
        (r"\777", True, "377"),
    ],
)
def test_further_refusals(pattern: str, python: bool, word: str) -> None:
    with pytest.raises(Refused) as caught:
        parse_regex(pattern, python)
    assert word in caught.value.reason


@pytest.mark.parametrize(
    "pattern", [r"\w" * 90_000, r"(?i)[\w\W]" + r"[^\W]" * 20_000, "a" * 200_001]
)
def test_patterns_that_would_eat_memory_are_refused(pattern: str) -> None:
    with pytest.raises(Refused):
        parse_regex(pattern, True)


def test_long_patterns_take_time_in_proportion() -> None:
    tree = parse_regex("a." * 50_000, True)
    assert len(tree[2]) == 100_000
