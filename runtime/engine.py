"""The local engine: one thread that drives a Backend for many sequences.

    user threads --commands--> inbox --> step(): commands, plan, copy, forward, draw, hand out

The methods of `Engine` only tokenise, compile constraints and queue a command, so none blocks. The
thread sleeps when there is no work. Whatever raises fails only the sequences that it concerns; if
the loop itself breaks, every sequence fails with the reason and later calls raise it.
"""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterator
from collections.abc import Sequence as Items
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sglite.errors import CancelledError, CapacityError, ModelError
from sglite.runtime.backends.base import Backend, Float32
from sglite.runtime.cache.page_files import PageFiles
from sglite.runtime.cache.pages import PagePool
from sglite.runtime.cache.prefix_tree import PrefixTree
from sglite.runtime.cache.saved_prefixes import SavedPrefixes
from sglite.runtime.constraints import Constraints
from sglite.runtime.engines.base import Engine, EventSink, SequenceId
from sglite.runtime.forks import watch
from sglite.runtime.generation import Generation, Rules
from sglite.runtime.lifecycle import Lifecycle, tell_failed
from sglite.runtime.metrics import Metrics
from sglite.runtime.plan import PAGE_SIZE, flatten
from sglite.runtime.prepare import prepare
from sglite.runtime.prompt import Tokenizer
from sglite.runtime.sampling import DrawBatch
from sglite.runtime.scheduler import Row, Scheduler
from sglite.runtime.segment import Segment
from sglite.runtime.sequence import SegmentRun, State

if TYPE_CHECKING:
    from sglite.grammars import Vocabulary


SAVE_AFTER = 1.0
"""Seconds without work after which prefixes are saved."""


class LocalEngine(Engine):
    """`prefix_cache`: whether prefixes are kept, or the folder to save them in. `context`: most
    ids of one sequence, None for what the backend takes; `chunk_tokens`: ids computed in one step;
    `max_rows`: sequences that run at a time. `check`: verify the accounting of pages after every
    step. `threaded=False`: the caller drives `step` itself, from one thread. Owns the backend and
    closes it."""

    capabilities = frozenset({"constraints", "select", "fork", "logprobs", "tokens"})

    def __init__(
        self,
        name: str,
        backend: Backend,
        tokenizer: Tokenizer,
        vocabulary: Vocabulary,
        *,
        prefix_cache: bool | Path = True,
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
        self._pool = PagePool(backend.pages_total)
        self._saved = self._open_saved(prefix_cache) if isinstance(prefix_cache, Path) else None
        self._tree = PrefixTree(self._pool, self._saved) if prefix_cache else None
        self._scheduler = Scheduler(
            self._pool, self._tree, chunk_tokens=chunk_tokens, max_rows=max_rows
        )
        self._batch = DrawBatch(max_rows, vocabulary)
        self._metrics = Metrics()
        self._numbers = itertools.count()
        self._lifecycle = Lifecycle(
            name, self._rules, self._pool, self._scheduler, self._metrics, self._numbers
        )
        self._check = check
        self._inbox: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self._wake = threading.Condition()
        self._ended: Exception | None = None
        self._fruitless = 0
        self._thread: threading.Thread | None = None
        watch(self)
        if threaded:
            self._thread = threading.Thread(target=self._run, name=f"sglite {name}", daemon=True)
            self._thread.start()

    def _open_saved(self, folder: Path) -> SavedPrefixes:
        identity = self._backend.page_identity(folder / "digests.json")
        return SavedPrefixes(
            PageFiles(folder, identity, self._backend.bytes_per_page), self._backend
        )

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

    @property
    def capacity(self) -> int:
        return self._rules.capacity

    def open(self, *, priority: int = 0, deadline: float | None = None) -> SequenceId:
        number = next(self._numbers)
        self._command(self._lifecycle.open, number, priority, deadline)
        return number

    def submit(self, sequence: SequenceId, segment: Segment, sink: EventSink) -> None:
        prepared = prepare(segment, self._tokenizer, self._constraints, self._rules.capacity)
        self._command(self._lifecycle.submit, sequence, SegmentRun(segment, prepared, sink))

    def fork(self, sequence: SequenceId, n: int) -> Items[SequenceId]:
        if n < 1:
            raise ValueError(f"a fork needs at least one branch, got {n}")
        numbers = [next(self._numbers) for _ in range(n)]
        self._command(self._lifecycle.fork, sequence, numbers)
        return numbers

    def close(self, sequence: SequenceId) -> None:
        self._post(self._lifecycle.close, sequence)

    def count_tokens(self, text: str) -> int:
        return len(self._tokenizer.encode(text))

    def stats(self) -> dict[str, Any]:
        return self._metrics.as_dict() | {
            "pages_used": self._pool.total - self._pool.free,
            "pages_cached": self._pool.reclaimable,
            "pages_total": self._pool.total,
            "preemptions": self._scheduler.preemptions,
            "pages_restored": self._saved.restored if self._saved else 0,
            "pages_saved": self._saved.saved if self._saved else 0,
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

    def forked(self) -> None:
        """End this copy of the engine in the child of a fork; the parent's goes on."""
        self._wake = threading.Condition()
        self._ended = self._ended or ModelError(
            f"{self.name} was loaded before this process was forked, and its threads stayed in "
            "the parent; load the model in the child, or start processes with 'spawn'"
        )
        self._inbox.clear()
        self._thread = None

    def _command(self, command: Callable[..., None], *args: Any) -> None:
        if not self._post(command, *args):
            raise self._ended or CancelledError("the engine has ended")

    def _post(self, command: Callable[..., None], *args: Any) -> bool:
        """Queue a command; False when the engine has ended."""
        with self._wake:
            if self._ended is not None:
                return False
            self._inbox.append((command, args))
            self._wake.notify()
            return True

    # The engine's thread

    def _run(self) -> None:
        try:
            while self._ended is None:
                with self._wake:
                    while not (self._inbox or self._scheduler.has_work or self._ended):
                        if not self._wake.wait(SAVE_AFTER if self._has_unsaved() else None):
                            break
                    is_idle = not (self._inbox or self._scheduler.has_work)
                if self._ended is None and is_idle:
                    self._save_some()
                elif self._ended is None:
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
            if command == self._lifecycle.submit:
                tell_failed(args[1].sink, 0, reason)
        self._inbox.clear()
        for sequence in list(self._lifecycle.sequences.values()):
            self._lifecycle.fail(sequence, reason)
        self._lifecycle.sequences.clear()
        while self._has_unsaved() and self._save_some():
            continue
        self._backend.close()

    def _has_unsaved(self) -> bool:
        return self._saved is not None and self._tree is not None and bool(self._tree.unsaved)

    def _save_some(self) -> bool:
        """Save the next pages of the prefix tree; False when that was all."""
        assert self._saved is not None
        assert self._tree is not None
        return self._saved.save_some(self._tree)

    def step(self) -> bool:
        """One round; False when there is no work left."""
        while self._inbox:
            command, args = self._inbox.popleft()
            command(*args)
        self._lifecycle.expire()
        rows = self._scheduler.plan()
        try:
            self._scheduler.copies.flush(self._backend.copy_pages)
        except Exception as error:
            for sequence in list(self._scheduler.running):
                self._lifecycle.fail(sequence, error)
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
            plan = flatten((row.laid_flat() for row in rows), self._wanted(rows))
            logits = self._backend.forward(plan)
        except Exception as error:
            if len(rows) == 1:
                self._lifecycle.fail(rows[0].sequence, error)
            else:
                for row in rows:
                    yield from self._forward([row])
            return
        self._metrics.steps += 1
        self._metrics.rows += len(rows)
        self._metrics.computed_tokens += sum(row.count for row in rows)
        yield rows, logits

    def _wanted(self, rows: list[Row]) -> npt.NDArray[np.uint32] | None:
        """The ids whose logits these rows ask for, None for all. Loads the draw, whose masks say
        so."""
        drawn: list[Generation] = []
        for row in rows:
            task = row.sequence.task
            if row.logits and not isinstance(task, Generation):
                return None
            if row.logits and isinstance(task, Generation) and task.shaping is not None:
                return None  # shaping changes all columns, which have to be fresh
            if row.logits and isinstance(task, Generation):
                drawn.append(task)
        if not drawn:
            return None
        try:
            self._batch.load(drawn, self._constraints)
        except Exception:
            return None  # it is met again, row by row, when they draw
        return self._batch.wanted()

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
                self._lifecycle.hand_over(row.sequence, task, logits[at : at + row.logits])
            at += row.logits
        if drawn:
            logits = logits if len(drawn) == len(logits) else logits[picked]
            for place, gen in enumerate(drawn):
                if gen.shaping is not None:
                    gen.shaping.apply(logits[place], gen.ids)
            self._draw(drawn, logits)

    def _draw(self, drawn: list[Generation], logits: Float32) -> None:
        """Draw one outcome for each generation: together, or one by one where together raises."""
        try:
            if not self._batch.holds(drawn):
                self._batch.load(drawn, self._constraints)
            self._batch.unload()
            request = self._batch.request()
            ids, logprobs = self._backend.draw(logits, request)
        except Exception as error:
            if len(drawn) == 1:
                self._lifecycle.fail(drawn[0].sequence, drawn[0].reason(error))
            else:
                for row, gen in enumerate(drawn):
                    self._draw([gen], logits[row : row + 1])
            return
        outcomes = zip(drawn, ids.tolist(), logprobs.tolist(), strict=True)
        for row, (gen, token, logprob) in enumerate(outcomes):
            if gen.observes:
                gen.observe(logits[row], request.mask[row], token)
            self._lifecycle.accept(gen, token, logprob)

    # Checks

    def check_integrity(self) -> None:
        """Raise RuntimeError unless every page is accounted for."""
        held = [page for table in self._lifecycle.tables() for page in table.pages]
        tree_pages = list(self._tree.pages()) if self._tree is not None else []
        self._pool.check_integrity(tree_pages, held + self._scheduler.copies.held())
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
