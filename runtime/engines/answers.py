"""What a scripted answer means for a hole: the choice it makes, the text it ends with."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from sglite.runtime.output import StopText, ValueText
from sglite.runtime.segment import FinishReason, Gen, Select
from sglite.runtime.stop_patterns import stop_pattern


def choose(hole: Select, answer: Any) -> tuple[str, dict[str, float]]:
    """The choice, and the probability of each. Raises ValueError for an answer that is none."""
    if answer is None:
        even = 1 / len(hole.choices)
        return hole.choices[0], dict.fromkeys(hole.choices, even)
    weights = answer if isinstance(answer, Mapping) else {str(answer): 1.0}
    strange = [choice for choice in weights if choice not in hole.choices]
    if strange or not sum(weights.values()) > 0:
        raise ValueError(
            f"the scripted answer {answer!r} for {hole.name!r} is none of {list(hole.choices)}"
        )
    total = sum(weights.values())
    distribution = {choice: weights.get(choice, 0.0) / total for choice in hole.choices}
    return max(hole.choices, key=lambda choice: distribution[choice]), distribution


def scores_of(distribution: Mapping[str, float]) -> dict[str, float]:
    """The log of each probability."""
    return {c: math.log(p) if p > 0 else -math.inf for c, p in distribution.items()}


def ended(text: str, hole: Gen) -> tuple[str, FinishReason, str | None]:
    """Free text, up to what ends it first; why it ended, and the text that ended it."""
    if not (hole.stop or hole.until or hole.stop_regex):
        return text, "eos", None
    stops = [StopText(stop.encode(), stop, False) for stop in hole.stop]
    stops += [StopText(stop.encode(), stop, True) for stop in hole.until]
    value = ValueText(stops, patterns=[stop_pattern(pattern) for pattern in hole.stop_regex])
    match = value.feed(text.encode())
    if match is None:
        return text, "eos", None
    value.cut(match.start)
    return value.value(), "until" if match.stop.is_until else "stop", match.stop.text


def written(answer: Any) -> str:
    """The text of an answer: data other than text is JSON."""
    return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
