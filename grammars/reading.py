"""How a text is a match of a composed grammar: which part read what.

Ends are found forwards, part by part; then every part is given its share, from left to right, as
much as lets the rest be read. Leaves are asked of their own compiled grammars.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sglite.grammars.matcher import Grammar
from sglite.grammars.parts import Capture, Choice, Part, Repeat, Sequence, Until
from sglite.grammars.vocabulary import Vocabulary

Span = tuple[str, int, int]
"""A capture: name, begin, end."""


class Reader:
    """The readings of one text."""

    def __init__(
        self, text: bytes, vocab: Vocabulary, compile_leaf: Callable[[Part, Vocabulary], Grammar]
    ) -> None:
        self.text = text
        self.vocab = vocab
        self.compile_leaf = compile_leaf
        self.known: dict[tuple[int, int], frozenset[int]] = {}
        self.tokens: dict[int, int] = {}

    def read(self, part: Part) -> list[Span] | None:
        """The captures of the whole text, in its order; None if it is no match."""
        if len(self.text) not in self.ends(part, 0):
            return None
        found: list[Span] = []
        self.share(part, 0, len(self.text), found)
        return found

    # Forwards: where a part can end

    def ends(self, part: Part, begin: int) -> frozenset[int]:
        """Where a reading of `part` from `begin` can end."""
        key = (id(part), begin)
        if key not in self.known:
            self.known[key] = frozenset(self.find_ends(part, begin))
        return self.known[key]

    def find_ends(self, part: Part, begin: int) -> Iterable[int]:
        match part:
            case str():
                literal = part.encode()
                return [begin + len(literal)] if self.text.startswith(literal, begin) else []
            case Until(marker):
                at = self.text.find(marker.encode(), begin)
                return [at + len(marker.encode())] if at >= 0 else []
            case Sequence(parts):
                places = {begin}
                for inner in parts:
                    places = self.onwards(inner, places)
                return places
            case Choice(parts):
                return {end for inner in parts for end in self.ends(inner, begin)}
            case Repeat(inner, low, high):
                counted = self.counted(inner, begin, low)[-1]
                return self.further(inner, counted, None if high is None else high - low)
            case Capture(_, inner):
                return self.ends(inner, begin)
            case _:
                return self.leaf_ends(part, begin)

    def onwards(self, part: Part, places: Iterable[int]) -> set[int]:
        return {end for place in places for end in self.ends(part, place)}

    def counted(self, part: Part, begin: int, count: int) -> list[set[int]]:
        """Where none, one, ... and `count` readings of `part` can end."""
        found = [{begin}]
        for _ in range(count):
            found.append(self.onwards(part, found[-1]))
        return found

    def further(self, part: Part, places: set[int], rounds: int | None) -> set[int]:
        """Where any number of readings of `part` from `places` can end, at most `rounds`."""
        seen = set(places)
        while places and rounds != 0:
            places = self.onwards(part, places) - seen
            seen |= places
            rounds = None if rounds is None else rounds - 1
        return seen

    def leaf_ends(self, part: Part, begin: int) -> Iterable[int]:
        grammar = part if isinstance(part, Grammar) else self.compile_leaf(part, self.vocab)
        matcher = grammar.matcher()
        ends = [begin] if matcher.is_complete else []
        for at in range(begin, len(self.text)):
            if not matcher.accept(self.token(self.text[at])):
                break
            if matcher.is_complete:
                ends.append(at + 1)
        return ends

    def token(self, byte: int) -> int:
        """The id of a single byte, or -1."""
        if byte not in self.tokens:
            single = bytes([byte])
            ids = self.vocab.tokens_beginning(single)
            self.tokens[byte] = next((int(i) for i in ids if self.vocab.token(i) == single), -1)
        return self.tokens[byte]

    # Backwards and forwards: what each part reads

    def share(self, part: Part, begin: int, end: int, found: list[Span]) -> None:
        """Add the captures of `part`, which reads from `begin` to `end`."""
        match part:
            case Capture(name, inner):
                found.append((name, begin, end))
                self.share(inner, begin, end, found)
            case Until(marker, str(name)):
                found.append((name, begin, end - len(marker.encode())))
            case Choice(parts):
                first = next(inner for inner in parts if end in self.ends(inner, begin))
                self.share(first, begin, end, found)
            case Sequence(parts):
                self.share_all(parts, begin, end, found)
            case Repeat(inner, low, high):
                self.share_repeated(inner, low, high, begin, end, found)
            case _:
                pass

    def share_all(self, parts: tuple[Part, ...], begin: int, end: int, found: list[Span]) -> None:
        reached = [{begin}]
        for inner in parts:
            reached.append(self.onwards(inner, reached[-1]))
        useful = self.useful(parts, reached, {end})
        for inner, places in zip(parts, useful[1:], strict=True):
            farthest = max(self.ends(inner, begin) & places)
            self.share(inner, begin, farthest, found)
            begin = farthest

    def useful(
        self, parts: Iterable[Part], reached: list[set[int]], last: set[int]
    ) -> list[set[int]]:
        """Of the places reached before each part and behind the last, those that lead to `last`."""
        useful = [last]
        for inner, places in zip(reversed([*parts]), reversed(reached[:-1]), strict=True):
            useful.append({p for p in places if self.ends(inner, p) & useful[-1]})
        return useful[::-1]

    def share_repeated(
        self, part: Part, low: int, high: int | None, begin: int, end: int, found: list[Span]
    ) -> None:
        left = len(self.text) if high is None else high - low
        reached = self.counted(part, begin, low)
        rounds = self.rounds_to(part, reached[-1], end)
        last = {p for p in reached[-1] if rounds.get(p, left + 1) <= left}
        for places in self.useful([part] * low, reached, last)[1:]:
            farthest = max(self.ends(part, begin) & places)
            self.share(part, begin, farthest, found)
            begin = farthest
        while begin != end:
            left -= 1
            ends = self.ends(part, begin)
            farthest = max(p for p in ends if p > begin and rounds.get(p, left + 1) <= left)
            self.share(part, begin, farthest, found)
            begin = farthest

    def rounds_to(self, part: Part, places: set[int], end: int) -> dict[int, int]:
        """The fewest readings of `part` that lead to `end`, from every place that can."""
        before: dict[int, list[int]] = {}
        for place in self.further(part, places, None):
            for after in self.ends(part, place):
                before.setdefault(after, []).append(place)
        rounds = {end: 0}
        todo = [end]
        for place in todo:
            for earlier in before.get(place, ()):
                if earlier not in rounds:
                    rounds[earlier] = rounds[place] + 1
                    todo.append(earlier)
        return rounds
