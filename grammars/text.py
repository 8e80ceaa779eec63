"""Grammar texts and files, compiled to grammars: GBNF and a subset of Lark's format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal, get_args

from sglite.errors import GrammarError
from sglite.grammars import _native
from sglite.grammars.gbnf import lower_gbnf
from sglite.grammars.lark.lowering import LarkGrammar
from sglite.grammars.matcher import Grammar, build
from sglite.grammars.refusals import check_length, refusals
from sglite.grammars.vocabulary import Vocabulary

GrammarFormat = Literal["gbnf", "lark"]

MAX_EDGES = 500_000
"""Of its network: roughly its characters, those of repetitions counted as often as they stand."""


def compile_grammar(
    text: str | Path,
    vocab: Vocabulary,
    start: str = "root",
    format: GrammarFormat | None = None,
) -> Grammar:
    """The grammar of the texts that rule `start` of `text` derives, recursion of every kind
    included.

    text: a grammar text, or the path of a file with one. format: "gbnf" or "lark"; if not given,
    by the suffix of the file, else "gbnf". In Lark's format, `start` stands for `root` where there
    is no rule `root`, and only grammars from files can import files.

    Raises GrammarError, its pointer "line:column", for a text that is not in the format, for
    names that are not defined, and for a grammar that derives nothing.
    """
    with refusals("grammar"):
        read = read_grammar(text, format)

        def compile_now() -> Grammar:
            builder = _native.Builder(vocab.native)
            return build(builder, read.lower(builder, vocab, start, {}), vocab, MAX_EDGES)

        return vocab.compiled((*read.key, start), compile_now)


Lower = Callable[[_native.Builder, Vocabulary, str, Mapping[str, int]], int]


@dataclass(frozen=True, slots=True)
class ReadGrammar:
    """A grammar text: `key` names its content, `lower` makes the expression of a rule out of it,
    given those of the rules that the text does not define itself."""

    key: tuple[str, ...]
    lower: Lower = field(compare=False, repr=False)


def read_grammar(
    text: str | Path, format: GrammarFormat | None, given: frozenset[str] = frozenset()
) -> ReadGrammar:
    """The text, its format settled and its imports read; `given` are the rules that it may use
    without a definition. Raises GrammarError."""
    folder = None
    if isinstance(text, Path):
        format = format or _format_of(text)
        folder = text.parent
        text = _read(text)
    format = format or "gbnf"
    if format not in get_args(GrammarFormat):
        raise GrammarError(f"unknown grammar format {format!r}; known: 'gbnf', 'lark'")
    check_length(text, "grammar")
    content = text
    if format == "gbnf":
        return ReadGrammar(("gbnf", content), partial(_lower_gbnf, content))
    if folder is None:
        return ReadGrammar(("lark", content), partial(_lower_lark, content, given))
    grammar = LarkGrammar(content, folder, given)
    return ReadGrammar(("lark", content, *grammar.texts), grammar.lower)


# No closures: rows can be pickled, and grammars stand in their nodes.


def _lower_gbnf(
    text: str, builder: _native.Builder, _: Vocabulary, start: str, rules: Mapping[str, int]
) -> int:
    return lower_gbnf(text, builder, start, rules)


def _lower_lark(
    text: str,
    given: frozenset[str],
    builder: _native.Builder,
    vocab: Vocabulary,
    start: str,
    rules: Mapping[str, int],
) -> int:
    return LarkGrammar(text, None, given).lower(builder, vocab, start, rules)


def _format_of(path: Path) -> GrammarFormat:
    known: dict[str, GrammarFormat] = {".gbnf": "gbnf", ".lark": "lark"}
    if path.suffix not in known:
        raise GrammarError(f"cannot tell the format of {path.name!r}; name it .gbnf or .lark")
    return known[path.suffix]


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise GrammarError(f"cannot read the grammar {str(path)!r}: {error}") from None
