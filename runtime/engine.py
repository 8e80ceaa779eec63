"""The local engine: one thread that drives a Backend for many sequences.

    user threads --commands--> inbox --> step(): commands, plan, copy, forward, draw, hand out

The methods of `Engine` only tokenise, compile constraints and queue a command, so none blocks. The
thread sleeps when there is no work. Whatever raises fails only the sequences that it concerns; if
the loop itself breaks, every sequence fails with the reason and later calls raise it.
"""

from __future__ import annotations

import itertools
import threading
from array import array
from collections import deque
from collections.abc import Callable, Iterator
from collections.abc import Sequence as Items
from typing import TYPE_CHECKING, Any

import numpy as np

from sglite.errors import CancelledError, CapacityError, ModelError
from sglite.runtime.backends.base import Backend, Float32
from sglite.runtime.cache.pages import PagePool
from sglite.runtime.cache.prefix_tree import PrefixTree
from sglite.runtime.constraints import Constraints
from sglite.runtime.engines.base import Engine, EventSink, SequenceId
from sglite.runtime.generation import Generation, Rules
from sglite.runtime.metrics import Metrics
from sglite.runtime.plan import PAGE_SIZE, flatten
from sglite.runtime.prepare import Prepared, prepare
from sglite.runtime.prompt import Prompt, Tokenizer, heal
from sglite.runtime.sampling import DrawBatch
from sglite.runtime.scheduler import Row, Scheduler
from sglite.runtime.segment import (
    Gen,
    HoleDone,
    HoleResult,
    Segment,
    SegmentDone,
    SegmentFailed,
    Select,
    TextDelta,
)
from sglite.runtime.select import Branch, Selection
from sglite.runtime.sequence import ForkPoint, SegmentRun, Sequence, State

if TYPE_CHECKING:
    from sglite.grammars import Vocabulary


class LocalEngine(Engine):
    """`context`: most ids of one sequence, None for what the backend takes; `chunk_tokens`: ids
    computed in one step; `max_rows`: sequences that run at a time. `check`: verify the accounting of pages after every step. `threaded=False`: the caller drives
    `step` itself, from one thread. Owns the backend and closes it."""

    capabilities = frozenset({"constraints", "select", "fork", "logprobs", "tokens"})

    def __init__(
        self,
        name: str,
        backend: Backend,
        tokenizer: Tokenizer,
        vocabulary: Vocabulary,
        *,
        prefix_cache: bool = True,
        context: int | None = None,
        chunk_tokens: int = 512,
        max_rows: int = 64,
        constraints: Constraints | None = None,
        check: bool = False,
        threaded: bool = True,
    ) -> None:
        if context is not None and not 0 < context <= backend.max_context:
            raise ValueError(
                f"context={context} tokens; the model takes 1 to {backend.max_context}"
            )
        if backend.pages_total < 2:
            raise CapacityError(
                f"{backend.pages_total} pages of KV memory ({backend.bytes_per_page} bytes each) "
                "are too few, 2 are the least; raise `kv_memory`"
            )
        self.name = name
        self._backend = backend
        self._tokenizer = tokenizer
        self._vocabulary = vocabulary
        self._constraints = constraints or Constraints(vocabulary)
        # One page is kept for the copy of a shared page, so the last sequence can always go on.
        capacity = min(context or backend.max_context, (backend.pages_total - 1) * PAGE_SIZE)
        free_text = self._constraints.free_text()
        self._rules = Rules(vocabulary, tokenizer, free_text, capacity)
        self._longest_token = max(map(len, tokenizer.token_bytes))
        self._pool = PagePool(backend.pages_total)
        self._tree = PrefixTree(self._pool) if prefix_cache else None
        self._scheduler = Scheduler(
            self._pool, self._tree, chunk_tokens=chunk_tokens, max_rows=max_rows
        )
        self._batch = DrawBatch(max_rows, vocabulary.mask_words)
        self._metrics = Metrics()
        self._check = check
        self._numbers = itertools.count()
        self._sequences: dict[SequenceId, Sequence] = {}
        self._inbox: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self._wake = threading.Condition()
        self._ended: Exception | None = None
        self._fruitless = 0
        self._thread: threading.Thread | None = None
        if threaded:
            self._thread = threading.Thread(target=self._run, name=f"sglite {name}", daemon=True)
            self._thread.start()

    # What the user's threads call

    @property
    def vocabulary(self) -> Vocabulary:
        return self._vocabulary

    @property
    def chat_template(self) -> str | None:
        return self._tokenizer.chat_template

    @property
    def template_variables(self) -> dict[str, str]:
        return self._tokenizer.template_variables

    def open(self, *, priority: int = 0) -> SequenceId:
        number = next(self._numbers)
        self._command(self._on_open, number, priority)
        return number

    def submit(self, sequence: SequenceId, segment: Segment, sink: EventSink) -> None:
        prepared = prepare(segment, self._tokenizer, self._constraints, self._rules.capacity)
        self._command(self._on_submit, sequence, SegmentRun(segment, prepared, sink))

    def fork(self, sequence: SequenceId, n: int) -> Items[SequenceId]:
        if n < 1:
            raise ValueError(f"a fork needs at least one branch, got {n}")
        numbers = [next(self._numbers) for _ in range(n)]
        self._command(self._on_fork, sequence, numbers)
        return numbers

    def close(self, sequence: SequenceId) -> None:
        if self._ended is None:
            self._command(self._on_close, sequence)

    def count_tokens(self, text: str) -> int:
        return len(self._tokenizer.encode(text))

    def stats(self) -> dict[str, Any]:
        return self._metrics.as_dict() | {
            "pages_used": self._pool.total - self._pool.free,
            "pages_cached": self._pool.reclaimable,
            "pages_total": self._pool.total,
            "preemptions": self._scheduler.preemptions,
        }

    def shutdown(self) -> None:
        with self._wake:
            if self._ended is not None:
                return
            self._ended = CancelledError(f"the engine of {self.name} was shut down")
            self._wake.notify()
        if self._thread is None:
            self._wind_up()
        elif self._thread is not threading.current_thread():
            self._thread.join()

    def _command(self, command: Callable[..., None], *args: Any) -> None:
        with self._wake:
            if self._ended is not None:
                raise self._ended
            self._inbox.append((command, args))
            self._wake.notify()

    # The engine's thread

    def _run(self) -> None:
        try:
            while self._ended is None:
                with self._wake:
                    while not (self._inbox or self._scheduler.has_work or self._ended):
                        self._wake.wait()
                if self._ended is None:
                    self.step()
        except BaseException as error:
            with self._wake:
                self._ended = ModelError(f"the engine of {self.name} broke: {error!r}")
                self._ended.__cause__ = error
        finally:
            self._wind_up()

    def _wind_up(self) -> None:
        """Fail whatever is still there and give the backend back."""
        reason = self._ended or CancelledError("the engine ended")
        for command, args in self._inbox:
            if command == self._on_submit:
                _tell(args[1].sink, SegmentFailed(0, reason))
        self._inbox.clear()
        for sequence in list(self._sequences.values()):
            self._fail(sequence, reason)
        self._sequences.clear()
        self._backend.close()

    def step(self) -> bool:
        """One round; False when there is no work left."""
        while self._inbox:
            command, args = self._inbox.popleft()
            command(*args)
        rows = self._scheduler.plan()
        try:
            self._scheduler.copies.flush(self._backend.copy_pages)
        except Exception as error:
            for sequence in list(self._scheduler.running):
                self._fail(sequence, error)
            rows = []
        if self._check:
            self._check_writes(rows)
        for group, logits in self._forward(rows):
            self._scheduler.commit(group)
            self._hand_out(group, logits)
        if self._check:
            self.check_integrity()
        self._watch_progress(rows)
        return self._scheduler.has_work

    def _forward(self, rows: list[Row]) -> Iterator[tuple[list[Row], Float32]]:
        """The rows with their logits: together, or one by one where together raises."""
        rows = [row for row in rows if row.sequence.state is State.RUNNING]
        if not rows:
            return
        try:
            logits = self._backend.forward(flatten(row.laid_flat() for row in rows))
        except Exception as error:
            if len(rows) == 1:
                self._fail(rows[0].sequence, error)
            else:
                for row in rows:
                    yield from self._forward([row])
            return
        self._metrics.steps += 1
        self._metrics.rows += len(rows)
        self._metrics.computed_tokens += sum(row.count for row in rows)
        yield rows, logits

    def _hand_out(self, rows: list[Row], logits: Float32) -> None:
        """Give every row's logits to what it works on."""
        drawn: list[Generation] = []
        picked: list[int] = []
        at = 0
        for row in rows:
            task = row.sequence.task
            if isinstance(task, Generation):
                if row.logits:
                    drawn.append(task)
                    picked.append(at)
            elif task is not None:
                self._hand_over(row.sequence, task, logits[at : at + row.logits])
            at += row.logits
        if drawn:
            self._draw(drawn, logits if len(drawn) == len(logits) else logits[picked])

    def _hand_over(
        self, sequence: Sequence, task: Selection | Branch | ForkPoint, logits: Float32
    ) -> None:
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
            self._fail(owner, error)

    def _draw(self, drawn: list[Generation], logits: Float32) -> None:
        """Draw one outcome for each generation: together, or one by one where together raises."""
        batch = self._batch
        batch.clear()
        try:
            for gen in drawn:
                end_ids, end_rest = gen.end_outcome()
                batch.add(gen.gen.sampling, gen.gen.key, len(gen.ids), end_ids, end_rest)
            self._fill_masks(drawn, batch)
            ids, logprobs = self._backend.draw(logits, batch.request())
        except Exception as error:
            if len(drawn) == 1:
                self._fail(drawn[0].sequence, error)
            else:
                for row, gen in enumerate(drawn):
                    self._draw([gen], logits[row : row + 1])
            return
        for gen, token, logprob in zip(drawn, ids.tolist(), logprobs.tolist(), strict=True):
            self._accept(gen, token, logprob)

    def _fill_masks(self, drawn: list[Generation], batch: DrawBatch) -> None:
        masks = batch.masks
        rows = [row for row, gen in enumerate(drawn) if gen.matcher is not None]
        if len(rows) < len(drawn):
            masks[: len(drawn)] = self._vocabulary.text_mask
        if not rows:
            return
        matchers = [gen.matcher for row in rows if (gen := drawn[row]).matcher is not None]
        budgets = np.array([drawn[row].budget for row in rows], np.int32)
        if len(rows) == len(drawn):
            self._constraints.fill_masks(matchers, masks[: len(rows)], budgets)
        else:
            some = np.empty((len(rows), masks.shape[1]), np.uint32)
            self._constraints.fill_masks(matchers, some, budgets)
            masks[rows] = some

    def _accept(self, gen: Generation, token: int, logprob: float) -> None:
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
            self._fail(sequence, error)

    # Sequences and their steps

    def _on_open(self, number: SequenceId, priority: int) -> None:
        self._sequences[number] = Sequence(number, self._pool, priority)

    def _on_submit(self, number: SequenceId, run: SegmentRun) -> None:
        sequence = self._sequences.get(number)
        if sequence is None:
            _tell(run.sink, SegmentFailed(0, CancelledError(f"sequence {number} is closed")))
        elif sequence.error is not None:
            _tell(run.sink, SegmentFailed(0, sequence.error))
        else:
            sequence.queue.append(run)
            self._advance(sequence)

    def _on_fork(self, number: SequenceId, numbers: list[SequenceId]) -> None:
        parent = self._sequences.get(number)
        children = [Sequence(n, self._pool) for n in numbers]
        self._sequences.update(zip(numbers, children, strict=True))
        for child in children:
            child.unborn = True
            if parent is None:
                child.error = CancelledError(f"sequence {number} was closed before its fork")
            else:
                child.error = parent.error
        if parent is not None and parent.error is None:
            parent.queue.append(ForkPoint(children))
            self._advance(parent)

    def _on_close(self, number: SequenceId) -> None:
        sequence = self._sequences.pop(number, None)
        if sequence is not None:
            self._fail(sequence, CancelledError(f"sequence {number} was closed"))

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
            self._fail(sequence, error)

    def _next_step(self, sequence: Sequence, run: SegmentRun) -> None:
        if run.step == len(run.segment.steps):
            sequence.run = None
            run.sink(SegmentDone(tuple(sequence.ids)))
            return
        step, prepared = run.segment.steps[run.step], run.prepared[run.step]
        if isinstance(step, Gen | Select):
            self._begin_hole(sequence, step, prepared)
        else:
            assert isinstance(prepared, Prompt)
            self._append(sequence, prepared)
            run.step += 1

    def _append(self, sequence: Sequence, prompt: Prompt) -> None:
        bos = self._tokenizer.bos_id
        if not sequence.ids and self._tokenizer.add_bos and bos is not None:
            if not prompt.ids or prompt.ids[0] != bos:
                sequence.append_literal(array("i", [bos]), 0)
        if prompt.ids:
            sequence.append_literal(prompt.ids, prompt.healable)
        if len(sequence.ids) > self._rules.capacity:
            raise CapacityError(
                f"the sequence would have {len(sequence.ids)} tokens, the model's context and "
                f"memory hold {self._rules.capacity}; shorten the text or raise `context`"
            )

    def _begin_hole(self, sequence: Sequence, hole: Gen | Select, prepared: Prepared) -> None:
        if not sequence.ids:
            if self._tokenizer.bos_id is None:
                raise ValueError(
                    f"hole {hole.name!r} stands before any text, and {self.name} has no token that "
                    "begins a text; put some text before it"
                )
            sequence.append_literal(array("i", [self._tokenizer.bos_id]), 0)
        token_bytes = self._tokenizer.token_bytes
        prefix = heal(sequence, self._vocabulary, token_bytes, self._longest_token)
        if isinstance(hole, Select):
            selection = Selection(
                sequence, hole, prefix, self._tokenizer, self._rules.capacity, self._spawn
            )
            sequence.task = selection
            if selection.is_scored:
                self._end_hole(sequence, selection.pick())
                return
        else:
            assert not isinstance(prepared, Prompt)
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
        sequence.task = sequence.account = None
        self._metrics.count_hole(result.usage)
        run.step += 1
        run.sink(HoleDone(run.step - 1, result))

    def _tell_delta(self, sequence: Sequence, generation: Generation) -> None:
        text = generation.delta()
        if text and sequence.run is not None:
            sequence.run.sink(TextDelta(generation.gen.name, text))

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

    def _fail(self, sequence: Sequence, error: Exception) -> None:
        """End the sequence: pages back, one terminal event for each segment under way or queued,
        and the same for branches that were not yet born."""
        task = sequence.task
        if isinstance(task, Branch):
            self._fail(task.selection.sequence, error)
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
                    self._fail(child, error)
            else:
                _tell(work.sink, SegmentFailed(work.step, error))

    # Checks

    def check_integrity(self) -> None:
        """Raise RuntimeError unless every page is accounted for."""
        tables = [sequence.table for sequence in self._sequences.values()]
        for sequence in self._sequences.values():
            if isinstance(sequence.task, Selection):
                tables.extend(branch.table for branch in sequence.task.branches)
        held = [page for table in tables for page in table.pages]
        tree_pages = list(self._tree.pages()) if self._tree is not None else []
        self._pool.check_integrity(tree_pages, held + self._scheduler.held_pages())
        if self._tree is not None:
            self._tree.check_integrity()

    def _check_writes(self, rows: list[Row]) -> None:
        for row in rows:
            seq = row.sequence
            last = (seq.computed + row.count - 1) // PAGE_SIZE
            for page in seq.table.pages[seq.computed // PAGE_SIZE : last + 1]:
                if self._pool.owners(page) != 1:
                    raise RuntimeError(f"page {page} has several owners and would be written")

    def _watch_progress(self, rows: list[Row]) -> None:
        """A step may find no pages, but not one after the other: that would go on for ever."""
        self._fruitless = 0 if rows or not self._scheduler.has_work else self._fruitless + 1
        if self._fruitless > 8:
            raise RuntimeError(f"no sequence can run: {self.stats()}")


def _tell(sink: EventSink, event: SegmentFailed) -> None:
    """Deliver a terminal event; a sink that raises on it has nobody left to tell."""
    try:
        sink(event)
    except Exception:
        return
