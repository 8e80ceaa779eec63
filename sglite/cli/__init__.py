"""The command line: `sglite pull`, `sglite inspect`. Errors of sglite end in one line and exit
code 1."""

from __future__ import annotations

from typing import Any

import click

from sglite.errors import SgliteError
from sglite.runtime.models.catalog import CATALOG

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


def _known_models() -> str:
    lines = ["\b", "Models:"]
    for release in CATALOG.values():
        licence = release.licence.partition(" (")[0]
        lines.append(f"  {release.name:14}{release.size / 1e6:4.0f} MB, {licence}")
    return "\n".join(lines)


@main.command(short_help="Fetch a model.", epilog=_known_models())
@click.argument("name")
def pull(name: str) -> None:
    """Fetch the model NAME if it is not here yet, and print the path of its file.

    NAME is one of those below, or hf:ORG/REPO/FILE. Named models are kept in the folder
    $SGLITE_CACHE, or else in the one for caches of this system.
    """
    from sglite.runtime.models.pull import resolve

    click.echo(resolve(name))


@main.command(short_help="Show what is in a model file.")
@click.argument("model")
def inspect(model: str) -> None:
    """Show what is in the GGUF file MODEL: a path, or a name as for `pull`."""
    from sglite.cli.inspect import describe
    from sglite.runtime.models.gguf import GGUFFile
    from sglite.runtime.models.pull import resolve

    with GGUFFile.open(resolve(model)) as gguf:
        for line in describe(gguf):
            click.echo(line)
