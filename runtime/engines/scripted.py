"""An engine without a model: it answers every hole with a scripted or with some valid text.

For tests of programs, and for trying one out before a model is there. A token is a byte, and a few
special tokens come after the bytes; a scripted answer is checked against the constraint of its hole
and is not cut by `max_tokens`, since bytes are not what the limit was chosen for.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import count
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sglite.errors import CancelledError, CapacityError, DeadlineError, ModelError
from sglite.runtime.constraints import Constraints
from sglite.runtime.endings import check_gen
from sglite.runtime.engines.answers import choose, ended, scores_of, written
from sglite.runtime.engines.base import Engine, EventSink, SequenceId, StepRefused
from sglite.runtime.engines.byte_tokens import byte_vocabulary
from sglite.runtime.forks import watch
from sglite.runtime.metrics import Metrics
from sglite.runtime.segment import (
    Append,
    Constraint,
    FinishReason,
    Gen,
    HoleDone,
    HoleResult,
    Piece,
    Segment,
    SegmentDone,
    SegmentFailed,
    Select,
    Step,
    TextDelta,
    Usage,
)
from sglite.runtime.select import check_select
from sglite.runtime.stop_patterns import stop_pattern

if TYPE_CHECKING:
    from sglite.grammars import Vocabulary

SPECIAL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
"""The ids 256, 257 and 258."""

CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

_DELTA = 32  # characters of text in one event
_PRINTABLE = range(32, 127)


@dataclass(slots=True)
class SequenceState:
    """What a sequence holds so far."""

    ids: list[int] = field(default_factory=list)
    prompt: int = 0  # ids of literal text since the last hole
    broken: bool = False
    deadline: float | None = None

    def text(self) -> str:
        """Everything, special tokens as their texts."""
        parts = (bytes([i]) if i < 256 else SPECIAL_TOKENS[i - 256].encode() for i in self.ids)
        return b"".join(parts).decode(errors="replace")


class ScriptedEngine(Engine):
    """Answers from `script`: variable -> answer, list of answers, or function.

    A list is used up, one answer for each occurrence of the variable, in the order in which the
    engine meets them. A function gets the text so far and returns the answer. An answer is a text,
    or data that is written as JSON; for a select also a dict of probabilities; the hole fails with
    an exception. `delay` seconds pass before each hole. A sequence holds `capacity` bytes.
    """

    capabilities = frozenset({"constraints", "select", "fork", "tokens"})

    def __init__(
        self,
        name: str = "scripted",
        *,
        script: Mapping[str, Any] | None = None,
        chat_template: str | None = CHAT_TEMPLATE,
        delay: float = 0.0,
        capacity: int = 1 << 20,
    ) -> None:
        self.name = name
        self._script = dict(script or {})
        self._used: dict[str, int] = {}
        self._template = chat_template
        self._delay = delay
        self._capacity = capacity
        self._ids = count()
        self._sequences: dict[SequenceId, SequenceState] = {}
        self._live: set[SequenceId] = set()
        self._metrics = Metrics()
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._shut = False
        self._shortest: dict[Constraint, str] = {}
        watch(self)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """One token for every byte, then the special tokens."""
        return byte_vocabulary(SPECIAL_TOKENS, ("<|endoftext|>", "<|im_end|>"))

    @property
    def chat_template(self) -> str | None:
        return self._template

    def answers_left(self) -> dict[str, int]:
        """By variable, of how many answers of its list none has been given."""
        lists = {name: a for name, a in self._script.items() if isinstance(a, list | tuple)}
        return {name: len(a) - self._used.get(name, 0) for name, a in lists.items()}

    @property
    def template_variables(self) -> dict[str, str]:
        return {"bos_token": "", "eos_token": SPECIAL_TOKENS[0]}

    @property
    def capacity(self) -> int:
        return self._capacity

    def open(self, *, priority: int = 0, deadline: float | None = None) -> SequenceId:
        sequence = next(self._ids)
        self._add(sequence, SequenceState(deadline=deadline))
        return sequence

    def submit(self, sequence: SequenceId, segment: Segment, sink: EventSink) -> None:
        for index, step in enumerate(segment.steps):
            try:
                self._check_step(step)
            except Exception as error:
                raise StepRefused(index, error) from error
        self._do(partial(self._run, sequence, segment, sink))

    def fork(self, sequence: SequenceId, n: int) -> Sequence[SequenceId]:
        forks = [next(self._ids) for _ in range(n)]
        for fork in forks:
            self._add(fork, SequenceState())

        def copy() -> None:
            parent = self._sequences.get(sequence, SequenceState(broken=True))
            for fork in forks:
                if fork in self._sequences:
                    self._sequences[fork] = replace(parent, ids=parent.ids.copy())

        self._do(copy)
        return forks

    def close(self, sequence: SequenceId) -> None:
        with self._lock:
            if sequence not in self._live:
                return
            self._live.discard(sequence)
            # At once: work that is queued for it finds nothing and says so.
            self._sequences.pop(sequence, None)

    def count_tokens(self, text: str) -> int:
        return len(text.encode())

    def stats(self) -> dict[str, Any]:
        return self._metrics.as_dict() | {"pages_used": 0, "pages_total": 0}

    def shutdown(self) -> None:
        with self._lock:
            if self._shut:
                return
            self._shut = True
            self._live.clear()
            thread = self._thread
        self._work.put(None)
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def forked(self) -> None:
        """Begin anew in the child of a fork: nothing here needs what the parent's thread had."""
        self._lock = threading.Lock()
        self._work = SimpleQueue()
        self._thread = None
        self._live.clear()
        self._sequences.clear()

    # ---- the engine's thread

    def _add(self, sequence: SequenceId, state: SequenceState) -> None:
        with self._lock:
            if self._shut:
                raise ModelError("the scripted engine has been shut down")
            self._live.add(sequence)
            self._sequences[sequence] = state

    def _do(self, work: Callable[[], object]) -> None:
        with self._lock:
            if self._shut:
                raise ModelError("the scripted engine has been shut down")
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._loop, name="sglite-scripted", daemon=True
                )
                self._thread.start()
            self._work.put(work)  # type: ignore[arg-type]

    def _loop(self) -> None:
        while (work := self._work.get()) is not None:
            work()
            work = None  # what it knows is not kept until there is more to do

    def _check_step(self, step: Step) -> None:
        if isinstance(step, Append):
            for piece in step.pieces:
                if piece.kind == "special":
                    _check_special(piece)
        elif isinstance(step, Select):
            check_select(step)
        else:
            check_gen(step, self.vocabulary.size)
            for pattern in step.stop_regex:
                stop_pattern(pattern)
            if step.constraint is not None:
                self._constraints.compile(step.constraint)

    def _run(self, sequence: SequenceId, segment: Segment, sink: EventSink) -> None:
        state = self._sequences.get(sequence)
        begun: list[int] = []  # how long the state was before each step
        for index, step in enumerate(segment.steps):
            try:
                if state is None or state.broken or sequence not in self._live:
                    raise CancelledError("the sequence was closed")
                _check_deadline(state)
                begun.append(len(state.ids))
                if isinstance(step, Append):
                    for piece in step.pieces:
                        ids = _ids_of(piece)
                        state.ids += ids
                        state.prompt += len(ids)
                    self._check_capacity(state)
                    continue
                result = self._fill(state, index, step, sink)
            except Exception as error:
                if state is not None:
                    state.broken = True
                sink(SegmentFailed(index, error))
                return
            drops = step.drops if isinstance(step, Gen) else 0
            if drops:
                del state.ids[begun[index - drops] :]
            if not step.hidden:
                state.ids += result.ids
            state.prompt = 0
            self._metrics.count_hole(result.usage)
            self._metrics.steps += 1
            sink(HoleDone(index, result))
        sink(SegmentDone(tuple(state.ids) if state is not None else ()))

    def _check_capacity(self, state: SequenceState) -> None:
        if len(state.ids) > self._capacity:
            raise CapacityError(
                f"the sequence would have {len(state.ids)} bytes, the scripted engine holds "
                f"{self._capacity}"
            )

    def _fill(
        self, state: SequenceState, index: int, hole: Gen | Select, sink: EventSink
    ) -> HoleResult:
        started = time.monotonic()
        self._wait(state)
        answer = self._answer(hole.name, state)
        distribution = None
        stop = None
        finish: FinishReason
        if isinstance(hole, Select):
            text, distribution = choose(hole, answer)
            finish = "select"
        elif hole.constraint is not None:
            text = self._constrained(hole, hole.constraint, answer)
            finish = "grammar"
        else:
            whole = f"<{hole.name}>" if answer is None else written(answer)
            text, finish, stop = ended(whole, hole)
        for start in range(0, len(text), _DELTA):
            sink(TextDelta(index, text[start : start + _DELTA]))
        ids = tuple(text.encode())
        wants_tops = isinstance(hole, Gen) and hole.top_logprobs > 0
        now = time.monotonic()
        return HoleResult(
            name=hole.name,
            text=text,
            ids=ids,
            finish=finish,
            logprobs=(0.0,) * len(ids),
            ends=tuple(range(1, len(ids) + 1)),
            stop=stop,
            distribution=distribution,
            scores=scores_of(distribution) if distribution is not None else None,
            top_logprobs=tuple({i: 0.0} for i in ids) if wants_tops else (),
            usage=Usage(prompt_tokens=state.prompt, decoded_tokens=len(ids)),
            started_at=started,
            first_token_at=now,
            finished_at=now,
        )

    def _wait(self, state: SequenceState) -> None:
        """Take the time that a hole takes, or what is left of it."""
        if self._delay:
            left = math.inf if state.deadline is None else state.deadline - time.monotonic()
            time.sleep(max(0.0, min(self._delay, left)))
        _check_deadline(state)

    def _answer(self, name: str, state: SequenceState) -> Any:
        answer = self._script.get(name)
        if isinstance(answer, list | tuple):
            used = self._used.get(name, 0)
            if used >= len(answer):
                has = f"{len(answer)} answer{'s' * (len(answer) != 1)}"
                raise ValueError(f"the script has only {has} for {name!r}")
            self._used[name] = used + 1
            answer = answer[used]
        if callable(answer) and not isinstance(answer, type):
            answer = answer(state.text())
        if isinstance(answer, Exception):
            raise answer
        return answer

    # ---- constraints

    def _constrained(self, hole: Gen, constraint: Constraint, answer: Any) -> str:
        if answer is None:
            return self._shortest_text(constraint)
        text = written(answer)
        matcher = self._constraints.compile(constraint).matcher()
        data = text.encode()
        for position, byte in enumerate(data):
            if not matcher.accept(byte):
                raise ValueError(
                    f"the scripted answer {text!r} for {hole.name!r} does not match its "
                    f"{constraint.kind}: refused at byte {position}"
                )
        if not (matcher.is_complete or matcher.is_finished):
            raise ValueError(
                f"the scripted answer {text!r} for {hole.name!r} is cut off: its "
                f"{constraint.kind} goes on"
            )
        return text

    @cached_property
    def _constraints(self) -> Constraints:
        return Constraints(self.vocabulary)

    def _shortest_text(self, constraint: Constraint) -> str:
        """A shortest text that matches, with printable characters where there is a choice."""
        text = self._shortest.get(constraint)
        if text is None:
            matcher = self._constraints.compile(constraint).matcher()
            mask = self.vocabulary.empty_mask()
            data = bytearray()
            # Each allowed byte under this budget brings the end nearer by one.
            while not (matcher.is_complete or matcher.is_finished):
                matcher.fill_mask(mask, budget=matcher.tokens_to_finish())
                byte = next(_allowed_bytes(mask))
                matcher.accept(byte)
                data.append(byte)
            text = self._shortest[constraint] = data.decode()
        return text


def _allowed_bytes(mask: NDArray[np.uint32]) -> Iterator[int]:
    bits = np.unpackbits(mask.view(np.uint8), bitorder="little")[:256]
    allowed = np.flatnonzero(bits).tolist()
    return iter(sorted(allowed, key=lambda byte: (byte not in _PRINTABLE, byte)))


def _check_deadline(state: SequenceState) -> None:
    if state.deadline is not None and time.monotonic() >= state.deadline:
        raise DeadlineError("the deadline passed before this was done")


def _ids_of(piece: Piece) -> Collection[int]:
    """User text as bytes, ids as they are; in other pieces special tokens are found first."""
    if piece.kind == "user":
        return piece.text.encode()
    if piece.kind == "ids":
        return list(piece.ids)
    ids: list[int] = []
    rest = piece.text
    while rest:
        found = [(at, i) for i, text in enumerate(SPECIAL_TOKENS) if (at := rest.find(text)) >= 0]
        at, which = min(found, default=(len(rest), -1))
        ids += rest[:at].encode()
        if which < 0:
            break
        ids.append(256 + which)
        rest = rest[at + len(SPECIAL_TOKENS[which]) :]
    return ids


def _check_special(piece: Piece) -> None:
    if piece.text not in SPECIAL_TOKENS:
        raise ValueError(
            f"{piece.text!r} is no special token of the scripted engine; it has "
            f"{', '.join(SPECIAL_TOKENS)}"
        )
