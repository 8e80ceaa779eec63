"""JSON numbers under bounds and divisors against exact arithmetic."""

from __future__ import annotations

import itertools
import json
import random
import re
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from sglite.grammars import _native
from sglite.grammars._native import NumberSpec, Refused

ANY, INTEGER, FRACTION = range(3)


@dataclass
class Spec:
    kind: int = ANY
    low: str | None = None
    above: bool = False
    high: str | None = None
    below: bool = False
    multiples: list[str] = field(default_factory=list)
    not_multiples: list[str] = field(default_factory=list)

    def native(self) -> NumberSpec:
        return NumberSpec(**vars(self))

    def holds(self, value: Fraction) -> bool:
        whole = value.denominator == 1
        if (self.kind == INTEGER and not whole) or (self.kind == FRACTION and whole):
            return False
        if self.low is not None:
            low = Fraction(self.low)
            if value < low or (self.above and value == low):
                return False
        if self.high is not None:
            high = Fraction(self.high)
            if value > high or (self.below and value == high):
                return False
        return all((value / Fraction(m)).denominator == 1 for m in self.multiples) and all(
            (value / Fraction(m)).denominator != 1 for m in self.not_multiples
        )


class Automaton:
    def __init__(self, spec: Spec, *, spelled_any: bool) -> None:
        self.states: list[Any] = spec.native().automaton(spelled_any)

    def accepts(self, text: str) -> bool:
        at = 0
        for byte in text.encode():
            ends = [to for low, high, to in self._edges(at) if low <= byte <= high]
            assert len(ends) <= 1
            if not ends:
                return False
            at = ends[0]
        return bool(self.states) and self.states[at][1]

    def _edges(self, state: int) -> list[tuple[int, int, int]]:
        return self.states[state][0] if self.states else []

    def walk(self, random_: random.Random) -> str:
        """Some text of the language."""
        at, text = 0, ""
        for _ in range(400):
            edges, accepting = self.states[at]
            if accepting and (not edges or random_.random() < 0.15):
                return text
            low, high, at = random_.choice(edges)
            text += chr(random_.randint(low, high))
        return text if self.states[at][1] else "0" * 400


def value_of(text: str) -> Fraction:
    return Fraction(Decimal(text))


bounds = st.one_of(
    st.integers(-120, 120).map(str),
    st.decimals(-30, 30, places=2).map(lambda d: format(d, "f")),
    st.sampled_from(
        ["0", "1", "1e3", "1e-3", "-2.5E1", "9223372036854775807", "1e25", "0.1", "-0"]
    ),
)
units = st.sampled_from(
    ["1", "2", "3", "5", "7", "10", "12", "100", "1000", "0.1", "0.01", "2.5", "0.25", "1e-8"]
)


@st.composite
def specs(draw: st.DrawFn) -> Spec:
    return Spec(
        kind=draw(st.sampled_from([ANY, ANY, INTEGER, FRACTION])),
        low=draw(st.none() | bounds),
        above=draw(st.booleans()),
        high=draw(st.none() | bounds),
        below=draw(st.booleans()),
        multiples=draw(st.lists(units, max_size=2) | st.just([])),
        not_multiples=draw(st.just([]) | st.lists(units, max_size=1)),
    )


@st.composite
def spellings(draw: st.DrawFn) -> str:
    whole = draw(
        st.integers(0, 130).map(str) | st.from_regex(r"0|[1-9][0-9]{0,20}", fullmatch=True)
    )
    fraction = draw(st.just("") | st.from_regex(r"\.[0-9]{1,4}", fullmatch=True))
    sign = draw(st.sampled_from(["", "", "-"]))
    exponent = draw(st.just("") | st.from_regex(r"[eE][+\-]?0?[0-9]{1,2}", fullmatch=True))
    return sign + whole + fraction + exponent


@settings(max_examples=50, deadline=None)
@given(specs(), st.lists(spellings(), min_size=20, max_size=40), st.randoms(use_true_random=False))
def test_texts_are_those_of_numbers_that_hold(
    spec: Spec, texts: list[str], random_: random.Random
) -> None:
    native = spec.native()
    try:
        automata = [Automaton(spec, spelled_any=any_) for any_ in (False, True)]
    except Refused as error:
        if "20000 states" not in error.reason:
            raise
        reject()  # past the limit that the header states
    near = [b for b in (spec.low, spec.high) if b is not None]
    texts += [
        format(Decimal(b) + d, "f") for b in near for d in map(Decimal, ("0", "1", "-1", "0.01"))
    ]
    for text in texts:
        holds = spec.holds(value_of(text))
        assert native.holds(text) == holds, text
        plain, any_ = (automaton.accepts(text) for automaton in automata)
        if "e" in text.lower():
            assert not plain
            assert not any_ or holds, text
        else:
            assert any_ == holds, text
            assert plain == (holds and not ("." in text and spec.kind == INTEGER)), text
    for automaton in automata:
        if not automaton.states:
            assert spec.native().count(5) == 0
            continue
        for _ in range(20):
            text = automaton.walk(random_)
            if re.fullmatch(r"0{400}", text) is None and not _is_huge(text):
                json.loads(text)
                assert spec.holds(value_of(text)), text


def _is_huge(text: str) -> bool:
    return re.search(r"[eE][+\-]?0*[1-9][0-9]{4}", text) is not None


def exponent_forms(value: Decimal) -> list[str]:
    """How programs write a number with an exponent."""
    sign, digits, exponent = value.normalize().as_tuple()
    assert isinstance(exponent, int)
    head = "-" if sign else ""
    first, rest = str(digits[0]), "".join(map(str, digits[1:]))
    power = exponent + len(digits) - 1
    mantissa = f"{first}.{rest}" if rest else first
    forms = [f"{mantissa}e{power:+03d}", f"{mantissa}E{power}"]
    if not rest and first != "0":
        forms += [f"{first}.0E{power}", f"{first}0e{power - 1}"]
    return [head + form for form in forms]


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(
        [
            Spec(),
            Spec(INTEGER),
            Spec(low="0"),
            Spec(INTEGER, low="1"),
            Spec(low="0", high="1"),
            Spec(INTEGER, low="-9223372036854775808", high="9223372036854775807"),
            Spec(FRACTION),
            Spec(multiples=["0.01"]),
            Spec(INTEGER, low="0", high="100"),
            Spec(low="-180", high="180"),
            Spec(low="0", above=True),
            Spec(low="1e-5", high="1e5"),
        ]
    ),
    st.floats(allow_nan=False, allow_infinity=False)
    | st.floats(-200, 200)
    | st.integers(-200, 200),
)
def test_numbers_as_programs_write_them_with_an_exponent_are_accepted(
    spec: Spec, number: float
) -> None:
    automaton = Automaton(spec, spelled_any=True)
    value = Decimal(repr(number))
    for text in [*exponent_forms(value), repr(number)]:
        expected = spec.holds(Fraction(Decimal(text)))
        # The last digit of a fraction must not be 0 there.
        if spec.kind == FRACTION and "0e" in text.lower():
            continue
        assert automaton.accepts(text) == expected, text


@pytest.mark.parametrize(
    ("spec", "yes", "no"),
    [
        (Spec(INTEGER), ["0", "-0", "1.0", "1.000", "1e5", "1.5e3", "1.50e2", "10e-1", "100E-2", "0e-7", "0.0e9", "-1E+2", "1e00"], ["1.5", "1.5e0", "1e-1", "10e-2", "01", "1.", "1e", ".5", "+1", "1.e5", "", "-"]),  # noqa: E501
        (Spec(), ["1e-400", "0.0", "12.50", "1E400", "0.0001e1"], ["1e+", "00", "1.2.3", "Infinity"]),  # noqa: E501
        (Spec(low="0"), ["-0", "-0.0e5", "0", "1e-9"], ["-1", "-1e-9", "-0.1"]),
        (Spec(low="0", above=True), ["1e-9", "0.1"], ["0", "-0", "0e5"]),
        (Spec(high="1e308"), ["1e308", "-1e999", "0.5e308", "1.0E+308"], ["1e309", "1.1e308", "10e308"]),  # noqa: E501
        (Spec(low="-1", high="1"), ["1", "1.000", "-1.0", "10e-1", "0.1e1", "1e0"], ["1.01", "11e-1", "-1.1"]),  # noqa: E501
        (Spec(multiples=["1e-8"]), ["0.00000001", "1e-8", "12.5", "3e-7"], ["0.000000001", "1e-9"]),
        (Spec(multiples=["0.01"], low="0", high="20"), ["19.99", "19.990", "199e-1", "20"], ["19.999", "20.01"]),  # noqa: E501
        (Spec(INTEGER, high="9223372036854775807"), ["9223372036854775807", "9e18"], ["9223372036854775808", "1e19"]),  # noqa: E501
        (Spec(INTEGER, multiples=["1e10"]), ["30000000000", "0", "3e10", "1e11"], ["1000000000", "1e9"]),  # noqa: E501
        (Spec(FRACTION), ["0.5", "1.50", "1e-1", "1.25e1"], ["0", "1", "1.0", "1e5", "1.25e2"]),
        (Spec(INTEGER, not_multiples=["2"]), ["1", "3.0", "-7", "101"], ["0", "2", "1e1"]),
        (Spec(multiples=["4", "6"]), ["12", "0", "24.0", "-36"], ["6", "8", "12.5"]),
        (Spec(low="5", high="5"), ["5", "5.0", "5e0"], ["5.1", "4", "-5"]),
        (Spec(low="5", high="4"), [], ["5", "4"]),
    ],
)  # fmt: skip
def test_spellings(spec: Spec, yes: list[str], no: list[str]) -> None:
    automaton = Automaton(spec, spelled_any=True)
    assert [text for text in yes if not automaton.accepts(text)] == []
    assert [text for text in no if automaton.accepts(text)] == []


@settings(max_examples=200, deadline=None)
@given(specs(), st.integers(1, 300))
def test_counts(spec: Spec, most: int) -> None:
    count = spec.native().count(most)
    if spec.low is None or spec.high is None or not (spec.multiples or spec.kind == INTEGER):
        if count not in (0, most):
            assert count == 1
            assert spec.low is not None
            assert spec.holds(Fraction(spec.low))
        return
    steps = [Fraction(m) for m in spec.multiples] + [Fraction(1)] * (spec.kind == INTEGER)
    step = max(steps)
    first = Fraction(spec.low) // step
    if (Fraction(spec.high) - Fraction(spec.low)) / step > 50_000:
        return
    values = itertools.takewhile(
        lambda v: v <= Fraction(spec.high or 0), (k * step for k in itertools.count(first))
    )
    assert count == min(most, sum(spec.holds(v) for v in values))


numbers = st.from_regex(
    r"-?(0|[1-9][0-9]{0,12})(\.[0-9]{1,12})?([eE][+\-]?[0-9]{1,2})?", fullmatch=True
)


@given(numbers, numbers)
def test_decimals(a: str, b: str) -> None:
    x, y = Fraction(a), Fraction(b)
    assert _native.compare_decimals(a, b) == (x > y) - (x < y)
    shown = _native.decimal_text(a)
    assert Fraction(shown) == x
    json.loads(shown)
    assert shown == _native.decimal_text(shown)
    if y > 0:
        assert _native.is_multiple(a, b) == ((x / y).denominator == 1)


def test_known_texts_of_decimals() -> None:
    texts = {
        "1.50": "1.5",
        "-0.0": "0",
        "1e2": "100",
        "12e-1": "1.2",
        "1E300": "1e300",
        "5e-30": "5e-30",
    }
    assert {a: _native.decimal_text(a) for a in texts} == texts


@pytest.mark.parametrize("text", ["", "-", "01", "1.", ".5", "1e", "+1", "NaN", "1 ", "0x1"])
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(Refused, match="no JSON number"):
        _native.decimal_text(text)


@pytest.mark.parametrize(
    "spec",
    [
        Spec(multiples=["0.123456789"]),
        Spec(multiples=["7919", "7907"]),
        Spec(low="1e999999"),
        Spec(multiples=["1e-999999"]),
        Spec(multiples=["123456789012345678901"]),
        Spec(low="0." + "1" * 30_000),
        Spec(not_multiples=["2", "3", "5", "7", "11"]),
    ],
)
def test_what_needs_too_many_states_is_refused(spec: Spec) -> None:
    with pytest.raises(Refused, match=r"states|divisors|long|digits"):
        Automaton(spec, spelled_any=True)
