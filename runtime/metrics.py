"""Counters of an engine since its start. Written by the engine's thread, read by any."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sglite.runtime.segment import Usage


@dataclass(slots=True)
class Metrics:
    """usage: of all holes that ended, however they ended. prefix_hits: holes that found part of
    their prompt in the prefix cache. computed_tokens: ids that went through a forward pass."""

    usage: Usage = field(default_factory=Usage)
    steps: int = 0
    computed_tokens: int = 0
    rows: int = 0
    holes: int = 0
    prefix_hits: int = 0
    failures: int = 0

    def count_hole(self, usage: Usage) -> None:
        """A hole ended."""
        self.usage.add(usage)
        self.holes += 1
        self.prefix_hits += usage.cached_tokens > 0

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers by name."""
        usage = {name: getattr(self.usage, name) for name in Usage.__dataclass_fields__}
        own = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "usage"}
        return usage | own
