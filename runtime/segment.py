"""What a program hands to an engine, and what the engine hands back.

The border between the floors: the language builds these values, every engine consumes them. They
know nothing of programs, models or backends.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from sglite.options import DEFAULT_MAX_TOKENS, GREEDY, Sampling
from sglite.runtime.values import value

if TYPE_CHECKING:
    from sglite.grammars.compose import Part

PieceKind = Literal["user", "template", "special", "ids"]


@value
class Piece:
    """A stretch of literal text.

    `user`: text of the program or its arguments; never becomes special ids and may be healed.
    `template`: a fragment of the model's chat template; special tokens in it are parsed, and it is
    never healed. `special`: the text of exactly one special token, asked for by the user. `ids`:
    these ids as they are, of text that an engine has generated before; `text` is only shown.
    """

    text: str
    kind: PieceKind = "user"
    ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Constraint:
    """What a hole's output must match: the source text, before it meets a vocabulary.

    `json_schema`: `source` is the schema as JSON text; `regex`: a pattern, matched in full;
    `grammar`: a grammar text in the format that `options` names; `parts`: a part of
    `sglite.grammars.compose`. `options` are keyword arguments of the matching
    `sglite.grammars.compile_*`, as sorted pairs, so that values compare and hash; one more,
    `special_texts`, names special tokens that stand for their texts here, as in no other hole.
    """

    kind: Literal["json_schema", "regex", "grammar", "parts"]
    source: str | Part
    options: tuple[tuple[str, Any], ...] = ()


@value
class Append:
    """Literal text: all of it between two holes, so one text for the tokeniser."""

    pieces: tuple[Piece, ...]


@value
class Gen:
    """A hole that generates tokens.

    `key` is the 64-bit randomness key of the hole: (seed, row, branch path, variable, occurrence)
    hashed by the language; the engine adds the token index. `until` texts are expected to follow
    the value, `stop` texts, matches of `stop_regex` and `stop_ids` end it; none of them is part of
    the value or the state. Before `min_tokens` the hole does not end as long as it can go on.
    `logit_bias` is added to the logits of ids before anything else; -inf forbids an id.
    `top_logprobs`: so many of the most probable outcomes are kept for each position. `hidden`: the
    ids leave the state when the hole has ended. `drops`: when it has ended, what that many steps
    before this one brought leaves the state.

    A `stop` or `until` text that is one special token of the model ends the hole at that token.
    """

    name: str
    key: int = 0
    constraint: Constraint | None = None
    max_tokens: int = DEFAULT_MAX_TOKENS
    sampling: Sampling = GREEDY
    stop: tuple[str, ...] = ()
    stop_ids: tuple[int, ...] = ()
    until: tuple[str, ...] = ()
    ignore_eos: bool = False
    min_tokens: int = 0
    logit_bias: tuple[tuple[int, float], ...] = ()
    stop_regex: tuple[str, ...] = ()
    top_logprobs: int = 0
    hidden: bool = False
    drops: int = 0


SelectMethod = Literal["prob", "mean", "greedy", "pmi"]
DEFAULT_METHOD: SelectMethod = "prob"


@value
class Select:
    """A hole that picks one of `choices` and keeps the distribution over all of them.

    Of `sampling` only the temperature counts: the choices are few, and none is cut away. `method`:
    what a choice scores. `prob`: its total log probability; where one choice begins another, also
    that of not going on. `greedy`: the same, with each token's probability among those that the
    choices leave; without a temperature the most probable way is taken token by token. `mean`: the
    mean log probability of its tokens. `pmi`: its log probability less that of the choice alone,
    without the prompt. `until`, for `prob` and `greedy`: every choice also counts the probability
    that one of these texts, or the end of the turn, comes next.
    """

    name: str
    choices: tuple[str, ...]
    key: int = 0
    sampling: Sampling = GREEDY
    method: SelectMethod = DEFAULT_METHOD
    until: tuple[str, ...] = ()
    hidden: bool = False


Hole = Gen | Select
Step = Append | Gen | Select


@value
class Segment:
    """The steps of one sequence that were recorded between two reads; run in order."""

    steps: tuple[Step, ...]


FinishReason = Literal["eos", "stop", "until", "grammar", "length", "context", "select"]


@dataclass(slots=True)
class Usage:
    """Counters, in tokens; they add up over holes, segments and sequences.

    prompt: ids of literal text that the sequence held when a hole began, each counted once.
    cached: prompt ids whose KV came from the prefix cache. forced: ids that the grammar left no
    choice about and that rode along without a decode step of their own. decoded: ids drawn.
    """

    prompt_tokens: int = 0
    cached_tokens: int = 0
    forced_tokens: int = 0
    decoded_tokens: int = 0
    drafted_tokens: int = 0

    def add(self, other: Usage) -> None:
        """Count what `other` has counted, too."""
        self.prompt_tokens += other.prompt_tokens
        self.cached_tokens += other.cached_tokens
        self.forced_tokens += other.forced_tokens
        self.decoded_tokens += other.decoded_tokens
        self.drafted_tokens += other.drafted_tokens


@value
class Attempt:
    """One try at a hole that may be tried again: what was written, and why its value was refused;
    no `errors`: it was not."""

    text: str
    errors: tuple[str, ...]
    usage: Usage


@value
class HoleResult:
    """What came out of one hole.

    text: what was written, without the healed prefix. ids: the generated ids as they stand in the
    state. finish: "stop" and "until" before such a text, "grammar" where nothing more can come,
    "eos" at an end-of-turn or stop id and where the end outcome of a constrained hole without
    `until` was drawn, "length" after max_tokens, "context" where the context is full, "select" for
    a choice. logprobs: natural-log probability of each id under the distribution it was drawn from
    (masked, before temperature), 0.0 for a forced id. distribution: for select, choice ->
    probability, in the order of the choices, summing to 1. scores: for select, choice -> what its
    method gives it. stop: the stop or until text that ended it, or what matched `stop_regex`.
    top_logprobs: per id of `ids`, where they were asked for, id -> log probability of the most
    probable outcomes there, in falling order (-1 is the end outcome). healed: text of the program
    before the hole that became part of `ids`. ends: where each id ends in `text`, in bytes of
    UTF-8, below 1 within the healed text; empty where the engine does not know. attempts: of a
    hole with retries, every try; `usage` is that of all of them. times: time.monotonic() seconds.
    """

    name: str
    text: str
    ids: tuple[int, ...]
    finish: FinishReason
    logprobs: tuple[float, ...] = ()
    stop: str | None = None
    distribution: dict[str, float] | None = None
    scores: dict[str, float] | None = None
    top_logprobs: tuple[dict[int, float], ...] = ()
    healed: str = ""
    ends: tuple[int, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    usage: Usage = field(default_factory=Usage)
    started_at: float = 0.0
    first_token_at: float = 0.0
    finished_at: float = 0.0

    @property
    def tokens(self) -> int:
        """How many ids the hole has."""
        return len(self.ids)

    @property
    def cached(self) -> int:
        """How many ids of the prompt before it came from the prefix cache."""
        return self.usage.cached_tokens

    @property
    def forced(self) -> int:
        """How many of its ids the constraint left no choice about."""
        return self.usage.forced_tokens

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.finished_at - self.started_at

    def __repr__(self) -> str:
        text = self.text if len(self.text) <= 48 else f"{self.text[:45]}..."
        tokens = f"{len(self.ids)} token{'s' * (len(self.ids) != 1)}"
        return f"<hole {self.name!r} {text!r} finish={self.finish!r} {tokens}>"


@value
class TextDelta:
    """More text of the hole at `step` (an index into the segment's steps): whole characters."""

    step: int
    text: str


@value
class HoleDone:
    """The hole at `step` (an index into the segment's steps) has its result."""

    step: int
    result: HoleResult


@value
class HoleRefused:
    """The text of the hole at `step` so far is void, and the hole is tried again. No engine of a
    model says this: what a value has to be beyond its constraint is known above."""

    step: int
    attempt: Attempt


@value
class SegmentDone:
    """Terminal: every step of the segment is done. `ids` is the whole state of the sequence."""

    ids: tuple[int, ...] = ()


@value
class SegmentFailed:
    """Terminal: the step at index `step` failed; the sequence takes no further segments."""

    step: int
    error: Exception


Event = TextDelta | HoleDone | HoleRefused | SegmentDone | SegmentFailed
