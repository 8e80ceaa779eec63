"""Trees of patterns, turned into expressions of the native builder."""

from __future__ import annotations

from enum import IntEnum

from sglite.grammars._native import Builder
from sglite.grammars.regex_syntax import (
    EMPTY,
    Anchor,
    Chars,
    Concat,
    Either,
    Regex,
    Repeat,
)


class Spelling(IntEnum):
    """How the native builder writes characters."""

    UTF8 = 0


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


def lower(builder: Builder, tree: Regex) -> int:
    """The expression of the texts that a tree without anchors matches in full."""
    match tree:
        case Chars(ranges):
            return builder.characters(ranges, Spelling.UTF8)
        case Either(parts):
            return builder.choice([lower(builder, part) for part in parts])
        case Repeat(part, low, high):
            return builder.repeat(lower(builder, part), low, -1 if high is None else high)
        case Concat(parts):
            return _lower_concat(builder, parts)
        case Anchor():
            raise AssertionError("anchors are handled by the caller")


def _lower_concat(builder: Builder, parts: tuple[Regex, ...]) -> int:
    lowered: list[int] = []
    literal = ""

    def flush() -> None:
        nonlocal literal
        if literal:
            lowered.append(builder.literal(literal.encode()))
        literal = ""

    for part in parts:
        if isinstance(part, Chars) and _is_single(part):
            literal += chr(part.ranges[0][0])
            continue
        flush()
        if part != EMPTY:
            lowered.append(lower(builder, part))
    flush()
    return lowered[0] if len(lowered) == 1 else builder.sequence(lowered)


def _is_single(part: Chars) -> bool:
    return len(part.ranges) == 1 and part.ranges[0][0] == part.ranges[0][1]
