"""The errors of sglite. Every one names the thing, the place and the remedy.

Floor 0: imports nothing of ours and may be imported by every floor.
"""

from __future__ import annotations

from typing import Any


class SgliteError(Exception):
    """Base of all errors that sglite raises on purpose."""


class ProgramError(SgliteError):
    """A program failed while it ran.

    `node` describes the IR node, `filename` and `line` say where the user wrote it; the original
    exception is the `__cause__`.
    """

    def __init__(
        self,
        message: str,
        *,
        node: str | None = None,
        filename: str | None = None,
        line: int | None = None,
    ) -> None:
        place = f" ({filename}:{line})" if filename is not None else ""
        super().__init__(f"{message}{place}")
        self.node = node
        self.filename = filename
        self.line = line


class GraphBreak(SgliteError):  # noqa: N818 (a fixed public name)
    """A program did something that a symbolic trace cannot represent.

    `filename` and `line` say where.
    """

    def __init__(
        self, message: str, *, filename: str | None = None, line: int | None = None
    ) -> None:
        place = f" ({filename}:{line})" if filename is not None else ""
        super().__init__(f"{message}{place}")
        self.filename = filename
        self.line = line


class GrammarError(SgliteError):
    """A schema, pattern or grammar text that cannot be compiled.

    `pointer` is a JSON pointer into the schema ("" for the whole, or for patterns and grammar
    texts a position such as "3:14"); `reason` says why, without the place.
    """

    def __init__(self, reason: str, pointer: str = "") -> None:
        super().__init__(f"{reason} (at {pointer or 'the root'})")
        self.pointer = pointer
        self.reason = reason

    def __reduce__(self) -> tuple[Any, ...]:
        # Rows come back from other processes with their errors.
        return type(self), (self.reason, self.pointer)


class ModelError(SgliteError):
    """A model that cannot be found, fetched, read or run; the message names file and offset."""


class CapacityError(SgliteError):
    """A request that can never fit: the message has the numbers that say why."""


class DeadlineError(SgliteError):
    """A deadline passed before the work was done."""


class CancelledError(SgliteError):
    """The work was cancelled by its owner."""
