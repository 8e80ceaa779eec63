"""The arguments of `gen` and `select`, checked where the user wrote them."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from sglite.language import ir
from sglite.language.types import ValueType


def check_number(primitive: str, name: object, argument: str, value: object, least: int) -> None:
    """Raise for what is no whole number from `least` up."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{primitive}({name!r}): {argument}= takes a whole number, got {value!r}")
    if value < least:
        raise ValueError(
            f"{primitive}({name!r}): {argument}= must be at least {least}, got {value}"
        )


def biases(
    name: object, said: Mapping[int | str, float] | None
) -> tuple[tuple[int | str, float], ...]:
    """The pairs of a `logit_bias=`. Raises for keys and numbers that it cannot have."""
    if said is None:
        return ()
    if not isinstance(said, Mapping):
        raise TypeError(
            f"gen({name!r}): logit_bias= takes a dict of ids or texts of one token to numbers, "
            f"got {said!r}"
        )
    checked = []
    for token, bias in said.items():
        if isinstance(token, bool) or not isinstance(token, int | str):
            raise TypeError(f"gen({name!r}): logit_bias= has the key {token!r}, no id and no text")
        if isinstance(bias, bool) or not isinstance(bias, int | float):
            raise TypeError(f"gen({name!r}): logit_bias= has {bias!r} for {token!r}, no number")
        if not bias < math.inf:  # NaN too
            raise ValueError(
                f"gen({name!r}): logit_bias= has {bias!r} for {token!r}; a number or -inf is meant"
            )
        checked.append((token, float(bias)))
    return tuple(checked)


def thought(
    name: object, think: bool | str | tuple[str, str], tokens: int, hidden: bool
) -> ir.Thought | None:
    """What `think=` and its options ask for; None for nothing."""
    if think is False:
        if hidden:
            raise ValueError(f"gen({name!r}): hide_thought=True goes with think=")
        return None
    if think is True:
        return ir.Thought(None, None, tokens, hidden)
    marks = ("", think) if isinstance(think, str) else tuple(think)
    if len(marks) != 2 or not all(isinstance(mark, str) for mark in marks) or not marks[1]:
        raise TypeError(
            f"gen({name!r}): think= takes True, the text that ends a thought, or the two that "
            f"begin and end it; got {think!r}"
        )
    for mark in marks:
        ir.check_text("think=", mark)
    return ir.Thought(marks[1], marks[0], tokens, hidden)


def check_retries(name: object, value: ValueType, tools: bool, hide_thought: bool) -> None:
    """Raise for a hole that cannot be tried again."""
    if tools:
        raise ValueError(
            f"gen({name!r}): retries= does not go with tools=; a tool that raises tells the model "
            "why, and the model may call it again"
        )
    if hide_thought:
        raise ValueError(
            f"gen({name!r}): retries= does not go with hide_thought=True, since a thought is gone "
            "when its value is there; leave the thought in the prompt"
        )
    if value.parse is None and not any(captured.parse for captured in value.captures):
        raise ValueError(
            f"gen({name!r}): retries= is for a type whose validators can refuse a value; text as "
            "it is written is always taken"
        )


def texts(argument: str, value: str | Sequence[str]) -> tuple[str, ...]:
    """One text or several, as a tuple. Raises for what is none, and for the empty text."""
    if not isinstance(value, str | Collection):
        raise TypeError(f"{argument}= takes a text or a list of texts, got {value!r}")
    said = (value,) if isinstance(value, str) else tuple(value)
    for text in said:
        if not isinstance(text, str):
            raise TypeError(f"{argument}= takes a text or a list of texts, got {text!r} in it")
        if not text:
            raise ValueError(f"{argument}= takes texts that are not empty, got {value!r}")
        ir.check_text(f"{argument}=", text)
    return said


def check_name(primitive: str, name: object) -> None:
    """Raise for what cannot be the name of a variable."""
    if name is not None and (not isinstance(name, str) or not name):
        raise TypeError(f"the first argument of {primitive}() is a variable's name, got {name!r}")
