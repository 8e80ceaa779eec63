"""The nodes of a graph as functions that record them: what does not depend on the row is settled
once.

They do what `State._add` does with the same node, for the nodes that most programs are made of, and
know the inside of a state for that. Symbolic states are left to `State._add`.
"""

from __future__ import annotations

from collections.abc import Callable

from sglite.graphs.values import Leaf, prepared
from sglite.language import ir
from sglite.language.state import State
from sglite.running.lowering import hole_key, lowered
from sglite.running.record import Slot

Op = Callable[[State, Leaf], None]


def op_of(node: ir.Node) -> Op | None:
    """The function that records `node`; None for one that is rare, or much work anyway."""
    match node:
        case ir.Literal(text=text) if text:
            ir.check_text("text", text)
            return lambda state, leaf: _text(state, node, text)
        case ir.Insert():
            return _insert(node)
        case ir.Gen(samples=None, think=None, tools=None, retries=0) | ir.Select():
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
            state._record.note_text(text, place)
            state._pending.text(text)
        else:
            state._add(text, place)

    return op


def _hole(node: ir.Hole) -> Op:
    own = node.options.seed

    def op(state: State, leaf: Leaf) -> None:
        run, record, pending = state._run, state._record, state._pending
        name = node.name or state._unnamed_hole()
        every = record.variables.setdefault(name, [])
        seed = run.seed if own is None else own
        key = hole_key(seed, run.row, record.path, name, len(every))
        after_word = pending.ends_in_word
        step = lowered(node, run.options, engine=run.engine, after_word=after_word)
        pending.hole(step.step(name, key))
        slot = Slot(node, name)
        state._slots.append(slot)
        every.append(slot)
        record.take(slot)
        record.note(node)
        record.parts.append(slot)

    return op
