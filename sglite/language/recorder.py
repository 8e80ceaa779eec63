"""One branch of a running program from the inside: how it records, forks, and hands over.

The recorded steps up to the last hole go to the run in one segment. What programs call is in
`state`.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self

from sglite.errors import ProgramError
from sglite.graphs.values import Leaf, Operand, evaluate
from sglite.language import ir
from sglite.language.composition import Pattern
from sglite.language.roles import GetTemplate, Turns
from sglite.language.thinking import with_thought
from sglite.options import ERROR, OverflowPolicy
from sglite.running import overflow
from sglite.running.executor import Run
from sglite.running.lowering import hole_key, lowered
from sglite.running.record import (
    Gathered,
    Slot,
    SpecialText,
    TemplateText,
    Variable,
    flat_slots,
    last_value,
)
from sglite.running.retrying import with_retries
from sglite.runtime.engines.base import SequenceId
from sglite.runtime.segment import Append
from sglite.tools import turns
from sglite.tools.declared import Tool
from sglite.tools.formats import with_tools


class Recorder(Turns):
    """What a program has recorded in one branch, and the sequence that it is handed over to."""

    __slots__ = ("_branches", "_on_overflow", "_sequence", "_slots", "_unnamed")

    def __init__(self, run: Run, template: GetTemplate) -> None:
        super().__init__(run, template)
        self._slots: list[Slot] = []
        self._sequence: SequenceId | None = None
        self._branches: list[Self] = []
        self._unnamed = 0
        self._on_overflow: OverflowPolicy = run.options.on_overflow or ERROR

    # ---- recording

    def _add(self, content: object, place: ir.Place) -> None:
        self._run.check()
        kind = type(content)
        if kind is ir.Concat:
            for part in content.parts:  # type: ignore[attr-defined]
                self._add(part, place)
        elif isinstance(content, str):
            if content:
                ir.check_text("text", content)
                self._record.note_text(content, place)
                self._pending.text(content)
        elif isinstance(content, ir.Gen):
            if content.samples is not None:
                self._add_samples(content, content.samples, place)
            elif content.think is not None:
                if self._on_overflow != ERROR:
                    overflow.make_room(self, content, place)  # for the value as well
                for node in with_thought(content, content.think, self._run.engine, self._record):
                    self._add(node, place)
            else:
                self._add_hole(content if content.place == place else content.at(place), place)
        elif isinstance(content, ir.Select):
            self._add_hole(content if content.place == place else content.at(place), place)
        elif isinstance(content, Pattern):
            self._add_hole(content.hole().at(place), place)
        elif isinstance(content, ir.Turn):
            with self._turn(content.role, place, content.tools):
                for part in content.parts:
                    self._add(part, place)
        elif isinstance(content, ir.Special):
            self._record.note(content.at(place))
            if content.hidden:
                self._pending.cut()
            elif content.exact:
                self._record.parts.append(SpecialText(content.text))
            else:
                self._record.parts.append(TemplateText(content.text))
            self._pending.text(content.text, "special" if content.exact else "template")
        elif isinstance(content, ir.Invoke):
            self._invoke(content, place)
        else:
            raise ir.unfit(content)

    def _add_hole(self, node: ir.Hole, place: ir.Place) -> None:
        if self._on_overflow != ERROR:
            overflow.make_room(self, node, place)
        name = node.name
        if name is None:
            name = self._unnamed_hole()
        record, run = self._record, self._run
        occurrences = record.variables.setdefault(name, [])
        own = node.options.seed
        seed = run.seed if own is None else own
        key = hole_key(seed, run.row, record.path, name, len(occurrences))
        if isinstance(node, ir.Gen) and node.tools is not None:
            form = turns.format_for(self._template)
            node = with_tools(node, node.tools, form, key, run.options)
        slot = Slot(node, name)
        after_word = self._pending.ends_in_word
        hole = lowered(node, run.options, engine=run.engine, after_word=after_word).step(name, key)
        if isinstance(node, ir.Gen) and node.retries:
            hole = with_retries(self, slot, hole)
        self._pending.hole(hole)
        self._slots.append(slot)
        occurrences.append(slot)
        record.take(slot)
        record.note(node)
        record.parts.append(slot)

    def _add_samples(self, node: ir.Gen, samples: int, place: ir.Place) -> None:
        """The same hole in so many branches; none of its values enters the text here."""
        branches = self._fork(samples, (), place)
        for branch in branches:
            branch._add(replace(node, samples=None), place)
        self._join(branches, (), place)

    def _unnamed_hole(self) -> str:
        """A name that no variable of the user has by accident."""
        self._unnamed += 1
        return f"#{self._unnamed}"

    @contextmanager
    def _turn(self, role: str, place: ir.Place, tools: tuple[Tool, ...] = ()) -> Iterator[None]:
        self._open_turn(role, place, tools)
        try:
            yield
            if tools and not self._template().describes_tools:
                turns.describe(self, place)
        finally:
            self._close_turn(place)

    def _invoke(self, call: ir.Invoke, place: ir.Place) -> Any:
        if inspect.iscoroutinefunction(call.body):
            raise TypeError(
                f"{call.name}() is async and cannot be added: write await {call.name}(s, ...) "
                "in an async def"
            )
        self._record.note(ir.CallOpen(call.name, place=place))
        try:
            return call.body(self, *call.args, **call.kwargs)
        finally:
            self._record.note(ir.CallClose(call.name, place=place))

    async def _invoke_in_task(self, call: ir.Invoke, place: ir.Place) -> Any:
        self._record.note(ir.CallOpen(call.name, place=place))
        try:
            return await call.body(self, *call.args, **call.kwargs)
        finally:
            self._record.note(ir.CallClose(call.name, place=place))

    # ---- branches

    def _fork(self, n: int, names: tuple[str, ...], place: ir.Place) -> list[Self]:
        self._run.check()
        self._flush()
        sequences: Sequence[SequenceId | None] = [None] * n
        if self._sequence is not None:
            sequences = self._run.fork(self._sequence, n)
        record = self._record
        record.note(ir.Fork(n, names, record.log.branches, place=place))
        number = len(record.forks)
        branches = [self._branch(number, i, sequence) for i, sequence in enumerate(sequences)]
        self._branches.extend(branches)
        record.forks += ([branch._record for branch in branches],)
        return branches

    def _join(self, states: Sequence[Recorder], keys: tuple[str, ...], place: ir.Place) -> None:
        known = {id(record) for fork in self._record.forks for record in fork}
        names: dict[str, None] = {}
        own: list[dict[str, Variable]] = []
        for branch in states:
            if not isinstance(branch, Recorder) or id(branch._record) not in known:
                raise ValueError("join() takes branches that fork() of this same state has made")
            branch._flush()
            own.append(branch._record.own_variables())
            names.update(dict.fromkeys(own[-1]))
        for name in names:
            gathered = Gathered(tuple(variables.get(name) for variables in own), keys)
            self._record.variables.setdefault(name, []).append(gathered)
        numbers = tuple(branch._record.number for branch in states)
        self._record.note(ir.Join(tuple(names), numbers, keys, place=place))

    def _branch(self, fork: int, number: int, sequence: SequenceId | None) -> Self:
        branch = type(self)(self._run, self._template)
        branch._record = self._record.branch(fork, number)
        branch._pending = self._pending.carried()
        branch._sequence = sequence
        branch._unnamed = self._unnamed
        branch._tools = self._tools
        branch._on_overflow = self._on_overflow
        branch._in_parents_turn = self._turn_is_open()
        return branch

    def _release(self) -> None:
        """Nothing uses this branch any more: close its sequence when its work is done."""
        self._flush()
        if self._sequence is not None:
            self._run.release(self._sequence)

    # ---- handing over, and reading

    def _recorded(self, name: str, index: int = -1) -> Variable:
        """The variable, handed over to the engine."""
        variables = self._record.variables.get(name)
        if variables is None:
            known = ", ".join(map(repr, self._record.variables)) or "none yet"
            raise ProgramError(
                f"no variable {name!r} in this program so far; there is: {known} (a hole can be "
                "read after the statement that adds it)"
            )
        self._flush()
        return variables[index]

    def _awaited(self, name: str, index: int = -1) -> Variable:
        variable = self._recorded(name, index)
        for slot in flat_slots([variable]):
            self._run.wait(slot)
        return variable

    def _read(self, name: str, index: int) -> Any:
        """The value of one occurrence of a variable. Waits for it."""
        return last_value(self._awaited(name, index))

    def _compute(self, operand: Operand, leaf: Leaf) -> Any:
        """What a compiled program works out when it runs."""
        return evaluate(operand, leaf)

    def _check_in_task(self, instead: str) -> None:
        if not self._run.in_task:
            raise TypeError(f"this program is a plain def, which does not await: write {instead}")

    def _flush(self, *, text_too: bool = False) -> None:
        steps = self._pending.take(text_too=text_too)
        if not steps:
            return
        if self._sequence is None:
            self._sequence = self._run.open()
        holes = iter(self._slots)
        slots = [None if isinstance(step, Append) else next(holes) for step in steps]
        self._slots = []
        self._run.submit(self._sequence, steps, slots, self._record.path)

    def _end(self) -> None:
        """The program is over: hand over what this branch and those below it have recorded."""
        is_root = not self._record.path
        if is_root and self._on_overflow != ERROR:
            overflow.make_room_for_text(self)
        self._flush(text_too=is_root)
        for branch in self._branches:
            branch._end()
