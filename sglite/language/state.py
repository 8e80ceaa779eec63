"""The state of a program: what `s` is.

`s += x` only records. Reading `s["x"]`, a join, or the end of the program hands the recorded steps
up to the last hole to the run, in one segment. A read waits; everything else goes on at once.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NoReturn, Self, overload

from sglite.errors import ProgramError
from sglite.language import ir
from sglite.language.places import place_of_caller, users_place
from sglite.language.recorder import Recorder
from sglite.options import OverflowPolicy, check_overflow
from sglite.running import overflow
from sglite.running.meta import Meta, meta_of
from sglite.running.record import Gathered, Slot, flat_slots, last_value
from sglite.tools import turns
from sglite.tools.calls import as_calls
from sglite.tools.declared import Tool, ToolCall, tool_tuple

if TYPE_CHECKING:
    from sglite.graphs.graph import Graph


class State(Recorder):
    """One branch of a running program. Programs get it as their first argument."""

    __slots__ = ()

    # ---- writing

    def __iadd__(self, content: str | ir.Expression) -> Self:  # type: ignore[misc]
        self._add(content, place_of_caller())
        return self

    def __add__(self, other: object) -> NoReturn:
        raise TypeError("a state is added to in place: write s += ..., not s = s + ...")

    __radd__ = __add__

    def system(self, *, tools: Sequence[Tool] | None = None) -> AbstractContextManager[None]:
        """`with s.system(): ...` puts what is recorded inside into a system turn. `tools`: what the
        model is told of there."""
        return self._turn("system", place_of_caller(), _told("system", tools))

    def user(self, *, tools: Sequence[Tool] | None = None) -> AbstractContextManager[None]:
        """`with s.user(): ...` puts what is recorded inside into a user turn; `tools` as in
        `system`."""
        return self._turn("user", place_of_caller(), _told("user", tools))

    def assistant(self) -> AbstractContextManager[None]:
        """`with s.assistant(): ...` puts what is recorded inside into an assistant turn."""
        return self._turn("assistant", place_of_caller())

    def tool_result(self) -> AbstractContextManager[None]:
        """`with s.tool_result(): ...` puts what is recorded inside into a turn of the role tool."""
        return self._turn("tool", place_of_caller())

    def role(self, name: str) -> AbstractContextManager[None]:
        """`with s.role(name): ...` puts what is recorded inside into a turn of that role."""
        return self._turn(name, place_of_caller())

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
        return run(self, known, place_of_caller())

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
        talk = turns.talk(self, name, tools, max_steps, parallel, options, place_of_caller())
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
        place = place_of_caller()
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
            self._join(list(branches.values()), tuple(branches), place_of_caller())
        else:
            self._join(list(branches), (), place_of_caller())

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

    def meta(self, name: str) -> Meta:
        """All that is known of a hole: ids, logprobs, finish, distribution. Waits for it."""
        variable = self._awaited(name)
        if not isinstance(variable, Gathered):
            return meta_of(next(flat_slots([variable])))
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


def _told(role: str, tools: Sequence[Tool] | None) -> tuple[Tool, ...]:
    return () if tools is None else tool_tuple(f"{role}(): ", tools)
