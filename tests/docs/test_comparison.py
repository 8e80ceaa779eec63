"""The page that compares: every test that it names is there, and every line of it names one."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "comparison.md").read_text()
NAMED = re.compile(r"`(test_\w+)::(test_\w+)`")


def names_of_tests() -> dict[str, set[str]]:
    """The names of the tests in each file."""
    found: dict[str, set[str]] = {}
    for path in ROOT.glob("tests/**/test_*.py"):
        assert path.stem not in found, f"two files are called {path.stem}"
        tree = ast.parse(path.read_text())
        found[path.stem] = {
            node.name
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        }
    return found


def test_every_test_that_is_named_is_there() -> None:
    known = names_of_tests()
    named = NAMED.findall(PAGE)
    assert len(named) > 60
    missing = [f"{file}::{test}" for file, test in named if test not in known.get(file, ())]
    assert not missing


def test_every_line_of_the_tables_is_shown() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ")]
    heads = [row for row in rows if row.endswith("| shown by |")]
    assert len(heads) == 3
    assert not [row for row in rows if row not in heads and not NAMED.search(row)]


def test_every_benchmark_that_is_named_is_there() -> None:
    scripts = re.findall(r"`(benchmarks/\w+\.py)`", PAGE)
    assert scripts
    assert all((ROOT / script).exists() for script in scripts)
