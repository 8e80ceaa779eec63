"""A segment on its way through the engine, with holes that are tried again.

    steps up to the hole | keep the state | attempt | judged: taken    -> the steps after the hole
                                               ^            refused
                                               '--- what was wrong

Where the first value is taken the engine has done what it does for any hole. Where a later one is,
its ids follow the state that was kept, and what the model was told is gone. Validators are code of
the user: values are judged on threads of their own, not on the engine's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sglite.errors import CapacityError, ProgramError
from sglite.running.attempts import RetriedGen, errors_of, gave_up, settled
from sglite.running.lines import Line, judges
from sglite.runtime.engines.base import EventSink, StepRefused
from sglite.runtime.segment import (
    Append,
    Attempt,
    Event,
    HoleDone,
    HoleRefused,
    HoleResult,
    Piece,
    SegmentDone,
    SegmentFailed,
    Step,
    TextDelta,
)


class Course:
    """Carries `steps` on; `sink` is told what happens, as by an engine."""

    def __init__(self, steps: tuple[Step, ...], sink: EventSink) -> None:
        self._steps = steps
        self._sink = sink
        self._at = 0
        """The step that comes next, or the hole that is being tried."""
        self._attempts: list[Attempt] = []
        self._told = 0  # how often the model was told what was wrong
        self._result: HoleResult | None = None
        self._refusal: ProgramError | None = None
        self._started_at = 0.0
        self._is_over = False

    def begin(self, line: Line) -> bool:
        """Hand the steps on up to and with the next hole with retries; whether there is none."""
        try:
            return self._begin(line)
        except StepRefused as refused:
            self._fail(line, self._at + refused.step, refused.error)
        except Exception as error:
            self._fail(line, self._at, error)
        return False

    def refuse(self, error: Exception) -> None:
        """The line has failed before it came to this."""
        self._tell_failed(self._at, error)

    def _begin(self, line: Line) -> bool:
        steps, at = self._steps, self._at
        hole = next((i for i in range(at, len(steps)) if isinstance(steps[i], RetriedGen)), None)
        if hole is None:
            line.submit(steps[at:], self._passing(line, at, is_last=True))
            return True
        if hole > at:
            line.submit(steps[at:hole], self._passing(line, at, is_last=False))
        self._at, self._told, self._attempts, self._refusal = hole, 0, [], None
        line.keep()
        line.submit((self._hole.attempt(0),), self._trying(line))
        return False

    @property
    def _hole(self) -> RetriedGen:
        step = self._steps[self._at]
        assert isinstance(step, RetriedGen)
        return step

    # ---- what the engine says, on its thread

    def _passing(self, line: Line, first: int, *, is_last: bool) -> EventSink:
        """Hands on what is said of steps that begin with `first`."""

        def sink(event: Event) -> None:
            if isinstance(event, SegmentFailed):
                self._fail(line, first + event.step, event.error)
            elif not isinstance(event, SegmentDone):
                self._sink(replace(event, step=first + event.step))
            elif is_last:
                self._sink(event)

        return sink

    def _trying(self, line: Line) -> EventSink:
        """Hands on the text of an attempt, and has its value judged."""

        def sink(event: Event) -> None:
            if isinstance(event, TextDelta):
                self._sink(TextDelta(self._at, event.text))
            elif isinstance(event, HoleDone):
                self._result = event.result
            elif isinstance(event, SegmentDone):
                self._judge(line, lambda: self._judged(line, event.ids))
            elif isinstance(event, SegmentFailed):
                self._judge(line, lambda: self._failed(line, event.error))

        return sink

    # ---- on a thread that judges

    def _judge(self, line: Line, work: Callable[[], None]) -> None:
        def job() -> None:
            try:
                work()
            except StepRefused as refused:
                self._failed(line, refused.error)
            except Exception as error:
                self._fail(line, self._at, error)
            except BaseException as error:  # such as SystemExit, which has nobody to go to here
                self._fail(line, self._at, RuntimeError(f"a validator raised {error!r}"))

        judges.submit(job)

    def _failed(self, line: Line, error: Exception) -> None:
        """An attempt could not be made."""
        if self._refusal is not None and isinstance(error, CapacityError):
            self._give_up(line, error)
        else:
            self._fail(line, self._at, error)

    def _judged(self, line: Line, ids: tuple[int, ...]) -> None:
        result, trial = self._result, self._hole.trial
        assert result is not None
        if not self._attempts:
            self._started_at = result.started_at
        self._refusal = trial.judge(result)
        errors = () if self._refusal is None else errors_of(self._refusal)
        attempt = Attempt(result.text, errors, result.usage)
        # A run that is replayed has them all in its one answer.
        self._attempts = [*result.attempts] or [*self._attempts, attempt]
        if self._refusal is None:
            self._take(line, ids)
        elif result.attempts or len(self._attempts) > trial.retries:
            self._give_up(line)
        else:
            self._sink(HoleRefused(self._at, attempt))
            told = trial.feedback(self._told, errors)
            self._told += 1
            line.submit((Append(told), self._hole.attempt(self._told)), self._trying(line))

    def _take(self, line: Line, ids: tuple[int, ...]) -> None:
        """The value is accepted: go on behind it, as if it had been the first."""
        result, hidden = self._settled(), self._hole.hidden
        is_last = self._at + 1 == len(self._steps)
        goes_back = self._told > 0 or hidden
        if goes_back:
            line.go_back()
        else:
            line.let_go()
        self._sink(HoleDone(self._at, result))
        if goes_back:
            value = () if hidden else (Append((Piece(result.text, "ids", result.ids),)),)
            line.submit(value, self._passing(line, self._at, is_last=is_last))
        elif is_last:
            self._sink(SegmentDone(ids))
        if not is_last:
            self._at += 1
        if is_last or self.begin(line):
            line.work_off()

    def _give_up(self, line: Line, no_room: Exception | None = None) -> None:
        """The last attempt was refused."""
        assert self._refusal is not None
        result, slot = self._settled(), self._hole.trial.slot
        error = gave_up(slot, self._refusal, result, no_room)
        slot.refuse(error)
        slot.result = result
        self._fail(line, self._at, error)

    def _settled(self) -> HoleResult:
        assert self._result is not None
        return settled(self._result, self._attempts, self._started_at)

    def _fail(self, line: Line, step: int, error: Exception) -> None:
        self._tell_failed(step, error)
        line.fail(error)

    def _tell_failed(self, step: int, error: Exception) -> None:
        if not self._is_over:
            self._is_over = True
            self._sink(SegmentFailed(step, error))
