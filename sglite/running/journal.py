"""The journal of a batch: a JSONL file that lets it go on after the process was killed.

The first line says what the batch is: program, model, options and seed. Each further line is one
row that has ended, with its number and a digest of its arguments; of several lines about one row
the last counts. A line is written with one call and handed to the system before the row is handed
out, so that a killed process has lost no row that somebody has seen; it is forced to the disk at
most once a second and at the end. A last line that is cut off was never handed out: it is removed.
Rows that failed are written too, for whoever reads the file, and are run again. A row that the
model's fallback has answered is as good as any: its line names who answered, and the batch may go
on with another fallback or without one.
"""

from __future__ import annotations

import json
import os
import time
from array import array
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from sglite.errors import SgliteError
from sglite.running.identity import digest, digest_of_model, digests_of_program
from sglite.running.result import Result, model_of
from sglite.running.saved import dumped, restored

if TYPE_CHECKING:
    from sglite.running.launch import Launch

VERSION = 1

_SYNC_SECONDS = 1.0
_CHANGE_NO_VALUE = ("seed", "priority", "timeout")


class JournalError(SgliteError):
    """A journal that belongs to another batch, is in use, or cannot be read."""


class Journal:
    """An open journal. Takes over its seed where the batch names none.

    Raises JournalError if the file is the journal of something else.
    """

    def __init__(self, path: str | PathLike[str], launch: Launch) -> None:
        self._path = Path(path)
        self._options = launch.options
        self._model = model_of(launch.model.engine)
        self._arguments: dict[int, str] = {}  # digests of the rows under way
        self._places = array("q")  # where the line of each row begins; -1: nowhere
        self._synced = 0.0
        self._file: BinaryIO = open(self._path, "a+b")  # noqa: SIM115 (closed in __exit__)
        try:
            self._lock()
            self._open(launch)
        except BaseException:
            self._file.close()
            raise

    def recall(self, row: int, arguments: Any) -> Result | None:
        """The result of this row if it has ended well with these arguments.

        Raises TypeError for arguments that another process could not recognise.
        """
        try:
            said = digest(arguments)
        except TypeError as error:
            raise TypeError(f"row {row} cannot be kept in a journal: {error}") from None
        line = self._read(row)
        if line is not None and line["arguments"] == said and "error" not in line:
            return restored(line, self._options, self._model)
        self._arguments[row] = said
        return None

    def write(self, result: Result) -> None:
        """A row has ended."""
        arguments = self._arguments.pop(result.row)
        self._append({"row": result.row, "arguments": arguments, **dumped(result)})

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        os.fsync(self._file.fileno())
        self._file.close()

    # ---- inside

    def _open(self, launch: Launch) -> None:
        file = self._file
        file.seek(0)
        first = file.readline()
        if not first.endswith(b"\n"):  # new, or killed before anything was done
            if first and not first.startswith(b'{"sglite_journal"'):
                raise JournalError(f"{self._path} exists and is no journal; name another file")
            file.truncate(0)
            self._append(_header(launch))
            return
        launch.seed = _compare(self._path, _parsed(first, self._path, 1), _header(launch), launch)
        self._scan(file.tell())

    def _scan(self, at: int) -> None:
        """Where each row is; what a killed process has left unfinished is cut off."""
        for number, line in enumerate(self._file, 2):
            if not line.endswith(b"\n"):
                self._file.truncate(at)
                return
            row = _parsed(line, self._path, number)["row"]
            self._places.extend([-1] * (row + 1 - len(self._places)))
            self._places[row] = at
            at += len(line)

    def _read(self, row: int) -> dict[str, Any] | None:
        at = self._places[row] if row < len(self._places) else -1
        if at < 0:
            return None
        self._file.seek(at)
        return _parsed(self._file.readline(), self._path)

    def _append(self, line: dict[str, Any]) -> None:
        text = json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n"
        self._file.write(text.encode("utf-8", "backslashreplace"))
        self._file.flush()
        now = time.monotonic()
        if now - self._synced >= _SYNC_SECONDS:
            os.fsync(self._file.fileno())
            self._synced = now

    def _lock(self) -> None:
        """Two processes that append to one journal would do every row twice."""
        try:
            import fcntl
        except ImportError:  # Windows
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise JournalError(
                f"{self._path} is in use by another batch; wait for it, or name another file"
            ) from None


def _header(launch: Launch) -> dict[str, Any]:
    options = {
        name: value
        for name, value in asdict(launch.options).items()
        if value is not None and name not in _CHANGE_NO_VALUE
    }
    return {
        "sglite_journal": VERSION,
        "program": digests_of_program(launch.program),
        "model": digest_of_model(launch.model),
        "options": options,
        "seed": launch.seed,
    }


def _compare(path: Path, then: dict[str, Any], now: dict[str, Any], launch: Launch) -> int:
    """The seed of the journal. Raises JournalError for what has changed since it was begun."""
    if then.get("sglite_journal") != VERSION:
        raise JournalError(f"{path} is no journal of this version; name another file")
    changed = []
    for part in ("program", "model", "options"):
        before, after = then[part], json.loads(json.dumps(now[part]))
        if part == "model" and not before.get("loaded", True) & after.get("loaded", True):
            before, after = ({"name": each["name"]} for each in (before, after))
        for name in sorted(before.keys() | after.keys()):
            old, new = before.get(name), after.get(name)
            if old != new:
                said = f" ({old!r} then, {new!r} now)" if part != "program" else ""
                changed.append(f"{part}: {name}{said}")
    if launch.options.seed is not None and launch.options.seed != then["seed"]:
        changed.append(f"seed ({then['seed']} then, {launch.options.seed} now)")
    if changed:
        raise JournalError(
            f"{path} is the journal of another batch; since it was begun has changed: "
            f"{'; '.join(changed)}. Undo that, or name another file to begin anew"
        )
    return int(then["seed"])


def _parsed(line: bytes, path: Path, number: int | None = None) -> dict[str, Any]:
    try:
        value = json.loads(line)
        if isinstance(value, dict) and ("row" in value or "sglite_journal" in value):
            return value
    except ValueError:
        pass
    place = f", line {number}," if number is not None else ""
    raise JournalError(f"{path}{place} is no line of a journal; name another file")
