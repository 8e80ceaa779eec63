"""The pytest plugin: the fixture `sgl_scripted`.

pytest loads it at every start, so it imports nothing of sglite before a test asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from sglite.testing.scripted import ScriptedModel

_MADE = pytest.StashKey["list[ScriptedModel]"]()


class MakeScripted(Protocol):
    """What the fixture gives."""

    def __call__(
        self, script: Mapping[str, Any] | None = None, *, strict: bool = True, **options: Any
    ) -> ScriptedModel: ...


@pytest.fixture
def sgl_scripted(request: pytest.FixtureRequest) -> Iterator[MakeScripted]:
    """`sgl_scripted({"city": "Paris"})` puts a model in use that gives these answers.

    It returns the model; `model.asked` says what it was asked. When the test is over it fails if a
    hole had no answer, or an answer was left over, unless `strict=False`.
    """
    import sglite as sgl
    from sglite.testing.scripted import ScriptedModel

    made = request.node.stash.setdefault(_MADE, [])
    with ExitStack() as stack:

        def make(
            script: Mapping[str, Any] | None = None, *, strict: bool = True, **options: Any
        ) -> ScriptedModel:
            model = stack.enter_context(ScriptedModel(script, strict=strict, **options))
            stack.enter_context(sgl.use(model))
            made.append(model)
            return model

        yield make


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[Any]:
    """Check the models at the end of the test itself: a failure, and not an error behind it."""
    result = yield
    for model in item.stash.get(_MADE, []):
        try:
            model.check()
        except AssertionError as error:
            pytest.fail(str(error), pytrace=False)
    return result
