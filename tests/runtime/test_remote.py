"""The remote engine against endpoints made here: what it asks, what it takes, what it refuses."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import SimpleQueue
from typing import Annotated, Any

import httpx2
import pytest
from pydantic import AfterValidator

import sglite as sgl
from sglite.errors import CancelledError, DeadlineError, ModelError
from sglite.options import Sampling
from sglite.runtime.engines.base import StepRefused
from sglite.runtime.engines.remote import RemoteEngine
from sglite.runtime.segment import (
    Append,
    Constraint,
    Event,
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
)

URL = "http://there/v1"
AGE = '{"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}'


def events(*texts: str, finish: str = "stop", chat: bool = False) -> str:
    """A streamed answer."""
    chunks: list[dict[str, Any]] = [
        {"choices": [{"delta": {"content": text}} if chat else {"text": text}]} for text in texts
    ]
    chunks.append({"choices": [{"delta": {}, "text": "", "finish_reason": finish}]})
    usage = {"prompt_tokens": 7, "completion_tokens": len(texts)}
    chunks.append({"choices": [], "usage": usage | {"prompt_tokens_details": {"cached_tokens": 3}}})
    return "".join(f"data: {json.dumps(c)}\n\n" for c in chunks) + "data: [DONE]\n\n"


class Endpoint:
    """Answers requests in turn and remembers them."""

    def __init__(self, *answers: str | tuple[int, str] | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.headers: list[httpx2.Headers] = []

    async def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append((request.url.path, json.loads(request.content)))
        self.headers.append(request.headers)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        status, body = answer if isinstance(answer, tuple) else (200, answer)
        return httpx2.Response(status, text=body, headers={"retry-after": "0.01"})

    @property
    def body(self) -> dict[str, Any]:
        return self.asked[-1][1]


@pytest.fixture
def open_engine() -> Iterator[Callable[..., RemoteEngine]]:
    made: list[RemoteEngine] = []

    def open_one(endpoint: Any, **options: Any) -> RemoteEngine:
        transport = httpx2.MockTransport(endpoint)
        made.append(RemoteEngine("m", url=URL, transport=transport, **options))
        return made[-1]

    yield open_one
    for engine in made:
        engine.shutdown()


def run(engine: RemoteEngine, *steps: Step, sequence: int | None = None) -> list[Event]:
    queue: SimpleQueue[Event] = SimpleQueue()
    engine.submit(engine.open() if sequence is None else sequence, Segment(steps), queue.put)
    found = [queue.get(timeout=10)]
    while not isinstance(found[-1], SegmentDone | SegmentFailed):
        found.append(queue.get(timeout=10))
    return found


def last_result(found: list[Event]) -> HoleResult:
    return [event.result for event in found if isinstance(event, HoleDone)][-1]


def failure(found: list[Event]) -> Exception:
    assert isinstance(found[-1], SegmentFailed)
    return found[-1].error


def text(written: str) -> Append:
    return Append((Piece(written),))


def turn(role: str, content: str) -> tuple[Piece, ...]:
    return (
        Piece(f"\ue000{role}\ue001", "template"),
        Piece(content),
        Piece("\ue002", "template"),
    )


ASSISTANT = Piece("\ue000assistant\ue001", "template")


def test_plain_text_is_a_completion(open_engine: Any) -> None:
    endpoint = Endpoint(events("Par", "is"))
    found = run(open_engine(endpoint), text("The capital is "), Gen("x", stop=("\n",)))
    path, body = endpoint.asked[0]
    assert path == "/v1/completions"
    assert body["prompt"] == "The capital is "
    assert (body["model"], body["max_tokens"], body["stop"]) == ("m", 128, ["\n"])
    assert [e.text for e in found if isinstance(e, TextDelta)] == ["Par", "is"]
    result = last_result(found)
    assert (result.text, result.finish) == ("Paris", "eos")
    assert (result.usage.prompt_tokens, result.usage.cached_tokens) == (7, 3)


def test_what_was_written_stands_in_the_next_prompt(open_engine: Any) -> None:
    endpoint = Endpoint(events("Paris"), events("x"), events("big"))
    hidden = Gen("h", hidden=True)
    run(open_engine(endpoint), text("A "), Gen("x"), text(" is "), hidden, text("so "), Gen("y"))
    assert endpoint.body["prompt"] == "A Paris is so "


def test_turns_become_messages(open_engine: Any) -> None:
    endpoint = Endpoint(events("Hi", chat=True))
    pieces = (*turn("system", "Be brief."), *turn("user", "Hello \ue000 there"), ASSISTANT)
    run(open_engine(endpoint), Append(pieces), Gen("x"))
    path, body = endpoint.asked[0]
    assert path == "/v1/chat/completions"
    assert body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello \ue000 there"},
    ]
    assert "continue_final_message" not in body


def test_a_program_with_roles_keeps_its_conversation(monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = Endpoint(events("Four.", chat=True), events("Eight.", chat=True))

    @sgl.function
    def talk(s: Any) -> None:
        s += sgl.user("2 + 2?")
        s += sgl.assistant(sgl.gen("a"))
        s += sgl.user("Twice that?")
        s += sgl.assistant(sgl.gen("b"))

    with sgl.Model("m", backend="remote", url=URL) as model:
        monkeypatch.setattr(model.engine, "_transport", httpx2.MockTransport(endpoint))
        row = talk.run(model=model)
    assert (row["a"], row["b"]) == ("Four.", "Eight.")
    assert endpoint.body["messages"] == [
        {"role": "user", "content": "2 + 2?"},
        {"role": "assistant", "content": "Four."},
        {"role": "user", "content": "Twice that?"},
    ]


def test_a_value_that_is_refused_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def even(value: int) -> int:
        if value % 2:
            raise ValueError(f"{value} is odd")
        return value

    @sgl.function
    def ask(s: Any) -> None:
        s += sgl.user("A number?")
        s += sgl.assistant(sgl.gen("n", list[Annotated[int, AfterValidator(even)]], retries=2))
        s += sgl.user("Thanks.")
        s += sgl.assistant(sgl.gen("end"))

    answers = (events(text, chat=True) for text in ("[1]", "[3]", "[2]", "Bye."))
    endpoint = Endpoint(*answers)
    with sgl.Model("m", backend="remote", url=URL) as model:
        monkeypatch.setattr(model.engine, "_transport", httpx2.MockTransport(endpoint))
        row = ask.run(model=model)
    assert row["n"] == [2]
    asked = [[message["content"] for message in body["messages"]] for _, body in endpoint.asked]
    wrong = "This was not accepted:\n- 0: {} is odd\nWrite it again, corrected."
    assert asked == [
        ["A number?"],
        ["A number?", "[1]", wrong.format(1)],
        ["A number?", "[1]", wrong.format(1), "[3]", wrong.format(3)],
        ["A number?", "[2]", "Thanks."],
    ]
    assert row.usage.prompt_tokens == 4 * 7


def test_a_begun_turn_needs_the_extension(open_engine: Any) -> None:
    steps = (Append((*turn("user", "Hi"), ASSISTANT, Piece("Well, "))), Gen("x"))
    error = failure(run(open_engine(Endpoint()), *steps))
    assert isinstance(error, ModelError)
    assert "extensions=['prefill']" in str(error)
    endpoint = Endpoint(events("yes", chat=True))
    run(open_engine(endpoint, extensions=["prefill"]), *steps)
    assert endpoint.body["messages"][-1] == {"role": "assistant", "content": "Well, "}
    assert endpoint.body["continue_final_message"] is True
    assert endpoint.body["add_generation_prompt"] is False


@pytest.mark.parametrize(
    ("pieces", "says"),
    [
        ((Piece("loose"), *turn("user", "Hi"), ASSISTANT), "'loose' stands outside"),
        ((Piece("\ue000user\ue001", "template"),), "stands in a user turn"),
        (turn("user", "Hi"), "stands outside of every turn"),
    ],
)
def test_holes_that_no_chat_can_have(
    open_engine: Any, pieces: tuple[Piece, ...], says: str
) -> None:
    assert says in str(failure(run(open_engine(Endpoint()), Append(pieces), Gen("x"))))


def test_a_schema_is_asked_for_and_checked(open_engine: Any) -> None:
    gen = Gen("x", constraint=Constraint("json_schema", AGE))
    endpoint = Endpoint(
        events('{ "age":\n 4.0 }'), events('{"age": "4"}'), events('{"age": ', finish="length")
    )
    engine = open_engine(endpoint)
    result = last_result(run(engine, text("."), gen))
    assert (result.text, result.finish) == ('{ "age":\n 4.0 }', "grammar")
    asked = endpoint.body["response_format"]
    assert asked["type"] == "json_schema"
    assert asked["json_schema"]["schema"] == json.loads(AGE)
    assert asked["json_schema"]["strict"] is True
    assert "does not enforce" in str(failure(run(engine, text("."), gen)))
    assert "raise max_tokens" in str(failure(run(engine, text("."), gen)))


def test_a_regex_needs_the_extension(open_engine: Any) -> None:
    gen = Gen("x", constraint=Constraint("regex", "[0-9]+"))
    engine = open_engine(Endpoint())
    with pytest.raises(StepRefused, match="structured_outputs") as refused:
        engine.submit(engine.open(), Segment((text("."), gen)), print)
    assert refused.value.step == 1
    endpoint = Endpoint(events("12"))
    engine = open_engine(endpoint, extensions=["structured_outputs"])
    assert last_result(run(engine, text("."), gen)).text == "12"
    assert endpoint.body["structured_outputs"] == {"regex": "[0-9]+"}


def test_a_select_is_an_enum(open_engine: Any) -> None:
    select = Select("x", ("yes", "no"))
    endpoint = Endpoint(events('{"choice": ', '"no"}'), events('{"choice": "perhaps"}'))
    engine = open_engine(endpoint)
    found = run(engine, text("?"), select)
    assert (last_result(found).text, last_result(found).distribution) == ("no", None)
    assert not [e for e in found if isinstance(e, TextDelta)]
    schema = endpoint.body["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["choice"]["enum"] == ["yes", "no"]
    assert "none of the choices" in str(failure(run(engine, text("?"), select)))
    endpoint = Endpoint(events("no"))
    engine = open_engine(endpoint, extensions=["structured_outputs"])
    assert last_result(run(engine, text("?"), select)).text == "no"
    assert endpoint.body["structured_outputs"] == {"choice": ["yes", "no"]}


@pytest.mark.parametrize(
    ("step", "says"),
    [
        (Gen("x", stop_regex=("a+",)), "stop_regex="),
        (Gen("x", top_logprobs=2), "logprobs="),
        (Gen("x", sampling=Sampling(top_k=4)), "top_k"),
        (Gen("x", min_tokens=3), "min_tokens"),
        (Gen("x", stop_ids=(1,)), "stop_token_ids"),
        (Select("x", ("a", "b"), method="mean"), "method='mean'"),
        (Append((Piece("<|x|>", "special"),)), "special"),
    ],
)
def test_missing_capabilities_are_named(open_engine: Any, step: Step, says: str) -> None:
    engine = open_engine(Endpoint())
    with pytest.raises(StepRefused, match=says):
        engine.submit(engine.open(), Segment((step,)), print)


def test_options_are_passed_on(open_engine: Any) -> None:
    sampling = Sampling(0.5, top_p=0.9, top_k=4, presence_penalty=1.0)
    gen = Gen("x", key=2**40 + 5, sampling=sampling, logit_bias=((3, -1.0),), min_tokens=2)
    endpoint = Endpoint(events("a"))
    run(open_engine(endpoint, extensions=["sampling"]), text("."), gen)
    wanted = {"temperature": 0.5, "top_p": 0.9, "top_k": 4, "presence_penalty": 1.0, "seed": 5}
    wanted |= {"min_tokens": 2, "logit_bias": {"3": -1.0}}
    assert {key: endpoint.body[key] for key in wanted} == wanted
    assert "frequency_penalty" not in endpoint.body


def test_more_stop_texts_than_the_endpoint_takes_are_cut_here(open_engine: Any) -> None:
    endpoint = Endpoint(events("one;", "two"))
    gen = Gen("x", stop=("a", "b", "c", "d"), until=(";",))
    found = run(open_engine(endpoint), text("."), gen)
    result = last_result(found)
    assert (result.text, result.finish, result.stop) == ("one", "until", ";")
    assert len(endpoint.body["stop"]) == 4
    assert not [e for e in found if isinstance(e, TextDelta)]


def test_a_busy_endpoint_is_asked_again(open_engine: Any) -> None:
    endpoint = Endpoint(
        (429, "slow down"), httpx2.ConnectError("refused"), (503, ""), events("at last")
    )
    assert last_result(run(open_engine(endpoint), text("."), Gen("x"))).text == "at last"
    endpoint = Endpoint((429, "a"), (429, "b"))
    error = failure(run(open_engine(endpoint, retries=1), text("."), Gen("x")))
    assert "answered 429: b" in str(error)


def test_refusals_have_the_endpoints_own_words(open_engine: Any) -> None:
    body = json.dumps({"error": {"message": "no such model"}})
    endpoint = Endpoint((401, body), (400, "<html>"), '{"oh": "no"}', "data: {\n\n")
    engine = open_engine(endpoint, api_key="secret")
    error = failure(run(engine, text("."), Gen("x")))
    assert str(error).endswith("answered 401: no such model; pass api_key=, or set OPENAI_API_KEY")
    assert endpoint.headers[0]["authorization"] == "Bearer secret"
    assert "answered 400: <html>" in str(failure(run(engine, text("."), Gen("x"))))
    assert "finish_reason" in str(failure(run(engine, text("."), Gen("x"))))
    assert "no JSON" in str(failure(run(engine, text("."), Gen("x"))))
    assert len(endpoint.asked) == 4
    assert not endpoint.answers


def test_a_failed_sequence_takes_nothing_more(open_engine: Any) -> None:
    engine = open_engine(Endpoint((400, "no"), events("other")))
    sequence = engine.open()
    first = failure(run(engine, text("."), Gen("x"), sequence=sequence))
    assert failure(run(engine, Gen("y"), sequence=sequence)) is first
    assert last_result(run(engine, text("."), Gen("x"))).text == "other"


def test_forks_go_on_from_the_parent_side_by_side(open_engine: Any) -> None:
    together = asyncio.Barrier(2)

    async def answer(request: httpx2.Request) -> httpx2.Response:
        body = json.loads(request.content)
        if body["prompt"] == "P":
            return httpx2.Response(200, text=events("!"))
        await together.wait()
        return httpx2.Response(200, text=events(body["prompt"]))

    engine = open_engine(answer)
    queue: SimpleQueue[Event] = SimpleQueue()
    parent = engine.open()
    engine.submit(parent, Segment((text("P"), Gen("x"))), queue.put)
    children = engine.fork(parent, 2)
    engine.submit(parent, Segment((text("later"),)), queue.put)
    for child, name in zip(children, "ab", strict=True):
        engine.submit(child, Segment((text(name), Gen(name))), queue.put)
    done, results = 0, {}
    while done < 4:
        event = queue.get(timeout=10)
        done += isinstance(event, SegmentDone)
        if isinstance(event, HoleDone):
            results[event.result.name] = event.result.text
    assert results == {"x": "!", "a": "P!a", "b": "P!b"}


async def never(request: httpx2.Request) -> httpx2.Response:
    await asyncio.sleep(60)
    raise AssertionError


def test_deadlines_and_closing_end_a_request(open_engine: Any) -> None:
    engine = open_engine(never)
    late = engine.open(deadline=time.monotonic() + 0.05)
    error = failure(run(engine, text("."), Gen("x"), sequence=late))
    assert isinstance(error, DeadlineError)
    queue: SimpleQueue[Event] = SimpleQueue()
    sequence = engine.open()
    engine.submit(sequence, Segment((text("."), Gen("x"))), queue.put)
    children = engine.fork(sequence, 1)
    engine.submit(children[0], Segment((Gen("y"),)), queue.put)
    engine.close(sequence)
    engine.close(sequence)
    errors = [queue.get(timeout=10), queue.get(timeout=10)]
    assert all(isinstance(e, SegmentFailed) and isinstance(e.error, CancelledError) for e in errors)


def test_shutdown_fails_what_is_under_way(open_engine: Any) -> None:
    engine = open_engine(never)
    queue: SimpleQueue[Event] = SimpleQueue()
    engine.submit(engine.open(), Segment((text("."), Gen("x"))), queue.put)
    engine.shutdown()
    engine.shutdown()
    event = queue.get(timeout=10)
    assert isinstance(event, SegmentFailed)
    assert isinstance(event.error, CancelledError)
    with pytest.raises(ModelError, match="shut down"):
        engine.open()


def test_arguments_are_checked() -> None:
    with pytest.raises(ValueError, match="needs url="):
        sgl.Model("m", backend="remote")
    with pytest.raises(ValueError, match="not the address"):
        sgl.Model("m", backend="remote", url="localhost:8000")
    with pytest.raises(ValueError, match="unknown"):
        sgl.Model("m", backend="remote", url=URL, extensions=["magic"])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="for backend='remote'"):
        sgl.Model("m", backend="scripted", url=URL)
    with sgl.Model("m", backend="remote", url=URL, context=64) as model:
        assert model.engine.capacity == 64
        with pytest.raises(ModelError, match="not known"):
            model.engine.count_tokens("x")


class Server(BaseHTTPRequestHandler):
    """A real endpoint on loopback that sends an answer bit by bit."""

    def do_POST(self) -> None:
        length = int(self.headers["content-length"])
        prompt = json.loads(self.rfile.read(length))["prompt"]
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for part in events(f"{prompt}é", "!").splitlines(keepends=True):
            self.wfile.write(part.encode())
            self.wfile.flush()

    def log_message(self, *_: object) -> None:
        pass


def test_many_rows_over_a_real_connection() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    @sgl.function
    def echo(s: Any, word: str) -> None:
        s += word
        s += sgl.gen("x")

    try:
        url = f"http://127.0.0.1:{server.server_port}/v1"
        with sgl.Model("m", backend="remote", url=url) as model:
            rows = echo.run_batch([{"word": f"w{i}"} for i in range(40)], model=model)
            with sgl.Model("/no/such.gguf", fallback=model) as here:
                row = echo.run("w", model=here)
                assert (row["x"], row.model["name"]) == ("wé!", "m")
        assert [row["x"] for row in rows] == [f"w{i}é!" for i in range(40)]
        with sgl.Model("m", backend="remote", url="http://127.0.0.1:9/v1") as model:
            model.engine._retries = 0  # type: ignore[attr-defined]
            with pytest.raises(sgl.ProgramError, match="cannot be reached"):
                echo.run("x", model=model)
        nowhere = "http://127.0.0.1:9/v1"
        with (
            sgl.Model("here", backend="scripted") as here,
            sgl.Model("m", backend="remote", url=nowhere, fallback=here) as model,
        ):
            model.engine._retries = 0  # type: ignore[attr-defined]
            row = echo.run("x", model=model)
            assert row["x"] == "<x>"
            assert "cannot be reached" in row.model["fallback_from"]["reason"]

            @sgl.function
            def sure(s: Any) -> None:
                s += "x" + sgl.gen("x", logprobs=1)

            row = sure.run(model=model)
            assert "logprobs" in row.model["fallback_from"]["reason"]
    finally:
        server.shutdown()
        server.server_close()
