"""An engine whose model answers over HTTP: any OpenAI-compatible endpoint.

The same programs run on it, as far as the endpoint goes; what it cannot do is an error that names
the missing capability, never a silent difference. Constraints are asked of the endpoint and checked
here against the same grammar, so a value that comes back is valid or an error. All requests share
one thread with an event loop; a program waits for none of them in a thread of its own.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any

from sglite.errors import CancelledError, DeadlineError, ModelError
from sglite.runtime.constraints import Constraints
from sglite.runtime.engines.base import Engine, EventSink, SequenceId, StepRefused
from sglite.runtime.engines.byte_tokens import byte_vocabulary
from sglite.runtime.engines.chat_api import CHAT_TEMPLATE, MOST_STOPS, ChatApi, Extension, Request
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
    TextDelta,
    Usage,
)

if TYPE_CHECKING:
    import httpx2

    from sglite.grammars import Vocabulary

_AGAIN = frozenset({408, 409, 429, 500, 502, 503, 504})  # statuses that another try may change
_LONGEST_WAIT = 30.0  # seconds between two tries
_SAID = 300  # characters of an endpoint's own words in an error

# JSON that an endpoint writes is checked for what it says, not for how it is laid out.
_ANY_LAYOUT = (("property_order", "any"), ("spelling", "any"), ("whitespace", "flexible"))


@dataclass(slots=True)
class _Sequence:
    deadline: float | None
    pieces: list[Piece] = field(default_factory=list)
    work: deque[_Work | _Fork] = field(default_factory=deque)
    task: asyncio.Task[None] | None = None
    error: Exception | None = None
    born: bool = True


@dataclass(slots=True)
class _Work:
    segment: Segment
    sink: EventSink


@dataclass(slots=True)
class _Fork:
    children: list[SequenceId]


class RemoteEngine(Engine):
    """`url` is the base of the API (`http://localhost:8000/v1`). `api_key` None: the environment's
    OPENAI_API_KEY, or none. `extensions`: see `chat_api.EXTENSIONS`. `timeout`: seconds without a
    word from the endpoint; a request that fails on the way there is tried `retries` times again.
    `context`: most tokens of one sequence, if it is known. `transport` replaces the network.
    """

    capabilities = frozenset({"constraints", "select", "fork"})

    def __init__(
        self,
        name: str,
        *,
        url: str,
        api_key: str | None = None,
        extensions: Iterable[Extension] = (),
        timeout: float = 120.0,
        retries: int = 3,
        max_requests: int = 64,
        context: int | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise ValueError(
                f"url={url!r} is not the address of an API; write url='http://localhost:8000/v1'"
            )
        self.name = name
        self._url = url.rstrip("/")
        self._api = ChatApi(name, self._url, extensions)
        self._key = api_key if api_key is not None else os.environ.get("OPENAI_API_KEY")
        self._timeout = timeout
        self._retries = retries
        self._max_requests = max_requests
        self._context = context
        self._transport = transport
        self._numbers = count()
        self._sequences: dict[SequenceId, _Sequence] = {}
        self._metrics = Metrics()
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._client: httpx2.AsyncClient | None = None
        self._shut = False
        watch(self)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """Bytes: the tokens of a remote model are not known."""
        return byte_vocabulary(("<|end|>",), ("<|end|>",))

    @property
    def chat_template(self) -> str:
        return CHAT_TEMPLATE

    @property
    def template_variables(self) -> dict[str, str]:
        return {}

    @property
    def capacity(self) -> int:
        if self._context is None:
            raise ModelError(
                f"{self._url} does not say how many tokens {self.name} holds; open the model with "
                "context="
            )
        return self._context

    def open(self, *, priority: int = 0, deadline: float | None = None) -> SequenceId:
        number = next(self._numbers)
        self._do(self._add, number, _Sequence(deadline))
        return number

    def submit(self, sequence: SequenceId, segment: Segment, sink: EventSink) -> None:
        for index, step in enumerate(segment.steps):
            try:
                self._check_step(step)
            except Exception as error:
                raise StepRefused(index, error) from error
        self._do(self._enqueue, sequence, _Work(segment, sink))

    def fork(self, sequence: SequenceId, n: int) -> Sequence[SequenceId]:
        children = [next(self._numbers) for _ in range(n)]
        self._do(self._add_children, sequence, children)
        return children

    def close(self, sequence: SequenceId) -> None:
        with self._lock:
            if self._shut or self._loop is None:
                return
            self._loop.call_soon_threadsafe(self._close, sequence)

    def count_tokens(self, text: str) -> int:
        raise ModelError(f"the tokens of {self.name} are not known; {self._url} gives text alone")

    def stats(self) -> dict[str, Any]:
        return self._metrics.as_dict() | {"pages_used": 0, "pages_total": 0}

    def shutdown(self) -> None:
        with self._lock:
            if self._shut:
                return
            self._shut = True
            loop, thread = self._loop, self._thread
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            if thread is not threading.current_thread():
                thread.join()

    def forked(self) -> None:
        """Begin anew in the child of a fork: connections and loop are the parent's."""
        self._lock = threading.Lock()
        self._loop = self._thread = self._client = None
        self._sequences.clear()

    def _check_step(self, step: object) -> None:
        if isinstance(step, Append):
            for piece in step.pieces:
                if piece.kind == "special":
                    raise ModelError(
                        f"special({piece.text!r}) needs the tokens of the model; {self._url} "
                        "takes text and turns alone"
                    )
        elif isinstance(step, Gen | Select):
            self._api.check(step)
            if isinstance(step, Gen) and step.constraint is not None:
                self._constraints.compile(_to_check(step.constraint))

    @cached_property
    def _constraints(self) -> Constraints:
        return Constraints(self.vocabulary)

    # ---- from any thread to the loop

    def _do(self, work: Callable[..., None], *args: Any) -> None:
        with self._lock:
            if self._shut:
                raise ModelError(f"the engine of {self.name} has been shut down")
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._run, args=(self._loop,), name=f"sglite {self.name}", daemon=True
                )
                self._thread.start()
            self._loop.call_soon_threadsafe(work, *args)

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
        finally:
            loop.run_until_complete(self._wind_up())
            loop.close()

    async def _wind_up(self) -> None:
        for number in list(self._sequences):
            self._close(number)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*others, return_exceptions=True)
        if self._client is not None:
            await self._client.aclose()

    # ---- on the loop

    def _add(self, number: SequenceId, sequence: _Sequence) -> None:
        self._sequences[number] = sequence

    def _add_children(self, number: SequenceId, children: list[SequenceId]) -> None:
        parent = self._sequences.get(number)
        for child in children:
            deadline = parent.deadline if parent is not None else None
            self._add(child, _Sequence(deadline, born=False))
        self._enqueue(number, _Fork(children))

    def _enqueue(self, number: SequenceId, work: _Work | _Fork) -> None:
        sequence = self._sequences.get(number)
        if sequence is None:
            self._refuse([work], CancelledError("the sequence was closed"))
            return
        sequence.work.append(work)
        self._wake(sequence)

    def _wake(self, sequence: _Sequence) -> None:
        if sequence.work and sequence.born and sequence.task is None:
            sequence.task = asyncio.ensure_future(self._work_off(sequence))
            sequence.task.add_done_callback(lambda task: self._worked_off(sequence, task))

    def _close(self, number: SequenceId) -> None:
        sequence = self._sequences.pop(number, None)
        if sequence is None:
            return
        sequence.error = sequence.error or CancelledError("the sequence was closed")
        if sequence.task is not None:
            sequence.task.cancel()
        else:
            self._refuse(sequence.work, sequence.error)

    def _refuse(self, work: Iterable[_Work | _Fork], error: Exception) -> None:
        for each in work:
            if isinstance(each, _Work):
                each.sink(SegmentFailed(0, error))
                continue
            for number in each.children:
                child = self._sequences.get(number)
                if child is not None:
                    child.born, child.error = True, error
                    self._wake(child)

    async def _work_off(self, sequence: _Sequence) -> None:
        while sequence.work:
            work = sequence.work.popleft()
            if sequence.error is not None:
                self._refuse([work], sequence.error)
            elif isinstance(work, _Fork):
                self._give_birth(sequence, work)
            else:
                await self._segment(sequence, work)

    def _worked_off(self, sequence: _Sequence, task: asyncio.Task[None]) -> None:
        # Not in the task itself, which is not even begun if it is cancelled at once.
        sequence.task = None
        if task.cancelled():
            self._refuse(sequence.work, sequence.error or CancelledError("the engine ended"))
        else:
            self._wake(sequence)

    def _give_birth(self, parent: _Sequence, fork: _Fork) -> None:
        for number in fork.children:
            child = self._sequences.get(number)
            if child is not None:
                child.pieces = parent.pieces.copy()
                child.born = True
                self._wake(child)

    async def _segment(self, sequence: _Sequence, work: _Work) -> None:
        at = 0
        try:
            async with asyncio.timeout_at(self._loop_time(sequence.deadline)):
                for at, step in enumerate(work.segment.steps):
                    if isinstance(step, Append):
                        sequence.pieces += step.pieces
                        continue
                    result = await self._fill(sequence, at, step, work.sink)
                    if not step.hidden:
                        sequence.pieces.append(Piece(result.text))
                    self._metrics.count_hole(result.usage)
                    self._metrics.steps += 1
                    work.sink(HoleDone(at, result))
        except asyncio.CancelledError:
            error = sequence.error or CancelledError("the engine ended")
            work.sink(SegmentFailed(at, error))
            raise
        except TimeoutError:
            sequence.error = DeadlineError(f"the deadline passed before {self._url} had answered")
            work.sink(SegmentFailed(at, sequence.error))
        except Exception as error:
            sequence.error = error
            work.sink(SegmentFailed(at, error))
        else:
            work.sink(SegmentDone())

    def _loop_time(self, deadline: float | None) -> float | None:
        if deadline is None or self._loop is None:
            return None
        return self._loop.time() + deadline - time.monotonic()

    async def _fill(
        self, sequence: _Sequence, at: int, hole: Gen | Select, sink: EventSink
    ) -> HoleResult:
        request = self._api.request(sequence.pieces, hole)
        answer = _Answer(hole, request, lambda text: sink(TextDelta(at, text)))
        await self._ask(request, answer)
        result = answer.result()
        if isinstance(hole, Gen) and hole.constraint is not None:
            self._check_value(hole, hole.constraint, result)
        elif isinstance(hole, Select) and result.text not in hole.choices:
            raise ModelError(
                f"{self._url} wrote {result.text[:_SAID]!r}, which is none of the choices of "
                f"{hole.name!r}"
            )
        return result

    def _check_value(self, hole: Gen, constraint: Constraint, result: HoleResult) -> None:
        matcher = self._constraints.compile(_to_check(constraint)).matcher()
        if matcher.accept_tokens(list(result.text.encode())) and matcher.is_complete:
            return
        if result.finish == "length":
            raise ModelError(
                f"{self._url} cut the value of {hole.name!r} off after max_tokens="
                f"{hole.max_tokens}; raise max_tokens"
            )
        raise ModelError(
            f"{self._url} wrote {result.text[:_SAID]!r} for {hole.name!r}, which its "
            f"{constraint.kind} refuses; the endpoint does not enforce it"
        )

    # ---- requests

    async def _ask(self, request: Request, answer: _Answer) -> None:
        for attempt in range(self._retries + 1):
            try:
                return await self._try(request, answer)
            except _Again as again:
                if attempt == self._retries or answer.begun:
                    raise again.error from again.__cause__
                await asyncio.sleep(min(again.wait or 0.5 * 2**attempt, _LONGEST_WAIT))
        return None

    async def _try(self, request: Request, answer: _Answer) -> None:
        import httpx2

        client = self._open_client()
        try:
            async with client.stream("POST", request.path, json=request.body) as response:
                if response.status_code != 200:
                    body = (await response.aread()).decode("utf-8", "replace")
                    raise self._status_error(response, body)
                async for line in response.aiter_lines():
                    if line.startswith("data:") and line[5:].strip() != "[DONE]":
                        answer.feed(json.loads(line[5:]))
        except httpx2.TransportError as error:
            said = f"{self._url} cannot be reached: {str(error) or type(error).__name__}"
            raise _Again(ModelError(said)) from error
        except json.JSONDecodeError as error:
            raise ModelError(f"{self._url} streams what is no JSON: {error}") from error

    def _status_error(self, response: httpx2.Response, body: str) -> Exception:
        status = response.status_code
        try:
            said = json.loads(body)["error"]["message"]
        except (ValueError, KeyError, TypeError):
            said = body
        hint = {
            401: "; pass api_key=, or set OPENAI_API_KEY",
            404: "; the URL ends in /v1 in most cases, and a plain completion needs /completions",
        }.get(status, "")
        error = ModelError(f"{response.url} answered {status}: {str(said)[:_SAID]}{hint}")
        if status not in _AGAIN:
            return error
        wait = response.headers.get("retry-after", "")
        return _Again(error, float(wait) if wait.replace(".", "", 1).isdigit() else 0.0)

    def _open_client(self) -> httpx2.AsyncClient:
        if self._client is None:
            import httpx2

            self._client = httpx2.AsyncClient(
                base_url=self._url + "/",
                headers={"Authorization": f"Bearer {self._key}"} if self._key else {},
                timeout=self._timeout,
                limits=httpx2.Limits(max_connections=self._max_requests),
                transport=self._transport,
            )
        return self._client


class _Again(Exception):  # noqa: N818 (never leaves this module)
    """A failure that another try may change."""

    def __init__(self, error: ModelError, wait: float = 0.0) -> None:
        super().__init__(str(error))
        self.error = error
        self.wait = wait * random.uniform(1.0, 1.1)  # not all of a batch at the same time


class _Answer:
    """The stream of one answer, up to the text that ends the hole."""

    def __init__(self, hole: Gen | Select, request: Request, tell: Callable[[str], None]) -> None:
        self._hole = hole
        self._choice = request.choice
        cut_here = isinstance(hole, Gen) and len(hole.stop) + len(hole.until) > MOST_STOPS
        self._tell = None if request.choice or cut_here else tell
        self._text = ""
        self._finish: str | None = None
        self._usage = Usage()
        self._started_at = time.monotonic()
        self._first_at = 0.0

    @property
    def begun(self) -> bool:
        """Whether some of the text has been handed out."""
        return bool(self._text)

    def feed(self, chunk: dict[str, Any]) -> None:
        """One event of the stream. Raises ModelError for an error that comes as one."""
        if chunk.get("error"):
            raise ModelError(f"the endpoint broke off: {str(chunk['error'])[:_SAID]}")
        usage = chunk.get("usage") or {}
        if usage:
            cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
            prompt, decoded = usage.get("prompt_tokens", 0), usage.get("completion_tokens", 0)
            self._usage = Usage(prompt_tokens=prompt, cached_tokens=cached, decoded_tokens=decoded)
        for choice in chunk.get("choices") or ():
            text = choice.get("text") or (choice.get("delta") or {}).get("content") or ""
            self._finish = choice.get("finish_reason") or self._finish
            if text:
                self._first_at = self._first_at or time.monotonic()
                self._text += text
                if self._tell is not None:
                    self._tell(text)

    def result(self) -> HoleResult:
        """What came. Raises ModelError for an answer that says nothing of its end."""
        if self._finish is None:
            raise ModelError("the endpoint ended its answer without a finish_reason")
        if self._finish == "content_filter":
            raise ModelError(f"the endpoint's filter cut the value of {self._hole.name!r} off")
        text, finish, stop = self._ended()
        now = time.monotonic()
        return HoleResult(
            name=self._hole.name,
            text=text,
            ids=(),
            finish=finish,
            stop=stop,
            usage=self._usage,
            started_at=self._started_at,
            first_token_at=self._first_at or now,
            finished_at=now,
        )

    def _ended(self) -> tuple[str, FinishReason, str | None]:
        if isinstance(self._hole, Select):
            return self._chosen(), "select", None
        hole = self._hole
        if self._finish == "length":
            return self._text, "length", None
        if hole.constraint is not None:
            return self._text, "grammar", None
        ends = (*hole.stop, *hole.until)
        found = [(at, i) for i, end in enumerate(ends) if (at := self._text.find(end)) >= 0]
        if found:  # the endpoint takes only some of the texts
            at, which = min(found)
            kind: FinishReason = "stop" if which < len(hole.stop) else "until"
            return self._text[:at], kind, ends[which]
        return self._text, "eos", None

    def _chosen(self) -> str:
        if not self._choice:
            return self._text
        try:
            return str(json.loads(self._text)["choice"])
        except (ValueError, KeyError, TypeError):
            return self._text


def _to_check(constraint: Constraint) -> Constraint:
    if constraint.kind != "json_schema":
        return constraint
    return Constraint("json_schema", constraint.source, _ANY_LAYOUT)
