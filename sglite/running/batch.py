"""Many rows of one program, together.

Bodies are executed by one thread, one after the other; a body that only records is over at once, so
a static program needs no other thread. When a body waits for a value and nobody else goes on with
the rows, a worker takes over, up to a bound for the whole process. A batch always has a thread of
its own that works on it, so that batches inside of batches cannot starve each other: the caller's
where he waits for all rows, an extra one where he takes them as they are completed.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

from sglite.errors import ProgramError
from sglite.running.executor import Run
from sglite.running.failures import RunCancelled
from sglite.running.progress import Bar
from sglite.running.result import BatchError, Result
from sglite.running.watching import Unwatched
from sglite.running.workers import workers

if TYPE_CHECKING:
    from sglite.running.journal import Journal
    from sglite.running.launch import Launch

Row = Mapping[str, Any]
Errors = Literal["raise", "return"]
Order = Literal["rows", "completed"]

_KEPT_FAILURES = 1000


def check_settings(rows: object, errors: str, order: str, window: int) -> None:
    """Raises ValueError and TypeError for arguments of a batch that mean nothing."""
    if errors not in ("raise", "return"):
        raise ValueError(f"errors is 'raise' or 'return', got {errors!r}")
    if order not in ("rows", "completed"):
        raise ValueError(f"order is 'rows' or 'completed', got {order!r}")
    if window < 1:
        raise ValueError(f"window is the number of rows under way, at least 1; got {window}")
    iterable = isinstance(rows, Iterable) or hasattr(rows, "__aiter__")
    if isinstance(rows, Mapping | str) or not iterable:
        raise TypeError("run_batch() takes a list or an iterator of dicts, one for each row")


def run_all(launch: Launch, rows: Iterable[Row], window: int) -> list[Result]:
    """Every row, in order; the caller's thread works on them."""
    batch = _Batch(launch, iter(rows), window, None, all_at_once=True)
    try:
        batch.work()
        return batch.join()
    except BaseException:
        batch.cancel()
        raise


def run_as_completed(
    launch: Launch, rows: Iterable[Row], window: int, bar: Bar, journal: Journal | None
) -> Iterator[Result]:
    """Every row when it is done; a thread of its own works on them, as far as `window` allows."""
    batch = _Batch(launch, iter(rows), window, journal, all_at_once=False)
    with bar, journal or bar:
        try:
            threading.Thread(target=batch.work_alone, name="sglite-batch", daemon=True).start()
            while (done := batch.take()) is not None:
                if isinstance(done, Result):
                    result = done
                    bar.advance(result, recalled=True)
                else:
                    result = Result(done)
                    if journal is not None:
                        journal.write(result)
                    bar.advance(result)
                yield result
        finally:
            batch.cancel()


def in_order(results: Iterable[Result], errors: Errors) -> list[Result]:
    """All of them, as the rows stood; BatchError where one failed and `errors` is "raise"."""
    rows = sorted(results, key=lambda result: result.row)
    if errors == "raise" and any(row.error is not None for row in rows):
        raise BatchError(rows)
    return rows


class Failures:
    """The rows that failed, where the good ones are handed out one by one."""

    def __init__(self) -> None:
        self._rows: list[Result] = []
        self._failed = 0
        self._total = 0

    def keep(self, result: Result) -> bool:
        """Count this row; whether it failed."""
        self._total += 1
        if result.error is None:
            return False
        self._failed += 1
        if self._failed <= _KEPT_FAILURES:
            self._rows.append(result)
        return True

    def check(self) -> None:
        """Raises BatchError if a row failed."""
        if self._rows:
            raise BatchError(self._rows, self._failed, self._total)


def good_ones(results: Iterator[Result]) -> Iterator[Result]:
    """The rows that did not fail. Raises BatchError at the end if one did."""
    failures = Failures()
    for result in results:
        if not failures.keep(result):
            yield result
    failures.check()


class _Batch(Unwatched):
    """Rows that are under way, and done but not taken: together at most `window`.

    It watches its rows.
    """

    def __init__(
        self,
        launch: Launch,
        rows: Iterator[Row],
        window: int,
        journal: Journal | None,
        *,
        all_at_once: bool,
    ) -> None:
        self._launch = launch
        self._rows = rows
        self._window = window
        self._journal = journal
        self._live: dict[int, Run] = {}
        self._done: deque[Run | Result] = deque()
        self._results: list[Result] = []
        self._all_at_once = all_at_once  # rows that are done make room before they are taken
        self._count = 0
        self._open = 0
        self._reading_rows = threading.Lock()
        self._collecting = threading.Lock()
        self._lock = threading.RLock()
        self._room = threading.Condition(self._lock)  # for more rows
        self._ready = threading.Condition(self._lock)  # rows that are done
        # Once the window was full it takes some room to go on, not a switch of threads per row.
        self._enough_room = window - max(1, window // 4)
        self._workers = 1  # threads that go on with rows, not those that wait for a value
        self._exhausted = False
        self._failure: BaseException | None = None

    def work(self) -> None:
        """Execute bodies until no row is left."""
        while (started := self._next()) is not None:
            run, arguments = started
            problem = check_row(arguments)
            if problem is not None:
                run.fail(problem)
            else:
                self._launch.execute(run, (), arguments)
            if self._all_at_once:
                self._collect()

    def work_alone(self) -> None:
        """`work`, on a thread of which nobody sees what it raises."""
        try:
            self.work()
        except BaseException as error:  # such as SystemExit: whoever takes rows raises it
            self._stop(error)

    def join(self) -> list[Result]:
        """The results, when every row is done. Raises what the iterator of rows raised."""
        with self._lock:
            while self._live or not self._exhausted:
                self._ready.wait()
        if self._failure is not None:
            raise self._failure
        self._collect()
        results, self._results = self._results, []  # an idle worker knows its last batch
        return results

    def _collect(self) -> None:
        """Make results of the rows that are done: a run is more, and there may be many of them."""
        with self._collecting:
            while self._done:
                done = self._done.popleft()
                self._results.append(done if isinstance(done, Result) else Result(done))

    def take(self) -> Run | Result | None:
        """The next row that is done; None when all are taken. Raises like `join`."""
        with self._lock:
            while not self._done and (self._live or not self._exhausted):
                self._ready.wait()
            if self._done:
                self._make_room()
                return self._done.popleft()
        if self._failure is not None:
            raise self._failure
        return None

    def cancel(self) -> None:
        """Take no more rows and end those under way."""
        self._stop(None)
        for run in list(self._live.values()):
            run.fail(RunCancelled("the batch was interrupted"))

    def _next(self) -> tuple[Run, Row] | None:
        with self._reading_rows:  # the user's iterator may take its time
            while True:
                with self._lock:
                    if self._open >= self._window:
                        while self._open > self._enough_room and not self._exhausted:
                            self._room.wait()
                    if self._exhausted:
                        return None
                try:
                    arguments = next(self._rows)
                    past = self._journal and self._journal.recall(self._count, arguments)
                except StopIteration:
                    self._stop(None)
                    return None
                except BaseException as error:
                    self._stop(error)
                    return None
                with self._lock:
                    index = self._count
                    self._count += 1
                    self._open += 1
                    if past:
                        self._done.append(past)
                        self._ready.notify_all()
                        continue
                    run = self._live[index] = self._launch.start(index, self)
                    return run, arguments

    def _stop(self, failure: BaseException | None) -> None:
        """Take no more rows."""
        with self._lock:
            self._exhausted = True
            self._failure = self._failure or failure
            self._room.notify_all()
            self._ready.notify_all()

    def blocked(self) -> None:
        """A body waits. If nobody goes on with the rows, let a worker do it."""
        with self._lock:
            self._workers -= 1
            if self._workers or self._exhausted:
                return
            self._workers += 1
        if not workers.offer(self._help):
            with self._lock:
                self._workers -= 1

    def resumed(self) -> None:
        """A body goes on."""
        with self._lock:
            self._workers += 1

    def finished(self, run: Run) -> None:
        """A row has ended."""
        with self._lock:
            del self._live[run.row]
            self._done.append(run)
            if self._all_at_once:
                self._make_room()
            if not self._all_at_once or not self._live:
                self._ready.notify_all()

    def _make_room(self) -> None:
        self._open -= 1
        if self._open <= self._enough_room:
            self._room.notify_all()

    def _help(self) -> None:
        self.work_alone()
        with self._lock:
            self._workers -= 1


def check_row(arguments: object) -> ProgramError | None:
    """The error of a row that is no dict of arguments."""
    if isinstance(arguments, Mapping) and all(isinstance(key, str) for key in arguments):
        return None
    return ProgramError(f"a row is a dict of the program's arguments, got {arguments!r}")
