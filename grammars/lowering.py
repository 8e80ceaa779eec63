"""Trees of patterns and automata over characters, turned into expressions of the native builder."""

from __future__ import annotations

import json
from enum import IntEnum

from sglite.grammars._native import Builder
from sglite.grammars.automaton import Automaton, Pattern, explore
from sglite.grammars.regex_syntax import (
    ANYTHING,
    EMPTY,
    Anchor,
    Chars,
    Concat,
    Either,
    Regex,
    Repeat,
)


class Spelling(IntEnum):
    """How characters are written: as UTF-8, or inside of a JSON string in one or in every way."""

    UTF8 = 0
    JSON_CANONICAL = 1
    JSON_ANY = 2


def lower_automaton(builder: Builder, automaton: Automaton, spelling: Spelling) -> int:
    """The expression of an explored automaton."""
    return builder.automaton(
        automaton.states, automaton.start, automaton.accepting, automaton.edges, spelling
    )


def lower_full(builder: Builder, tree: Regex, spelling: Spelling) -> int:
    """The expression of the texts that `tree` matches in full."""
    return _lower_anchored(builder, tree, spelling, search=False)


def lower_search(builder: Builder, tree: Regex, spelling: Spelling) -> int:
    """The expression of the texts that hold a match of `tree` somewhere."""
    return _lower_anchored(builder, tree, spelling, search=True)


def _lower_anchored(builder: Builder, tree: Regex, spelling: Spelling, *, search: bool) -> int:
    parts = tree.parts if isinstance(tree, Either) else (tree,)
    free = [_split_anchors(part) for part in parts]
    if any(has_anchor(body) for _, body, _ in free):
        automaton = explore([Pattern(tree, search=search)])
        return lower_automaton(builder, automaton, spelling)
    around = ANYTHING if search else EMPTY
    whole = Either(
        tuple(
            Concat((EMPTY if at_start else around, body, EMPTY if at_end else around))
            for at_start, body, at_end in free
        )
    )
    return _lower(builder, whole, spelling)


def _split_anchors(tree: Regex) -> tuple[bool, Regex, bool]:
    """`tree` without anchors at its very ends, and whether there were some."""
    parts = list(tree.parts) if isinstance(tree, Concat) else [tree]
    at_start = at_end = False
    while parts and parts[0] == Anchor(at_end=False):
        at_start = True
        del parts[0]
    while parts and parts[-1] == Anchor(at_end=True):
        at_end = True
        del parts[-1]
    return at_start, Concat(tuple(parts)), at_end


def has_anchor(tree: Regex) -> bool:
    """Whether some anchor stands in `tree`."""
    match tree:
        case Anchor():
            return True
        case Concat(parts) | Either(parts):
            return any(has_anchor(part) for part in parts)
        case Repeat(part):
            return has_anchor(part)
        case _:
            return False


def _lower(builder: Builder, tree: Regex, spelling: Spelling) -> int:
    match tree:
        case Chars(ranges):
            return builder.characters(ranges, spelling)
        case Either(parts):
            return builder.choice([_lower(builder, part, spelling) for part in parts])
        case Repeat(part, low, high):
            return builder.repeat(
                _lower(builder, part, spelling), low, -1 if high is None else high
            )
        case Concat(parts):
            return _lower_concat(builder, parts, spelling)
        case Anchor():
            raise AssertionError("anchors are handled by the caller")


def _lower_concat(builder: Builder, parts: tuple[Regex, ...], spelling: Spelling) -> int:
    lowered: list[int] = []
    literal = ""

    def flush() -> None:
        nonlocal literal
        if literal:
            lowered.append(builder.literal(_spell(literal, spelling)))
        literal = ""

    for part in parts:
        if isinstance(part, Chars) and _is_single(part) and spelling != Spelling.JSON_ANY:
            literal += chr(part.ranges[0][0])
            continue
        flush()
        if part != EMPTY:
            lowered.append(_lower(builder, part, spelling))
    flush()
    return lowered[0] if len(lowered) == 1 else builder.sequence(lowered)


def _is_single(part: Chars) -> bool:
    return len(part.ranges) == 1 and part.ranges[0][0] == part.ranges[0][1]


def _spell(text: str, spelling: Spelling) -> bytes:
    if spelling == Spelling.UTF8:
        return text.encode()
    return json.dumps(text, ensure_ascii=False)[1:-1].encode()
