"""Many rows of one program, together.

Bodies are executed by the caller's thread, one after the other; a body that only records is over at
once, so a static program needs no other thread. When a body waits for a value and nobody else goes
on with the rows, a helper thread takes over, up to a bound for the whole process. The caller's
thread always works on its own batch, so that batches inside of batches cannot starve each other.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sized
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from sglite.errors import ProgramError
from sglite.executor import Run
from sglite.lowering import BranchPath
from sglite.record import Slot
from sglite.result import BatchError, Result

if TYPE_CHECKING:
    from tqdm import tqdm

    from sglite.program import Launch

MAX_HELPERS = 64
"""Helper threads of all batches of the process together."""

_helpers = threading.BoundedSemaphore(MAX_HELPERS)


def run_batch(
    launch: Launch,
    rows: Iterable[Mapping[str, Any]],
    *,
    errors: Literal["raise", "return"],
    progress: bool,
    window: int,
) -> list[Result]:
    """`Function.run_batch`, with program, model, options and seed settled in `launch`."""
    if errors not in ("raise", "return"):
        raise ValueError(f"errors is 'raise' or 'return', got {errors!r}")
    if window < 1:
        raise ValueError(f"window is the number of rows under way, at least 1; got {window}")
    if isinstance(rows, Mapping | str) or not isinstance(rows, Iterable):
        raise TypeError("run_batch() takes a list or an iterator of dicts, one for each row")
    with _Bar(rows, launch.program.__name__, shown=progress) as bar:
        batch = _Batch(launch, iter(rows), window, bar)
        try:
            batch.work()
            batch.join()
        except BaseException:
            batch.cancel()
            raise
    results = batch.results()
    if errors == "raise" and any(result.error is not None for result in results):
        failure = BatchError(results)
        raise failure from next(result.error for result in results if result.error is not None)
    return results


class _Batch:
    """Rows that are waiting, under way, and done."""

    def __init__(
        self, launch: Launch, rows: Iterator[Mapping[str, Any]], window: int, bar: _Bar
    ) -> None:
        self._launch = launch
        self._rows = rows
        self._window = window
        self._bar = bar
        self._runs: list[Run] = []
        self._returned: dict[int, Any] = {}
        self._reading_rows = threading.Lock()
        self._changed = threading.Condition()
        self._workers = 1  # threads that go on with rows, not those that wait for a value
        self._under_way = 0
        self._exhausted = False
        self._failure: BaseException | None = None

    def work(self) -> None:
        """Execute bodies until no row is left."""
        while (started := self._next()) is not None:
            index, run, arguments = started
            problem = _check_row(arguments)
            if problem is not None:
                run.fail(problem)
                continue
            returned = self._launch.execute(run, (), arguments)
            if returned is not None:
                self._returned[index] = returned

    def join(self) -> None:
        """Return when every row is done. Raises what the iterator of rows raised."""
        with self._changed:
            while self._under_way or not self._exhausted:
                self._changed.wait()
        if self._failure is not None:
            raise self._failure

    def cancel(self) -> None:
        """Take no more rows and end those under way."""
        self._stop(None)
        for run in list(self._runs):
            run.fail(ProgramError("the batch was interrupted"))

    def results(self) -> list[Result]:
        return [Result(run, self._returned.get(index)) for index, run in enumerate(self._runs)]

    def _next(self) -> tuple[int, Run, Mapping[str, Any]] | None:
        with self._reading_rows:  # the user's iterator may take its time
            with self._changed:
                while self._under_way >= self._window and not self._exhausted:
                    self._changed.wait()
                if self._exhausted:
                    return None
            try:
                arguments = next(self._rows)
            except StopIteration:
                self._stop(None)
                return None
            except BaseException as error:
                self._stop(error)
                return None
            with self._changed:
                index = len(self._runs)
                run = self._launch.start(index, _RowWatcher(self))
                self._runs.append(run)
                self._under_way += 1
                return index, run, arguments

    def _stop(self, failure: BaseException | None) -> None:
        """Take no more rows."""
        with self._changed:
            self._exhausted = True
            self._failure = self._failure or failure
            self._changed.notify_all()

    def blocked(self) -> None:
        """A body waits. If nobody goes on with the rows, let a helper do it."""
        with self._changed:
            self._workers -= 1
            if self._workers or self._exhausted or not _helpers.acquire(blocking=False):
                return
            self._workers += 1
        threading.Thread(target=self._help, name="sglite-batch", daemon=True).start()

    def resumed(self) -> None:
        with self._changed:
            self._workers += 1

    def row_finished(self) -> None:
        with self._changed:
            self._under_way -= 1
            self._bar.advance()
            self._changed.notify_all()

    def _help(self) -> None:
        try:
            self.work()
        except BaseException as error:  # such as SystemExit: the caller's thread raises it
            self._stop(error)
        finally:
            _helpers.release()
            with self._changed:
                self._workers -= 1


class _RowWatcher:
    """Tells the batch of one row's waits and of its end."""

    __slots__ = ("_batch",)

    def __init__(self, batch: _Batch) -> None:
        self._batch = batch

    def blocked(self) -> None:
        self._batch.blocked()

    def resumed(self) -> None:
        self._batch.resumed()

    def delta(self, slot: Slot, text: str, path: BranchPath) -> None:
        pass

    def filled(self, slot: Slot, path: BranchPath) -> None:
        pass

    def finished(self) -> None:
        self._batch.row_finished()


class _Bar:
    """A progress bar, or nothing."""

    def __init__(self, rows: Iterable[object], title: str, *, shown: bool) -> None:
        self._bar: tqdm[NoReturn] | None = None
        if shown:
            from tqdm import tqdm

            total = len(rows) if isinstance(rows, Sized) else None
            self._bar = tqdm(total=total, desc=title, unit="row")

    def advance(self) -> None:
        if self._bar is not None:
            self._bar.update()

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()


def _check_row(arguments: object) -> ProgramError | None:
    if isinstance(arguments, Mapping) and all(isinstance(key, str) for key in arguments):
        return None
    return ProgramError(f"a row is a dict of the program's arguments, got {arguments!r}")
