"""The engine of a model that could not be loaded: it does nothing, and says why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from sglite.errors import ModelError
from sglite.runtime.engines.base import Engine, EventSink, SequenceId
from sglite.runtime.segment import Segment

if TYPE_CHECKING:
    from sglite.grammars import Vocabulary


class UnloadedEngine(Engine):
    """Raises `error`, why there is no other engine, for all that is asked of it."""

    capabilities = frozenset[str]()

    def __init__(self, name: str, error: ModelError) -> None:
        self.name = name
        self._error = error

    @property
    def vocabulary(self) -> Vocabulary:
        self._refuse()

    @property
    def chat_template(self) -> str | None:
        self._refuse()

    @property
    def template_variables(self) -> dict[str, str]:
        self._refuse()

    @property
    def capacity(self) -> int:
        self._refuse()

    def open(self, *, priority: int = 0, deadline: float | None = None) -> SequenceId:
        self._refuse()

    def submit(self, sequence: SequenceId, segment: Segment, sink: EventSink) -> None:
        self._refuse()

    def fork(self, sequence: SequenceId, n: int) -> Sequence[SequenceId]:
        self._refuse()

    def close(self, sequence: SequenceId) -> None:
        """There is nothing to give back."""

    def count_tokens(self, text: str) -> int:
        self._refuse()

    def stats(self) -> dict[str, Any]:
        return {}

    def shutdown(self) -> None:
        """There is nothing to end."""

    def _refuse(self) -> NoReturn:
        raise self._error
