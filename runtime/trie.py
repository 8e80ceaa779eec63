"""The trie of the tokens of some choices, and what the model thinks at its nodes."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from sglite.runtime.backends.base import Float32


@dataclass(slots=True, eq=False)
class Node:
    """`log_probs` of the children, and `end` of what may follow instead, where it was asked for,
    under the full softmax; `is_noted` once the logits were there."""

    children: dict[int, Node] = field(default_factory=dict)
    is_choice: bool = False
    log_probs: dict[int, float] = field(default_factory=dict)
    end: float = -math.inf
    is_noted: bool = False


class Trie:
    """`paths`: the ids of each choice, of which the first `healed` are text of the program that all
    of them share. `end_ids`: where there are some, what they say is wanted behind every choice too.
    """

    def __init__(
        self, paths: Sequence[Sequence[int]], healed: int = 0, end_ids: Sequence[int] = ()
    ) -> None:
        self.root = Node()
        self.paths = paths
        self.healed = healed
        self.end_ids = np.array(end_ids, np.int64)
        for path in paths:
            node = self.root
            for token in path:
                node = node.children.setdefault(token, Node())
            node.is_choice = True

    def wants(self, node: Node) -> bool:
        """Whether the logits behind this node count."""
        return bool(node.children) or (node.is_choice and len(self.end_ids) > 0)

    def note(self, node: Node, logits: Float32) -> None:
        """Take the logits [V] behind a node."""
        top = logits.max()
        total = float(top) + math.log(np.exp(logits - top).sum(dtype=np.float64))
        node.log_probs = {token: float(logits[token]) - total for token in node.children}
        node.is_noted = True
        if node.is_choice and len(self.end_ids):
            ends = logits[self.end_ids].astype(np.float64)
            most = float(ends.max())
            node.end = most + math.log(np.exp(ends - most).sum()) - total

    def way_down(self, token: int, node: Node) -> tuple[array[int], list[Node]]:
        """From a child on down its first children, as far as logits count: ids and nodes."""
        ids, nodes = array("i", [token]), [node]
        while True:
            step = next(((t, c) for t, c in nodes[-1].children.items() if self.wants(c)), None)
            if step is None:
                return ids, nodes
            ids.append(step[0])
            nodes.append(step[1])

    def end_of(self, node: Node) -> float | None:
        """Log probability that a choice which ends at this node ends here: that of what follows it,
        or of not going on into another choice. None where nothing is asked."""
        if len(self.end_ids):
            return node.end
        if not node.children:
            return None
        going_on = sum(math.exp(p) for p in node.log_probs.values())
        return math.log(max(1.0 - going_on, 1e-12))
