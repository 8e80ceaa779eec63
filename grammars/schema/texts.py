"""What a schema demands of strings, as machines over their characters."""

from __future__ import annotations

from sglite.errors import GrammarError
from sglite.grammars.automaton import Machine, Not, OtherThan, Pattern
from sglite.grammars.regex_syntax import Regex, parse
from sglite.grammars.schema import formats, keywords
from sglite.grammars.schema.document import NOT_TEXT, NOT_WORDS, Place


def text_patterns(place: Place) -> list[tuple[Regex, bool]]:
    """The patterns that strings must match, each with whether it is only searched for."""
    found: list[tuple[Regex, bool]] = []
    pattern = keywords.text(place, "pattern")
    if pattern is not None:
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
    return found + excluding_machines(place)


def excluding_machines(place: Place) -> list[Machine]:
    """Those of derived schemas: strings that do not match, or are none of the listed."""
    found: list[Machine] = []
    schema = place.schema if isinstance(place.schema, dict) else {}
    if NOT_TEXT in schema:
        found += [Not(machine) for machine in text_machines(schema[NOT_TEXT])]
    if NOT_WORDS in schema:
        found.append(OtherThan(schema[NOT_WORDS]))
    return found


def key_pattern(place: Place) -> Pattern:
    """The property names that match the pattern under which the schema stands."""
    return Pattern(_tree(place.key, place.pointer), search=True)


def _tree(pattern: str, pointer: str) -> Regex:
    try:
        return parse(pattern, "ecma")
    except GrammarError as error:
        raise GrammarError(f"{error.reason}, {error.pointer}", pointer) from None
