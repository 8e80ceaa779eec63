"""Carries sequences through the steps of their segments: literal text, holes, forks, the end.

Knows what a step means and whom to tell; which sequences run when is the scheduler's part, and what
the numbers are the backend's. Everything here happens on the engine's thread. Whatever raises fails
the sequence that it concerns and no other.
"""

from __future__ import annotations

import heapq
import itertools
import time
from array import array
from collections.abc import Iterable

from sglite.errors import CancelledError, CapacityError, DeadlineError
from sglite.runtime.backends.base import Float32
from sglite.runtime.cache.block_table import BlockTable
from sglite.runtime.cache.pages import PagePool
from sglite.runtime.endings import PreparedGen
from sglite.runtime.engines.base import EventSink, SequenceId
from sglite.runtime.generation import Generation, Rules
from sglite.runtime.metrics import Metrics
from sglite.runtime.prepare import Prepared
from sglite.runtime.prompt import Prompt, heal
from sglite.runtime.scheduler import Scheduler
from sglite.runtime.segment import (
    Gen,
    HoleDone,
    HoleResult,
    SegmentDone,
    SegmentFailed,
    Select,
    TextDelta,
)
from sglite.runtime.select import Branch, Selection
from sglite.runtime.sequence import ForkPoint, SegmentRun, Sequence


class Lifecycle:
    """All open sequences. `numbers` gives each its number."""

    def __init__(
        self,
        name: str,
        rules: Rules,
        pool: PagePool,
        scheduler: Scheduler,
        metrics: Metrics,
        numbers: itertools.count[int],
    ) -> None:
        self.sequences: dict[SequenceId, Sequence] = {}
        self._name = name
        self._rules = rules
        self._tokenizer = rules.tokenizer
        self._longest_token = max(map(len, rules.tokenizer.token_bytes))
        self._pool = pool
        self._scheduler = scheduler
        self._metrics = metrics
        self._numbers = numbers
        self._deadlines: list[tuple[float, SequenceId]] = []

    def open(self, number: SequenceId, priority: int, deadline: float | None = None) -> None:
        """A new empty sequence."""
        self._add(Sequence(number, self._pool, priority, deadline))

    def _add(self, sequence: Sequence) -> None:
        self.sequences[sequence.number] = sequence
        if sequence.deadline is not None:
            heapq.heappush(self._deadlines, (sequence.deadline, sequence.number))

    def expire(self) -> None:
        """Fail the sequences whose deadline has passed."""
        while self._deadlines and self._deadlines[0][0] <= time.monotonic():
            _, number = heapq.heappop(self._deadlines)
            sequence = self.sequences.get(number)
            if sequence is not None and sequence.error is None:
                self.fail(sequence, DeadlineError("the deadline passed before this was done"))

    def submit(self, number: SequenceId, run: SegmentRun) -> None:
        """Work for a sequence, after all that it has."""
        sequence = self.sequences.get(number)
        if sequence is None:
            tell_failed(run.sink, 0, CancelledError(f"sequence {number} is closed"))
        elif sequence.error is not None:
            tell_failed(run.sink, 0, sequence.error)
        else:
            sequence.queue.append(run)
            self._advance(sequence)

    def fork(self, number: SequenceId, numbers: list[SequenceId]) -> None:
        """Branches of a sequence, born when all that it has is done."""
        parent = self.sequences.get(number)
        deadline = parent.deadline if parent is not None else None
        children = [Sequence(n, self._pool, deadline=deadline) for n in numbers]
        for child in children:
            self._add(child)
            child.unborn = True
            if parent is None:
                child.error = CancelledError(f"sequence {number} was closed before its fork")
            else:
                child.error = parent.error
        if parent is not None and parent.error is None:
            parent.queue.append(ForkPoint(children))
            self._advance(parent)

    def close(self, number: SequenceId) -> None:
        """Give everything of a sequence back; an unknown number is fine."""
        sequence = self.sequences.pop(number, None)
        if sequence is not None:
            self._let_go_of_forks(sequence)
            self.fail(sequence, CancelledError(f"sequence {number} was closed"))

    def _let_go_of_forks(self, sequence: Sequence) -> None:
        """Branches that wait for nothing but common KV are born before their parent goes."""
        if isinstance(sequence.task, ForkPoint):
            sequence.queue.appendleft(sequence.task)
            sequence.task = None
        if sequence.run is None and sequence.error is None:
            while sequence.queue and isinstance(fork := sequence.queue[0], ForkPoint):
                sequence.queue.popleft()
                self._give_birth(sequence, fork)

    def _advance(self, sequence: Sequence) -> None:
        """Carry the sequence on to its next hole or fork, or to rest."""
        if sequence.unborn:
            return
        try:
            while sequence.task is None:
                if sequence.run is not None:
                    self._next_step(sequence, sequence.run)
                elif sequence.queue:
                    work = sequence.queue.popleft()
                    if isinstance(work, ForkPoint):
                        self._begin_fork(sequence, work)
                    else:
                        sequence.run = work
                else:
                    self._scheduler.rest(sequence)
                    return
        except Exception as error:
            self.fail(sequence, error)

    def _next_step(self, sequence: Sequence, run: SegmentRun) -> None:
        if run.step == len(run.segment.steps):
            sequence.run = None
            run.sink(SegmentDone(tuple(sequence.ids)))
            return
        step, prepared = run.segment.steps[run.step], run.prepared[run.step]
        if isinstance(step, Gen | Select):
            self._begin_hole(sequence, run, step, prepared)
        else:
            assert isinstance(prepared, Prompt)
            self._append(sequence, run, prepared)
            run.step += 1

    def _append(self, sequence: Sequence, run: SegmentRun, prompt: Prompt) -> None:
        bos = self._tokenizer.bos_id
        if not sequence.ids and prompt.opening is not None:
            prompt = prompt.opening
        starts = not sequence.ids and self._tokenizer.add_bos
        if starts and bos is not None and list(prompt.ids[:1]) != [bos]:
            sequence.append_literal(array("i", [bos]), 0)
        run.marks.append(sequence.mark())
        if prompt.ids:
            sequence.append_literal(prompt.ids, prompt.healable)
        if len(sequence.ids) > self._rules.capacity:
            raise CapacityError(
                f"the sequence would have {len(sequence.ids)} tokens, the model's context and "
                f"memory hold {self._rules.capacity}; shorten the text or raise `context`"
            )

    def _begin_hole(
        self, sequence: Sequence, run: SegmentRun, hole: Gen | Select, prepared: Prepared
    ) -> None:
        if not sequence.ids:
            if self._tokenizer.bos_id is None:
                raise ValueError(
                    f"hole {hole.name!r} stands before any text, and {self._name} has no token "
                    "that begins a text; put some text before it"
                )
            sequence.append_literal(array("i", [self._tokenizer.bos_id]), 0)
        token_bytes = self._tokenizer.token_bytes
        run.marks.append(sequence.mark(self._longest_token))
        prefix = heal(sequence, self._rules.vocabulary, token_bytes, self._longest_token)
        if isinstance(hole, Select):
            sequence.task = Selection(sequence, hole, prefix, self._rules, self._spawn)
        else:
            assert isinstance(prepared, PreparedGen)
            generation = Generation(sequence, hole, prepared, prefix, self._rules)
            sequence.task = generation
            self._tell_delta(sequence, generation)
            if generation.finish is not None:
                self._end_hole(sequence, generation.result())
                return
        sequence.goal = len(sequence.ids)
        sequence.logits_from = sequence.goal - 1
        if sequence.computed > sequence.logits_from:
            sequence.uncompute(sequence.logits_from)
        self._scheduler.ready(sequence)

    def _end_hole(self, sequence: Sequence, result: HoleResult) -> None:
        run = sequence.run
        assert run is not None
        hole = run.segment.steps[run.step]
        assert isinstance(hole, Gen | Select)
        drops = hole.drops if isinstance(hole, Gen) else 0
        if hole.hidden or drops:
            sequence.rewind(run.marks[run.step - drops], () if hole.hidden else result.ids)
        sequence.task = sequence.account = None
        self._metrics.count_hole(result.usage)
        run.step += 1
        run.sink(HoleDone(run.step - 1, result))

    def _tell_delta(self, sequence: Sequence, generation: Generation) -> None:
        text = generation.delta()
        run = sequence.run
        if text and run is not None:
            run.sink(TextDelta(run.step, text))

    def _begin_fork(self, sequence: Sequence, fork: ForkPoint) -> None:
        """Prefill what the branches have in common; its last id each computes for itself."""
        sequence.goal = sequence.logits_from = len(sequence.ids) - 1
        if sequence.computed >= sequence.goal:
            self._give_birth(sequence, fork)
        else:
            sequence.task = fork
            self._scheduler.ready(sequence)

    def _give_birth(self, parent: Sequence, fork: ForkPoint) -> None:
        for child in fork.children:
            if child.error is None:
                child.continue_from(parent)
                self._scheduler.rest(child)
                self._advance(child)

    def _spawn(self, source: Sequence, length: int, tokens: array[int], branch: Branch) -> Sequence:
        """A hidden sequence that scores a branch of a selection."""
        child = Sequence(next(self._numbers), self._pool)
        child.continue_from(source, length)
        child.ids.extend(tokens)
        child.task = branch
        child.logits_from, child.goal = length, len(child.ids)
        self._scheduler.ready(child)
        return child

    def fail(self, sequence: Sequence, error: Exception) -> None:
        """End the sequence: pages back, one terminal event for each segment under way or queued,
        and the same for branches that were not yet born."""
        task = sequence.task
        if isinstance(task, Branch):
            self.fail(task.selection.sequence, error)
            return
        waiting: list[SegmentRun | ForkPoint] = list(sequence.queue)
        if sequence.run is not None:
            waiting.insert(0, sequence.run)
        if isinstance(task, ForkPoint):
            waiting.insert(0, task)
        if isinstance(task, Selection):
            for branch in task.branches:
                branch.task = None
                self._scheduler.drop(branch)
        if isinstance(task, Generation | Selection):
            self._metrics.count_hole(task.usage)
        self._metrics.failures += not isinstance(error, CancelledError)
        sequence.error = sequence.error or error
        sequence.task = sequence.run = None
        sequence.queue.clear()
        self._scheduler.drop(sequence)
        for work in waiting:
            if isinstance(work, ForkPoint):
                for child in work.children:
                    self.fail(child, error)
            else:
                tell_failed(work.sink, work.step, error)

    def hand_over(
        self, sequence: Sequence, task: Selection | Branch | ForkPoint, logits: Float32
    ) -> None:
        """Logits [N, V] of the row of a sequence, for a task that draws nothing itself."""
        owner = task.selection.sequence if isinstance(task, Branch) else sequence
        try:
            complete = sequence.computed >= sequence.goal
            if isinstance(task, ForkPoint):
                if complete:
                    sequence.task = None
                    self._give_birth(sequence, task)
                    self._advance(sequence)
                return
            if isinstance(task, Branch):
                selection = task.selection
                selection.receive(task, sequence.computed - len(logits), logits)
                if not complete:
                    return
                selection.finished_branch(sequence, task)
                sequence.task = None
                self._scheduler.drop(sequence)
            else:
                selection = task
                if not complete:
                    return
                selection.receive_root(logits[0])
                self._scheduler.rest(sequence)
            if selection.is_scored:
                self._end_hole(owner, selection.pick())
                self._advance(owner)
        except Exception as error:
            self.fail(owner, error)

    def accept(self, gen: Generation, token: int, logprob: float) -> None:
        """A generation's drawn outcome."""
        sequence = gen.sequence
        try:
            gen.accept(token, logprob)
            self._tell_delta(sequence, gen)
            if gen.finish is None:
                sequence.goal = len(sequence.ids)
                sequence.logits_from = sequence.goal - 1
            else:
                self._end_hole(sequence, gen.result())
                self._advance(sequence)
        except Exception as error:
            self.fail(sequence, error)

    def tables(self) -> Iterable[BlockTable]:
        """The block tables of all sequences, hidden ones too."""
        for sequence in self.sequences.values():
            yield sequence.table
            if isinstance(sequence.task, Selection):
                yield from (branch.table for branch in sequence.task.branches)


def tell_failed(sink: EventSink, step: int, error: Exception) -> None:
    """Deliver a terminal event; a sink that raises on it has nobody left to tell."""
    try:
        sink(SegmentFailed(step, error))
    except Exception:
        return
