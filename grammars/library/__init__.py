"""Ready grammars, each a file beside this one with a header that says what it is exactly.

library.names()                     # ["arithmetic", "csv_row", ...]
library.load("iso_date", vocab)     # compiled
"""

from __future__ import annotations

from pathlib import Path

from sglite.errors import GrammarError
from sglite.grammars.matcher import Grammar
from sglite.grammars.text import compile_grammar
from sglite.grammars.vocabulary import Vocabulary

_FILES = {
    path.stem: path for path in Path(__file__).parent.iterdir() if path.suffix in (".gbnf", ".lark")
}


def names() -> list[str]:
    """What there is, in alphabetical order."""
    return sorted(_FILES)


def path(name: str) -> Path:
    """The file of a grammar. Raises GrammarError for an unknown name."""
    if name not in _FILES:
        raise GrammarError(f"the library has no grammar {name!r}; it has {', '.join(names())}")
    return _FILES[name]


def text(name: str) -> str:
    """The text of a grammar, to read or to change. Raises GrammarError for an unknown name."""
    return path(name).read_text(encoding="utf-8")


def load(name: str, vocab: Vocabulary) -> Grammar:
    """A grammar, compiled. Raises GrammarError for an unknown name."""
    return compile_grammar(path(name), vocab)
