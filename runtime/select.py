"""A hole that picks one of its choices and keeps the distribution over all of them.

The canonical tokens of the choices form a trie. Logits are needed at every node that has children:
at the root they come from the sequence itself, below it from hidden branches that share its pages.
A branch follows first children down in one row; the other children fork off it when it is done:

    root --a--> n1 --b--> leaf "ab"        branch 1: a      (logits at n1)
         |         '-c--> leaf "ac"
         '--d--> n2 --e--> leaf "de"       branch 2: d      (logits at n2)

The probability of a choice is the product over its tokens; where its path is a proper prefix of
another's, times the probability that none of the continuing tokens follows. Normalised over the
choices this is also conditional on the healed prefix, which all of them share.
"""

from __future__ import annotations

import math
import time
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from sglite.errors import CapacityError
from sglite.runtime.backends.base import Float32
from sglite.runtime.prompt import Tokenizer
from sglite.runtime.sampling import uniform
from sglite.runtime.segment import HoleResult, Select
from sglite.runtime.sequence import Sequence

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(slots=True, eq=False)
class _Node:
    children: dict[int, _Node] = field(default_factory=dict)
    choice: int | None = None
    log_probs: dict[int, float] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Branch:
    """The task of a hidden sequence: ids from `base` on stand for the nodes of `path`."""

    selection: Selection
    base: int
    path: list[_Node]


def check_choices(select: Select) -> None:
    """Raise ValueError for choices that cannot be told apart."""
    choices = select.choices
    if not choices:
        raise ValueError(f"select {select.name!r} has no choices")
    if any(not choice for choice in choices):
        raise ValueError(f"select {select.name!r}: a choice must not be the empty text")
    if len(set(choices)) < len(choices):
        twice = next(c for i, c in enumerate(choices) if c in choices[:i])
        raise ValueError(f"select {select.name!r} has the choice {twice!r} twice")


class Selection:
    """`spawn` makes a hidden sequence whose task is the given branch, from a sequence and a number
    of its ids; the engine answers with `receive` and `finished_branch`."""

    def __init__(
        self,
        sequence: Sequence,
        select: Select,
        prefix: bytes,
        tokenizer: Tokenizer,
        capacity: int,
        spawn: Callable[[Sequence, int, array[int], Branch], Sequence],
    ) -> None:
        self.sequence = sequence
        self.select = select
        self.usage = sequence.open_account().usage
        self.branches: list[Sequence] = []
        self.started_at = time.monotonic()
        self._spawn = spawn
        self._base = len(sequence.ids)
        self._paths = [tokenizer.encode_bytes(prefix + c.encode()) for c in select.choices]
        self._root = _Node()
        for index, path in enumerate(self._paths):
            self._insert(path, index)
        need = self._base + max(len(path) for path in self._paths)
        if need > capacity:
            raise CapacityError(
                f"select {select.name!r} needs {need} tokens with its longest choice, the model's "
                f"context and memory hold {capacity}; shorten the prompt or raise `context`"
            )

    @property
    def is_scored(self) -> bool:
        """Whether the distribution is known."""
        if len(self._paths) == 1:
            return True
        return bool(self._root.log_probs) and not self.branches

    def receive_root(self, logits: Float32) -> None:
        """Logits [V] at the end of the prompt: the branches below it begin."""
        _note(self._root, logits)
        self._branch_off(self.sequence, self._base, [self._root])

    def receive(self, branch: Branch, first: int, logits: Float32) -> None:
        """Logits [N, V] at the ids first .. first + N - 1 of a branch's sequence."""
        for at, row in enumerate(logits, first - branch.base):
            _note(branch.path[at], row)

    def finished_branch(self, sequence: Sequence, branch: Branch) -> None:
        """All ids of the branch are computed; what forks off it begins, sharing its pages."""
        self.branches.remove(sequence)
        self._branch_off(sequence, branch.base + len(branch.path), branch.path)

    def distribution(self) -> dict[str, float]:
        """Probability of each choice, in their order."""
        scores = np.array(list(self._scores()))
        weights = np.exp(scores - scores.max())
        return dict(zip(self.select.choices, (weights / weights.sum()).tolist(), strict=True))

    def pick(self) -> HoleResult:
        """Choose, and append the ids of the choice to the state."""
        distribution = self.distribution()
        probabilities = np.array(list(distribution.values()))
        temperature = self.select.sampling.temperature
        if temperature == 0:
            chosen = int(probabilities.argmax())
        else:
            with np.errstate(divide="ignore"):
                tempered = np.log(probabilities) / temperature
            weights = np.cumsum(np.exp(tempered - tempered.max()))
            mark = uniform(self.select.key, 0) * weights[-1]
            chosen = min(int(np.searchsorted(weights, mark, side="right")), len(weights) - 1)
        path = self._paths[chosen]
        self.sequence.ids.extend(path)
        self.usage.decoded_tokens += len(path)
        share = float(probabilities[chosen])
        first = math.log(share) if share > 0 else -math.inf
        now = time.monotonic()
        return HoleResult(
            name=self.select.name,
            text=self.select.choices[chosen],
            ids=tuple(path),
            finish="select",
            logprobs=(first, *[0.0] * (len(path) - 1)),
            distribution=distribution,
            usage=self.usage,
            started_at=self.started_at,
            first_token_at=now,
            finished_at=now,
        )

    def _insert(self, path: list[int], index: int) -> None:
        node = self._root
        for token in path:
            node = node.children.setdefault(token, _Node())
        node.choice = index

    def _branch_off(self, source: Sequence, known: int, nodes: list[_Node]) -> None:
        """Branches for the inner children of `nodes` that have no logits yet. The last of `nodes`
        stands at the id known - 1 of `source`."""
        for back, node in enumerate(reversed(nodes)):
            for token, child in node.children.items():
                if not child.children or child.log_probs:
                    continue
                tokens, path = array("i", [token]), [child]
                while (step := _first_inner(path[-1])) is not None:
                    tokens.append(step[0])
                    path.append(step[1])
                length = known - back
                branch = Branch(self, length, path)
                self.branches.append(self._spawn(source, length, tokens, branch))

    def _scores(self) -> Iterator[float]:
        for path in self._paths:
            node, score = self._root, 0.0
            for token in path:
                score += node.log_probs.get(token, 0.0)
                node = node.children[token]
            if node.children:
                going_on = sum(math.exp(p) for p in node.log_probs.values())
                score += math.log(max(1.0 - going_on, 1e-12))
            yield score


def _first_inner(node: _Node) -> tuple[int, _Node] | None:
    return next(((t, c) for t, c in node.children.items() if c.children), None)


def _note(node: _Node, logits: Float32) -> None:
    """Log-probabilities of the children under the full softmax of logits [V]."""
    top = logits.max()
    total = float(top) + math.log(np.exp(logits - top).sum(dtype=np.float64))
    node.log_probs = {token: float(logits[token]) - total for token in node.children}
