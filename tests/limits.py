"""How much tests try, and how long they let things take."""

from __future__ import annotations

import os

import pytest

FUZZ = float(os.environ.get("SGLITE_FUZZ", "1"))
"""How many times more examples than in a usual run of the tests."""

SLOWDOWN = float(os.environ.get("SGLITE_SLOWDOWN", "1"))
"""How many times longer than usual the native code takes: under sanitizers above 1."""

measured = pytest.mark.skipif(SLOWDOWN > 1, reason="measures what SGLITE_SLOWDOWN distorts")
"""For tests that compare times, or count the memory of the process."""


def examples(usual: int) -> int:
    """The number of examples of a property test."""
    return max(1, round(usual * FUZZ))
