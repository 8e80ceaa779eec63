"""Where the names of a Lark grammar come from: its own text, files beside it, `common`."""

from __future__ import annotations

import functools
from pathlib import Path

from sglite.grammars.lark.syntax import parse
from sglite.grammars.lark.tree import Definition, Import, Source, is_terminal
from sglite.grammars.refusals import check_length

_COMMON = Path(__file__).with_name("common.lark")
_MAX_FILES = 100


@functools.cache
def _common() -> Source:
    return parse(_COMMON.read_text(encoding="utf-8"), "common")


class Sources:
    """A grammar text with all that it imports; it may use the rules `given`.

    Raises GrammarError with the place where a file, a grammar or a name does not exist.
    """

    def __init__(self, text: str, folder: Path | None, given: frozenset[str]) -> None:
        self.main = parse(text)
        self._files: dict[Path, Source] = {}
        self._from: dict[tuple[int, str], tuple[Source, str]] = {}
        folders = {id(self.main): folder}
        todo = [self.main]
        for source in todo:
            for wanted in source.imports.values():
                if not wanted.relative:
                    found = self._bundled(source, wanted)
                elif (here := folders[id(source)]) is None:
                    source.refuse("only grammars read from a file can import files", wanted.at)
                else:
                    path = here.joinpath(*wanted.path).with_suffix(".lark")
                    known = path in self._files
                    found = self._file(source, wanted, path)
                    if not known:
                        folders[id(found)] = path.parent
                        todo.append(found)
                if wanted.name not in found.definitions and wanted.name not in found.imports:
                    path_text = ".".join(wanted.path)
                    source.refuse(f"grammar {path_text!r} has no {wanted.name!r}", wanted.at)
                self._from[id(source), wanted.alias] = found, wanted.name
            self._check(source, given if source is self.main else frozenset())

    @property
    def all(self) -> tuple[Source, ...]:
        """The text itself and every file."""
        return (self.main, *self._files.values())

    @property
    def texts(self) -> tuple[str, ...]:
        """Everything that was read from files besides the text itself."""
        return tuple(source.text for source in self._files.values())

    def definition(self, source: Source, name: str) -> tuple[Source, Definition]:
        """What `name` means in `source`, and the text in which that stands."""
        seen = set()
        while name not in source.definitions:
            if (id(source), name) in seen:
                source.refuse(f"the import of {name!r} leads back to itself", 0)
            seen.add((id(source), name))
            source, name = self._from[id(source), name]
        return source, source.definitions[name]

    @staticmethod
    def _bundled(source: Source, wanted: Import) -> Source:
        if wanted.path != ("common",):
            path = ".".join(wanted.path)
            source.refuse(
                f"unknown grammar {path!r}; known: 'common', and files as '.{path}'", wanted.at
            )
        return _common()

    def _file(self, source: Source, wanted: Import, path: Path) -> Source:
        if path not in self._files:
            if len(self._files) >= _MAX_FILES:
                source.refuse(f"more than {_MAX_FILES} files are imported", wanted.at)
            try:
                text = path.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                source.refuse(f"cannot read {str(path)!r}: {error}", wanted.at)
            check_length(text, f"grammar {path.name!r}")
            self._files[path] = parse(text, path.name)
        return self._files[path]

    @staticmethod
    def _check(source: Source, given: frozenset[str]) -> None:
        """Every name that is used must exist, and be given or defined, not both."""
        for name in sorted(given):
            if name in source.definitions or name in source.imports:
                source.refuse(f"rule {name!r} is given, and defined as well", 0)
        for used in source.names:
            if not (
                used.name in source.definitions or used.name in source.imports or used.name in given
            ):
                kind = "terminal" if is_terminal(used.name) else "rule"
                source.refuse(f"{kind} {used.name!r} is used but never defined", used.at)
