"""What a choice scores: one function for each method of `Select`.

Each takes the trie of the choices, with the model's log probabilities in it, and gives one score
for each choice, in their order; `pmi` also takes the trie of the choices without the prompt. Ids of
the prompt that healing has put before every choice count to none of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from sglite.runtime.trie import Node, Trie


def total(trie: Trie, path: Iterable[int], *, ending: bool = True) -> float:
    """Log probability of a path, and, with `ending`, of the choice ending there."""
    node, score = trie.root, 0.0
    for at, token in enumerate(path):
        score += node.log_probs[token] if at >= trie.healed else 0.0
        node = node.children[token]
    end = trie.end_of(node) if ending else None
    return score if end is None else score + end


def prob(trie: Trie) -> list[float]:
    """The total log probability of each choice."""
    return [total(trie, path) for path in trie.paths]


def mean(trie: Trie) -> list[float]:
    """The mean log probability of each choice's tokens."""
    return [total(trie, path, ending=False) / (len(path) - trie.healed) for path in trie.paths]


def pmi(trie: Trie, alone: Trie) -> list[float]:
    """The log probability of each choice less that of the choice without the prompt."""
    return [
        total(trie, path, ending=False) - total(alone, own, ending=False)
        for path, own in zip(trie.paths, alone.paths, strict=True)
    ]


def greedy(trie: Trie) -> list[float]:
    """The log probability of each choice where the model can write nothing but the choices."""
    scores = []
    for path in trie.paths:
        node, score = trie.root, 0.0
        for token in path:
            score += node.log_probs[token] - _among(trie, node)
            node = node.children[token]
        if node.children:
            score += (trie.end_of(node) or 0.0) - _among(trie, node)
        scores.append(score)
    return scores


def greedy_way(trie: Trie) -> list[int]:
    """The ids of the most probable way, token by token; equals go to the choice named first."""
    node, way = trie.root, []
    while node.children:
        token = max(node.children, key=node.log_probs.__getitem__)
        end = trie.end_of(node) if node.is_choice else None
        if end is not None and end > node.log_probs[token]:
            break
        way.append(token)
        node = node.children[token]
    return way


def _among(trie: Trie, node: Node) -> float:
    """Log of the probability of all that the choices leave behind a node."""
    parts = list(node.log_probs.values())
    if node.is_choice and (end := trie.end_of(node)) is not None:
        parts.append(end)
    top = max(parts)
    return top + math.log(sum(math.exp(part - top) for part in parts))
