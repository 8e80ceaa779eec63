"""What the caller's thread does with a segment before the engine's thread sees it: tokenise the
literal text, compile the constraints, and refuse what can never run."""

from __future__ import annotations

from sglite.errors import CapacityError
from sglite.runtime.constraints import Constraints
from sglite.runtime.endings import PreparedGen, prepare_gen
from sglite.runtime.engines.base import StepRefused
from sglite.runtime.prompt import Prompt, Tokenizer, encode_pieces
from sglite.runtime.segment import Append, Gen, Segment, Step
from sglite.runtime.select import check_select

Prepared = Prompt | PreparedGen | None


def prepare(
    segment: Segment, tokenizer: Tokenizer, constraints: Constraints, capacity: int
) -> tuple[Prepared, ...]:
    """A Prompt for each Append, a PreparedGen for each Gen, None for a Select. Raises as
    `Engine.submit` says."""
    prepared: list[Prepared] = []
    literal, fits = 0, 0
    for index, step in enumerate(segment.steps):
        try:
            prepared.append(_prepare_step(step, tokenizer, constraints))
        except Exception as error:
            raise StepRefused(index, error) from error
        if isinstance(prepared[-1], Prompt):
            literal += len(prepared[-1].ids)
        if literal <= capacity:
            fits = index + 1
    if literal > capacity:
        raise StepRefused(
            fits,
            CapacityError(
                f"the segment has {literal} tokens of text, the model's context and memory hold "
                f"{capacity}; shorten the text or raise `context` or `kv_memory`"
            ),
        )
    return tuple(prepared)


def _prepare_step(step: Step, tokenizer: Tokenizer, constraints: Constraints) -> Prepared:
    if isinstance(step, Append):
        return encode_pieces(step.pieces, tokenizer)
    if isinstance(step, Gen):
        return prepare_gen(step, tokenizer, constraints)
    check_select(step)
    return None
