"""A value with a thought before it: what `gen(..., think=...)` stands for.

    opening mark, free text up to the closing mark, closing mark, the value under its constraint

The marks come from the user or are found in the model's own template. A mark that is a special
token of the model is written and recognised as that token.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from sglite.language import ir
from sglite.running.record import Record

if TYPE_CHECKING:
    from sglite.runtime.engines.base import Engine

MARKS = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<seed:think>", "</seed:think>"),
    ("[THINK]", "[/THINK]"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
)
"""The marks that are looked for in a model's template."""

THOUGHT = ".thought"
"""What a thought is called, after the name of its value."""


def with_thought(
    gen: ir.Gen, think: ir.Thought, engine: Engine, record: Record
) -> Iterator[ir.Node]:
    """The nodes that take the place of `gen`. Raises ValueError where no mark is known."""
    opening, closing = think.opening or "", think.closing
    if closing is None:
        opening, closing = _marks_of(engine, gen)
        if _ends_in(record, opening):
            opening = ""
    name = None if gen.name is None else f"{gen.name}{THOUGHT}"
    drops = 0
    if opening:
        yield ir.Special(opening, exact=False, hidden=think.hidden)
        drops += 1
    yield ir.Gen(
        name,
        options=replace(gen.options, max_tokens=think.max_tokens),
        stop=(closing.rstrip() or closing,),
        shown=not think.hidden,
        top_logprobs=gen.top_logprobs,
        thought=True,
    )
    yield ir.Special(closing, exact=False, hidden=think.hidden)
    yield replace(gen, think=None, drops=drops + 2 if think.hidden else 0)


def _marks_of(engine: Engine, gen: ir.Gen) -> tuple[str, str]:
    template = engine.chat_template or ""
    for opening, closing in MARKS:
        if closing in template or _is_one_token(closing, engine):
            return opening, closing
    raise ValueError(
        f"{gen.describe()}: no mark of a thought is known in the template of {engine.name}; "
        'name the one that its thoughts end with: think="</think>"'
    )


def _is_one_token(text: str, engine: Engine) -> bool:
    encode = engine.vocabulary.encode
    return encode is not None and len(encode(text.encode())) == 1


def _ends_in(record: Record, opening: str) -> bool:
    parts = record.all_parts()
    last = parts[-1] if parts else ""
    return isinstance(last, str) and last.rstrip().endswith(opening)
