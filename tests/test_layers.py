"""The floors: who may import whom, read from the source, and what an import loads."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FREE = {"sglite.errors", "sglite.options"}
MAY_IMPORT = {
    "grammars": {"grammars"},
    "kernels": {"kernels"},
    "runtime": {"runtime", "grammars", "kernels"},
}


def files_of(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def imports_of(path: Path) -> Iterator[tuple[int, str]]:
    """Every module that a file imports, also inside of functions and for type checking."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} is a relative import"
            assert node.module is not None
            if node.module == "sglite":
                yield from ((node.lineno, f"sglite.{alias.name}") for alias in node.names)
            else:
                yield node.lineno, node.module


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_a_floor_imports_only_what_is_below(folder: str) -> None:
    files = files_of(folder)
    assert files
    wrong = []
    for path in files:
        for line, module in imports_of(path):
            first, _, rest = module.partition(".")
            assert first not in MAY_IMPORT, f"{path}:{line} imports {module} at the top level"
            if first != "sglite" or module in FREE:
                continue
            if rest.partition(".")[0] not in MAY_IMPORT[folder]:
                wrong.append(f"{path.relative_to(ROOT)}:{line} imports {module}")
    assert not wrong


@pytest.mark.parametrize("name", ["errors", "options"])
def test_floor_zero_imports_nothing_of_ours(name: str) -> None:
    modules = [module for _, module in imports_of(ROOT / "sglite" / f"{name}.py")]
    assert modules
    assert not [module for module in modules if module.startswith("sglite")]


def test_the_language_knows_no_engine_but_the_contract() -> None:
    allowed = {
        "sglite.runtime.segment",
        "sglite.runtime.engines.base",
        "sglite.runtime.engines.chat_api",
        "sglite.runtime.engines.remote",
        "sglite.runtime.engines.scripted",
        "sglite.runtime.engines.unloaded",
        "sglite.runtime.load",
        "sglite.grammars",
    }
    floors = ("sglite.runtime", "sglite.grammars", "sglite.kernels")
    for path in sorted((ROOT / "sglite").glob("*.py")):
        used = {module for _, module in imports_of(path) if module.startswith(floors)}
        assert used <= allowed, f"{path.name} imports {used - allowed}"


def loaded_by(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint(*[m for m in sys.modules if m.startswith('sglite')])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return set(done.stdout.split())


def test_grammars_load_neither_language_nor_runtime() -> None:
    loaded = loaded_by("import sglite.grammars")
    assert "sglite.grammars" in loaded
    above = {m for m in loaded if not m.startswith("sglite.grammars")}
    assert above <= {"sglite", *FREE}


def test_importing_sglite_loads_nothing_else() -> None:
    assert loaded_by("import sglite") == {"sglite"}


def test_every_public_name_is_there_and_typed() -> None:
    import sglite

    tree = ast.parse((ROOT / "sglite" / "__init__.py").read_text())
    typed = {
        alias.asname
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname
    }
    assert typed == set(sglite._HOME_OF)
    for name in typed:
        assert getattr(sglite, name).__module__ == sglite._HOME_OF[name]
    assert typed <= set(dir(sglite))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        sglite.nothing  # noqa: B018
