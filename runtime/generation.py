"""A hole that generates tokens, from its first mask to its result. One object per hole.

It knows the rules of ending (grammar, budget, stop texts, the end outcome) and nothing of batches,
pages or other sequences.
"""

from __future__ import annotations

import time
from array import array
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from sglite.errors import CapacityError
from sglite.runtime.backends.base import Float32
from sglite.runtime.endings import PreparedGen
from sglite.runtime.outcomes import most_probable
from sglite.runtime.output import StopMatch, StopText, ValueText
from sglite.runtime.prompt import Tokenizer
from sglite.runtime.segment import FinishReason, Gen, HoleResult
from sglite.runtime.sequence import Sequence
from sglite.runtime.shaping import shaping_of

if TYPE_CHECKING:
    from sglite.grammars import Grammar, Matcher, Vocabulary

_NO_IDS = array("i")


@dataclass(frozen=True, slots=True)
class Rules:
    """What all generations of an engine share. `capacity`: the most ids a state can have."""

    vocabulary: Vocabulary
    tokenizer: Tokenizer
    free_text: Grammar
    capacity: int


class Generation:
    """`matcher` is None while any text may follow; `finish` is None until the hole ended.

    In a constrained hole stop and until texts act through the end outcome alone, and an end-of-turn
    id counts to it whatever `ignore_eos` says: a complete value has to be able to end.
    """

    __slots__ = (
        "_base",
        "_endings",
        "_first_token_at",
        "_likely_mark",
        "_prefix",
        "_rules",
        "_started_at",
        "_stop",
        "_token_bytes",
        "_tops",
        "_value",
        "budget",
        "constrained",
        "finish",
        "gen",
        "ids",
        "logprobs",
        "matcher",
        "sequence",
        "shaping",
        "usage",
    )

    def __init__(
        self, sequence: Sequence, gen: Gen, prepared: PreparedGen, prefix: bytes, rules: Rules
    ) -> None:
        grammar, self._endings = prepared.grammar, prepared.endings
        self.sequence = sequence
        self.gen = gen
        self.finish: FinishReason | None = None
        self.ids: list[int] = []
        self.logprobs: list[float] = []
        self.usage = sequence.open_account().usage
        self.constrained = grammar is not None
        self._base = len(sequence.ids)
        self._rules = rules
        # A grammar may read the text of special tokens, which are none elsewhere.
        self._token_bytes = grammar.vocabulary.tokens if grammar else rules.tokenizer.token_bytes
        self._started_at = time.monotonic()
        self._first_token_at = 0.0
        self._prefix = prefix
        self._stop: str | None = None
        self._likely_mark: StopText | None = None
        self._tops: list[dict[int, float]] = []
        self.shaping = shaping_of(gen, sequence.ids)
        room = rules.capacity - self._base
        if room < 1:
            raise CapacityError(
                f"hole {gen.name!r}: the prompt has {self._base} tokens, and the model's context "
                f"and memory hold {rules.capacity} with the value; shorten it or raise `context`"
            )
        self.budget = min(gen.max_tokens, room)
        """Tokens that the hole may still use."""
        self._value = ValueText(self._endings.texts, len(prefix), self._endings.patterns)
        self.matcher: Matcher | None = None
        if grammar is not None:
            self.matcher = grammar.matcher(prefix)
            self._check_budget(self.matcher, room)
        elif prefix:
            self.matcher = rules.free_text.matcher(prefix)
        if self.constrained and self.matcher is not None:
            self._go_on(self.matcher)
            self._end_if_spent()

    def end_outcome(self, mask: npt.NDArray[np.uint32]) -> tuple[array[int], bool]:
        """The ids whose total probability is the end outcome, and whether all that the mask refuses
        counts to it too; no ids where the hole cannot end. Before `min_tokens` it cannot, and
        `mask` [W] loses what would end it, as long as something is left there."""
        if self.constrained and not (self.matcher is not None and self.matcher.is_complete):
            return _NO_IDS, False
        others = self._endings.others
        if others is not None and len(self.ids) < self.gen.min_tokens:
            going_on = mask & others
            if going_on.any():
                mask[:] = going_on
                return _NO_IDS, False
        return self._endings.ids, self.constrained

    @property
    def observes(self) -> bool:
        """Whether `observe` has to be called before `accept`."""
        return bool(self.gen.top_logprobs or self._endings.marks)

    def observe(self, logits: Float32, mask: npt.NDArray[np.uint32], token: int) -> None:
        """The logits [V] and the mask [W] that `token` was drawn with."""
        ends, rest = self.end_outcome(mask)
        if token >= 0 and self.gen.top_logprobs:
            self._tops.append(most_probable(logits, mask, ends, rest, self.gen.top_logprobs))
        if token < 0 and self._endings.marks:
            # The end was drawn as one outcome; its name is that of the most probable of its ids.
            best = ends[int(logits[np.array(ends)].argmax())]
            self._likely_mark = self._endings.marks.get(best)

    def accept(self, token: int, logprob: float) -> None:
        """The drawn outcome: an id, or -1 for the end."""
        if not self._first_token_at:
            self._first_token_at = time.monotonic()
        if token < 0:
            self._end_by_outcome()
            return
        self.usage.decoded_tokens += 1
        match = self._append(token, logprob)
        matcher = self.matcher
        if match is not None:
            self._end_at(match)
        elif matcher is not None:
            if not matcher.accept(token):
                raise RuntimeError(f"the grammar refused token {token}, which its mask allowed")
            if not self.constrained:
                if len(self._value.data) >= self._value.skip:
                    self.matcher = None
            else:
                self._go_on(matcher)
        self._end_if_spent()

    def reason(self, error: Exception) -> Exception:
        """Why no outcome could be drawn, in the user's words where they are to blame."""
        if self.shaping is None or not self.shaping.bans or not isinstance(error, ValueError):
            return error
        blamed = ValueError(
            f"hole {self.gen.name!r}: logit_bias forbids every id that may come after "
            f"{len(self.ids)} tokens ({error})"
        )
        blamed.__cause__ = error
        return blamed

    def delta(self) -> str:
        """New text that is certain; the rest when the hole has ended."""
        return self._value.take() if self.finish is None else self._value.close()

    def result(self) -> HoleResult:
        """The result of the ended hole."""
        assert self.finish is not None
        return HoleResult(
            name=self.gen.name,
            text=self._value.value(),
            ids=tuple(self.ids),
            finish=self.finish,
            logprobs=tuple(self.logprobs),
            stop=self._stop,
            top_logprobs=tuple(self._tops),
            ends=self._ends(),
            healed=self._prefix.decode("utf-8", "replace"),
            usage=self.usage,
            started_at=self._started_at,
            first_token_at=self._first_token_at or time.monotonic(),
            finished_at=time.monotonic(),
        )

    def _ends(self) -> tuple[int, ...]:
        lengths = (len(self._token_bytes[token]) for token in self.ids)
        begun = -len(self._prefix)
        return tuple(accumulate(lengths, initial=begun))[1:]

    def _append(self, token: int, logprob: float) -> StopMatch | None:
        self.ids.append(token)
        self.logprobs.append(logprob)
        self.sequence.ids.append(token)
        self.budget -= 1
        match = self._value.feed(self._token_bytes[token])
        if len(self.ids) <= self.gen.min_tokens:
            self._value.pass_over()
            return None
        return match

    def _end_by_outcome(self) -> None:
        mark = self._likely_mark
        if mark is not None:
            self.finish, self._stop = "until" if mark.is_until else "stop", mark.text
        else:
            self.finish = "until" if self.constrained and self.gen.until else "eos"

    def _go_on(self, matcher: Matcher) -> None:
        """After an accepted id of a constrained hole: what is forced, and the end by itself."""
        if matcher.is_finished or (self._take_forced(matcher) and matcher.is_finished):
            self.finish = "grammar"

    def _end_if_spent(self) -> None:
        if self.budget == 0 and self.finish is None:
            self.finish = "length" if len(self.ids) >= self.gen.max_tokens else "context"

    def _take_forced(self, matcher: Matcher) -> bool:
        """Append the ids that the grammar leaves no choice about, if the rest fits the budget;
        whether there were some."""
        forced = matcher.forced_tokens()
        if not forced or len(forced) > self.budget:
            return False
        if not matcher.accept_tokens(forced):
            raise RuntimeError("the grammar refused the tokens that it forced")
        if matcher.tokens_to_finish() > self.budget - len(forced):
            matcher.rollback(len(forced))
            return False
        for token in forced:
            self._append(token, 0.0)
            if self.gen.top_logprobs:
                self._tops.append({token: 0.0})
        self.usage.forced_tokens += len(forced)
        return True

    def _check_budget(self, matcher: Matcher, room: int) -> None:
        least = matcher.tokens_to_finish()
        if least > self.gen.max_tokens:
            raise ValueError(
                f"hole {self.gen.name!r} needs at least {least} tokens to satisfy its constraint, "
                f"max_tokens is {self.gen.max_tokens}; raise max_tokens"
            )
        if least > room:
            raise CapacityError(
                f"hole {self.gen.name!r} needs at least {least} tokens to satisfy its constraint, "
                f"the context has room for {room} after a prompt of {self._base}"
            )

    def _end_at(self, match: StopMatch) -> None:
        """A stop text: the value ends before it, and so does the state."""
        self.finish = "until" if match.stop.is_until else "stop"
        self._stop = match.stop.text
        keep, at = 0, 0
        while at + len(self._token_bytes[self.ids[keep]]) <= match.start:
            at += len(self._token_bytes[self.ids[keep]])
            keep += 1
        rest = bytes(self._value.data[at : match.start])
        straddling = self._rules.tokenizer.encode_bytes(rest) if rest else []
        self.sequence.truncate(self._base + keep)
        self.sequence.ids.extend(straddling)
        self.ids[keep:] = straddling
        self.logprobs[keep:] = [0.0] * len(straddling)
        if self.gen.top_logprobs:
            self._tops[keep:] = [{token: 0.0} for token in straddling]
        self._value.cut(match.start)
