"""The command line: `sglite run`, `sglite pull`, `sglite inspect`.

Errors of sglite end in one line, with the user's own below it, and exit code 1; what is wrong with
the line that was typed in code 2, an interrupt in 130.
"""

from __future__ import annotations

from typing import Any

import click

from sglite.errors import SgliteError
from sglite.runtime.models.catalog import CATALOG

__all__ = ["main"]


_INTERRUPTED = 130  # 128 and the number of SIGINT, as shells have it


class _Group(click.Group):
    """A group that turns the errors of sglite into messages."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except SgliteError as error:
            from sglite.cli.trouble import told

            raise click.ClickException(told(error)) from error
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            ctx.exit(_INTERRUPTED)


class _Run(click.Command):
    """`run`, whose options are made when they are needed."""

    _has_own = False

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        if not self._has_own:
            from sglite.cli.own import own_options

            self.params += own_options()
            self._has_own = True
        return super().get_params(ctx)


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
    """Show what is in MODEL: the path of a GGUF file or of a folder, or a name as for `pull`."""
    from sglite.cli.inspect import describe
    from sglite.runtime.models.folder import ModelFolder
    from sglite.runtime.models.gguf import GGUFFile
    from sglite.runtime.models.pull import resolve

    path = resolve(model)
    for line in describe(ModelFolder(path) if path.is_dir() else GGUFFile.open(path)):
        click.echo(line)


@main.command(
    cls=_Run,
    short_help="Run a program.",
    add_help_option=False,
    context_settings={"allow_interspersed_args": False},
    options_metavar="",
)
@click.argument("target", required=False, metavar="[OPTIONS] FILE:FUNCTION")
@click.argument("rest", nargs=-1, type=click.UNPROCESSED, metavar="[ARGUMENTS AND OPTIONS]")
@click.option("--help", "wants_help", is_flag=True, help="Show this message and exit.")
@click.pass_context
def run(
    ctx: click.Context, /, target: str | None, rest: tuple[str, ...], wants_help: bool, **own: Any
) -> None:
    """Run a program with arguments from the command line.

    FILE:FUNCTION is a function under @sgl.function in a Python file (`demo.py:capital`; its name
    may be left out where the file has one alone), in a module (`package.module:capital`), or the
    file of a graph (`graph.json`). `sglite run FILE:FUNCTION --help` tells what it takes.

    \b
    sglite run demo.py:capital --country France
    sglite run demo.py:capital --batch countries.jsonl -o capitals.jsonl

    Options stand before FILE:FUNCTION or behind it. Behind it, a name that an argument of the
    program has too means that argument.
    """
    from sglite.cli.own import own_of
    from sglite.cli.run import help_of, run_target

    if target is None:
        if not wants_help:
            raise click.UsageError("name a program: sglite run FILE:FUNCTION", ctx)
        click.echo(ctx.get_help())
    elif wants_help:
        click.echo(help_of(ctx, target))
    else:
        run_target(ctx, target, rest, own_of(own))
