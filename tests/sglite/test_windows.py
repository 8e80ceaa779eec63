"""Documents in windows: whole, in order, short enough, and cut where one would cut them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import sglite as sgl
from sglite.runtime.engines.remote import RemoteEngine

PIECES = [
    "word", "a", " ", "  ", "\n", "\r\n", "\n\n", " \n \n", ". ", "! ", "?\" ", "。", "é",
    "e\u0301",     "👩\u200d👩\u200d👧", "👍\U0001f3fd", "🇳🇴🇸🇪", "東京", "क्षि", "\u0301",
    "...", "x" * 30, "\u200b", "3.14",
]  # fmt: skip
DOCS = st.lists(st.sampled_from(PIECES), max_size=60).map("".join) | st.text(max_size=120)


@pytest.fixture(scope="module")
def bytewise() -> Iterator[sgl.Model]:
    with sgl.Model("scripted", backend="scripted") as model:
        yield model


def check(doc: str, parts: list[sgl.Window], tokens: int, overlap: int, count: Any) -> None:
    """What holds for every document."""
    assert [window.index for window in parts] == list(range(len(parts)))
    covered = 0
    for window in parts:
        assert window.text == doc[window.start : window.end]
        assert window.tokens == count(window.text) <= tokens
        assert window.start <= covered < window.end
        assert count(doc[window.start : covered]) <= overlap
        for at in (window.start, window.end):
            if 0 < at < len(doc):
                assert not unicodedata.combining(doc[at])
                assert doc[at - 1 : at + 1] != "\r\n"
                assert "\u200d" not in doc[at - 1 : at + 1]
        covered = window.end
    assert covered == len(doc)


@given(DOCS, st.integers(1, 60), st.data())
def test_every_character_is_in_a_window_that_fits(
    bytewise: sgl.Model, doc: str, tokens: int, data: st.DataObject
) -> None:
    overlap = data.draw(st.integers(0, tokens - 1))
    try:
        parts = sgl.windows(doc, tokens=tokens, overlap=overlap, model=bytewise)
    except ValueError as error:
        refused = re.search(r"the character '.*' at \d+ has (\d+) tokens$", str(error), re.DOTALL)
        assume(refused is None or int(refused[1]) <= tokens)
        raise
    check(doc, parts, tokens, overlap, lambda text: len(text.encode()))


@given(st.lists(st.sampled_from(["one", "two", "eleven", "a"]), min_size=1, max_size=80), st.data())
def test_words_stay_whole_where_they_fit(
    bytewise: sgl.Model, words: list[str], data: st.DataObject
) -> None:
    doc = " ".join(words)
    overlap = data.draw(st.integers(0, 10))
    for window in sgl.windows(doc, tokens=20, overlap=overlap, model=bytewise):
        assert window.start == 0 or doc[window.start - 1] == " "
        assert window.end == len(doc) or doc[window.end - 1] == " "


@pytest.mark.parametrize(
    ("doc", "tokens", "overlap", "parts"),
    [
        ("", 5, 0, []),
        ("short", 5, 0, ["short"]),
        ("One two.\n\nThree. Four five", 20, 0, ["One two.\n\n", "Three. Four five"]),
        ("One two. Three four", 12, 0, ["One two. ", "Three four"]),
        ("One two three four", 10, 0, ["One two ", "three four"]),
        ("abcdefghij", 4, 0, ["abcd", "efgh", "ij"]),
        ("abcdefghij", 4, 2, ["abcd", "cdef", "efgh", "ghij"]),
        ("A. B c d e f. G", 10, 4, ["A. B c d ", "c d e f. G"]),
        ("One two elephantine six", 13, 5, ["One two ", "elephantine ", "six"]),
        ("One. Two three four", 15, 10, ["One. Two three ", "Two three four"]),
        ("One two. Three four five", 19, 12, ["One two. Three ", "Three four five"]),
        ("日本語。中国語", 13, 0, ["日本語。", "中国語"]),
        ("e\u0301" * 4, 7, 0, ["e\u0301" * 2] * 2),
        ("a👩\u200d👧", 11, 0, ["a", "👩\u200d👧"]),
        # A beginning so short that the paragraph is no better place than the end of a word.
        ("A\n\nb c d e f g h i j k", 16, 0, ["A\n\nb c d e f g ", "h i j k"]),
    ],
)
def test_where_it_is_cut(
    bytewise: sgl.Model, doc: str, tokens: int, overlap: int, parts: list[str]
) -> None:
    found = sgl.windows(doc, tokens=tokens, overlap=overlap, model=bytewise)
    assert [window.text for window in found] == parts


@pytest.mark.parametrize(
    ("doc", "arguments", "error", "message"),
    [
        (b"x", {"tokens": 1}, TypeError, "takes a text"),
        ("x", {"tokens": 0}, ValueError, "tokens= must be at least 1"),
        ("x", {"tokens": True}, TypeError, "tokens= takes a whole number"),
        ("x", {"tokens": 4, "overlap": 4}, ValueError, "overlap= must be at least 0 and below"),
        ("x", {"tokens": 4, "overlap": -1}, ValueError, "overlap= must be at least 0 and below"),
        ("x", {"tokens": 4, "overlap": 0.5}, TypeError, "overlap= takes a whole number"),
        ("\ud800", {"tokens": 4}, ValueError, "lone surrogate"),
        ("aé", {"tokens": 1}, ValueError, "the character 'é' at 1 has 2 tokens"),
        ("e" + "\u0301" * 90, {"tokens": 9}, ValueError, r"'é+\.\.\.' at 0 has 181 tokens"),
    ],
)
def test_nonsense_is_refused(
    bytewise: sgl.Model, doc: Any, arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message.replace("é+", "e\u0301+")):
        sgl.windows(doc, model=bytewise, **arguments)


def test_hostile_documents_take_no_longer_than_others(bytewise: sgl.Model) -> None:
    for piece in ("\u0301", "\n ", ".\"'", "\u200d", " ", "🇳🇴", ". "):
        doc = "a " + piece * 20_000
        with suppress(ValueError):  # a character of thousands of marks fits into no window
            sgl.windows(doc, tokens=50, overlap=10, model=bytewise)


def test_the_tokens_of_a_remote_model_are_bytes() -> None:
    class Remote(sgl.Model):
        def __init__(self) -> None:
            transport = httpx2.MockTransport(lambda request: httpx2.Response(500))
            self._adopt(RemoteEngine("m", url="http://there/v1", transport=transport))

    with Remote() as model, sgl.use(model):
        assert [w.text for w in sgl.windows("aéé b", tokens=4)] == ["aé", "é b"]


@pytest.mark.model
def test_tokens_are_those_of_the_model(smollm2_path: Path) -> None:
    with sgl.Model(smollm2_path, kv_memory=1 << 26) as model:
        text = (Path(__file__).parents[2] / "docs" / "constraints.md").read_text()
        doc = text[:20_000] + "😀é中\u0301" * 50
        count = model.engine.count_tokens
        for tokens, overlap in ((16, 0), (100, 30), (5000, 100)):
            check(
                doc,
                sgl.windows(doc, tokens=tokens, overlap=overlap, model=model),
                tokens,
                overlap,
                count,
            )
        parts = sgl.windows(text, tokens=200, model=model)
        assert sum(window.tokens for window in parts[:-1]) / len(parts[:-1]) > 110
