"""What the caller's thread does with a segment before the engine's thread sees it: tokenise the
literal text, compile the constraints, and refuse what can never run."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, Union

from sglite.errors import CapacityError
from sglite.runtime.constraints import Constraints
from sglite.runtime.engines.base import StepRefused
from sglite.runtime.prompt import Prompt, Tokenizer, encode_pieces
from sglite.runtime.segment import Append, Gen, Segment, Step
from sglite.runtime.select import check_choices

if TYPE_CHECKING:
    from sglite.grammars import Grammar

Prepared: TypeAlias = Union[Prompt, "Grammar", None]


def prepare(
    segment: Segment, tokenizer: Tokenizer, constraints: Constraints, capacity: int
) -> tuple[Prepared, ...]:
    """A Prompt for each Append, a Grammar for each constrained hole, else None. Raises as
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
        _check_gen(step, tokenizer.vocab_size)
        return constraints.compile(step.constraint) if step.constraint is not None else None
    check_choices(step)
    return None


def _check_gen(gen: Gen, vocab_size: int) -> None:
    if gen.max_tokens < 1:
        raise ValueError(f"hole {gen.name!r}: max_tokens must be at least 1, got {gen.max_tokens}")
    if any(not text for text in (*gen.stop, *gen.until)):
        raise ValueError(f"hole {gen.name!r}: a stop or until text must not be empty")
    for token in gen.stop_ids:
        if not 0 <= token < vocab_size:
            raise ValueError(
                f"hole {gen.name!r}: stop id {token} is not in the vocabulary (0 to "
                f"{vocab_size - 1})"
            )
