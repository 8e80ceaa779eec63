"""Membership in context-free languages by plain least fixed points, for tests."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence

Rules = Mapping[str, Sequence[Sequence[str]]]
"""Alternatives of each rule; symbols that name no rule are letters."""


def derives(rules: Rules, start: str, word: str) -> bool:
    """Whether `start` derives `word`: spans are added until none is new."""
    spans: set[tuple[str, int, int]] = set()
    size = -1
    while len(spans) != size:
        size = len(spans)
        for name, alternatives in rules.items():
            for alternative, begin in itertools.product(alternatives, range(len(word) + 1)):
                ends = {begin}
                for symbol in alternative:
                    if symbol in rules:
                        ends = {j for i in ends for j in range(i, len(word) + 1)
                                if (symbol, i, j) in spans}  # fmt: skip
                    else:
                        ends = {i + 1 for i in ends if word[i : i + 1] == symbol}
                spans |= {(name, begin, end) for end in ends}
    return (start, 0, len(word)) in spans


def with_prefixes(rules: Rules) -> dict[str, list[list[str]]]:
    """The rules and, for each, a rule `prefix-NAME` of everything that its texts begin with."""
    fertile: set[str] = set()
    size = -1
    while len(fertile) != size:
        size = len(fertile)
        for name, alternatives in rules.items():
            if any(all(s in fertile or s not in rules for s in a) for a in alternatives):
                fertile.add(name)
    found: dict[str, list[list[str]]] = {n: [list(a) for a in rules[n]] for n in rules}
    for name, alternatives in rules.items():
        prefixes: list[list[str]] = []
        for alternative in alternatives:
            if not all(s in fertile or s not in rules for s in alternative):
                continue
            prefixes.append(list(alternative))
            for i, symbol in enumerate(alternative):
                head = list(alternative[:i])
                prefixes.append([*head, f"prefix-{symbol}"] if symbol in rules else head)
        found[f"prefix-{name}"] = prefixes
    return found


def words(alphabet: str, longest: int) -> Iterator[str]:
    """Every word of up to so many letters."""
    for length in range(longest + 1):
        yield from map("".join, itertools.product(alphabet, repeat=length))


def judge(rules: Rules, start: str, alphabet: str, longest: int) -> dict[str, tuple[bool, bool]]:
    """Of every word: whether some text begins so, and whether it is one."""
    both = with_prefixes(rules)
    live = functools.partial(derives, both, f"prefix-{start}")
    found: dict[str, tuple[bool, bool]] = {}
    for word in words(alphabet, longest):
        alive = (not word or found[word[:-1]][0]) and live(word)
        found[word] = alive, alive and derives(rules, start, word)
    return found
