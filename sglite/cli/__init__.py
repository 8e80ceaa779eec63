"""The command line: `sglite pull`, `sglite inspect`. Errors of sglite end in one line and exit
code 1."""

from __future__ import annotations

from typing import Any

import click

from sglite.errors import SgliteError

__all__ = ["main"]


class _Group(click.Group):
    """A group that turns the errors of sglite into messages."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except SgliteError as error:
            raise click.ClickException(str(error)) from error


@click.group(cls=_Group)
@click.version_option(package_name="sglite", message="sglite %(version)s")
def main() -> None:
    """Structured generation in one package."""


@main.command()
@click.argument("name")
def pull(name: str) -> None:
    """Fetch the model NAME if it is not here yet, and print the path of its file."""
    from sglite.runtime.models.pull import resolve

    click.echo(resolve(name))


@main.command()
@click.argument("model")
def inspect(model: str) -> None:
    """Show what is in the GGUF file MODEL: a path, or a name as for `pull`."""
    from sglite.cli.inspect import describe
    from sglite.runtime.models.gguf import GGUFFile
    from sglite.runtime.models.pull import resolve

    with GGUFFile.open(resolve(model)) as gguf:
        for line in describe(gguf):
            click.echo(line)
