"""The nodes of a graph as functions that record them: what does not depend on the row is settled
once.

They do what `State._add` does with the same node, for the nodes that most programs are made of, and
know the inside of a state for that. Symbolic states are left to `State._add`.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from sglite import ir
from sglite.executor import Run
from sglite.lowering import hole_key, lower_hole
from sglite.record import Slot
from sglite.runtime.segment import Gen, Select
from sglite.state import State
from sglite.values import Leaf, prepared

Op = Callable[[State, Leaf], None]


def op_of(node: ir.Node) -> Op | None:
    """The function that records `node`; None for one that is rare, or much work anyway."""
    match node:
        case ir.Literal(text=text) if text:
            ir.check_text("text", text)
            return lambda state, leaf: _text(state, node, text)
        case ir.Insert():
            return _insert(node)
        case ir.Gen(samples=None, think=None, tools=None) | ir.Select():
            return _hole(node)
    return None


def _text(state: State, node: ir.Literal, text: str) -> None:
    record = state._record
    record.note(node)
    record.parts.append(text)
    state._pending.text(text)


def _insert(node: ir.Insert) -> Op:
    value = prepared(node.value)
    place = node.place or ir.NOWHERE

    def op(state: State, leaf: Leaf) -> None:
        text = value(leaf)
        if type(text) is str and text.isascii() and text:
            _text(state, ir.Literal(text, place=place), text)
        else:
            state._add(text, place)

    return op


def _hole(node: ir.Hole) -> Op:
    steps: dict[bool, _Lowered] = {}
    seed = node.options.seed

    def op(state: State, leaf: Leaf) -> None:
        run, record, pending = state._run, state._record, state._pending
        name = node.name or state._unnamed_hole()
        every = record.variables.setdefault(name, [])
        key = hole_key(
            seed if seed is not None else run.seed, run.row, record.path, name, len(every)
        )
        after_word = pending.ends_in_word
        lowered = steps.get(after_word)
        if lowered is None or not lowered.fits(run):
            lowered = steps[after_word] = _Lowered(node, run, after_word)
        pending.hole(lowered.step(name, key))
        slot = Slot(node, name)
        state._slots.append(slot)
        every.append(slot)
        record.take(slot)
        record.note(node)
        record.parts.append(slot)

    return op


class _Lowered:
    """The step of a hole in the runs of one call, all but its name and its key."""

    __slots__ = ("_after", "_before", "_engine", "_kind", "_options")

    def __init__(self, node: ir.Hole, run: Run, after_word: bool) -> None:
        step = lower_hole(node, "", 0, run.options, engine=run.engine, after_word=after_word)
        names = [field.name for field in fields(step)]
        assert names[0] == "name"
        at = names.index("key")
        self._options = run.options
        self._engine = weakref.ref(run.engine)  # a graph outlives its models
        self._kind: Callable[..., Gen | Select] = type(step)
        self._before: list[Any] = [getattr(step, name) for name in names[1:at]]
        self._after: list[Any] = [getattr(step, name) for name in names[at + 1 :]]

    def fits(self, run: Run) -> bool:
        """Whether the run has the same options and the same model."""
        return self._options is run.options and self._engine() is run.engine

    def step(self, name: str, key: int) -> Gen | Select:
        return self._kind(name, *self._before, key, *self._after)
