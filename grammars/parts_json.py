"""Parts of composed grammars as plain data, and back, and as a short text for people."""

from __future__ import annotations

from typing import Any

from sglite.grammars import compose
from sglite.grammars.parts import (
    Capture,
    Choice,
    Part,
    Regex,
    Repeat,
    Rules,
    Schema,
    Sequence,
    Until,
)
from sglite.grammars.quotes import Quote


def plain_part(part: Part) -> Any:
    """A part as plain data. Raises TypeError for one that knows a vocabulary."""
    match part:
        case str():
            return {"text": part}
        case Sequence(parts):
            return {"sequence": [plain_part(inner) for inner in parts]}
        case Choice(parts):
            return {"choice": [plain_part(inner) for inner in parts]}
        case Repeat(inner, low, high):
            return {"repeat": [plain_part(inner), low, high]}
        case Until(marker, name):
            return {"until": [marker, name]}
        case Regex(pattern):
            return {"regex": pattern}
        case Quote(document, whole_words, low, high):
            return {"quote": [document, whole_words, low, high]}
        case Schema(text, order, whitespace, spelling):
            return {"schema": [text, order, whitespace, spelling]}
        case Capture(name, inner):
            return {"capture": [name, plain_part(inner)]}
        case Rules(text, start, rules) if len(text.key) == 2:
            format, content = text.key
            return {"rules": [content, start, format, {n: plain_part(inner) for n, inner in rules}]}
        case Rules():
            raise TypeError("a grammar that imports files has no form in JSON")
    raise TypeError("a grammar that was compiled for one vocabulary has no form in JSON")


def read_part(data: Any) -> Part:
    """The part of plain data. Raises TypeError, ValueError and GrammarError for what is none."""
    ((kind, said),) = data.items()
    match kind:
        case "text" if isinstance(said, str):
            return said
        case "sequence":
            return compose.sequence(*map(read_part, said))
        case "choice":
            return compose.choice(*map(read_part, said))
        case "repeat":
            return compose.repeat(read_part(said[0]), said[1], said[2])
        case "until":
            return compose.text_until(*said)
        case "regex" if isinstance(said, str):
            return compose.regex(said)
        case "quote":
            return compose.quote(*said)
        case "schema":
            return compose.json_schema(*said)
        case "capture":
            return compose.capture(said[0], read_part(said[1]))
        case "rules" if isinstance(said[0], str):
            rules = {name: read_part(inner) for name, inner in said[3].items()}
            return compose.grammar(said[0], said[1], said[2], rules)
    raise ValueError(f"unknown part of a grammar {kind!r}")


def show_part(part: Part) -> str:
    """A part in one line, for people: `("yes" | /no+/) count=/[0-9]/{1,2}`."""
    match part:
        case str():
            return repr(part)
        case Sequence(parts):
            return " ".join(map(show_part, parts))
        case Choice(parts):
            return f"({' | '.join(map(show_part, parts))})"
        case Repeat(inner, 0, 1):
            return f"({show_part(inner)})?"
        case Repeat(inner, low, high):
            return f"({show_part(inner)}){{{low},{'' if high is None else high}}}"
        case Until(marker, name):
            return f"{name or ''}...{marker!r}"
        case Regex(pattern):
            return f"/{pattern}/"
        case Quote():
            return repr(part)
        case Schema(text):
            return f"json {text}"
        case Capture(name, inner):
            return f"{name}={show_part(inner)}"
        case Rules(text, start):
            return f"{text.key[0]} {start}"
        case _:
            return "a compiled grammar"
