"""Bytes to text: whole characters, stop texts that never show, in any division into tokens."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sglite.runtime.output import StopText, ValueText

CHARACTERS = st.text(alphabet="abä€𝄞\n", max_size=30)


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    parts, at = [], 0
    for size in sizes:
        parts.append(data[at : at + size])
        at += size
    return [*parts, data[at:]]


@given(
    CHARACTERS,
    st.lists(st.integers(0, 4), max_size=40),
    st.lists(st.text(alphabet="abä", min_size=1, max_size=3), max_size=3, unique=True),
    st.text(alphabet="ab", max_size=2),
)
def test_any_division_gives_the_text_before_the_stop_that_ends_first(text, sizes, stops, prefix):
    value = ValueText(
        tuple(StopText(s.encode(), s, False) for s in stops), skip=len(prefix.encode())
    )
    given_out, match = "", None
    for part in cut((prefix + text).encode(), sizes):
        match = value.feed(part)
        if match is not None:
            break
        delta = value.take()
        delta.encode()
        assert "\ufffd" not in delta
        given_out += delta
    data = text.encode()
    places = [(data.find(s.encode()), s.encode(), i) for i, s in enumerate(stops) if s in text]
    found = [(at + len(stop), at, which) for at, stop, which in places]
    if found:
        _, at, which = min(found)
        assert match is not None
        assert match.start == len(prefix) + at
        assert match.stop.text == stops[which]
        value.cut(match.start)
        expected = text.encode()[:at].decode()
    else:
        assert match is None
        expected = text
    assert expected.startswith(given_out)
    assert given_out + value.close() == expected == value.value()


def test_text_is_held_back_only_while_it_may_become_a_stop():
    value = ValueText((StopText(b"END", "END", False),))
    shown = []
    for part in (b"aE", b"N", b"x", b"EE"):
        assert value.feed(part) is None
        shown.append(value.take())
    assert shown == ["a", "", "ENx", "E"]
    assert value.close() == "E"


def test_bytes_that_are_no_text_become_replacement_characters():
    value = ValueText()
    value.feed(b"a\xff\xe2\x82")
    assert value.take() == "a\ufffd"
    assert value.close() == "\ufffd"
    assert value.value() == "a\ufffd\ufffd"
