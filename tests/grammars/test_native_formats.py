"""The formats of JSON Schema against the official suite and against libraries."""

from __future__ import annotations

import datetime
import ipaddress
import json
import os
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sglite.grammars._native import in_format

KNOWN = [
    *("date", "time", "date-time", "duration", "email", "idn-email", "hostname", "idn-hostname"),
    *("ipv4", "ipv6", "uri", "uri-reference", "iri", "iri-reference", "uri-template", "uuid"),
    *("json-pointer", "relative-json-pointer", "regex"),
]


def judged(name: str, *texts: str) -> list[bool]:
    found = in_format(name, list(texts))
    assert found is not None
    return found


def _suite() -> list[Path]:
    """Files of the official suite, where SGLITE_JSON_SCHEMA_SUITE names its folder."""
    root = os.environ.get("SGLITE_JSON_SCHEMA_SUITE")
    return sorted(Path(root, "draft2020-12/optional").rglob("*.json")) if root else []


@pytest.mark.parametrize("name", [*KNOWN, "ecmascript-regex"])
def test_official_suite(name: str) -> None:
    files = [path for path in _suite() if path.stem == name]
    if not files:
        pytest.skip("the official suite is not here")
    for case in json.loads(files[0].read_text()):
        if "format" not in case["schema"]:
            continue
        cases = [t for t in case["tests"] if isinstance(t["data"], str)]
        found = judged(case["schema"]["format"], *(t["data"] for t in cases))
        wrong = [t for t, ok in zip(cases, found, strict=True) if ok != t["valid"]]
        assert wrong == []


def test_other_names_are_no_formats() -> None:
    assert in_format("unknown", ["a"]) is None
    assert in_format("", ["a"]) is None
    assert all(in_format(name, []) == [] for name in KNOWN)


def _is_date(text: str) -> bool:
    try:
        return datetime.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 9999), min_size=1, max_size=8))
def test_dates_follow_the_calendar(years: list[int]) -> None:
    days = [
        f"{year:04}-{month:02}-{day:02}"
        for year in years
        for month in range(14)
        for day in (0, 1, 28, 29, 30, 31, 32)
    ]
    assert judged("date", *days) == [_is_date(day) for day in days]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 24), st.integers(0, 60), st.sampled_from("+-"), st.integers(0, 24))
        , min_size=8, max_size=20),
    st.integers(0, 60),
)  # fmt: skip
def test_leap_seconds_stand_at_the_end_of_a_day_in_utc(
    times: list[tuple[int, int, str, int]], minutes: int
) -> None:
    texts, expected = [], []
    for hour, minute, sign, hours in times:
        # Half of them come out at 23:59.
        offset = (hours * 60 + minutes) * (1 if sign == "+" else -1)
        hit = (23 * 60 + 59 + offset) % 1440
        for h, m in ((hour, minute), divmod(hit, 60)):
            good = h < 24 and m < 60 and hours < 24 and minutes < 60
            for second, fraction in ((59, ".5"), (60, ""), (60, ".25"), (61, "")):
                texts.append(f"{h:02}:{m:02}:{second}{fraction}{sign}{hours:02}:{minutes:02}")
                utc = (h * 60 + m - offset) % 1440
                expected.append(good and (second < 60 or (second == 60 and utc == 1439)))
    assert judged("time", *texts) == expected
    days = [f"2016-12-31T{text}" for text in texts]
    assert judged("date-time", *days) == expected


groups = st.text("0123456789abcdefABCDEF", min_size=0, max_size=5)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.lists(groups, min_size=1, max_size=9).map(":".join), max_size=10),
    st.lists(st.ip_addresses(v=6).map(str), max_size=6),
    st.lists(st.lists(st.integers(0, 300).map(str), min_size=3, max_size=5).map(".".join)),
)
def test_addresses_are_those_of_ipaddress(some: list[str], good: list[str], v4: list[str]) -> None:
    def is_address(kind: type[ipaddress.IPv4Address | ipaddress.IPv6Address], text: str) -> bool:
        try:
            return bool(kind(text))
        except ValueError:
            return False

    v6 = [*some, *good, *(f"::{text}" for text in v4)]
    assert judged("ipv6", *v6) == [is_address(ipaddress.IPv6Address, t) for t in v6]
    assert judged("ipv4", *v4) == [is_address(ipaddress.IPv4Address, t) for t in v4]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(r"ab1-\dw[](){}|^$*+?.,=!:z9", max_size=8), min_size=5, max_size=20))
def test_accepted_expressions_are_valid(patterns: list[str]) -> None:
    for pattern, accepted in zip(patterns, judged("regex", *patterns), strict=True):
        if accepted:
            re.compile(pattern)


@pytest.mark.parametrize(
    ("name", "yes", "no"),
    [
        ("regex", [r"^(?:a|b)*?\d{1,3}$", "[a-z0-9_-]+", r"(?=x)(((a)))", "", r"\u00e9|"],
         ["a{3,2}", "[z-a]", "(((((a)))))x(", "a**", r"\q", "{", "(?<a", "^*"]),
        ("hostname", ["a" * 63 + ".b", "x--y", ".".join(["a" * 49] * 5)],
         ["a" * 64, ".".join(["a" * 50] * 5), "a..b", "a.", "xn--1", "xn--ab--cd"]),
        ("idn-hostname", ["bücher.example", "Example.com", "中国。cn"],
         ["Bücher", "ab--cd", "a" * 64, "☃", "a\u200db", "bücher-"]),
        ("email", ["a.b+c@d", '"a b"@c.d', "a@[IPv6:::1]"], ["a@", "@a", "a@b@c", "a@-b", "ä@b"]),
        ("idn-email", ["ä@ö.de"], ["ä", "ä@-ö"]),
        ("duration", ["P1Y2M3DT4H5M6S", "P3W"], ["P1Y3D", "PT1H3S", "P1.5D", ""]),
        ("uri", ["a:", "http://[::1]:80/a?b#c", "urn:a:b"], ["//a", "a b:", "http://[::1", "1a:", "é:a"]),  # noqa: E501
        ("uri-reference", ["", "a/b", "?q", "#f", "//h", "./a:b"], ["a b", "%zz", "1:a"]),
        ("iri", ["http://é/ü"], ["é:a", "http://a b"]),
        ("uri-template", ["{a}{?b*,c:3}", "é"], ["{", "{a b}", "}"]),
        ("json-pointer", ["", "/a~0~1"], ["a", "/~2", "/~"]),
        ("relative-json-pointer", ["0", "1/a", "2#"], ["", "-1", "01", "/a", "1##"]),
        ("uuid", ["0123ABcd-0000-0000-0000-000000000000"], ["0123ABcd00000000000000000000000000000"]),  # noqa: E501
        ("date-time", ["2024-02-29t00:00:00z"], ["0000-01-01T00:00:00Z", "2024-02-29 00:00:00Z"]),
    ],
)  # fmt: skip
def test_examples(name: str, yes: list[str], no: list[str]) -> None:
    assert [text for text, ok in zip(yes, judged(name, *yes), strict=True) if not ok] == []
    assert [text for text, ok in zip(no, judged(name, *no), strict=True) if ok] == []
