"""What a hole of a type writes, pydantic takes: also where its own schema says less."""

from __future__ import annotations

import random
from datetime import datetime, time
from typing import Any

import numpy as np
import pytest
from pydantic import (
    UUID1,
    UUID4,
    AnyHttpUrl,
    AnyUrl,
    AwareDatetime,
    BaseModel,
    FileUrl,
    HttpUrl,
    IPvAnyAddress,
    NaiveDatetime,
    TypeAdapter,
    WebsocketUrl,
)

import sglite as sgl
from sglite.grammars import Grammar, Vocabulary, compile_json_schema

BYTES = Vocabulary.from_tokens([bytes([b]) for b in range(256)] + [b"<end>"], [256], [256])


def grammar_of(kind: Any) -> Grammar:
    constraint = sgl.gen("x", list[kind]).constraint
    assert constraint is not None
    return compile_json_schema(constraint.source, BYTES)


def accepts(grammar: Grammar, text: str) -> bool:
    matcher = grammar.matcher()
    return matcher.accept_tokens(list(text.encode())) and matcher.is_complete


def written(grammar: Grammar, draw: random.Random, budget: int) -> str:
    matcher = grammar.matcher()
    mask = np.zeros(BYTES.mask_words, np.uint32)
    ids: list[int] = []
    while not matcher.is_finished:
        matcher.fill_mask(mask, budget - len(ids))
        allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
        chosen = int(draw.choice(allowed))
        if chosen == 256:
            break
        assert matcher.accept(chosen)
        ids.append(chosen)
    return bytes(ids).decode()


class Elsewhere(BaseModel):
    """Fields are reached as well."""

    link: HttpUrl | None
    ids: dict[str, UUID4]


@pytest.mark.parametrize(
    "kind",
    [
        HttpUrl,
        AnyHttpUrl,
        AnyUrl,
        WebsocketUrl,
        UUID1,
        UUID4,
        IPvAnyAddress,
        time,
        datetime,
        AwareDatetime,
        NaiveDatetime,
        Elsewhere,
    ],
)
def test_pydantic_takes_what_is_written(kind: Any) -> None:
    grammar = grammar_of(kind)
    adapter = TypeAdapter(list[kind])
    draw = random.Random()
    for budget in range(grammar.matcher().tokens_to_finish(), 400, 12):
        adapter.validate_json(written(grammar, draw, budget))


@pytest.mark.parametrize(
    ("kind", "text", "taken"),
    [
        (HttpUrl, "https://sub.example.org:8080/a?b=%20#c", True),
        (HttpUrl, "http://localhost", True),
        (HttpUrl, "ftp://example.org", False),
        (HttpUrl, "https://a:99999/", False),
        (FileUrl, "file:///tmp/a", True),
        (UUID4, "16fd2706-8baf-433b-82eb-8c7fada847da", True),
        (UUID4, "16fd2706-8baf-133b-82eb-8c7fada847da", False),
        (IPvAnyAddress, "::1", True),
        (time, "23:59:59Z", True),
        (time, "23:59:60Z", False),
        (datetime, "2016-12-31T23:59:59.5+01:00", True),
        (datetime, "2016-12-31T23:59:60Z", False),
        (NaiveDatetime, "2024-02-29T10:00:00", True),
        (NaiveDatetime, "2023-02-29T10:00:00", False),
    ],
)
def test_what_may_be_written(kind: Any, text: str, taken: bool) -> None:
    assert accepts(grammar_of(kind), f'["{text}"]') == taken
