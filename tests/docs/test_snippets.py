"""Every Python snippet of the README and the guides runs, file by file, from top to bottom."""

from __future__ import annotations

import contextvars
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = [
    page
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    if BLOCK.search(page.read_text())
]


@pytest.mark.model
@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_snippets_run(
    page: Path, smollm2_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = page.read_text()
    blocks = list(BLOCK.finditer(text))
    monkeypatch.chdir(tmp_path)
    # A page may say sgl.use(...) for good; the choice ends with its test.
    monkeypatch.setattr("sglite.model._latest", None)
    module = tmp_path / "snippets.py"
    context = contextvars.copy_context()
    namespace: dict[str, object] = {"__name__": "snippets"}
    for block in blocks:
        # Blank lines in front keep the line numbers of the page in every traceback.
        source = "\n" * text[: block.start(1)].count("\n") + block.group(1)
        module.write_text(source)
        context.run(exec, compile(source, str(page), "exec", dont_inherit=True), namespace)
