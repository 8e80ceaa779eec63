"""Conversations that outgrow the context: what is left, which turns go, what stays as it was."""

from __future__ import annotations

import asyncio
import logging
import random
from typing import Any

import pytest
from recorder import MakeScripted, Recorder
from test_chat_template import GEMMA
from tool_templates import HERMES

import sglite as sgl
from sglite.options import DROP_OLDEST, Message
from sglite.running.overflow import cuts
from sglite.running.record import Turn
from sglite.runtime.segment import Append
from sglite.tools import formats
from sglite.tools.formats import write_calls

SYSTEM = "You count. " * 4


@sgl.function
def talk(s: sgl.State, turns: int, words: int = 3) -> list[int]:
    """A chat of that many user turns; how many tokens were left before each answer."""
    left = []
    s += sgl.system(SYSTEM)
    for number in range(turns):
        s += sgl.user(f"Number {number}, " + "please " * words)
        with s.assistant():
            s += sgl.gen("x", max_tokens=20)
        s["x"]
        left.append(s.tokens_left)
    return left


def contexts(engine: Recorder) -> list[str]:
    """The text of every sequence that generated something, as it was when it ended."""
    texts: dict[int, str] = {}
    generated = set()  # others only measure
    for sequence, segment in engine.segments:
        for step in segment.steps:
            if isinstance(step, Append):
                piece = "".join(piece.text for piece in step.pieces)
                texts[sequence] = texts.get(sequence, "") + piece
            else:
                generated.add(sequence)
                texts[sequence] = texts.get(sequence, "") + f"<{step.name}>"
    return [text for sequence, text in texts.items() if sequence in generated]


def test_an_error_where_nothing_else_is_said(scripted: MakeScripted) -> None:
    scripted(capacity=600)
    with pytest.raises(sgl.ProgramError) as caught:
        talk.run(turns=200)
    assert isinstance(caught.value.__cause__, sgl.CapacityError)


@pytest.mark.parametrize("template", [None, HERMES, GEMMA])
def test_two_hundred_turns(
    scripted: MakeScripted, template: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "sglite.overflow")
    capacity = 1000
    more = {"chat_template": template} if template else {}
    engine = scripted(capacity=capacity, **more)
    row = talk.run(turns=200, options=sgl.Options(on_overflow="drop_oldest"))
    assert len(row.all("x")) == 200
    assert len(row.messages()) == 401  # the record has everything
    assert len(row.ids) <= capacity
    assert all(left >= 0 for left in row.returned)
    texts = contexts(engine)
    # A quarter of the context is made free at a time, so it does not happen at every turn.
    assert 10 < len(texts) < 80
    assert sum("turns were dropped" in r.getMessage() for r in caplog.records) == len(texts) - 1
    opening = texts[0].partition("Number 0")[0]
    assert SYSTEM.strip() in opening
    for text in texts:
        assert text.startswith(opening + "Number "), "the beginning changed"
        numbers = [int(part.split(",")[0]) for part in text.split("Number ")[1:]]
        assert numbers == list(range(numbers[0], numbers[-1] + 1))
        assert text.count("<x>") == len(numbers)


def test_what_is_dropped_does_not_depend_on_reads(scripted: MakeScripted) -> None:
    @sgl.function
    def chat(s: sgl.State, reads: bool) -> None:
        s.on_overflow = DROP_OLDEST
        for number in range(40):
            s += sgl.user(f"{number} " + "a" * 30)
            s += sgl.assistant(sgl.gen("x", max_tokens=20))
            if reads:
                assert s.tokens_left > 0
                s["x"]

    found = []
    for reads in (False, True):
        engine = scripted({"x": lambda so_far: str(len(so_far))}, capacity=500)
        row = chat.run(reads)
        found.append((row.ids, row.all("x"), contexts(engine)))
    assert found[0] == found[1]


def test_without_need_nothing_is_read(scripted: MakeScripted) -> None:
    engine = scripted()

    @sgl.function
    def chat(s: sgl.State) -> None:
        s.on_overflow = DROP_OLDEST
        for number in range(5):
            s += sgl.user(f"{number}") + sgl.assistant(sgl.gen("x"))

    chat.run()
    assert len(engine.segments) == 1


def test_tokens_left_is_exact(scripted: MakeScripted) -> None:
    rng = random.Random(seed := random.randrange(2**32))
    print(f"seed {seed}")
    engine = scripted(capacity=2000)
    lefts: list[int] = []

    @sgl.function
    def program(s: sgl.State, steps: list[Any]) -> None:
        lefts.append(s.tokens_left)
        for step in steps:
            s += step
            lefts.append(s.tokens_left)

    kinds = ["é世", "abc ", sgl.user("u"), sgl.assistant(sgl.gen("x")), sgl.special("<|im_end|>")]
    steps = rng.choices(kinds, k=12)
    for end in range(len(steps) + 1):
        lefts.clear()
        row = program.run(steps[:end])
        assert lefts[-1] == engine.capacity - len(row.ids)
        assert lefts[0] == engine.capacity


def test_tokens_left_in_branches_and_past_the_end(scripted: MakeScripted) -> None:
    scripted(capacity=100)

    @sgl.function
    def program(s: sgl.State) -> list[int]:
        s += "a" * 10 + sgl.gen("x")  # 3 bytes
        one, two = s.fork(2)
        one += "b" * 5
        two += "c" * 200
        s += "d"
        return [one.tokens_left, two.tokens_left, s.tokens_left]

    @sgl.function
    def guarded(s: sgl.State) -> list[int]:
        left = []
        for branch in s.fork(2):
            branch += "b" * 99
            left.append(branch.tokens_left)
        return left

    assert guarded.run().returned == [1, 1]
    assert program.run().returned == [82, 0, 86]  # and no less than nothing


def test_a_function_chooses(scripted: MakeScripted) -> None:
    seen: list[list[Message]] = []

    def last_two(turns: list[Message]) -> list[Message]:
        seen.append(turns)
        return turns[-3:]

    engine = scripted(capacity=700)
    row = talk.run(turns=30, options=sgl.Options(on_overflow=last_two))
    assert len(row.all("x")) == 30
    for turns in seen:
        assert turns[0]["role"] == "user"
        assert turns[-1]["role"] == "user"  # the question under way can go as well, if need be
        assert [turn["content"] for turn in turns if turn["role"] == "assistant"] == ["<x>"] * (
            len(turns) // 2
        )
    for text in contexts(engine)[1:]:
        first = text.split("Number ")[1]
        assert int(first.split(",")[0]) > 0

    def invents(turns: list[Message]) -> list[Message]:
        return [{"role": "user", "content": "x"}]

    with pytest.raises(sgl.ProgramError, match="those of the turns it was given"):
        talk.run(turns=30, options=sgl.Options(on_overflow=invents))

    @sgl.function
    def plain(s: sgl.State) -> None:
        for _ in range(100):
            s += "text of no turn\n" + sgl.gen("x", max_tokens=5)

    def nothing(turns: list[Message]) -> list[Message]:
        return turns

    for policy in (nothing, DROP_OLDEST):
        with pytest.raises(sgl.ProgramError, match="the scripted engine holds 700") as caught:
            plain.run(options=sgl.Options(on_overflow=policy))

    with pytest.raises(sgl.ProgramError) as caught:
        talk.run(turns=30, options=sgl.Options(on_overflow=nothing))
    assert isinstance(caught.value.__cause__, sgl.CapacityError)


def test_policies_that_are_none(scripted: MakeScripted) -> None:
    @sgl.function
    def program(s: sgl.State) -> None:
        s.on_overflow = "drop-oldest"

    scripted()
    with pytest.raises(sgl.ProgramError, match=r"'drop_oldest' or a function.*got 'drop-oldest'"):
        program.run()
    with pytest.raises(ValueError, match="on_overflow takes"):
        sgl.Options(on_overflow="newest")


def test_an_engine_that_knows_no_tokens(scripted: MakeScripted) -> None:
    @sgl.function
    def left(s: sgl.State) -> int:
        return s.tokens_left

    @sgl.function
    def chat(s: sgl.State, turns: int) -> None:
        for _ in range(turns):
            s += sgl.user("a" * 30) + sgl.assistant(sgl.gen("x", max_tokens=20))

    engine = scripted(capacity=600)
    engine.capabilities = frozenset({"constraints", "select", "fork"})
    with pytest.raises(sgl.ProgramError, match="tokens of scripted are not known"):
        left.run()
    options = sgl.Options(on_overflow="drop_oldest")
    assert len(chat.run(2, options=options).all("x")) == 2
    with pytest.raises(sgl.ProgramError, match="tokens of scripted are not known"):
        chat.run(20, options=options)


def test_async_programs_wait_first(scripted: MakeScripted) -> None:
    @sgl.function
    async def chat(s: sgl.State, waits: bool) -> list[int]:
        s.on_overflow = DROP_OLDEST
        left = []
        for number in range(40):
            s += sgl.user(f"{number} " + "a" * 30)
            s += sgl.assistant(sgl.gen("x", max_tokens=20))
            if waits:
                await s.wait()
                left.append(s.tokens_left)
        return left

    scripted(capacity=500)
    row = asyncio.run(chat.arun(True))
    assert len(row.all("x")) == 40
    assert all(0 <= left < 500 for left in row.returned)
    with pytest.raises(sgl.ProgramError, match=r"await s.wait\(\)"):
        asyncio.run(chat.arun(False))


def test_thoughts_that_leave_the_prompt_stay_away(scripted: MakeScripted) -> None:
    @sgl.function
    def chat(s: sgl.State) -> None:
        s.on_overflow = DROP_OLDEST
        for number in range(30):
            s += sgl.user(f"{number} " + "a" * 30)
            gen = sgl.gen(
                "x", max_tokens=20, think=("<t>", "</t>"), think_tokens=40, hide_thought=True
            )
            s += sgl.assistant(gen + sgl.gen("secret", max_tokens=9, hidden=True))

    engine = scripted({"x.thought": "aha</t>", "secret": "hush"}, capacity=500)
    row = chat.run()
    assert len(row.all("x")) == len(row.all("x.thought")) == 30
    assert len({sequence for sequence, _ in engine.segments}) > 3
    state = "".join(chr(i) for i in row.ids if i < 256)
    assert "aha" not in state
    assert "hush" not in state
    assert state.count("<x>") == state.count("user\n")


def turns(*roles: str) -> list[Turn]:
    """`user!` answers a call."""
    return [Turn(r.strip("!"), 0, 1, answers="!" in r or r == "tool") for r in roles]


def test_what_can_be_dropped() -> None:
    def dropped(*roles: str) -> list[str]:
        all_turns = turns(*roles)
        at = {id(turn): str(i) for i, turn in enumerate(all_turns)}
        return ["".join(at[id(turn)] for turn in cut) for cut in cuts(all_turns)]

    chat = ("system", "user", "assistant", "user", "assistant", "user", "assistant")
    assert dropped(*chat) == ["12", "1234"]
    assert dropped(*chat[1:]) == ["01", "0123"]
    assert dropped("user", "assistant") == []
    assert dropped("system") == dropped() == []
    # An exchange goes with its calls; of the last one the oldest calls.
    agent = ("user", "assistant", "tool", "tool", "assistant", "user!", "assistant", "user!")
    assert dropped("system", *agent, "assistant") == ["234", "23456"]
    assert dropped("user", "assistant", *agent, "assistant") == ["01", "01345", "0134567"]
    assert dropped("user", "assistant", "tool", "assistant") == []


@pytest.mark.parametrize("template", [None, HERMES])
def test_a_long_loop_of_tools(scripted: MakeScripted, template: str | None) -> None:
    @sgl.tool
    def look(page: int) -> str:
        """Looks at a page."""
        return f"page {page}: " + "words " * 20

    @sgl.function
    def agent(s: sgl.State) -> str:
        s += sgl.system("Read.", tools=[look])
        s += sgl.user("What is on the last page?")
        return s.use_tools("x", max_steps=100, max_tokens=100)

    form = formats.HERMES
    calls = [write_calls([sgl.ToolCall("look", {"page": n})], form) for n in range(99)]
    more = {"chat_template": template} if template else {}
    engine = scripted({"x": [*calls, "Words."]}, capacity=2000, **more)
    row = agent.run(options=sgl.Options(on_overflow="drop_oldest"))
    assert row["x"] == "Words."
    assert [r.call.arguments["page"] for r in row.tool_results] == list(range(99))
    texts = contexts(engine)
    assert 5 < len(texts) < 50
    start = texts[0].partition("What is on the last page?")[0]
    for text in texts:
        assert text.startswith(start + "What is on the last page?")
        # Every result comes after its call.
        asked = text.count("<x>") + text.count('{"name": "look", "arguments"')
        assert asked == text.count("<tool_response>\npage") + 1


def test_healed_text_and_hidden_ids_are_not_doubled() -> None:
    from sglite.running.lowering import Pending

    pending = Pending()
    pending.text("<t>", "template")
    pending.text("Hel")
    pending.text("lo w")
    pending.generated("orld", (5, 6), "o w")
    pending.text("!")
    pieces = [(piece.text, piece.kind, piece.ids) for piece in pending.pieces()]
    assert pieces == [
        ("<t>", "template", ()),
        ("Hell", "user", ()),
        ("orld", "ids", (5, 6)),
        ("!", "user", ()),
    ]


@pytest.mark.model
def test_the_small_model_keeps_ids_and_prefix(smollm2_path: Any) -> None:
    @sgl.function
    def chat(s: sgl.State) -> list[int]:
        left = []
        s += sgl.system("You are terse. " * 12)
        for number in range(24):
            s += sgl.user(f"Say a word that begins with {'abcdefghij'[number % 10]}.")
            with s.assistant():
                s += "Word:" + sgl.gen("x", max_tokens=8)
            left.append(s.tokens_left)
        return left

    options = sgl.Options(on_overflow="drop_oldest", temperature=1.0, seed=3)
    with sgl.Model("smollm2", context=256) as model:
        row = chat.run(model=model, options=options)
        assert len(row.all("x")) == 24
        assert len(row.ids) <= 256
        assert row.returned[-1] >= 256 - len(row.ids)
        # What was generated stands there as it was, and is not cut into other tokens.
        state = list(row.ids)
        for meta in row.metas("x")[-4:]:
            ids = list(meta.ids)
            assert any(state[i : i + len(ids)] == ids for i in range(len(state)))
        # The system turn of 50 tokens came from the cache each time.
        anew = [m.usage for m in row.metas("x") if m.usage.prompt_tokens > 60]
        assert len(anew) > 3
        assert all(usage.cached_tokens >= 48 for usage in anew[1:])
    with sgl.Model("smollm2", context=256, prefix_cache=False) as model:
        assert chat.run(model=model, options=options).ids == row.ids
