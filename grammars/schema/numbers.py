"""Decimal numbers between bounds, exactly, as automata over their characters.

A canonical number has no exponent here: `-?(0|[1-9][0-9]*)(\\.[0-9]+)?`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

from sglite.grammars.automaton import MAX_STATES, Automaton, reachable
from sglite.grammars.characters import Ranges
from sglite.grammars.schema.keywords import Bound

# Where the text stands in a number.
_START, _SIGN, _ZERO, _WHOLE, _POINT, _FRACTION = range(6)


@dataclass(frozen=True, slots=True)
class _Limit:
    """The digits of the magnitude of a bound; `fraction` has no zeros at its end."""

    whole: str
    fraction: str

    @classmethod
    def of(cls, value: Decimal) -> _Limit:
        whole, _, fraction = format(abs(value), "f").partition(".")
        return cls(whole.lstrip("0") or "0", fraction.rstrip("0"))


class _Order(NamedTuple):
    """How the digits read so far compare with a limit: -1, 0 or 1, and how many were read."""

    sign: int = 0
    read: int = 0
    in_fraction: bool = False

    def digit(self, limit: _Limit, digit: str) -> _Order:
        if self.in_fraction:
            if self.sign != 0:
                return self
            at = limit.fraction[self.read] if self.read < len(limit.fraction) else "0"
            read = min(self.read + 1, len(limit.fraction))
            return _Order((digit > at) - (digit < at), read, True)
        if self.read >= len(limit.whole):
            return _Order(1, len(limit.whole) + 1)
        at = limit.whole[self.read]
        sign = self.sign or (digit > at) - (digit < at)
        return _Order(sign, self.read + 1)

    def whole_done(self, limit: _Limit) -> _Order:
        if self.in_fraction:
            return self
        sign = -1 if self.read < len(limit.whole) else self.sign
        return _Order(sign, 0, True)

    def done(self, limit: _Limit) -> int:
        end = self.whole_done(limit)
        return end.sign or (-1 if end.read < len(limit.fraction) else 0)


class Divisor:
    """Whether the digits make a multiple of a number; `negated`: whether they do not.

    The number is an integer `unit` of `places` decimal places. A state is the digits so far modulo
    `unit`, how many of them are places, and whether one behind them is not 0.
    """

    def __init__(self, value: Decimal, *, negated: bool = False) -> None:
        whole, _, fraction = format(value, "f").partition(".")
        fraction = fraction.rstrip("0")
        self.negated = negated
        self.unit = int(whole + fraction)
        self.places = len(fraction)

    def divides(self, value: Decimal) -> bool:
        """Whether a number suits."""
        whole, _, fraction = format(abs(value), "f").partition(".")
        rest = self.start()
        for digit in whole:
            rest = self.digit(rest, int(digit), False)
        for digit in fraction:
            rest = self.digit(rest, int(digit), True)
        return self.accepts(rest)

    def start(self) -> _Rest:
        return (0, 0, False)

    def digit(self, rest: _Rest, digit: int, in_fraction: bool) -> _Rest:
        remainder, places, beyond = rest
        if in_fraction and places == self.places:
            return (remainder, places, beyond or digit != 0)
        return ((remainder * 10 + digit) % self.unit, places + in_fraction, beyond)

    def accepts(self, rest: _Rest) -> bool:
        remainder, places, beyond = rest
        divides = not beyond and remainder * 10 ** (self.places - places) % self.unit == 0
        return divides != self.negated


_Rest = tuple[int, int, bool]


class _State(NamedTuple):
    place: int
    negative: bool
    low: _Order
    high: _Order
    rests: tuple[_Rest, ...]


class _Reader:
    def __init__(
        self,
        low: Bound | None,
        high: Bound | None,
        whole: bool,
        zeros: bool,
        divisors: Sequence[Divisor],
    ) -> None:
        self.low, self.high, self.whole, self.zeros = low, high, whole, zeros
        self.divisors = tuple(divisors)
        self.low_limit = _Limit.of(low[0] if low else Decimal(0))
        self.high_limit = _Limit.of(high[0] if high else Decimal(0))

    def step(self, state: _State, char: str) -> _State | None:
        place = state.place
        if char == "-":
            return state._replace(place=_SIGN, negative=True) if place == _START else None
        if char == ".":
            if place not in (_ZERO, _WHOLE) or (self.whole and not self.zeros):
                return None
            return state._replace(
                place=_POINT,
                low=state.low.whole_done(self.low_limit),
                high=state.high.whole_done(self.high_limit),
            )
        if place == _ZERO or (place >= _POINT and self.whole and char != "0"):
            return None
        first = _ZERO if char == "0" else _WHOLE
        return _State(
            place=first if place in (_START, _SIGN) else _FRACTION if place >= _POINT else place,
            negative=state.negative,
            low=state.low.digit(self.low_limit, char) if self.low else state.low,
            high=state.high.digit(self.high_limit, char) if self.high else state.high,
            rests=self._rests(state, int(char)) if self.divisors else (),
        )

    def _rests(self, state: _State, digit: int) -> tuple[_Rest, ...]:
        in_fraction = state.place >= _POINT
        pairs = zip(self.divisors, state.rests, strict=True)
        return tuple(d.digit(rest, digit, in_fraction) for d, rest in pairs)

    def accepts(self, state: _State) -> bool:
        if state.place in (_START, _SIGN, _POINT):
            return False
        if not all(d.accepts(r) for d, r in zip(self.divisors, state.rests, strict=True)):
            return False
        return self._side(state, self.low, self.low_limit, state.low, 1) and self._side(
            state, self.high, self.high_limit, state.high, -1
        )

    @staticmethod
    def _side(
        state: _State, bound: Bound | None, limit: _Limit, order: _Order, wanted: int
    ) -> bool:
        """Whether the number lies on the wanted side of the bound: 1 above, -1 below."""
        if bound is None:
            return True
        value, excluded = bound
        magnitude = order.done(limit)
        limit_sign = -1 if value < 0 else 1
        number_sign = -1 if state.negative else 1
        if limit_sign == number_sign:
            compared = magnitude * number_sign
        elif magnitude == 0 and value == 0:
            compared = 0  # -0 is 0
        else:
            compared = number_sign
        return compared == wanted or (compared == 0 and not excluded)


def between(
    low: Bound | None,
    high: Bound | None,
    *,
    whole: bool,
    zeros: bool = False,
    divisors: Sequence[Divisor] = (),
) -> Automaton:
    """The numbers between the bounds that suit all divisors. `whole`: integers only; `zeros`: also
    spelled as 1.0. Raises GrammarError for more than 20,000 states."""
    reader = _Reader(low, high, whole, zeros, divisors)
    first = _State(_START, False, _Order(), _Order(), tuple(d.start() for d in divisors))

    def moves(state: _State) -> Iterator[tuple[Ranges, _State]]:
        for char in "-.0123456789":
            after = reader.step(state, char)
            if after is not None:
                yield ((ord(char), ord(char)),), after

    return reachable(
        first,
        moves,
        reader.accepts,
        f"'multipleOf' and the bounds need more than {MAX_STATES} states; use rounder numbers",
    )
