"""`sglite run`: a program of the user's with options made from its signature.

The line is read twice: what stands before FILE:FUNCTION are options of ours; behind it, when the
program is known, its arguments come first, and our options are those that it has not taken.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import click

from sglite.cli.arguments import Argument, arguments_of, reasons
from sglite.cli.batch import run_batch
from sglite.cli.own import Own, own_of, own_options
from sglite.cli.rows import Rows
from sglite.cli.shown import as_json, show, show_stream
from sglite.cli.target import load_program
from sglite.language.program import Function
from sglite.tools.declared import read_docstring


def run_target(ctx: click.Context, target: str, rest: Sequence[str], before: Own) -> None:
    """Run the program with what stands behind it on the line."""
    program = load_program(target)
    arguments = arguments_of(program)
    command = _ProgramCommand(target, program, arguments)
    with command.make_context(f"run {target}", [*rest], parent=ctx.parent) as inner:
        own = own_of(inner.params).over(before)
        given = _given(inner, command, arguments)
        if own.batch is None:
            _run_once(program, arguments, given, own)
        else:
            if own.stream:
                raise click.UsageError("--stream is for one run, not for --batch")
            rows = Rows(own.batch, program, arguments, given)
            run_batch(program, rows, own)


def help_of(ctx: click.Context, target: str) -> str:
    """What `sglite run FILE:FUNCTION --help` says."""
    program = load_program(target)
    command = _ProgramCommand(target, program, arguments_of(program))
    with click.Context(command, info_name=f"run {target}", parent=ctx.parent) as inner:
        return command.get_help(inner)


class _ProgramCommand(click.Command):
    """The command that a program is: its arguments, then our options."""

    def __init__(self, target: str, program: Function, arguments: dict[str, Argument]) -> None:
        about, _ = read_docstring(inspect.getdoc(program.body) or "")
        self.own = [argument.option for argument in arguments.values()]
        taken = {flag for option in self.own for flag in (*option.opts, *option.secondary_opts)}
        params = [*self.own, *own_options(taken)]
        super().__init__(target, params=params, help=about or None)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        mine = [param for param in self.get_params(ctx) if param not in self.own]
        for title, params in (("Arguments", self.own), ("Options", mine)):
            records = [param.get_help_record(ctx) for param in params]
            if records:
                with formatter.section(title):
                    formatter.write_dl([record for record in records if record is not None])


def _given(
    ctx: click.Context, command: _ProgramCommand, arguments: dict[str, Argument]
) -> dict[str, Any]:
    """The arguments that were given, checked. Raises BadParameter."""
    given = {}
    for (name, argument), option in zip(arguments.items(), command.own, strict=True):
        value = ctx.params[name]
        if value is None or value == ():
            continue
        try:
            given[name] = argument.checked(value)
        except ValueError as error:
            raise click.BadParameter(reasons(error), ctx, option) from error
    return given


def _run_once(
    program: Function, arguments: dict[str, Argument], given: dict[str, Any], own: Own
) -> None:
    values: dict[str, Any] = {}
    for name, argument in arguments.items():
        if name in given:
            values[name] = given[name]
        elif argument.required:
            raise click.MissingParameter(param=argument.option)
        else:
            values |= argument.absent
    by_name = {name: value for name, value in values.items() if arguments[name].by_name}
    # Of those by position each stands before the first that was left to its default.
    others = [name for name, argument in arguments.items() if not argument.by_name]
    by_position = [values[name] for name in others if name in values]
    if [name for name in others[: len(by_position)] if name not in values]:
        raise click.UsageError(f"{', '.join(others)} are passed by position; give all of them")
    options = own.options()
    streamed = sys.stdout.isatty() and not own.json if own.stream is None else own.stream
    if streamed and own.json:
        raise click.UsageError("--stream prints text as it comes, --json the row at its end")
    with ExitStack() as stack:
        model = own.open_model()
        if model is not None:
            stack.enter_context(model)
        how: dict[str, Any] = {"options": options, "model": model}
        if streamed:
            show_stream(program.stream(*by_position, **how, **by_name))
            return
        row = program.run(*by_position, **how, **by_name)
        click.echo(as_json(row)) if own.json else show(row)
