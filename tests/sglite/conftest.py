"""A scripted model for each test, which checks that everything was closed."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from recorder import MakeScripted, Recorder, Scripted

import sglite as sgl


@pytest.fixture
def scripted() -> Iterator[MakeScripted]:
    """`scripted(script)` puts a recorder in use and returns it.

    When the test is over every sequence must have been closed exactly once, no run may be waiting,
    and no thread of a batch or stream may be left.
    """
    made: list[tuple[Scripted, Any]] = []

    def make(script: Mapping[str, Any] | None = None, **options: Any) -> Recorder:
        model = Scripted(script, **options)
        made.append((model, sgl.use(model)))
        return model.engine

    yield make
    for thread in threading.enumerate():
        if thread.name in ("sglite-batch", "sglite-stream", "sglite-worker"):
            thread.join(timeout=5)
            assert not thread.is_alive(), f"{thread.name} is still running"
    for model, used in reversed(made):
        used.__exit__(None, None, None)
        model.close()
        engine = model.engine
        assert sorted(engine.closed) == sorted(engine.opened), "sequences left open or closed twice"
