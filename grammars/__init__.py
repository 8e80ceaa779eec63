"""Constraints: JSON Schema, regex and grammar text, compiled to automata that mask tokens."""

from sglite.errors import GrammarError
from sglite.grammars.matcher import Grammar, Matcher, fill_masks, free_text
from sglite.grammars.parts_json import plain_part, read_part, show_part
from sglite.grammars.regex import compile_regex
from sglite.grammars.schema import compile_json_schema, explain
from sglite.grammars.text import compile_grammar
from sglite.grammars.vocabulary import Vocabulary

__all__ = [
    "Grammar",
    "GrammarError",
    "Matcher",
    "Vocabulary",
    "compile_grammar",
    "compile_json_schema",
    "compile_regex",
    "explain",
    "fill_masks",
    "free_text",
    "plain_part",
    "read_part",
    "show_part",
]
