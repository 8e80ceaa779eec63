"""A row as the command line shows it: lines for people, an object for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import click

from sglite.running.result import Result
from sglite.running.saved import plain
from sglite.running.stream import End, Filled, Retried, StreamEvent, Switched, Text

Hole = tuple[str, tuple[int, ...]]


def as_json(row: Result) -> str:
    """One row as an object of JSON on one line."""
    timing = row.timing
    return _dumped(
        {
            "values": _plain_values(row),
            "returned": plain(row.returned),
            "text": row.text(),
            "usage": asdict(row.usage),
            "model": row.model["name"],
            "seed": row.seed,
            "timing": {"time_to_first_token": timing.time_to_first_token, "total": timing.total},
        }
    )


def as_line(row: Result) -> str:
    """A row of a batch as a line of JSONL; the same whether it was run now or before."""
    error = row.error
    return _dumped(
        {
            "index": row.row,
            "values": _plain_values(row),
            "returned": None if error is not None else plain(row.returned),
            "error": error and {"message": str(error), "file": error.filename, "line": error.line},
        }
    )


def show(row: Result) -> None:
    """`name: value` for every variable, in the order of the program, and what it returned."""
    for name, value in row.variables.items():
        click.echo(f"{name}: {_written(value)}")
    if row.returned is not None:
        click.echo(f"returned: {_written(row.returned)}")


def show_stream(events: Iterable[StreamEvent]) -> None:
    """What `show` shows, as it comes.

    Of holes that are written at the same time one is shown while it is written, the others when
    they have their value.
    """
    printer = _Printer()
    try:
        for event in events:
            if isinstance(event, Text):
                printer.text((event.name, event.branch), event.text)
            elif isinstance(event, Filled):
                printer.filled((event.name, event.branch), event.value)
            elif isinstance(event, Retried):
                printer.void((event.name, event.branch))
            elif isinstance(event, Switched):
                printer.begin_anew(f"{event.reason}; {event.model} begins anew")
            elif isinstance(event, End):
                printer.rest(event.row)
    except BaseException:
        printer.end_line()
        raise


class _Printer:
    """Lines of which one is being written."""

    def __init__(self) -> None:
        self._live: Hole | None = None
        self._space = ""  # white space is printed when more comes: none ends a line
        self._begun = False
        self._waiting: list[tuple[str, Any]] = []  # lines for when it is done
        self._names: set[str] = set()

    def text(self, hole: Hole, text: str) -> None:
        if self._live is None:
            self._live = hole
            self._names.add(hole[0])
            click.echo(f"{hole[0]}: ", nl=False)
        if self._live != hole:
            return
        whole = self._space + text if self._begun else text.lstrip()
        kept = whole.rstrip()
        if kept:
            self._begun = True
            self._space = whole[len(kept) :]
            click.echo(kept, nl=False)

    def filled(self, hole: Hole, value: Any) -> None:
        if self._live == hole:
            self.end_line()
        elif self._live is None:
            self._line(hole[0], value)
        else:
            self._waiting.append((hole[0], value))

    def void(self, hole: Hole) -> None:
        """What was written of this hole is refused, and it is written again."""
        if self._live == hole:
            click.echo(" (refused)", nl=False)
            self.end_line()

    def begin_anew(self, reason: str) -> None:
        """Another model does it all again."""
        self.end_line()
        self._names.clear()
        click.echo(reason, err=True)

    def rest(self, row: Result) -> None:
        """What was no hole: parts of patterns, and what the program returned."""
        for name, value in row.variables.items():
            if name not in self._names:
                self._line(name, value)
        if row.returned is not None:
            self._line("returned", row.returned)

    def end_line(self) -> None:
        if self._live is None:
            return
        click.echo()
        self._live, self._space, self._begun = None, "", False
        waiting, self._waiting = self._waiting, []
        for name, value in waiting:
            self._line(name, value)

    def _line(self, name: str, value: Any) -> None:
        self._names.add(name)
        click.echo(f"{name}: {_written(value)}")


def _plain_values(row: Result) -> dict[str, Any]:
    return {name: plain(value) for name, value in row.variables.items()}


def _written(value: Any) -> str:
    return value.strip() if isinstance(value, str) else _dumped(plain(value))


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
