"""The options of `sglite run` itself: model, options of the run, output, batch.

Those of the run are read from `Options`, so that there is no second list of them.
"""

from __future__ import annotations

import os
import typing
from collections.abc import Mapping, Set
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import click

from sglite import model as models
from sglite.errors import ModelError
from sglite.model import Model
from sglite.options import Options

DEFAULT_MODEL = "smollm2"

_PREFIX = "sglite_"  # keeps our values apart from those of a program's arguments

_HELP = {
    "max_tokens": "Where holes end that say nothing themselves.",
    "temperature": "0, where nothing is said: always the most probable token.",
    "seed": "Repeats a run; drawn where nothing is said.",
    "timeout": "Seconds that a run may take.",
    "on_overflow": "error or drop_oldest: what happens to a chat that outgrows the context.",
}
_OWN: dict[str, tuple[list[str], dict[str, Any]]] = {
    "model": (["--model"], {"metavar": "NAME", "help": "A name as for pull, or a path."}),
    "backend": (
        ["--backend"],
        {
            "type": click.Choice(["cpu", "scripted", "remote"]),
            "help": "scripted answers with some valid text, without a model.",
        },
    ),
    "url": (
        ["--url"],
        {"help": "An endpoint that speaks OpenAI's protocol; --model is its name there."},
    ),
    "json": (["--json"], {"is_flag": True, "help": "Print the row as one JSON object."}),
    "stream": (
        ["--stream/--no-stream"],
        {"help": "Print text as it comes; so it is on a terminal."},
    ),
    "batch": (
        ["--batch"],
        {"metavar": "FILE", "help": "Run once for each row of a .jsonl or .csv file; - is stdin."},
    ),
    "output": (
        ["-o", "--output"],
        {"metavar": "FILE", "help": "Where a batch writes its rows as JSONL; - is stdout."},
    ),
    "errors": (
        ["--errors"],
        {
            "type": click.Choice(["return", "raise"]),
            "help": "return, as it is: a failed row has its error. raise: the batch ends there.",
        },
    ),
    "journal": (
        ["--journal"],
        {"metavar": "FILE", "help": "Where a batch keeps what is done; OUTPUT.journal."},
    ),
    "overwrite": (
        ["--overwrite"],
        {"is_flag": True, "help": "Begin a batch anew, over an output that is there."},
    ),
    "progress": (["--progress/--no-progress"], {"help": "A bar; so it is on a terminal."}),
}


@dataclass(frozen=True)
class Own:
    """What was said of these options; what was not is None."""

    said: Mapping[str, Any]

    def __getattr__(self, name: str) -> Any:
        return self.said.get(name)

    def over(self, base: Own) -> Own:
        """These, and where they say nothing those of `base`."""
        return Own({**base.said, **{k: v for k, v in self.said.items() if v is not None}})

    def options(self) -> Options:
        """The options of the run. Raises UsageError."""
        names = {field.name for field in fields(Options)}
        try:
            options = Options(**{k: v for k, v in self.said.items() if k in names})
            options.sampling()
        except ValueError as error:
            raise click.UsageError(str(error)) from error
        return options

    def open_model(self) -> Model | None:
        """The model that is asked for; None for the one that the program's file has put in use.

        What nobody names is that of the environment, SGLITE_MODEL, or the small one.
        """
        backend = self.backend or ("remote" if self.url else "cpu")
        if not (self.model or self.backend or self.url):
            try:
                models.current_model()
            except ModelError:
                pass
            else:
                return None
        name = self.model or (os.environ.get("SGLITE_MODEL") if backend == "cpu" else None)
        if name is None and backend == "remote":
            raise click.UsageError("--url needs --model, the name of the model at that endpoint")
        try:
            name = name or (DEFAULT_MODEL if backend == "cpu" else backend)
            return Model(name, backend, url=self.url)
        except ValueError as error:
            raise click.UsageError(str(error)) from error

    def path_of_journal(self) -> Path | None:
        """Where a batch keeps what is done; None for nowhere."""
        if self.journal is not None:
            return Path(self.journal)
        return None if self.output in (None, "-") else Path(f"{self.output}.journal")


def own_options(taken: Set[str] = frozenset()) -> list[click.Parameter]:
    """The options, but for names that are taken by arguments of the program."""
    hints = typing.get_type_hints(Options)
    declared = {
        field.name: (
            [f"--{field.name.replace('_', '-')}"],
            {"type": _type(hints[field.name]), "help": _HELP.get(field.name)},
        )
        for field in fields(Options)
    }
    made: list[click.Parameter] = []
    for name, (flags, how) in (_OWN | declared).items():
        free = [each for each in flags if taken.isdisjoint(each.split("/"))]
        if free:
            made.append(click.Option([_PREFIX + name, *free], default=None, **how))
    return made


def own_of(said: Mapping[str, Any]) -> Own:
    """Ours among the values that click has read."""
    return Own({k.removeprefix(_PREFIX): v for k, v in said.items() if k.startswith(_PREFIX)})


def _type(hint: Any) -> click.ParamType[Any]:
    kinds = typing.get_args(hint)
    return click.INT if int in kinds else click.FLOAT if float in kinds else click.STRING
