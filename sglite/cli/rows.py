"""The rows of a batch out of a file: JSONL, an object of arguments on each line, or CSV.

A file is read twice, so that a line that is wrong is known before anything is run; never more than
a line of it is held.
"""

from __future__ import annotations

import codecs
import csv
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, BinaryIO, NoReturn

import click

from sglite.cli.arguments import Argument, reasons
from sglite.language.program import Function
from sglite.language.suggestions import did_you_mean

_CELL = 1 << 30  # the csv module takes 128 KiB where nothing is said: less than a document


class Rows:
    """The rows, each with the arguments of the command line that it does not name itself."""

    def __init__(
        self,
        source: str,
        program: Function,
        arguments: Mapping[str, Argument],
        given: Mapping[str, Any],
    ) -> None:
        self.source = source
        self._arguments = {name: each for name, each in arguments.items() if each.by_name}
        self._open = any(
            parameter.kind is parameter.VAR_KEYWORD for parameter in program.signature.parameters
        )
        by_position = [each for each in arguments.values() if not each.by_name]
        if any(each.required for each in by_position) or not given.keys() <= {*self._arguments}:
            raise click.UsageError(
                f"rows give arguments by name, and {by_position[0].name!r} is passed by position"
            )
        self._given = given

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for number, said in self._read():
            yield self._row(number, said)

    def counted(self) -> Rows:
        """The same rows, with their number where the file can be read twice.

        Raises ClickException for the first line that is wrong.
        """
        return self if self.source == "-" else _Counted(self, sum(1 for _ in self))

    def _row(self, number: int, said: Mapping[str, Any]) -> dict[str, Any]:
        row = dict(self._given)
        for name, value in said.items():
            argument = self._arguments.get(name)
            if argument is None and not self._open:
                takes = ", ".join(self._arguments) or "none"
                self._refuse(
                    number,
                    f"there is no argument {name!r}{did_you_mean(name, self._arguments)}; "
                    f"the program takes: {takes}",
                )
            try:
                row[name] = value if argument is None else self._value(argument, value)
            except (ValueError, RecursionError) as error:
                said_of = reasons(error) if isinstance(error, ValueError) else str(error)
                self._refuse(number, f"{name}: {said_of}")
        for name, argument in self._arguments.items():
            if name not in row:
                if argument.required:
                    self._refuse(number, f"the argument {name!r} is missing")
                row |= argument.absent
        return row

    def _value(self, argument: Argument, value: Any) -> Any:
        return argument.from_cell(value) if self._is_csv else argument.from_json(value)

    def _read(self) -> Iterator[tuple[int, dict[str, Any]]]:
        try:
            if self.source == "-":
                yield from self._lines(sys.stdin.buffer)
            elif self._is_csv:
                with open(self.source, encoding="utf-8-sig", newline="") as text:
                    yield from self._cells(text)
            else:
                with open(self.source, "rb") as lines:
                    yield from self._lines(lines)
        except OSError as error:
            raise click.ClickException(f"{self.source}: {error.strerror or error}") from error

    @property
    def _is_csv(self) -> bool:
        return Path(self.source).suffix.lower() == ".csv"

    def _lines(self, file: BinaryIO | IO[bytes]) -> Iterator[tuple[int, dict[str, Any]]]:
        for number, line in enumerate(file, 1):
            text = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
            if not text.strip():
                continue
            try:
                value = json.loads(text.decode())
            except UnicodeDecodeError:
                self._refuse(number, "is no UTF-8; save the file as UTF-8")
            except (ValueError, RecursionError) as error:
                self._refuse(number, f"is no JSON: {error}; write one object on each line")
            if not isinstance(value, dict):
                self._refuse(number, "is no JSON object; write one object on each line")
            yield number, value

    def _cells(self, file: IO[str]) -> Iterator[tuple[int, dict[str, Any]]]:
        csv.field_size_limit(_CELL)
        reader = csv.reader(file, strict=True)
        names: list[str] | None = None
        try:
            for cells in reader:
                if names is None:
                    names = cells
                elif cells:
                    if len(cells) != len(names):
                        self._refuse(
                            reader.line_num, f"has {len(cells)} cells, the first {len(names)}"
                        )
                    row = zip(names, cells, strict=True)
                    yield reader.line_num, {k: v for k, v in row if v or self._takes_nothing(k)}
        except (csv.Error, UnicodeDecodeError) as error:
            self._refuse(reader.line_num + 1, f"is no CSV in UTF-8: {error}")

    def _takes_nothing(self, name: str) -> bool:
        """Whether an empty cell is a value; where it is none the argument has its default."""
        argument = self._arguments.get(name)
        return argument is None or argument.is_text

    def _refuse(self, number: int, reason: str) -> NoReturn:
        where = "standard input" if self.source == "-" else self.source
        raise click.ClickException(f"{where}, line {number}: {reason}")


class _Counted(Rows):
    """Rows of which the number is known."""

    def __init__(self, rows: Rows, count: int) -> None:
        vars(self).update(vars(rows))
        self._count = count

    def __len__(self) -> int:
        return self._count
