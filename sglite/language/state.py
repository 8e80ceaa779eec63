"""The state of a program: what `s` is.

`s += x` only records. Reading `s["x"]`, a join, or the end of the program hands the recorded steps
up to the last hole to the run, in one segment. A read waits; everything else goes on at once.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from types import CodeType
from typing import TYPE_CHECKING, Any, NoReturn, Self, overload

from sglite import chat
from sglite.errors import ModelError, ProgramError
from sglite.graphs.values import Leaf, Operand, evaluate
from sglite.language import ir
from sglite.language.composition import Pattern
from sglite.language.places import users_place
from sglite.language.thinking import with_thought
from sglite.options import ERROR, OverflowPolicy, check_overflow
from sglite.running import overflow
from sglite.running.executor import Run
from sglite.running.lowering import Pending, hole_key, lowered
from sglite.running.record import (
    Gathered,
    Slot,
    SpecialText,
    TemplateText,
    Variable,
    flat_slots,
    last_value,
    program_error,
)
from sglite.runtime.engines.base import SequenceId
from sglite.runtime.segment import Append, HoleResult
from sglite.tools import turns
from sglite.tools.calls import as_calls
from sglite.tools.declared import Tool, ToolCall, tool_tuple
from sglite.tools.formats import with_tools

if TYPE_CHECKING:
    from sglite.chat import ChatTemplate
    from sglite.graphs.graph import Graph

GetTemplate = Callable[[], "ChatTemplate"]
"""The chat template of the model. Raises ModelError for a model without one."""


class State:
    """One branch of a running program. Programs get it as their first argument."""

    __slots__ = (
        "_branches",
        "_in_parents_turn",
        "_on_overflow",
        "_pending",
        "_record",
        "_run",
        "_sequence",
        "_slots",
        "_template",
        "_tools",
        "_unnamed",
    )

    def __init__(self, run: Run, template: GetTemplate) -> None:
        self._run = run
        self._template = template
        self._record = run.record
        self._pending = Pending()
        self._slots: list[Slot] = []
        self._sequence: SequenceId | None = None
        self._branches: list[State] = []
        self._unnamed = 0
        self._in_parents_turn = False
        self._tools: tuple[Tool, ...] = ()
        self._on_overflow: OverflowPolicy = run.options.on_overflow or ERROR

    # ---- writing

    def __iadd__(self, content: str | ir.Expression) -> Self:  # type: ignore[misc]
        self._add(content, _place(1))
        return self

    def __add__(self, other: object) -> NoReturn:
        raise TypeError("a state is added to in place: write s += ..., not s = s + ...")

    __radd__ = __add__

    def system(self, *, tools: Sequence[Tool] | None = None) -> AbstractContextManager[None]:
        """`with s.system(): ...` puts what is recorded inside into a system turn. `tools`: what the
        model is told of there."""
        return self._turn("system", _place(1), _told("system", tools))

    def user(self, *, tools: Sequence[Tool] | None = None) -> AbstractContextManager[None]:
        """`with s.user(): ...` puts what is recorded inside into a user turn; `tools` as in
        `system`."""
        return self._turn("user", _place(1), _told("user", tools))

    def assistant(self) -> AbstractContextManager[None]:
        """`with s.assistant(): ...` puts what is recorded inside into an assistant turn."""
        return self._turn("assistant", _place(1))

    def tool_result(self) -> AbstractContextManager[None]:
        """`with s.tool_result(): ...` puts what is recorded inside into a turn of the role tool."""
        return self._turn("tool", _place(1))

    def role(self, name: str) -> AbstractContextManager[None]:
        """`with s.role(name): ...` puts what is recorded inside into a turn of that role."""
        return self._turn(name, _place(1))

    def call(self, program: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Run another program's body on this state; returns what the body returns.

        Of an `async def` what is returned is to be awaited.
        """
        body = getattr(program, "body", program)
        name = getattr(program, "__name__", "a program")
        call = ir.Invoke(name, body, args, kwargs)
        place = users_place()
        if not inspect.iscoroutinefunction(body):
            return self._invoke(call, place)
        if not self._run.in_task:
            raise TypeError(
                f"{name}() is async, and its caller is not: make the caller an async def"
            )
        return self._invoke_in_task(call, place)

    # ---- tools

    def run_tools(self, calls: ToolCall | Sequence[ToolCall]) -> Any:
        """Run what the model has called, and write the results into the conversation as a turn.

        Returns the list of ToolResult; in an `async def` program it is to be awaited. Several calls
        run at the same time. What a tool raises is its result: the model reads it, and it is logged
        under "sglite.tools". `row.tool_results` keeps everything.
        """
        self._run.check()
        known = as_calls(calls, self._tools)
        run = turns.run_in_task if self._run.in_task else turns.run
        return run(self, known, _place(1))

    def use_tools(
        self,
        name: str,
        tools: Sequence[Tool] | None = None,
        *,
        max_steps: int = 8,
        parallel: bool = False,
        **options: Any,
    ) -> Any:
        """Let the model call tools until it answers with text, which is returned; in an
        `async def` program it is to be awaited.

        Every step is an assistant turn with `gen(name, tools=...)`: `row.all(name)` has the calls
        and, last, the answer. `tools` None: those of the first turn. In the last of `max_steps`
        steps the model may only write text. `options` are those of `gen`.
        """
        talk = turns.talk(self, name, tools, max_steps, parallel, options, _place(1))
        drive = turns.drive_in_task if self._run.in_task else turns.drive
        return drive(self, name, talk)

    # ---- branches

    @overload
    def fork(self, n: int) -> list[State]: ...

    @overload
    def fork(self, n: Iterable[str]) -> dict[str, State]: ...

    def fork(self, n: int | Iterable[str]) -> list[State] | dict[str, State]:
        """`n` branches that continue from here, each on its own; this state can go on too.

        With names instead of a number, the branches by their names.
        """
        place = _place(1)
        if isinstance(n, int) and n > 0 and not isinstance(n, bool):
            return self._fork(n, (), place)
        names = () if isinstance(n, int | str) or not isinstance(n, Iterable) else tuple(n)
        if not names or len({*names}) != len(names) or not all(isinstance(x, str) for x in names):
            raise ValueError(
                "fork() takes the number of branches, at least 1, or different names for them; "
                f"got {n!r}"
            )
        return dict(zip(names, self._fork(len(names), names, place), strict=True))

    def join(self, branches: Sequence[State] | Mapping[str, State]) -> None:
        """Take over the variables of branches of this state, each as a list in their order, or,
        of branches by name, as a dict.

        A branch that does not have a variable has None in its place. What this state had under the
        same name before stays in `row.all(name)`.
        """
        if isinstance(branches, Mapping):
            self._join(list(branches.values()), tuple(branches), _place(1))
        else:
            self._join(list(branches), (), _place(1))

    # ---- reading

    def __getitem__(self, name: str) -> Any:
        """The value of a variable, the last one under that name. Waits for it."""
        return last_value(self._awaited(name))

    def read(self, name: str) -> Awaitable[Any]:
        """`await s.read("x")` is `s["x"]` of an `async def` program."""
        self._check_in_task(f"s[{name!r}]")
        variable = self._recorded(name)

        async def value() -> Any:
            for slot in flat_slots([variable]):
                await self._run.wait_in_task(slot)
            return last_value(variable)

        return value()

    def wait(self) -> Awaitable[None]:
        """`await s.wait()` in an `async def` program waits for all that this branch has recorded.

        After it, `s["x"]`, `s.meta("x")` and `s.text()` can be used for all of that.
        """
        self._check_in_task("s.text()")
        self._flush()
        parts = self._record.all_parts()
        gathered = [every[-1] for every in self._record.variables.values()]

        async def wait() -> None:
            for slot in (*parts, *flat_slots(gathered)):
                if isinstance(slot, Slot):
                    await self._run.wait_in_task(slot)

        return wait()

    def __contains__(self, name: object) -> bool:
        """Whether a hole of that name has been recorded. Waits for nothing."""
        return name in self._record.variables

    def __iter__(self) -> Iterator[Any]:
        raise TypeError("a state is not a sequence; read its variables by name")

    def meta(self, name: str) -> HoleResult:
        """All that is known of a hole: ids, logprobs, finish, distribution. Waits for it."""
        variable = self._awaited(name)
        if not isinstance(variable, Gathered):
            return next(flat_slots([variable])).done
        raise ProgramError(f"{name!r} was gathered from branches; ask each of them for its meta")

    def text(self) -> str:
        """The text of this branch so far, chat template included. Waits for all of it."""
        self._flush()
        for part in self._record.all_parts():
            if isinstance(part, Slot):
                self._run.wait(part)
        return self._record.text()

    def messages(self) -> list[dict[str, str]]:
        """The turns of this branch so far as `{"role": ..., "content": ...}`. Waits for them."""
        self.text()
        return self._record.messages()

    @property
    def tokens_left(self) -> int:
        """How many tokens the context still takes after all that was added so far. Waits for it."""
        return overflow.tokens_left(self)

    @property
    def on_overflow(self) -> OverflowPolicy:
        """What happens when this branch outgrows the context, from here on: "error" (the run
        fails), "drop_oldest" (the oldest turns go), or a function that gets the turns that can go
        and returns those that stay. Where the program says nothing, what the run's Options say."""
        return self._on_overflow

    @on_overflow.setter
    def on_overflow(self, policy: OverflowPolicy) -> None:
        check_overflow(policy)
        self._on_overflow = policy

    @property
    def graph(self) -> Graph:
        """What has been recorded so far."""
        from sglite.graphs.graph import Graph

        return Graph.of_record(self._record)

    def __repr__(self) -> str:
        return f"<State with variables {list(self._record.variables)}>"

    # ---- inside

    def _end(self) -> None:
        """The program is over: hand over what this branch and those below it have recorded."""
        is_root = not self._record.path
        if is_root and self._on_overflow != ERROR:
            overflow.make_room_for_text(self)
        self._flush(text_too=is_root)
        for branch in self._branches:
            branch._end()

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
        step = lowered(node, run.options, engine=run.engine, after_word=after_word)
        self._pending.hole(step.step(name, key))
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

    def _release(self) -> None:
        """Nothing uses this branch any more: close its sequence when its work is done."""
        self._flush()
        if self._sequence is not None:
            self._run.release(self._sequence)

    @contextmanager
    def _turn(self, role: str, place: ir.Place, tools: tuple[Tool, ...] = ()) -> Iterator[None]:
        self._open_turn(role, place, tools)
        try:
            yield
            if tools and not self._template().describes_tools:
                turns.describe(self, place)
        finally:
            self._close_turn(place)

    def _open_turn(
        self,
        role: str,
        place: ir.Place,
        tools: tuple[Tool, ...] = (),
        verbatim: str | None = None,
    ) -> None:
        """`verbatim`: what stands there instead of the template's text."""
        record = self._record
        opening = ir.RoleOpen(role, place=place)
        self._end_parents_turn(opening, place)
        if verbatim is not None:
            self._begin_turn(role, verbatim, place, verbatim=True)
            return
        roles = record.roles()
        if tools and roles:
            raise program_error(
                f"{opening.describe()} names tools after the first turn, where a model is told of "
                "them; name them there",
                opening,
            )
        self._tools = tools or self._tools
        try:
            fragments = self._template().fragments([*roles, role], self._tools)
        except ModelError as error:
            raise program_error(str(error), opening) from error
        self._begin_turn(role, fragments.opening, place, verbatim=bool(self._tools))

    def _end_parents_turn(self, opening: ir.RoleOpen, place: ir.Place) -> None:
        """A turn begins: that of a parent ends here, and one of this branch must be over."""
        self._run.check()
        if self._in_parents_turn:
            self._close_turn(place)
        if self._turn_is_open():
            open_role = self._record.turns[-1].role
            raise program_error(
                f"{opening.describe()} inside of {open_role}(); close that turn first", opening
            )

    def _begin_turn(self, role: str, text: str, place: ir.Place, *, verbatim: bool) -> None:
        """A turn that begins with this text of the template."""
        record = self._record
        record.note(ir.RoleOpen(role, text, verbatim, place=place))
        begin = record.position
        self._template_text(text)
        record.open_turn(role, begin)

    def _close_turn(self, place: ir.Place, verbatim: str | None = None) -> None:
        record = self._record
        self._in_parents_turn = False
        closing = verbatim
        if closing is None:
            closing = self._template().fragments(record.roles(), self._tools).closing
        exact = verbatim is not None or bool(self._tools)
        record.note(ir.RoleClose(record.turns[-1].role, closing, exact, place=place))
        record.close_turn()
        self._template_text(closing)

    def _turn_is_open(self) -> bool:
        turns = self._record.turns
        return bool(turns) and turns[-1].end is None

    def _template_text(self, text: str) -> None:
        for part, is_template in chat.pieces(text):
            kept = TemplateText(part) if is_template else part
            self._record.parts.append(kept)
            self._pending.text(part, "template" if is_template else "user")

    def _check_in_task(self, instead: str) -> None:
        if not self._run.in_task:
            raise TypeError(f"this program is a plain def, which does not await: write {instead}")

    async def _invoke_in_task(self, call: ir.Invoke, place: ir.Place) -> Any:
        self._record.note(ir.CallOpen(call.name, place=place))
        try:
            return await call.body(self, *call.args, **call.kwargs)
        finally:
            self._record.note(ir.CallClose(call.name, place=place))

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

    def _fork(self, n: int, names: tuple[str, ...], place: ir.Place) -> list[State]:
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
        record.forks.append([branch._record for branch in branches])
        return branches

    def _join(self, states: Sequence[State], keys: tuple[str, ...], place: ir.Place) -> None:
        known = {id(record) for fork in self._record.forks for record in fork}
        names: dict[str, None] = {}
        own: list[dict[str, Variable]] = []
        for branch in states:
            if not isinstance(branch, State) or id(branch._record) not in known:
                raise ValueError("join() takes branches that fork() of this same state has made")
            branch._flush()
            own.append(branch._record.own_variables())
            names.update(dict.fromkeys(own[-1]))
        for name in names:
            gathered = Gathered(tuple(variables.get(name) for variables in own), keys)
            self._record.variables.setdefault(name, []).append(gathered)
        numbers = tuple(branch._record.number for branch in states)
        self._record.note(ir.Join(tuple(names), numbers, keys, place=place))

    def _branch(self, fork: int, number: int, sequence: SequenceId | None) -> State:
        branch = type(self)(self._run, self._template)
        branch._record = self._record.branch(fork, number)
        branch._pending = self._pending.carried()
        branch._sequence = sequence
        branch._unnamed = self._unnamed
        branch._tools = self._tools
        branch._on_overflow = self._on_overflow
        branch._in_parents_turn = self._turn_is_open()
        return branch

    def _compute(self, operand: Operand, leaf: Leaf) -> Any:
        """What a compiled program works out when it runs."""
        return evaluate(operand, leaf)

    def _read(self, name: str, index: int) -> Any:
        """The value of one occurrence of a variable. Waits for it."""
        return last_value(self._awaited(name, index))

    def _awaited(self, name: str, index: int = -1) -> Variable:
        variable = self._recorded(name, index)
        for slot in flat_slots([variable]):
            self._run.wait(slot)
        return variable

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


def _told(role: str, tools: Sequence[Tool] | None) -> tuple[Tool, ...]:
    return () if tools is None else tool_tuple(f"{role}()", tools)


_places: dict[tuple[CodeType, int], ir.Place] = {}
_MOST_PLACES = 4096


def _place(depth: int) -> ir.Place:
    """The user's line: `depth` frames above the caller of this function."""
    frame = sys._getframe(depth + 1)
    key = (frame.f_code, frame.f_lineno)
    place = _places.get(key)
    if place is None:
        if len(_places) >= _MOST_PLACES:
            _places.clear()
        place = _places[key] = ir.Place(frame.f_code.co_filename, frame.f_lineno)
    return place
