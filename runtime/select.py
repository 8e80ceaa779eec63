"""A hole that picks one of its choices and keeps the distribution over all of them.

The canonical tokens of the choices form a trie. Logits are needed at every node that has children,
and, where something must follow a choice, at the choices too: at the root they come from the
sequence itself, below it from hidden branches that share its pages. A branch follows first children
down in one row; the other children fork off it when it is done:

    root --a--> n1 --b--> leaf "ab"        branch 1: a      (logits at n1)
         |         '-c--> leaf "ac"
         '--d--> n2 --e--> leaf "de"       branch 2: d      (logits at n2)

What the numbers at the nodes make of each choice is in `scoring`. Normalised over the choices they
are conditional on the healed prefix, which all of them share. `pmi` has a second trie of the
same choices, whose root is the beginning of a text: its branches run in the same steps.
"""

from __future__ import annotations

import math
import time
from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sglite.errors import CapacityError
from sglite.runtime import scoring
from sglite.runtime.backends.base import Float32
from sglite.runtime.generation import Rules
from sglite.runtime.prompt import Tokenizer
from sglite.runtime.sampling import uniform
from sglite.runtime.segment import HoleResult, Select
from sglite.runtime.sequence import Sequence as Row
from sglite.runtime.trie import Node, Trie

METHODS = ("prob", "mean", "greedy", "pmi")
_SCORES = {"prob": scoring.prob, "mean": scoring.mean, "greedy": scoring.greedy}


@dataclass(slots=True, eq=False)
class Branch:
    """The task of a hidden sequence: ids from `base` on stand for the nodes of `path`."""

    selection: Selection
    trie: Trie
    base: int
    path: list[Node]


Spawn = Callable[[Row, int, "array[int]", Branch], Row]
"""Makes a hidden sequence out of so many ids of another one, and ids of its own."""


def check_select(select: Select) -> None:
    """Raise ValueError for choices that cannot be told apart, and for what no method can do."""
    choices = select.choices
    if not choices:
        raise ValueError(f"select {select.name!r} has no choices")
    if any(not choice for choice in choices):
        raise ValueError(f"select {select.name!r}: a choice must not be the empty text")
    if len(set(choices)) < len(choices):
        twice = next(choice for choice, count in Counter(choices).items() if count > 1)
        raise ValueError(f"select {select.name!r} has the choice {twice!r} twice")
    if select.method not in METHODS:
        raise ValueError(
            f"select {select.name!r}: the method is one of {', '.join(METHODS)}, got "
            f"{select.method!r}"
        )
    if select.until and select.method not in ("prob", "greedy"):
        raise ValueError(
            f"select {select.name!r}: until= goes with method='prob' or 'greedy'; "
            f"{select.method!r} does not look at what follows a choice"
        )
    if any(not text for text in select.until):
        raise ValueError(f"select {select.name!r}: an until text must not be empty")


class Selection:
    """The engine answers `spawn` with `receive` and `finished_branch`."""

    def __init__(
        self, sequence: Row, select: Select, prefix: bytes, rules: Rules, spawn: Spawn
    ) -> None:
        self.sequence = sequence
        self.select = select
        self.usage = sequence.open_account().usage
        self.branches: dict[Row, None] = {}
        self.started_at = time.monotonic()
        self._spawn = spawn
        self._prefix = prefix
        self._base = len(sequence.ids)
        paths = [
            _spelled(select, choice, prefix + choice.encode(), rules.tokenizer)
            for choice in select.choices
        ]
        healed = _shared_ids(paths, rules.tokenizer.token_bytes, len(prefix))
        self._trie = Trie(paths, healed, _end_ids(select, rules))
        self._alone: Trie | None = None
        if select.method == "pmi":
            self._alone = Trie([path[healed:] for path in paths])
            self._start = _start_of_text(select, rules)
        need = self._base + max(len(path) for path in paths)
        if need > rules.capacity:
            raise CapacityError(
                f"select {select.name!r} needs {need} tokens with its longest choice, the model's "
                f"context and memory hold {rules.capacity}; shorten the prompt or raise `context`"
            )

    @property
    def is_scored(self) -> bool:
        """Whether all that counts is known."""
        return self._trie.root.is_noted and not self.branches

    def receive_root(self, logits: Float32) -> None:
        """Logits [V] at the end of the prompt: the branches below it begin."""
        self._trie.note(self._trie.root, logits)
        self._branch_off(self._trie, self.sequence, self._base, [self._trie.root])
        if self._alone is not None:
            self._begin(self._alone, self.sequence, 0, self._start, self._alone.root)

    def receive(self, branch: Branch, first: int, logits: Float32) -> None:
        """Logits [N, V] at the ids first .. first + N - 1 of a branch's sequence."""
        for at, row in enumerate(logits, first - branch.base):
            branch.trie.note(branch.path[at], row)

    def finished_branch(self, sequence: Row, branch: Branch) -> None:
        """All ids of the branch are computed; what forks off it begins, sharing its pages."""
        del self.branches[sequence]
        self._branch_off(branch.trie, sequence, branch.base + len(branch.path), branch.path)

    def pick(self) -> HoleResult:
        """Choose, and append the ids of the choice to the state."""
        scores = self._scores()
        weights = np.exp(np.array(scores) - max(scores))
        probabilities = weights / weights.sum()
        chosen = self._choose(probabilities)
        path = self._trie.paths[chosen]
        self.sequence.ids.extend(path)
        self.usage.decoded_tokens += len(path)
        share = float(probabilities[chosen])
        first = math.log(share) if share > 0 else -math.inf
        now = time.monotonic()
        choices = self.select.choices
        return HoleResult(
            name=self.select.name,
            text=choices[chosen],
            ids=tuple(path),
            finish="select",
            logprobs=(first, *[0.0] * (len(path) - 1)),
            distribution=dict(zip(choices, probabilities.tolist(), strict=True)),
            scores=dict(zip(choices, scores, strict=True)),
            healed=self._prefix.decode("utf-8", "replace"),
            usage=self.usage,
            started_at=self.started_at,
            first_token_at=now,
            finished_at=now,
        )

    def _scores(self) -> list[float]:
        if self._alone is not None:
            return scoring.pmi(self._trie, self._alone)
        return _SCORES[self.select.method](self._trie)

    def _choose(self, probabilities: npt.NDArray[np.float64]) -> int:
        temperature = self.select.sampling.temperature
        if temperature > 0:
            with np.errstate(divide="ignore"):
                tempered = np.log(probabilities) / temperature
            weights = np.cumsum(np.exp(tempered - tempered.max()))
            mark = uniform(self.select.key, 0) * weights[-1]
            return min(int(np.searchsorted(weights, mark, side="right")), len(weights) - 1)
        if self.select.method == "greedy":
            return self._trie.paths.index(scoring.greedy_way(self._trie))
        return int(probabilities.argmax())

    def _branch_off(self, trie: Trie, source: Row, known: int, nodes: list[Node]) -> None:
        """Branches for the children of `nodes` whose logits count and are not there yet. The last
        of `nodes` stands at the id known - 1 of `source`."""
        for back, node in enumerate(reversed(nodes)):
            for token, child in node.children.items():
                if trie.wants(child) and not child.is_noted:
                    self._begin(trie, source, known - back, token, child)

    def _begin(self, trie: Trie, source: Row, length: int, token: int, node: Node) -> None:
        """A branch that goes down from `node`, behind `length` ids of `source` and `token`."""
        ids, path = trie.way_down(token, node)
        branch = Branch(self, trie, length, path)
        self.branches[self._spawn(source, length, ids, branch)] = None


def _spelled(select: Select, choice: str, data: bytes, tokenizer: Tokenizer) -> list[int]:
    path = tokenizer.encode_bytes(data)
    if b"".join(tokenizer.token_bytes[token] for token in path) != data:
        raise ValueError(
            f"select {select.name!r}: the model's vocabulary cannot spell the choice {choice!r}"
        )
    return path


def _shared_ids(paths: list[list[int]], token_bytes: Sequence[bytes], length: int) -> int:
    """How many ids all paths begin with that lie within the first `length` bytes."""
    shared = 0
    for ids in zip(*paths, strict=False):
        length -= len(token_bytes[ids[0]])
        if length < 0 or len({*ids}) > 1:
            break
        shared += 1
    return shared


def _end_ids(select: Select, rules: Rules) -> Sequence[int]:
    if not select.until:
        return ()
    ends = set(rules.vocabulary.eos_ids)
    for text in select.until:
        ends.update(map(int, rules.vocabulary.tokens_beginning(text.encode())))
    return sorted(ends)


def _start_of_text(select: Select, rules: Rules) -> int:
    """The id that stands before a text without a prompt."""
    tokenizer, ends = rules.tokenizer, rules.vocabulary.eos_ids
    # A model that begins no text with a token of its own has learnt them behind the end of others.
    start = tokenizer.bos_id if tokenizer.add_bos or not ends else ends[0]
    if start is None:
        raise ValueError(
            f"select {select.name!r}: method='pmi' scores the choices at the beginning of a text, "
            "and the model has no token for one; use another method"
        )
    return start
