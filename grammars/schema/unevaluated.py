"""`unevaluatedProperties` and `unevaluatedItems`: closed over what a match has evaluated.

Once a schema is taken apart, an alternative says which of its subschemas hold, so what they
evaluate is known, and the keyword becomes a plain one: `additionalProperties` beside the names and
patterns of all of them, or `items` behind the longest of their prefixes.
"""

from __future__ import annotations

from collections.abc import Iterable

from sglite.errors import GrammarError
from sglite.grammars.schema import keywords
from sglite.grammars.schema.document import SILENT, Place

UNEVALUATED = frozenset({"unevaluatedItems", "unevaluatedProperties"})


def silent(conjunction: Iterable[Place]) -> tuple[Place, ...]:
    """The same schemas, but they evaluate nothing: how they hold inside of a negation."""
    return tuple(Place(p.pointer, p.schema, p.mark + SILENT, p.draft) for p in conjunction)


def closed(place: Place, conjunction: tuple[Place, ...]) -> tuple[Place, ...]:
    """An alternative of `place`, with its unevaluated keywords made plain. Raises GrammarError."""
    heard = [p for p in conjunction if not p.mark.endswith(SILENT)]
    return (*conjunction, *_properties(place, heard), *_items(place, heard))


def _properties(place: Place, heard: list[Place]) -> list[Place]:
    rest = keywords.schema(place, "unevaluatedProperties")
    if rest is None or any(keywords.schema(p, "additionalProperties") is not None for p in heard):
        return []
    names = {n: True for p in heard for n in keywords.properties(p)}
    patterns = {n: True for p in heard for n in keywords.properties(p, "patternProperties")}
    schema = {"properties": names, "patternProperties": patterns, "additionalProperties": rest}
    return [place.derived(f"besides {sorted(names)} {sorted(patterns)}", schema)]


def _items(place: Place, heard: list[Place]) -> list[Place]:
    rest = keywords.schema(place, "unevaluatedItems")
    split = [keywords.items(p) for p in heard]
    if rest is None or any(others is not None for _, others in split):
        return []
    if rest.schema is not True and any(keywords.contained(p) for p in heard):
        raise GrammarError(
            "'unevaluatedItems' is not supported beside 'contains'", place.at("unevaluatedItems")
        )
    longest = max((len(first) for first, _ in split), default=0)
    prefix = {"prefixItems": [True] * longest} if longest else {}
    return [place.derived(f"behind {longest}", {**prefix, "items": rest})]
