"""What `import sglite` shows."""

from __future__ import annotations

import subprocess
import sys

import sglite as sgl


def test_dir_has_the_public_names_and_the_docstring_has_them_all() -> None:
    assert dir(sgl) == sorted(sgl.__all__)
    assert {"gen", "select", "Model", "ProgramError"} <= {*dir(sgl)}
    assert sgl.__doc__ is not None
    words = {*sgl.__doc__.replace(",", " ").replace("(", " ").replace(")", " ").split()}
    assert {*sgl.__all__} - {word.strip(";:") for word in words} == set()
    for name in sgl.__all__:
        assert getattr(sgl, name).__module__.startswith("sglite.")


def test_importing_loads_neither_the_language_nor_the_runtime() -> None:
    code = (
        "import sys, sglite; dir(sglite), sglite.__all__, sglite.__doc__;"
        "print([name for name in sys.modules if name.startswith('sglite.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
