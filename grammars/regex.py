"""Patterns in the syntax of Python's `re`, compiled to grammars; the whole text must match."""

from __future__ import annotations

from typing import Literal

from sglite.errors import GrammarError
from sglite.grammars import _native
from sglite.grammars.matcher import Grammar
from sglite.grammars.outlines import compile_with_outlines
from sglite.grammars.refusals import refusals
from sglite.grammars.vocabulary import Vocabulary

RegexEngine = Literal["native", "outlines"]


def compile_regex(pattern: str, vocab: Vocabulary, engine: RegexEngine = "native") -> Grammar:
    """The grammar of the texts that `re.fullmatch(pattern, text)` accepts.

    Raises GrammarError, its pointer the position, for what is not regular or not supported
    (backreferences, lookbehind, possessive and atomic groups), for a pattern that matches nothing,
    and for a vocabulary without a token for some single byte that it can use. The engine
    "outlines" leaves all of it to the package outlines-core (extra `sglite[outlines]`).
    """
    if engine == "outlines":
        return vocab.compiled(
            ("regex", "outlines", pattern), lambda: compile_with_outlines(pattern, vocab)
        )
    if engine != "native":
        raise GrammarError(f"unknown engine {engine!r}; known: 'native', 'outlines'")

    def compile_now() -> Grammar:
        try:
            native = _native.compile_pattern(pattern.encode(), False, False, vocab.native)
        except _native.Refused as error:
            raise GrammarError(error.reason, error.pointer) from None
        return Grammar(native, vocab)

    with refusals("pattern"):
        return vocab.compiled(("regex", pattern), compile_now)
