"""The program that `sglite run` names: in a Python file, a module, or a graph written as JSON."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from sglite.cli.trouble import told_of_loading
from sglite.graphs.graph import Graph
from sglite.language.program import Function
from sglite.language.suggestions import did_you_mean


def load_program(target: str) -> Function:
    """The program of `FILE:FUNCTION`, `MODULE:FUNCTION` or `GRAPH.json`.

    Raises ClickException, with what there is instead.
    """
    place, name = _split(target)
    if place.endswith(".json"):
        return _graph(place, name)
    is_file = place.endswith(".py") or os.sep in place or "/" in place or Path(place).is_file()
    module = _from_file(place) if is_file else _from_module(place)
    return _pick(module, place, name)


def _split(target: str) -> tuple[str, str]:
    place, colon, name = target.rpartition(":")
    if colon and (name.isidentifier() or not name):
        return place, name
    return target, ""  # also of C:\programs\demo.py


def _graph(place: str, name: str) -> Graph:
    _check_file(place)
    if name:
        raise click.ClickException(f"{place} is one graph; leave out :{name}")
    try:
        return Graph.from_json(Path(place).read_text(encoding="utf-8"))
    except ValueError as error:
        raise click.ClickException(f"{place}: {error}") from error


def _check_file(place: str) -> None:
    path = Path(place)
    if not path.is_file():
        near = [each.name for each in path.parent.glob("*")] if path.parent.is_dir() else []
        raise click.ClickException(f"there is no file {place}{did_you_mean(path.name, near)}")


def _from_file(place: str) -> ModuleType:
    _check_file(place)
    path = Path(place).resolve()
    # Its own name, as if it had been imported, unless that is one of a module in use (json.py).
    name = path.stem if path.stem not in sys.modules else f"sglite_run_{path.stem}"
    spec = spec_from_file_location(name, path, loader=SourceFileLoader(name, str(path)))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise click.ClickException(told_of_loading(error, place)) from error
    return module


def _from_module(place: str) -> ModuleType:
    sys.path.insert(0, os.getcwd())
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{place}.".startswith(f"{error.name}."):
            raise click.ClickException(
                f"there is no file {place} and no module {error.name!r}; name a file such as "
                "demo.py:function, or a module such as package.module:function"
            ) from error
        raise click.ClickException(told_of_loading(error, place)) from error
    except (Exception, SystemExit) as error:
        raise click.ClickException(told_of_loading(error, place)) from error


def _pick(module: ModuleType, place: str, name: str) -> Function:
    found = {key: value for key, value in vars(module).items() if isinstance(value, Function)}
    if name in found:
        return found[name]
    own = {id(value): value for value in found.values() if value.__module__ == module.__name__}
    if not name and len(own) == 1:
        return next(iter(own.values()))
    listed = "".join(f"\n  {key}{_line(value)}" for key, value in found.items())
    if not found:
        said = f"{place} has no program; write @sgl.function above a def"
    elif not name:
        said = f"{place} has several programs; name one, such as {place}:{next(iter(found))}"
    elif name in vars(module):
        said = f"{name!r} of {place} is no program; write @sgl.function above a def"
    else:
        said = f"{place} has no program {name!r}{did_you_mean(name, found)}"
    raise click.ClickException(f"{said}{listed}")


def _line(program: Function) -> str:
    code: Any = getattr(inspect.unwrap(program.body), "__code__", None)
    return "" if isinstance(program, Graph) or code is None else f"  line {code.co_firstlineno}"
