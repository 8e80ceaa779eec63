"""What a schema demands of strings, as machines over their characters."""

from __future__ import annotations

from sglite.errors import GrammarError
from sglite.grammars.automaton import Both, Machine, Not, OtherThan, Pattern
from sglite.grammars.regex_syntax import Regex, parse
from sglite.grammars.schema import formats, keywords
from sglite.grammars.schema.document import NOT_TEXT, NOT_WORDS, Place


def text_patterns(place: Place) -> list[tuple[Regex, bool]]:
    """The patterns that strings must match, each with whether it is only searched for."""
    found: list[tuple[Regex, bool]] = []
    pattern = keywords.text(place, "pattern")
    if pattern is not None and not split_lookaheads(pattern)[0]:
        found.append((_tree(pattern, place.at("pattern")), True))
    name = keywords.text(place, "format")
    if name is not None:
        tree = formats.pattern(name)
        if tree is not None:
            found.append((tree, False))
        elif name in formats.KNOWN:
            raise GrammarError(
                f"format {name!r} is not supported; use a 'pattern'", place.at("format")
            )
    return found


def text_machines(place: Place) -> list[Machine]:
    """Machines all of which accept exactly the strings that suit, their lengths aside."""
    found: list[Machine] = [Pattern(tree, search=search) for tree, search in text_patterns(place)]
    return found + further_machines(place)


def further_machines(place: Place) -> list[Machine]:
    """Those besides `text_patterns`: of patterns that begin with lookaheads, and of derived
    schemas, for strings that do not match or are none of the listed."""
    found: list[Machine] = []
    pattern = keywords.text(place, "pattern")
    if pattern is not None and split_lookaheads(pattern)[0]:
        found.append(_machine(pattern, place.at("pattern")))
    schema = place.schema if isinstance(place.schema, dict) else {}
    if NOT_TEXT in schema:
        found += [Not(machine) for machine in text_machines(schema[NOT_TEXT])]
    if NOT_WORDS in schema:
        found.append(OtherThan(schema[NOT_WORDS]))
    return found


def key_pattern(place: Place) -> Machine:
    """The property names that match the pattern under which the schema stands."""
    return _machine(place.key, place.pointer)


def _machine(pattern: str, pointer: str) -> Machine:
    ahead, rest = split_lookaheads(pattern)
    machines: list[Machine] = [Pattern(_tree(rest, pointer), search=True)]
    for body, negative in ahead:
        begins = Pattern(_tree(f"^(?:{body})", pointer), search=True)
        machines.append(Not(begins) if negative else begins)
    return machines[0] if len(machines) == 1 else Both(machines)


def split_lookaheads(pattern: str) -> tuple[list[tuple[str, bool]], str]:
    """The lookaheads behind the `^` at the start of a pattern, each with whether it is negative,
    and the pattern without them. None where they do not speak for the whole pattern."""
    found: list[tuple[str, bool]] = []
    rest = pattern[1:]
    while pattern.startswith("^") and rest.startswith(("(?=", "(?!")):
        end = _top_level(rest, ")", 1)
        if end < 0 or rest[end + 1 : end + 2] in ("*", "+", "?", "{"):
            return [], pattern
        found.append((rest[3:end], rest[2] == "!"))
        rest = rest[end + 1 :]
    if not found or _top_level(rest, "|", 0) >= 0:
        return [], pattern
    return found, f"^{rest}"


def _top_level(pattern: str, wanted: str, depth: int) -> int:
    """Where `wanted` stands outside of brackets and of groups but `depth` ones; -1: nowhere."""
    open_groups = 0
    in_class = escaped = False
    for i, char in enumerate(pattern):
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = True
        elif in_class:
            in_class = char != "]"
        elif char == wanted and open_groups == depth:
            return i
        elif char == "[":
            in_class = True
        elif char in "()":
            open_groups += 1 if char == "(" else -1
    return -1


def _tree(pattern: str, pointer: str) -> Regex:
    try:
        return parse(pattern, "ecma")
    except GrammarError as error:
        raise GrammarError(f"{error.reason}, {error.pointer}", pointer) from None
