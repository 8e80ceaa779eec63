"""A conversation of many times the context, on a real model."""

from __future__ import annotations

from pathlib import Path
from queue import SimpleQueue

import pytest

import sglite as sgl
from sglite.runtime.segment import Append, Event, Gen, HoleDone, Piece, Segment, TextDelta

pytestmark = pytest.mark.model


def test_two_hundred_turns(smollm2_path: Path) -> None:
    @sgl.function
    def chat(s: sgl.State) -> None:
        s.on_overflow = "drop_oldest"
        s += sgl.system("You are terse. " * 12)
        for number in range(200):
            s += sgl.user(f"Say a word that begins with {'abcdefghij'[number % 10]}.")
            with s.assistant():
                s += "Word:" + sgl.gen("x", max_tokens=4)
            s["x"]

    with sgl.Model(smollm2_path, context=256) as model:
        row = chat.run(model=model)
    assert len(row.all("x")) == 200
    assert len(row.messages()) == 401
    assert len(row.ids) <= 256
    # Where turns were dropped the prompt was read anew: the turn of the system out of the cache.
    metas = row.metas("x")
    anew = [meta.usage for meta in metas if meta.usage.prompt_tokens > 60]
    assert len(anew) > 20
    assert all(usage.cached_tokens >= 48 for usage in anew[1:])
    # On what was left of the talk, an engine that knows nothing of it writes the same.
    ids, last = row.ids, metas[-1].ids
    at = max(i for i in range(len(ids)) if ids[i : i + len(last)] == last)
    with sgl.Model(smollm2_path, context=256, prefix_cache=False) as fresh:
        assert written_after(fresh, ids[:at]) == last


def written_after(model: sgl.Model, ids: tuple[int, ...]) -> tuple[int, ...]:
    """The next four ids that a model writes after these."""
    events: SimpleQueue[Event] = SimpleQueue()
    sequence = model.engine.open()
    steps = (Append((Piece("", "ids", ids),)), Gen("x", max_tokens=4))
    model.engine.submit(sequence, Segment(steps), events.put)
    while not isinstance(event := events.get(), HoleDone):
        assert isinstance(event, TextDelta)
    model.engine.close(sequence)
    return event.result.ids
