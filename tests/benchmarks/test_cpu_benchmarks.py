"""The benchmarks of the CPU backend run, on a tiny model and without a peer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from family_files import FAMILIES, write

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def run(script: str, *flags: str, target: Path) -> dict[str, dict[str, Any]]:
    """The rows that a script writes, by their names."""
    environment = {k: v for k, v in os.environ.items() if k != "SGLITE_PEER_PYTHON"}
    subprocess.run(
        [sys.executable, "-W", "error", str(BENCHMARKS / script), "--json", str(target), *flags],
        check=True,
        env=environment,
    )
    return {row["name"]: row for row in json.loads(target.read_text())}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    family = FAMILIES["llama2"]
    return write(family, family.model(1), tmp_path_factory.mktemp("models") / "tiny.gguf")


def test_works_beside_one_thread(tiny: Path, tmp_path: Path) -> None:
    rows = run(
        "cpu.py", "--quick", "--model", str(tiny), "--only", "decode*@64", target=tmp_path / "rows"
    )
    assert set(rows) == {f"{tiny}/decode{n}@64" for n in (1, 8, 32)}
    for row in rows.values():
        assert row["ours"] > 0
        assert row["ratio"] == pytest.approx(row["ours"] / row["peer"])
        assert row["peer_name"] == "ours on one thread"


def test_a_format(tmp_path: Path) -> None:
    rows = run(
        "cpu.py",
        *("--types", "--quick", "--only", "Q4_K", "--megabytes", "1"),
        target=tmp_path / "rows",
    )
    assert set(rows) == {f"types/Q4_K/{work}" for work in ("decode", "prefill512", "error")}
    assert 0 < rows["types/Q4_K/error"]["ours"] < 0.01


def test_neighbours(tiny: Path, tmp_path: Path) -> None:
    rows = run(
        "neighbours.py",
        *("--model", str(tiny), "--rounds", "1", "--works", "decode1@64"),
        target=tmp_path / "rows",
    )
    assert set(rows) == {f"{tiny}/decode1@64/{kind}" for kind in ("process", "thread")}
