"""A run that was started and goes on by itself: `fn.start(...)`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sglite.running.executor import Run
from sglite.running.result import Result
from sglite.running.workers import workers

if TYPE_CHECKING:
    from sglite.running.launch import Launch


class Started:
    """A run under way. Its body is executed by a worker, or by the first who asks for the result
    if every worker is busy."""

    def __init__(
        self, launch: Launch, row: int, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> None:
        self._launch = launch
        self._args = args
        self._kwargs = kwargs
        self._run: Run = launch.start(row)
        self._interrupt: BaseException | None = None
        self._job = self._execute  # one object: a bound method is a new one each time
        workers.submit(self._job)

    def result(self, timeout: float | None = None) -> Result:
        """The result, when the run has ended. Raises what `run` raises.

        Raises TimeoutError if it has not ended within `timeout` seconds; the run goes on. To end a
        run after some time give `timeout=` to `start`.
        """
        if timeout is None and workers.withdraw(self._job):
            self._job()
        if not self._run.join(timeout):
            raise TimeoutError(
                f"{self._launch.program.__name__}() has not ended within {timeout} seconds; "
                "it goes on: ask again, or cancel() it"
            )
        if self._interrupt is not None:
            raise self._interrupt
        result = Result(self._run)
        if result.error is not None:
            raise result.error
        return result

    def done(self) -> bool:
        """Whether the run has ended."""
        return self._run.finished

    def cancel(self) -> None:
        """End the run; what the engine does for it ends within a step.

        The body ends where it next reads or adds something; `result` raises CancelledError.
        """
        if workers.withdraw(self._job):
            self._run.cancel()
            self._job()  # comes to its end at once
        self._run.cancel()

    def __repr__(self) -> str:
        state = "done" if self.done() else "under way"
        return f"<run of {self._launch.program.__name__}, {state}>"

    def _execute(self) -> None:
        try:
            self._launch.execute(self._run, self._args, self._kwargs)
        except BaseException as error:  # such as SystemExit: for whoever asks for the result
            self._interrupt = error
