"""Quotes in holes, fields and patterns, and what is known of the parts of a value."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError
from recorder import MakeScripted

import sglite as sgl
from sglite.errors import ProgramError
from sglite.grammars.quotes import without_quotes

DOCUMENT = (
    "Maria Costa arrives on 3 May.\n"
    'She said: "I stay 3 nights", and pays by card. Art of party art.'
)
WORDS = sgl.quote(DOCUMENT, whole_words=True)


class Visit(BaseModel):
    guest: Annotated[str, sgl.quote(DOCUMENT, whole_words=True, max_length=20)]
    nights: int
    said: list[Annotated[str, WORDS]]


@dataclass
class Claim:
    text: Annotated[str, sgl.quote(DOCUMENT)]


class Typed(TypedDict):
    text: Annotated[str, sgl.quote(DOCUMENT)] | None


class Bare(BaseModel):
    text: sgl.quote(DOCUMENT)  # type: ignore[valid-type]
    more: list[sgl.quote(DOCUMENT, whole_words=True)]  # type: ignore[valid-type]


@sgl.function
def one(s: sgl.State, hole: Any, after: str = "Quote:", **said: Any) -> None:
    s += after + sgl.gen("x", hole, **said)


@pytest.mark.parametrize("answer", ["Maria Costa", " Maria Costa", '"I stay 3 nights", and'])
def test_a_hole_is_a_quote(scripted: MakeScripted, answer: str) -> None:
    scripted({"x": answer})
    row = one.run(WORDS)
    text = answer.removeprefix(" ")
    at = DOCUMENT.index(text)
    assert row["x"] == text
    span = row.meta("x").span
    assert span is not None
    assert (span.start, span.end, span.count) == (at, at + len(text), 1)
    assert row.meta("x").fields[""].source == span


def test_a_quote_stands_alone_as_an_annotation(scripted: MakeScripted) -> None:
    scripted({"x": {"text": "Costa", "more": ["Maria"]}})
    row = one.run(Bare)
    assert (row["x"].text, row["x"].more) == ("Costa", ["Maria"])
    assert row.meta("x").fields["/more/0"].source.start == DOCUMENT.index("Maria")
    with pytest.raises(ValidationError, match="does not stand in the document"):
        Bare(text="Nobody", more=[])


def test_places_of_whole_words_are_counted(scripted: MakeScripted) -> None:
    scripted({"x": ["art", "art"]})
    at = DOCUMENT.index("art.")
    for hole, count in ((WORDS, 1), (sgl.quote(DOCUMENT), 2)):
        span = one.run(hole).meta("x").span
        assert span is not None
        assert span.count == count
        assert span.start == (at if count == 1 else DOCUMENT.index("arty"))


@pytest.mark.parametrize("answer", ["Maria Cost", "maria", "", " ", "3 nights, and"])
def test_what_is_no_quote_is_refused(scripted: MakeScripted, answer: str) -> None:
    scripted({"x": answer})
    with pytest.raises(ProgramError, match="scripted answer"):
        one.run(WORDS)


def test_without_whole_words_any_substring_stands_as_it_is(scripted: MakeScripted) -> None:
    scripted({"x": " stay 3 ni"})
    assert one.run(sgl.quote(DOCUMENT))["x"] == " stay 3 ni"


def test_quotes_are_fields_of_records(scripted: MakeScripted) -> None:
    said = ['"I stay 3 nights"', "May.\nShe"]
    record = {"guest": "Maria Costa", "nights": 3, "said": said}
    scripted({"x": [record, {"text": "ria"}, {"text": None}, {"text": "ria"}]})
    row = one.run(Visit)
    assert row["x"] == Visit(**record)
    meta = row.meta("x")
    assert list(meta.fields) == ["", "/guest", "/nights", "/said", "/said/0", "/said/1"]
    for pointer, text in (
        ("/guest", "Maria Costa"),
        *zip(["/said/0", "/said/1"], said, strict=False),
    ):
        source = meta.fields[pointer].source
        assert source is not None
        assert DOCUMENT[source.start : source.end] == text
    assert meta.fields["/nights"].source is None
    assert meta.span is None
    assert one.run(Claim)["x"] == Claim("ria")
    assert one.run(Typed)["x"] == {"text": None}
    row = one.run(Typed)
    source = row.meta("x").fields["/text"].source
    assert source is not None
    assert source.start == DOCUMENT.index("ria")


def test_fields_say_where_they_stand(scripted: MakeScripted) -> None:
    value = {"a/b": [1, -2.5], "é~": {"東": 'q"uote'}, "": True, "none": None, "e": [], "o": {}}
    scripted({"x": value})
    row = one.run(None, "", json={})
    text = row.meta("x").text
    found = {
        pointer: text[field.span[0] : field.span[1]]
        for pointer, field in row.meta("x").fields.items()
    }
    assert found == {
        "": text,
        "/a~1b": "[1, -2.5]",
        "/a~1b/0": "1",
        "/a~1b/1": "-2.5",
        "/é~0": '{"東": "q\\"uote"}',
        "/é~0/東": '"q\\"uote"',
        "/": "true",
        "/none": "null",
        "/e": "[]",
        "/o": "{}",
    }
    # A token is a byte here.
    data = text.encode()
    for pointer, field in row.meta("x").fields.items():
        assert field.tokens is not None
        first, last = field.tokens
        is_number = found[pointer] in ("1", "-2.5")
        assert data[first : last - is_number].decode() == found[pointer]
        assert field.probability == 1.0


def test_of_free_text_there_is_the_whole(scripted: MakeScripted) -> None:
    scripted({"x": '{"no": "record"'})
    field = one.run(str).meta("x").fields
    assert list(field) == [""]
    assert field[""].span == (0, 15)
    assert field[""].source is None


def test_quotes_in_patterns(scripted: MakeScripted) -> None:
    hole = sgl.one_of("none", "Because: " + sgl.quote(DOCUMENT, name="why"))
    scripted({"x": ["Because: pays by", "none"]})
    row = one.run(hole)
    assert row["why"] == "pays by"
    assert row["x"] == "Because: pays by"
    assert one.run(hole)["why"] is None


def test_graphs_and_traces_keep_quotes(scripted: MakeScripted) -> None:
    scripted({"x": ["Maria", " Maria"]})

    @sgl.function
    def fixed(s: sgl.State) -> None:
        s += "Quote:" + sgl.gen("x", WORDS)

    graph = sgl.Graph.from_json(fixed.compile().to_json())
    assert graph.run()["x"] == "Maria"
    again = sgl.replay(fixed.run().trace())
    assert again["x"] == "Maria"
    span = again.meta("x").span
    assert span is not None
    assert span.start == 0


def test_pydantic_refuses_what_is_no_quote() -> None:
    with pytest.raises(ValidationError, match="does not stand in the document"):
        Visit(guest="Mario", nights=1, said=[])
    with pytest.raises(TypeError, match="annotates str"):
        TypeAdapter(Annotated[int, WORDS]).json_schema()


def test_endpoints_are_not_told_of_quotes() -> None:
    schema = TypeAdapter(Visit).json_schema()
    plain = without_quotes(schema)
    assert schema["properties"]["guest"]["x-sglite-quote"]["document"] == DOCUMENT
    assert "x-sglite-quote" not in str(plain)
    assert plain["properties"]["guest"] == {"maxLength": 20, "title": "Guest", "type": "string"}
    assert plain["properties"]["said"]["items"] == {"type": "string"}


@pytest.fixture(scope="module")
def small(smollm2_path: Path) -> Iterator[sgl.Model]:
    with sgl.Model(smollm2_path, kv_memory=1 << 28) as model:
        yield model


@pytest.mark.model
def test_the_small_model_quotes(small: sgl.Model) -> None:
    hot = sgl.Options(seed=3, temperature=1.0)
    for options in (sgl.Options(), hot):
        row = one.run(WORDS, DOCUMENT + "\nEvidence:", max_tokens=12, options=options, model=small)
        assert row["x"] in DOCUMENT
        assert row.meta("x").span is not None
        row = one.run(Visit, DOCUMENT + "\nJSON: ", max_tokens=96, options=options, model=small)
        meta = row.meta("x")
        assert isinstance(row["x"], Visit)
        assert len(meta.ends) == len(meta.ids)
        assert meta.ends[-1] == len(meta.text.encode())
        whole, guest = meta.fields[""], meta.fields["/guest"]
        assert whole.tokens == (0, len(meta.ids))
        assert guest.tokens is not None
        assert whole.probability == pytest.approx(math.exp(sum(meta.logprobs)))
        assert guest.probability == pytest.approx(
            math.exp(sum(meta.logprobs[slice(*guest.tokens)]))
        )
        start, end = guest.span
        first, last = guest.tokens
        ends = [0, *meta.ends]
        assert ends[first] <= start < ends[first + 1]
        assert ends[last - 1] < end <= ends[last]
        assert meta.text[start:end] == f'"{row["x"].guest}"'
