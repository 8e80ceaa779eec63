"""Failures of the interpreter while a schema or grammar text is read, as errors of sglite.

Hostile input is refused by what it breaks, in one place, instead of being measured everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sglite.errors import GrammarError
from sglite.grammars import _native


@contextmanager
def refusals(what: str) -> Iterator[None]:
    """Raises GrammarError for a `what` that the native part refuses, that is nested too deeply or
    is no Unicode text."""
    try:
        yield
    except _native.Refused as error:
        raise GrammarError(error.reason, error.pointer) from None
    except RecursionError:
        raise GrammarError(f"the {what} is nested too deeply; make it flatter") from None
    except UnicodeEncodeError as error:
        lone = error.object[error.start]
        raise GrammarError(
            f"the {what} has the lone surrogate {lone!r}, which is no character; remove it"
        ) from None


_MAX_LENGTH = 400_000


def check_length(text: str, what: str) -> None:
    """Raises GrammarError for a text that would take too long to read."""
    if len(text) > _MAX_LENGTH:
        raise GrammarError(f"the {what} has more than {_MAX_LENGTH} characters; make it shorter")
