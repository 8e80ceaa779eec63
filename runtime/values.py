"""Values that are made by the thousand: what crosses the border between language and engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value(kind: type[T]) -> type[T]:
    """A slotted dataclass that compares, hashes and is never changed.

    That it is not changed is checked by the type checker alone: a dataclass that is frozen at run
    time takes three times as long to make, and a row of a batch makes dozens.
    """
    return dataclass(slots=True, unsafe_hash=True)(kind)
