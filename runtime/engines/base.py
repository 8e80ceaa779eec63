"""The contract of an engine: segments in, events out.

The executor of the language knows only this class and the declared capabilities. `LocalEngine`
(runtime/engine.py) drives a Backend; `scripted` answers without a model.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sglite.runtime.segment import Event, Segment

if TYPE_CHECKING:
    from sglite.grammars import Vocabulary

SequenceId = int
EventSink = Callable[[Event], None]


class StepRefused(Exception):  # noqa: N818 (the language turns it into its own error)
    """The step at index `step` of a submitted segment cannot run; `error` says why."""

    def __init__(self, step: int, error: Exception) -> None:
        super().__init__(str(error))
        self.step = step
        self.error = error


class Engine(ABC):
    """One model, many sequences. All methods may be called from any thread and none blocks.

    Life of a sequence: `open`, then any number of `submit` and `fork`, then `close` once. Work on
    one sequence happens in the order in which it was asked for: a fork sees everything that was
    submitted before it, and nothing later.
    """

    capabilities: frozenset[str]
    """Of: "constraints", "select", "fork", "logprobs", "tokens"."""

    name: str
    """What the user calls the model."""

    path: Path | None = None
    """The file that the weights come from, if there is one."""

    @property
    @abstractmethod
    def vocabulary(self) -> Vocabulary:
        """The vocabulary of the tokeniser."""

    @property
    @abstractmethod
    def chat_template(self) -> str | None:
        """The model's own Jinja template, or None for a model without one."""

    @property
    @abstractmethod
    def template_variables(self) -> dict[str, str]:
        """What the template may use besides messages: `bos_token`, `eos_token`."""

    @property
    @abstractmethod
    def capacity(self) -> int:
        """The most ids that one sequence can have."""

    @abstractmethod
    def open(self, *, priority: int = 0, deadline: float | None = None) -> SequenceId:
        """A new empty sequence; its forks have the same priority and deadline.

        What is not done at `deadline` (time.monotonic() seconds) fails with DeadlineError.
        """

    @abstractmethod
    def submit(self, sequence: SequenceId, segment: Segment, sink: EventSink) -> None:
        """Run the segment; `sink` gets its events in order, ending with exactly one terminal one.

        What the caller's thread can prepare (tokenising, compiling constraints) happens before
        this returns. Raises StepRefused, whose `error` is a GrammarError for a constraint that
        cannot be compiled, a CapacityError for what can never fit, a ValueError for arguments out
        of range. The sink is called on the engine's thread: it must be quick and must not raise.
        """

    @abstractmethod
    def fork(self, sequence: SequenceId, n: int) -> Sequence[SequenceId]:
        """`n` new sequences that continue from the state of this one, sharing its KV."""

    @abstractmethod
    def close(self, sequence: SequenceId) -> None:
        """Give everything back. Work under way fails with CancelledError. Closing twice is fine."""

    @abstractmethod
    def count_tokens(self, text: str) -> int:
        """Length in ids of `text` as user text."""

    @abstractmethod
    def stats(self) -> dict[str, Any]:
        """Counters since start: at least prompt_tokens, cached_tokens, forced_tokens,
        decoded_tokens, drafted_tokens, pages_used, pages_total, steps."""

    @abstractmethod
    def shutdown(self) -> None:
        """End the engine; every sequence is closed first. Calling it twice is fine."""
