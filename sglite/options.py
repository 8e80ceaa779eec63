"""The one list of sampling parameters. Holes, runs and engines all read it from here.

Floor 0: imports nothing of ours and may be imported by every floor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace

DEFAULT_MAX_TOKENS = 128
"""Where an open hole without `max_tokens` ends if the model does not end it before."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How one token is drawn; all fields resolved. `temperature=0` is greedy.

    `top_k=0`, `top_p=1` and `min_p=0` switch their filter off. Ties go to the lowest id.
    `repetition_penalty` (CTRL, arXiv:1909.05858) divides the positive and multiplies the negative
    logits of ids that the prompt or the value already has; `presence_penalty` is subtracted once,
    and `frequency_penalty` once for each occurrence, from the logits of ids that the value has.
    """

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.temperature) and self.temperature >= 0):
            raise ValueError(f"temperature must be a finite number >= 0, got {self.temperature!r}")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p must be in (0, 1], got {self.top_p!r}")
        if self.top_k < 0:
            raise ValueError(f"top_k must be >= 0 (0 switches it off), got {self.top_k!r}")
        if not 0 <= self.min_p <= 1:
            raise ValueError(f"min_p must be in [0, 1], got {self.min_p!r}")
        if not (math.isfinite(self.repetition_penalty) and self.repetition_penalty > 0):
            raise ValueError(
                f"repetition_penalty must be a finite number > 0, got {self.repetition_penalty!r}"
            )
        for name in ("presence_penalty", "frequency_penalty"):
            if not math.isfinite(getattr(self, name)):
                raise ValueError(f"{name} must be a finite number, got {getattr(self, name)!r}")


GREEDY = Sampling()
"""The most probable token, always."""


ERROR = "error"
DROP_OLDEST = "drop_oldest"
Message = dict[str, str]
"""A turn of a chat: `role` and `content`."""
OverflowPolicy = str | Callable[[list[Message]], Iterable[Message]]
"""What happens when a conversation outgrows the context: "error", "drop_oldest", or a function that
gets the turns that can go and returns those that stay."""


def check_overflow(policy: object) -> None:
    """Raises ValueError for what is no OverflowPolicy."""
    if not callable(policy) and policy not in (ERROR, DROP_OLDEST):
        raise ValueError(
            f"on_overflow takes {ERROR!r}, {DROP_OLDEST!r} or a function of the turns, got "
            f"{policy!r}"
        )


@dataclass(frozen=True, slots=True)
class Options:
    """Defaults for a run. `None` means "not said": a hole's own argument wins, then these.

    `seed=None` draws one and records it in the result. `priority`: higher runs
    first, 0 where not said. `timeout`: seconds that a run may take, from the start of its body.
    `on_overflow`: what happens to a chat that outgrows the context.
    """

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    seed: int | None = None
    priority: int | None = None
    timeout: float | None = None
    on_overflow: OverflowPolicy | None = None

    def __post_init__(self) -> None:
        for name in ("max_tokens", "seed", "priority"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
                raise TypeError(f"{name} must be a whole number, got {value!r}")
        if self.max_tokens is not None and self.max_tokens < 1:
            raise ValueError(f"max_tokens must be at least 1, got {self.max_tokens}")
        if self.timeout is not None and not self.timeout > 0:
            raise ValueError(f"timeout is a number of seconds above 0, got {self.timeout!r}")
        if self.on_overflow is not None:
            check_overflow(self.on_overflow)

    def over(self, base: Options) -> Options:
        """These options, with what they leave open taken from `base`."""
        said = {f.name: getattr(self, f.name) for f in fields(self)}
        return replace(base, **{k: v for k, v in said.items() if v is not None})

    def sampling(self) -> Sampling:
        """The resolved sampling parameters. Raises ValueError for a value out of range."""
        said = {f.name: getattr(self, f.name) for f in fields(Sampling)}
        return Sampling(**{k: v for k, v in said.items() if v is not None})
