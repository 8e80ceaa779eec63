"""JSON values as text in every style of the options, and texts cut into tokens in many ways."""

from __future__ import annotations

import itertools
import json
import random
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from sglite.grammars import Vocabulary

_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|[-+.0-9eE]+|[a-z]+|[\[\]{},:]|[ \t\n\r]+')


def written(
    value: Any, whitespace: str, any_spelling: bool, rng: random.Random, plain: bool = False
) -> str:
    """The text of a value as `validator.load` gives it. Whatever the options leave open is drawn:
    runs of whitespace, escapes, spellings of numbers; `plain`: none of that."""

    def run() -> str:
        if whitespace != "flexible" or plain or rng.random() < 0.6:
            return ""
        return "".join(rng.choices(" \n", k=rng.randint(1, 3)))

    comma, colon = (", ", ": ") if whitespace == "single" else (",", ":")

    def write(value: Any) -> str:
        if isinstance(value, str):
            text = json.dumps(value, ensure_ascii=False)
            return respelled(text, rng) if any_spelling and not plain else text
        if isinstance(value, list):
            parts = [run() + write(part) + run() for part in value]
            return "[" + (comma.join(parts) or run()) + "]"
        if isinstance(value, dict):
            parts = [
                run() + write(key) + run() + colon + run() + write(part) + run()
                for key, part in value.items()
            ]
            return "{" + (comma.join(parts) or run()) + "}"
        if isinstance(value, bool) or value is None:
            return json.dumps(value)
        return number(value, any_spelling and not plain, rng)

    return write(value)


def number(value: int | Decimal, any_spelling: bool, rng: random.Random) -> str:
    """Without fraction and exponent where the value is whole, else the shortest plain one; with
    `any_spelling`: with zeros behind a fraction, with an exponent. Of those with an exponent only
    what is promised under every schema: few digits, no zero at their end."""
    text = f"{Decimal(value):f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    if not any_spelling or rng.random() < 0.5:
        return text
    zeros = "0" * rng.randint(1, 2)
    ways = [text + ("" if "." in text else ".") + zeros]
    sign = "-" if text.startswith("-") else ""
    _, parts, exponent = Decimal(text).as_tuple()
    assert isinstance(exponent, int)
    digits = "".join(map(str, parts)).rstrip("0")
    exponent += len(parts) - len(digits)
    if not digits:
        digits, exponent = "0", rng.randint(-3, 3)
    if len(digits) <= 3:
        ways.append(sign + digits + _exponent(exponent, rng))
    if 1 < len(digits) <= 5:
        point = exponent + len(digits) - 1
        ways.append(f"{sign}{digits[0]}.{digits[1:]}{_exponent(point, rng)}")
    return rng.choice(ways)


def _exponent(power: int, rng: random.Random) -> str:
    sign = "-" if power < 0 else rng.choice(["", "+", "-"]) if power == 0 else rng.choice(["", "+"])
    return rng.choice("eE") + sign + rng.choice(["", "0"]) + str(abs(power))


def respelled(string: str, rng: random.Random) -> str:
    """A JSON string with some of its plain characters escaped."""
    inside = []
    for part in re.findall(r"\\u....|\\.|.", string[1:-1], re.DOTALL):
        if len(part) == 1 and rng.random() < 0.3:
            units = part.encode("utf-16-be").hex()
            part = "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))
        inside.append(part)
    return '"' + "".join(inside) + '"'


def restyled(text: str, whitespace: str, any_spelling: bool) -> str:
    """The text as `json.dumps(..., ensure_ascii=False)` would write it, its numbers kept, and its
    strings under `any_spelling`."""
    comma, colon = (", ", ": ") if whitespace == "single" else (",", ":")
    out = []
    for token in _TOKENS.findall(text):
        if token.isspace():
            continue
        if token.startswith('"') and not any_spelling:
            token = json.dumps(json.loads(token), ensure_ascii=False)
        out.append({",": comma, ":": colon}.get(token, token))
    return "".join(out)


def orders(value: Any, limit: int = 150) -> list[Any]:
    """The value with the members of its objects in all orders; none where there are more than
    `limit`."""
    made = list(itertools.islice(_orders(value), limit + 1))
    return made if len(made) <= limit else []


def _orders(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        yield from map(list, itertools.product(*map(_orders, value)))
    elif isinstance(value, dict):
        for names in itertools.permutations(value):
            for parts in itertools.product(*(_orders(value[name]) for name in names)):
                yield dict(zip(names, parts, strict=True))
    else:
        yield value


def tokenised(text: bytes, vocabulary: Vocabulary, rng: random.Random) -> list[int] | None:
    """The text cut at random into tokens; None where it has bytes without a token."""
    ids = []
    while text:
        begins = vocabulary.tokens_beginning(text)
        fitting = [int(i) for i in begins if text.startswith(vocabulary.token(int(i)))]
        if not fitting:
            return None
        ids.append(rng.choice(fitting))
        text = text[len(vocabulary.token(ids[-1])) :]
    return ids


def spelled(text: bytes, vocabulary: Vocabulary) -> list[int] | None:
    """The text byte by byte; None where a byte has no token."""
    ids = []
    for byte in text:
        single = bytes([byte])
        begins = [int(i) for i in vocabulary.tokens_beginning(single)]
        fitting = [i for i in begins if vocabulary.token(i) == single]
        if not fitting:
            return None
        ids.append(fitting[0])
    return ids
