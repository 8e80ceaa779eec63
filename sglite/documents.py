"""Long texts, cut into windows that fit: `sgl.windows`.

A window ends at the best place that its length allows: behind a paragraph, a sentence, a word, a
character. Lengths are counted by the tokeniser of the model, on the text of each window as it is.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from sglite.language.ir import check_text
from sglite.model import current_model

if TYPE_CHECKING:
    from sglite.model import Model
    from sglite.runtime.engines.base import Engine

_PARAGRAPH = re.compile(r"\n[^\S\n]*\n\s*")
_SENTENCE = re.compile(r"""[.!?…]["'”’»)\]]*\s+|[。！？]["”’」』）]*|\n\s*""")
_WORD = re.compile(r"\s+")
_KINDS = (_PARAGRAPH, _SENTENCE, _WORD)  # the better places first

_FEWEST = 0.5
"""A better place is taken where that leaves at least so much of a window, or of an overlap."""


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a document: `text` is `doc[start:end]`. `index` counts the windows; `tokens` is its
    length."""

    text: str
    start: int
    end: int
    index: int
    tokens: int


def windows(doc: str, *, tokens: int, overlap: int = 0, model: Model | None = None) -> list[Window]:
    """`doc` in windows of at most `tokens` tokens of the model (the one in use), in order.

    Each begins at most `overlap` tokens before the end of the one before, where a sentence or a
    word begins (in text without spaces, a character), and none begins or ends inside of a character
    that is written with several code points. Every character is in a window. The tokens of a remote
    model are not known: there each byte of UTF-8 counts as one, so that no window has more tokens
    than asked for.

    Raises TypeError and ValueError for arguments out of range, ValueError for a character that is
    longer than `tokens`.
    """
    if not isinstance(doc, str):
        raise TypeError(f"windows() takes a text, got {type(doc).__name__}")
    for name, number in (("tokens", tokens), ("overlap", overlap)):
        if isinstance(number, bool) or not isinstance(number, int):
            raise TypeError(f"windows(): {name}= takes a whole number, got {number!r}")
    if tokens < 1:
        raise ValueError(f"windows(): tokens= must be at least 1, got {tokens}")
    if not 0 <= overlap < tokens:
        raise ValueError(
            f"windows(): overlap= must be at least 0 and below tokens={tokens}, got {overlap}"
        )
    check_text("the document", doc)
    count = _counter((model or current_model()).engine)
    return list(_Cutter(doc, tokens, overlap, count).windows())


def _counter(engine: Engine) -> Callable[[str], int]:
    if "tokens" in engine.capabilities:
        return engine.count_tokens
    return lambda text: len(text.encode())


class _Cutter:
    def __init__(self, doc: str, tokens: int, overlap: int, count: Callable[[str], int]) -> None:
        self._doc = doc
        self._tokens = tokens
        self._overlap = overlap
        self._count = count
        self._places = [[match.end() for match in kind.finditer(doc)] for kind in _KINDS]
        self._guess = 4 * tokens  # characters of a window

    def windows(self) -> Iterator[Window]:
        start = end = index = 0
        while end < len(self._doc):
            cut, is_good = self._end(start, end)
            if not is_good and start < end:
                # The overlap leaves no room for what comes next, or not for a whole word of it.
                other, is_good = self._end(end, end)
                if is_good or cut == end:
                    start, cut = end, other
            if cut == end:
                raise self._too_long(start)
            text = self._doc[start:cut]
            yield Window(text, start, cut, index, self._count(text))
            end, index = cut, index + 1
            start = self._start(start, end)

    def _end(self, start: int, past: int) -> tuple[int, bool]:
        """Where the window from `start` ends, beyond `past` if it can, and whether that is a good
        place."""
        most = self._farthest(start)
        if most <= past:
            return past, False
        if most == len(self._doc):
            return most, self._has_words(start, most)
        least = max(past, start + ceil(_FEWEST * (most - start)) - 1)
        for places in self._places:
            for cut in _between(places, least, most):
                if self._whole(cut) and self._count(self._doc[start:cut]) <= self._tokens:
                    return cut, True
        return most, False

    def _start(self, start: int, end: int) -> int:
        """Where the next window begins within the overlap: at a sentence, a word, a character."""
        if not self._overlap or end == len(self._doc):
            return end
        first = self._earliest(start, end)
        last = end - ceil(_FEWEST * (end - first))
        for places in self._places[1:]:
            for place in places[bisect_left(places, first) : bisect_right(places, last)]:
                if self._whole(place) and self._fits_overlap(place, end):
                    return place
        if self._has_words(start - 1, end):
            return end  # a word is too long to stand twice
        return next((place for place in range(first, end) if self._whole(place)), end)

    def _farthest(self, start: int) -> int:
        """The end of a window that could not be much longer; `start` where no character fits."""
        doc = self._doc

        def fits(end: int) -> bool:
            return self._count(doc[start:end]) <= self._tokens

        good, bad = start, len(doc) + 1
        step = self._guess
        while bad > len(doc):  # a length that is too much, if there is one
            probe = min(start + step, len(doc))
            if not fits(probe):
                bad = probe
            elif probe == len(doc):
                return probe
            else:
                good, step = probe, step * 2
        while bad - good > 1:
            middle = (good + bad) // 2
            if fits(middle):
                good = middle
            else:
                bad = middle
        # A longer text can have fewer tokens, so what is shorter than one that fits may not fit.
        while good > start and not (self._whole(good) and fits(good)):
            good -= 1
        self._guess = max(16, good - start)
        return good

    def _earliest(self, start: int, end: int) -> int:
        """Before it nothing fits into the overlap, after it most does."""
        low, high = start, end  # high fits
        while high - low > 1:
            middle = (low + high) // 2
            if self._fits_overlap(middle, end):
                high = middle
            else:
                low = middle
        return high

    def _fits_overlap(self, start: int, end: int) -> bool:
        return self._count(self._doc[start:end]) <= self._overlap

    def _has_words(self, least: int, most: int) -> bool:
        """Whether a word begins above `least`, up to `most`."""
        return any(True for _ in _between(self._places[-1], least, most))

    def _whole(self, at: int) -> bool:
        return at == len(self._doc) or not _continues(self._doc[at - 1], self._doc[at])

    def _too_long(self, start: int) -> ValueError:
        end = start + 1
        while not self._whole(end):
            end += 1
        character = self._doc[start:end]
        shown = character if len(character) <= 8 else f"{character[:8]}..."
        return ValueError(
            f"windows(): tokens={self._tokens} is too few: the character {shown!r} at {start} has "
            f"{self._count(character)} tokens"
        )


def _between(places: list[int], least: int, most: int) -> Iterator[int]:
    """The places above `least` up to `most`, the last one first."""
    for at in range(bisect_right(places, most) - 1, bisect_right(places, least) - 1, -1):
        yield places[at]


def _continues(before: str, after: str) -> bool:
    """Whether two code points are parts of one character."""
    if before == "\r" and after == "\n":
        return True
    if before == "\u200d" or after == "\u200d":  # joined, as families of emoji are
        return True
    if _is_flag_half(before) and _is_flag_half(after):
        return True
    # Accents, signs of vowels, variations, shades of skin.
    return unicodedata.category(after).startswith("M") or "\U0001f3fb" <= after <= "\U0001f3ff"


def _is_flag_half(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"
