"""What is known of the parts of a hole's value: where they stand, how probable, quoted from where.

Knows the text, its tokens and the schema it was written by; nothing of runs.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from sglite.grammars.quotes import KEYWORD, Quote
from sglite.runtime.segment import Constraint, HoleResult


@dataclass(frozen=True, slots=True)
class Source:
    """Where a quote stands in its document: its first place, in characters, and how many there
    are (those that overlap too)."""

    start: int
    end: int
    count: int


@dataclass(frozen=True, slots=True)
class Field:
    """One value in the text of a hole.

    `span`: where it stands in the text, in characters; of a string with its quotation marks.
    `tokens`: the tokens that have some of it, as a range of `meta.ids`; None where they are not
    known. `probability`: the product of their probabilities as `meta.logprobs` has them: under the
    constraint, before the temperature, 1 for a token that the constraint forced. A token counts as
    a whole, also where it begins before the value or ends behind it; the token behind a number
    counts too, since it says that the number is over. `source`: of a quote.
    """

    span: tuple[int, int]
    tokens: tuple[int, int] | None
    probability: float | None
    source: Source | None = None


def fields_of(result: HoleResult, constraint: Constraint | None) -> dict[str, Field]:
    """The values in the text of a hole, by their JSON pointers; "" is the whole."""
    text = result.text
    quote = _whole_quote(constraint)
    if quote is not None:
        begin = len(text) - len(text.removeprefix(" ")) if quote.whole_words else 0
        return {"": _Fields(result).field(begin, len(text), _source(quote, text[begin:]))}
    written = constraint is not None and constraint.kind == "json_schema"
    if not written and not (constraint is None and text[:1] in ("{", "[")):
        return {"": _Fields(result).field(0, len(text))}
    try:
        value = json.loads(text)
        parts = list(_values(text))
    except (ValueError, RecursionError):  # no constraint is known, and it is no JSON
        return {"": _Fields(result).field(0, len(text))}
    quotes: dict[str, list[Quote]] = {}
    if constraint is not None and KEYWORD in str(constraint.source):
        schema = json.loads(str(constraint.source))
        _find_quotes(schema, schema, value, "", quotes, set())
    fields = _Fields(result)
    found = {}
    for pointer, start, end in parts:
        source = None
        if pointer in quotes:
            read = json.loads(text[start:end])
            every = (_source(quote, read) for quote in quotes[pointer])
            source = next((each for each in every if each is not None), None)
        found[pointer] = fields.field(start, end, source)
    return found


class _Fields:
    """Makes the fields of one text."""

    def __init__(self, result: HoleResult) -> None:
        self._result = result
        sizes = (len(character.encode()) for character in result.text)
        self._offsets = list(accumulate(sizes, initial=0))

    def field(self, start: int, end: int, source: Source | None = None) -> Field:
        """The value from character `start` to `end`."""
        result, text = self._result, self._result.text
        if not result.ends or len(result.logprobs) != len(result.ends):
            return Field((start, end), None, None, source)
        over = end < len(text) and end > start and text[end - 1] in "0123456789"
        first = bisect_right(result.ends, self._offsets[start])
        last = min(bisect_left(result.ends, self._offsets[end + over]) + 1, len(result.ends))
        probability = math.exp(sum(result.logprobs[first:last]))
        return Field((start, end), (first, last), probability, source)


def _whole_quote(constraint: Constraint | None) -> Quote | None:
    return constraint.source if constraint and isinstance(constraint.source, Quote) else None


def _source(quote: Quote, text: str) -> Source | None:
    first, count = quote.places(text)
    return Source(first, first + len(text), count) if count else None


def _values(text: str) -> Iterator[tuple[str, int, int]]:
    """Pointer, begin and end of every value in a JSON text, the outer ones first."""
    found: list[tuple[str, int, int]] = []
    decoder = json.JSONDecoder()

    def skip(at: int, signs: str = "") -> int:
        while text[at] in " \n\r\t" or (signs and text[at] in signs):
            at += 1
        return at

    def read(pointer: str, at: int) -> int:
        place = len(found)
        found.append((pointer, at, at))
        if text[at] == "{":
            end = skip(at + 1)
            while text[end] != "}":
                key, end = decoder.raw_decode(text, skip(end, ","))
                inner = key.replace("~", "~0").replace("/", "~1")
                end = skip(read(f"{pointer}/{inner}", skip(end, ":")))
                end = skip(end, ",")
            end += 1
        elif text[at] == "[":
            end, index = skip(at + 1), 0
            while text[end] != "]":
                end = skip(read(f"{pointer}/{index}", end))
                end, index = skip(end, ","), index + 1
            end += 1
        else:
            _, end = decoder.raw_decode(text, at)
        found[place] = (pointer, at, end)
        return end

    read("", skip(0))
    return iter(found)


def _find_quotes(
    schema: Any, root: Any, value: Any, pointer: str, found: dict[str, list[Quote]], seen: set[Any]
) -> None:
    """The quotes that a schema asks for, by the pointers of strings in a value of it."""
    if not isinstance(schema, dict) or (id(schema), pointer) in seen:
        return
    seen.add((id(schema), pointer))

    def follow(inner: Any, part: Any = value, name: str = "") -> None:
        _find_quotes(inner, root, part, pointer + name, found, seen)

    if KEYWORD in schema and isinstance(value, str):
        found.setdefault(pointer, []).append(Quote.of_keyword(schema[KEYWORD]))
    if isinstance(schema.get("$ref"), str):
        follow(_target(root, schema["$ref"]))
    for keyword in ("allOf", "anyOf", "oneOf"):
        for inner in schema.get(keyword, ()):
            follow(inner)
    if isinstance(value, dict):
        for key, part in value.items():
            name = "/" + key.replace("~", "~0").replace("/", "~1")
            known = schema.get("properties", {}).get(key)
            follow(schema.get("additionalProperties") if known is None else known, part, name)
    if isinstance(value, list):
        first = schema.get("prefixItems", ())
        for index, part in enumerate(value):
            follow(first[index] if index < len(first) else schema.get("items"), part, f"/{index}")


def _target(root: Any, reference: str) -> Any:
    """What a reference into the same schema means; None for others."""
    if not reference.startswith("#"):
        return None
    for part in reference.split("/")[1:]:
        if not isinstance(root, dict):
            return None
        root = root.get(part.replace("~1", "/").replace("~0", "~"))
    return root
