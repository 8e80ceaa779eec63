"""What goes wrong in a run, as its error: which hole it is about, and where that was written."""

from __future__ import annotations

from collections.abc import Sequence

from sglite.errors import CancelledError, DeadlineError, GrammarError, ProgramError
from sglite.language import ir
from sglite.running.record import Record, Slot, program_error
from sglite.runtime.segment import Append, Step


class RunCancelled(ProgramError, CancelledError):  # noqa: N818 (caught by its bases)
    """The run was cancelled."""


class RunOverdue(ProgramError, DeadlineError):  # noqa: N818 (caught by its bases)
    """The run was not done within its `timeout`."""


def overdue(record: Record, timeout: float | None) -> RunOverdue:
    """The error of a run that its `timeout` has ended."""
    node: ir.Node | None
    node = next((slot.node for slot in record.slots() if slot.result is None), None)
    at = "at"
    if node is None:  # the body does something of its own
        at, node = "after", next((step.node for step in reversed(record.log.steps)), None)
    where = f" {at} {node.describe()}" if node is not None else ""
    said = (
        f"the run was not done after timeout={timeout} seconds{where}; "
        "give it more, or bound its holes with max_tokens="
    )
    return program_error(said, node, RunOverdue)


def step_error(
    verb: str,
    index: int,
    error: Exception,
    steps: Sequence[Step],
    slots: Sequence[Slot | None],
    record: Record,
) -> ProgramError:
    """The error of one step: about its hole, its special token, or the hole that follows."""
    said = str(error) or type(error).__name__
    slot = next((slot for slot in slots[index:] if slot is not None), None)
    if isinstance(error, GrammarError) and slot and isinstance(slot.node, ir.Gen):
        said += f", in the schema of the type {slot.node.origin}" * bool(slot.node.origin)
    step = steps[index] if index < len(steps) else None
    special = _special(record, step, said) if isinstance(step, Append) else None
    if special is not None:
        failure = program_error(f"{special.describe()} {verb}: {said}", special)
    elif slot is not None:
        where = " at the text before it" if isinstance(step, Append) else ""
        failure = slot.error(f"{verb}{where}: {said}")
    else:
        backwards = reversed(record.log.steps)
        last = next((n for b, n in backwards if not b and isinstance(n, ir.Literal)), None)
        failure = program_error(f"the text at the end of the program {verb}: {said}", last)
    failure.__cause__ = error
    return failure


def _special(record: Record, step: Append, said: str) -> ir.Special | None:
    """The special token in this text that the engine speaks of."""
    named = {p.text for p in step.pieces if p.kind == "special" and repr(p.text) in said}
    return next((node for node in record.specials() if node.text in named), None)
