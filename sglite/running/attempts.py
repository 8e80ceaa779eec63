"""A hole that is tried again: who judges its value, and what the model is told of a refused one.

    in an assistant turn                       in other text
      the turn, with the refused value           the line, with the refused value
      a user's turn: what was wrong              what was wrong
      an assistant's turn that begins            the beginning of the line again
      as the first one did                         the next value
        the next value

What stood before the value is written again, so that the next one is written in the same place as
the first. `retrying` takes all of it out of the prompt when a value is accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import Context, copy_context
from dataclasses import dataclass, field, fields, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from sglite import chat
from sglite.errors import ProgramError
from sglite.running.lowering import Pending
from sglite.running.record import Slot, SpecialText, TemplateText, add_parts
from sglite.runtime.segment import Attempt, Gen, Hole, HoleResult, Piece, Usage
from sglite.runtime.values import value

if TYPE_CHECKING:
    from sglite.language.recorder import Recorder

REFUSED = "This was not accepted:"
CORRECTED = "Write it again, corrected."
CORRECTED_LINE = "Corrected:"

_MOST_ERRORS = 8
_LONGEST_ERROR = 300
_UNHEALED = Piece("", "ids")
"""Ends the text before it for good: no id of it becomes part of a value, which has to stand without
it later."""

Feedback = Callable[[int, tuple[str, ...]], tuple[Piece, ...]]
"""What follows a refused value, by how many were refused before it and what was wrong with it."""


class RetryError(ProgramError):
    """A hole with retries whose values were all refused; `attempts` has each of them."""

    attempts: tuple[Attempt, ...] = ()


@dataclass(frozen=True, slots=True)
class Trial:
    """What one occurrence of a hole with retries needs beyond its step. `context`: that of the
    program, in which its validators are called."""

    slot: Slot
    retries: int
    feedback: Feedback
    context: Context

    def judge(self, result: HoleResult) -> ProgramError | None:
        """Why the value is refused, None where it is taken, which the slot then has.

        Raises ProgramError where a validator fails in another way than by refusing.
        """
        return self.context.run(self._judge, result)

    def _judge(self, result: HoleResult) -> ProgramError | None:
        tried = Slot(self.slot.node, self.slot.name)
        tried.result = result
        try:
            value, captures = tried.value, tried.captures
        except ProgramError as error:
            if isinstance(error.__cause__, ValueError | AssertionError):
                return error
            raise
        self.slot.keep(value, captures)
        return None


@value
class RetriedGen(Gen):
    """The step of a hole with retries."""

    trial: Trial = field(compare=False, repr=False, kw_only=True)

    def attempt(self, number: int) -> Gen:
        """The step of one attempt; the first one, 0, is that of any hole. A refused value stays in
        the prompt for the next one, `hidden` or not."""
        key = self.key
        if number:
            digest = blake2b(repr((key, number)).encode(), digest_size=8).digest()
            key = int.from_bytes(digest, "little")
        return replace(self, key=key, hidden=False)


def retried(state: Recorder, slot: Slot, hole: Hole, retries: int) -> RetriedGen:
    """The step of a hole that is recorded next, with all that its attempts need."""
    said = {each.name: getattr(hole, each.name) for each in fields(Gen)}
    trial = Trial(slot, retries, _feedback(state), copy_context())
    return RetriedGen(**said, trial=trial)


def errors_of(refusal: ProgramError) -> tuple[str, ...]:
    """What a model is told of a refusal: the validator's words, each with the place in the value
    that it is about."""
    cause = refusal.__cause__
    if not isinstance(cause, ValidationError):
        said = [str(cause) or type(cause).__name__]
    else:
        said = []
        for error in cause.errors(include_url=False, include_context=False, include_input=False):
            place = ".".join(map(str, error["loc"]))
            words = error["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
            said.append(f"{place}: {words}" if place else words)
    kept = [text if len(text) <= _LONGEST_ERROR else f"{text[:_LONGEST_ERROR]}..." for text in said]
    if len(kept) > _MOST_ERRORS:
        kept[_MOST_ERRORS:] = [f"and {len(kept) - _MOST_ERRORS} more errors"]
    return tuple(kept)


def settled(result: HoleResult, attempts: Sequence[Attempt], started_at: float) -> HoleResult:
    """The result of the last attempt as that of the hole."""
    usage = Usage()
    for attempt in attempts:
        usage.add(attempt.usage)
    return replace(result, attempts=tuple(attempts), usage=usage, started_at=started_at)


def restored_attempts(said: Iterable[Mapping[str, Any]]) -> tuple[Attempt, ...]:
    """The attempts out of plain data."""
    return tuple(
        Attempt(each["text"], tuple(each["errors"]), Usage(**each["usage"])) for each in said
    )


def gave_up(
    slot: Slot, refusal: ProgramError, result: HoleResult, no_room: Exception | None
) -> RetryError:
    """The error of a hole whose last attempt was refused. `no_room`: why there is not one more."""
    tries = len(result.attempts)
    why = "" if no_room is None else f", and there is no room to try it again ({no_room})"
    said = slot.error(
        f"was refused {tries} time{'s' * (tries != 1)}{why}; the last time it wrote "
        f"{result.text!r}: {'; '.join(errors_of(refusal))}"
    )
    error = RetryError(str(said), node=said.node)
    error.filename, error.line = said.filename, said.line
    error.attempts = result.attempts
    error.__cause__ = no_room or refusal.__cause__
    return error


# ---- what the model is told


def _feedback(state: Recorder) -> Feedback:
    record = state._record
    parts = record.all_parts()
    turn = record.turns[-1] if state._turn_is_open() else None
    if turn is None or turn.role != "assistant":
        return _in_lines(_line(parts))
    return _in_turns(state, record.roles(), parts[turn.start :])


def _in_lines(line: Sequence[str | Slot]) -> Feedback:
    def feedback(number: int, errors: tuple[str, ...]) -> tuple[Piece, ...]:
        pending = Pending()
        pending.text(f"\n{REFUSED}\n{_listed(errors)}\n{CORRECTED_LINE}\n")
        add_parts(pending, line)
        return (*pending.pieces(), _UNHEALED)

    return feedback


def _in_turns(state: Recorder, roles: list[str], begun: Sequence[str | Slot]) -> Feedback:
    get_template, tools = state._template, state._tools

    def feedback(number: int, errors: tuple[str, ...]) -> tuple[Piece, ...]:
        template = get_template()
        before = [*roles, *(("user", "assistant") * number)]
        user = template.fragments([*before, "user"], tools)
        answer = template.fragments([*before, "user", "assistant"], tools)
        pending = Pending()
        _add_template(pending, template.fragments(before, tools).closing + user.opening)
        pending.text(f"{REFUSED}\n{_listed(errors)}\n{CORRECTED}")
        _add_template(pending, user.closing + answer.opening)
        add_parts(pending, begun)
        return (*pending.pieces(), _UNHEALED)

    return feedback


def _listed(errors: tuple[str, ...]) -> str:
    return "\n".join(f"- {error}" for error in errors)


def _line(parts: Sequence[str | Slot]) -> list[str | Slot]:
    """The program's own text on the last line, after the last hole."""
    return list(reversed([*_line_backwards(parts)]))


def _line_backwards(parts: Sequence[str | Slot]) -> Iterator[str]:
    for part in reversed(parts):
        if isinstance(part, Slot | TemplateText | SpecialText):
            return
        _, is_whole, rest = part.rpartition("\n")
        yield rest
        if is_whole:
            return


def _add_template(pending: Pending, fragment: str) -> None:
    for text, is_template in chat.pieces(fragment):
        pending.text(text, "template" if is_template else "user")
