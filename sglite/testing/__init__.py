"""Tests of programs without a model: answers that a script gives, and what was asked for.

With pytest there is the fixture `sgl_scripted`, which needs no import:

    def test_capital(sgl_scripted):
        model = sgl_scripted({"city": "Paris"})
        assert capital.run("France")["city"] == "Paris"
        assert model.prompts == ["The capital of France is"]

It makes a `ScriptedModel` and puts it in use for the test. With another test runner make it
yourself: `with ScriptedModel({...}) as model, sgl.use(model): ...`, and `model.check()` at the end.

Names are loaded when they are first used, since pytest imports this package at its start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sglite.testing.scripted import Asked as Asked
    from sglite.testing.scripted import ScriptedModel as ScriptedModel

__all__ = ["Asked", "ScriptedModel"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sglite.testing import scripted

    return getattr(scripted, name)
