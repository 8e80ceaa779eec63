"""Fixtures for all floors: the real models, fetched into the real cache on first use."""

from __future__ import annotations

from pathlib import Path

import pytest

from sglite.runtime.models.pull import resolve

pytest_plugins = ["sglite.testing.plugin"]  # as users have it, also where it is not installed


@pytest.fixture(scope="session")
def smollm2_path() -> Path:
    """SmolLM2-135M-Instruct, Q4_1."""
    return resolve("smollm2")


@pytest.fixture(scope="session")
def gemma_path() -> Path:
    """Gemma 3 270M, the base model, Q4_K_M."""
    return resolve("gemma3-270m")
