"""One branch of a program inside the engine: its token ids, its KV pages, the work it still has.

It lives over several holes, can be forked, and is closed once. It decides nothing: the scheduler
moves it between its states, the engine moves it through its steps.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Sequence as Items
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from sglite.runtime.cache.block_table import BlockTable
from sglite.runtime.cache.pages import PagePool
from sglite.runtime.cache.prefix_tree import page_key
from sglite.runtime.engines.base import EventSink
from sglite.runtime.plan import PAGE_SIZE
from sglite.runtime.segment import Segment, Usage

if TYPE_CHECKING:
    from sglite.runtime.generation import Generation
    from sglite.runtime.prepare import Prepared
    from sglite.runtime.select import Branch, Selection


class State(Enum):
    """Where the scheduler has a sequence."""

    RESTING = "no work; keeps its pages as long as nobody needs them"
    WAITING = "has work and waits for rows and pages"
    PARKED = "waits until a running sequence has prefilled a prefix of it"
    RUNNING = "has a row in every step that has room"


@dataclass(slots=True)
class SegmentRun:
    """A submitted segment under way: literal text is tokenised and constraints are compiled.

    `marks`: where each step so far began.
    """

    segment: Segment
    prepared: tuple[Prepared, ...]
    sink: EventSink
    step: int = 0
    marks: list[Mark] = field(default_factory=list)


@dataclass(slots=True)
class Mark:
    """The state before a step: `length` ids, of which the step may change the last ones, `tail`;
    `healable` of them lie in user text."""

    length: int
    tail: array[int]
    healable: int


@dataclass(slots=True)
class PromptAccount:
    """Counts, once, which prompt ids [start, stop) of a hole had their KV in the prefix cache."""

    usage: Usage
    start: int
    stop: int
    seen: int = 0

    def note_cached(self, start: int, stop: int) -> None:
        """The KV of ids[start:stop] came from the cache."""
        first = max(start, self.start, self.seen)
        self.seen = max(self.seen, stop)
        self.usage.cached_tokens += max(0, min(stop, self.stop) - first)


@dataclass(slots=True)
class ForkPoint:
    """A fork that was asked for: it happens once the KV of the common ids is there."""

    children: list[Sequence]


class Sequence:
    """`ids`: the state. `computed`: how many of them have their KV in `table`. `goal`: how many
    shall have it; the logits of ids[logits_from:goal] are wanted."""

    __slots__ = (
        "_chain",
        "account",
        "arrival",
        "computed",
        "deadline",
        "error",
        "goal",
        "healable",
        "ids",
        "inherited",
        "key",
        "literal",
        "logits_from",
        "number",
        "order",
        "priority",
        "queue",
        "run",
        "state",
        "table",
        "task",
        "unborn",
    )

    def __init__(
        self, number: int, pool: PagePool, priority: int = 0, deadline: float | None = None
    ) -> None:
        self.number = number
        self.priority = priority
        self.deadline = deadline
        self.ids = array("i")
        self.table = BlockTable(pool)
        self.computed = 0
        self.goal = 0
        self.logits_from = 0
        self.healable = 0
        """How many of the last ids lie entirely in user text and may be healed."""
        self.literal = 0
        """How many of the last ids are literal text that no hole has counted yet."""
        self.inherited = 0
        """How many leading ids came with their KV, from a parent or, for a fork, from the cache."""
        self.arrival: int | None = None
        self.order: tuple[int, bytes, int] = (0, b"", number)
        self.state = State.RESTING
        self.queue: deque[SegmentRun | ForkPoint] = deque()
        self.run: SegmentRun | None = None
        self.task: Generation | Selection | ForkPoint | Branch | None = None
        self.account: PromptAccount | None = None
        self.error: Exception | None = None
        self.unborn = False
        self._chain: list[int] = []

    def append_literal(self, ids: array[int], healable: int) -> None:
        """Literal text, of which the last `healable` ids may be healed."""
        self.ids.extend(ids)
        self.literal += len(ids)
        self.healable = healable

    def mark(self, tail: int = 0) -> Mark:
        """The state as it is, to go back to after a step that heals at most `tail` ids."""
        first = len(self.ids) - min(tail, self.healable)
        return Mark(len(self.ids), self.ids[first:], self.healable)

    def rewind(self, mark: Mark, value: Items[int]) -> None:
        """Go back to a mark, and on with the ids of a value."""
        first = mark.length - len(mark.tail)
        there = self.ids[first : mark.length]
        same = 0
        while same < len(there) and there[same] == mark.tail[same]:
            same += 1
        self.truncate(first + same)
        self.ids.extend(mark.tail[same:])
        self.ids.extend(value)
        if not value:
            self.literal, self.healable = len(mark.tail) - same, mark.healable

    def truncate(self, length: int) -> None:
        """Forget every id from `length` on."""
        del self.ids[length:]
        del self._chain[length // PAGE_SIZE :]
        self.uncompute(min(self.computed, length))

    def uncompute(self, length: int) -> None:
        """Forget the KV of every id from `length` on."""
        self.computed = length
        self.inherited = min(self.inherited, length)
        self.table.truncate(length)

    def chain(self, pages: int) -> list[int]:
        """Hashes of the first `pages` full pages, each over all that stands before it too."""
        chain = self._chain
        while len(chain) < pages:
            chain.append(hash((chain[-1] if chain else 0, page_key(self.ids, len(chain)))))
        return chain

    def open_account(self) -> PromptAccount:
        """Count the literal ids since the last hole as the prompt of the one that begins now."""
        stop = len(self.ids)
        account = PromptAccount(Usage(prompt_tokens=self.literal), stop - self.literal, stop)
        account.note_cached(0, self.inherited)
        account.seen = max(account.seen, self.computed)
        self.literal = self.healable = 0
        self.account = account
        return account

    def continue_from(self, parent: Sequence, length: int | None = None) -> None:
        """Become a branch of `parent` that shares the first `length` ids (all) and their KV."""
        length = len(parent.ids) if length is None else length
        self.ids = parent.ids[:length]
        self.computed = self.inherited = min(parent.computed, length)
        self.table = parent.table.fork(self.computed)
        self.healable = parent.healable
        self.literal = parent.literal
        self.priority = parent.priority
        self.arrival = parent.arrival
        self.order = (*parent.order[:2], self.number)
        self.unborn = False
