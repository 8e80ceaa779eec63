"""`sglite run --batch`: many rows, written in order, that go on where a killed process ended.

What is done is in the journal, beside the output: every row is there before it is in the output. A
batch that is started again writes its output anew, with the rows of the journal. When all rows are
there and none has failed, the journal goes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import BinaryIO

import click

from sglite.cli.own import Own
from sglite.cli.rows import Rows
from sglite.cli.shown import as_line
from sglite.cli.trouble import told
from sglite.language.program import Function
from sglite.running.journal import JournalError
from sglite.running.result import Result

_IN_MEMORY = 32 << 20


def run_batch(program: Function, rows: Rows, own: Own) -> None:
    """Run all rows. Raises ClickException if one failed, or the rows or files are not in order."""
    options = own.options()
    journal = own.path_of_journal()
    output = None if own.output in (None, "-") else Path(own.output)
    _check_files(rows.source, output, journal, overwrite=bool(own.overwrite))
    counted = rows.counted()
    if own.overwrite and journal is not None:
        journal.unlink(missing_ok=True)
    progress = sys.stderr.isatty() if own.progress is None else own.progress
    with ExitStack() as stack:
        model = own.open_model()
        if model is not None:
            stack.enter_context(model)
        try:
            results = program.run_batch(
                counted,
                order="completed",
                errors="return",
                options=options,
                model=model,
                progress=progress,
                journal=journal,
            )
        except JournalError as error:
            raise click.ClickException(f"{error} (--overwrite begins anew)") from error
        stack.enter_context(closing(results))  # type: ignore[type-var]
        # Not before the journal is known to be ours: what was written is not lost to a mistake.
        file = sys.stdout.buffer if output is None else open(output, "wb")  # noqa: SIM115
        if output is not None:
            stack.enter_context(file)
        try:
            failed = _write(results, file, stop_at_failure=own.errors == "raise")
        except KeyboardInterrupt:
            if journal is not None:
                click.echo("the same command goes on where it ended", err=True)
            raise
        if output is not None:
            os.fsync(file.fileno())
    if failed:
        count, first = failed
        again = "; the same command runs those again" if journal is not None else ""
        rows_ = "row" if count == 1 else "rows"
        assert first.error is not None
        raise click.ClickException(
            f"{count} {rows_} failed{again}. Row {first.row}: {told(first.error)}"
        )
    if journal is not None and own.journal is None:
        journal.unlink()


def _check_files(
    source: str, output: Path | None, journal: Path | None, *, overwrite: bool
) -> None:
    """Raises ClickException where something would be lost."""
    for path in (output, journal):
        if path is None:
            continue
        if not path.absolute().parent.is_dir():
            raise click.ClickException(f"{path}: there is no folder {path.parent}")
        if path.is_dir():
            raise click.ClickException(f"{path} is a folder; name a file")
        if path.exists() and os.path.exists(source) and path.samefile(source):
            raise click.ClickException(f"{path} has the rows themselves; name another file")
    goes_on = journal is not None and journal.exists()
    if output is not None and output.exists() and not goes_on and not overwrite:
        raise click.ClickException(
            f"{output} is there, and no batch that could go on; name another file, or begin anew "
            "with --overwrite"
        )


def _write(
    results: Iterator[Result], file: BinaryIO, *, stop_at_failure: bool
) -> tuple[int, Result] | None:
    """Write all rows in order; how many failed, and the first of these."""
    failed = 0
    first: Result | None = None
    with _InOrder(file) as ordered:
        for row in results:
            ordered.add(row.row, f"{as_line(row)}\n".encode("utf-8", "backslashreplace"))
            if row.error is None:
                continue
            failed += 1
            first = row if first is None or row.row < first.row else first
            if stop_at_failure:
                break
    return None if first is None else (failed, first)


class _InOrder:
    """Lines that come in any order and are written in theirs.

    Those that wait for an earlier one are in a file where they grow large: one row may take longer
    than a million others.
    """

    def __init__(self, file: BinaryIO, in_memory: int = _IN_MEMORY) -> None:
        self._file = file
        self._next = 0
        self._waiting: dict[int, tuple[int, int]] = {}  # where a line is, and its length
        self._kept = SpooledTemporaryFile(max_size=in_memory)  # noqa: SIM115 (see __exit__)
        self._end = 0

    def add(self, index: int, line: bytes) -> None:
        """A line; it is written when all before it are."""
        if index != self._next:
            self._kept.seek(self._end)
            self._kept.write(line)
            self._waiting[index] = (self._end, len(line))
            self._end += len(line)
            return
        self._file.write(line)
        self._next += 1
        while (place := self._waiting.pop(self._next, None)) is not None:
            self._kept.seek(place[0])
            self._file.write(self._kept.read(place[1]))
            self._next += 1
        self._file.flush()
        if not self._waiting and self._end:
            self._kept.seek(0)
            self._kept.truncate()
            self._end = 0

    def __enter__(self) -> _InOrder:
        return self

    def __exit__(self, *_: object) -> None:
        self._kept.close()
