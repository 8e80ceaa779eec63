"""A scripted model for tests: it takes no hole for granted, and remembers what it was asked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sglite.language.suggestions import did_you_mean
from sglite.model import Model
from sglite.options import Sampling
from sglite.runtime.engines.base import EventSink
from sglite.runtime.engines.scripted import ScriptedEngine, SequenceState
from sglite.runtime.segment import Constraint, Gen, HoleResult, Select
from sglite.tools.formats import script_of


@dataclass(frozen=True, slots=True)
class Asked:
    """A hole that the model was asked to fill.

    `prompt` is the whole text before it, turns as the template writes them; `answer` the text that
    was given; `hole` has all that was asked for, resolved: `max_tokens`, `stop`, `until`, ...
    """

    name: str
    prompt: str
    answer: str
    hole: Gen | Select

    @property
    def choices(self) -> tuple[str, ...]:
        """Those of a `select`; () for a `gen`."""
        return self.hole.choices if isinstance(self.hole, Select) else ()

    @property
    def constraint(self) -> Constraint | None:
        """What the answer had to match; None for free text."""
        return self.hole.constraint if isinstance(self.hole, Gen) else None

    @property
    def schema(self) -> Any:
        """The JSON Schema that the answer had to match; None for another constraint."""
        constraint = self.constraint
        if constraint is None or constraint.kind != "json_schema":
            return None
        return json.loads(str(constraint.source))

    @property
    def sampling(self) -> Sampling:
        """Temperature and the like, from the hole and the run's options."""
        return self.hole.sampling


class ScriptedModel(Model):
    """A model without a model, as `Model(backend="scripted")` is, for tests.

    `script` maps a variable to its answer: a value, as text or as an object of the hole's type; for
    a `select` also a dict of probabilities; a `ToolCall`; an exception, which the hole fails with;
    a list of these, one for each time; a function that gets the text so far. `strict`: a hole that
    the script leaves out is an error, unless there is no script at all, and `check` wants every
    answer used.
    """

    engine: ScriptedTestEngine

    def __init__(
        self, script: Mapping[str, Any] | None = None, *, strict: bool = True, **options: Any
    ) -> None:
        self._adopt(ScriptedTestEngine(script, strict=strict, **options))

    @property
    def asked(self) -> list[Asked]:
        """Every hole that was filled, in the order in which they were."""
        return [*self.engine.asked]

    @property
    def prompts(self) -> list[str]:
        """The text before each of these holes."""
        return [asked.prompt for asked in self.engine.asked]

    def check(self) -> None:
        """Raises AssertionError if a hole had no answer or, if strict, an answer was left over."""
        said = self.engine.complaints()
        if said:
            raise AssertionError("; ".join(said))


class ScriptedTestEngine(ScriptedEngine):
    """A scripted engine that remembers every hole."""

    def __init__(
        self, script: Mapping[str, Any] | None = None, *, strict: bool = True, **options: Any
    ) -> None:
        super().__init__(script=script_of(script or {}), **options)
        self.asked: list[Asked] = []
        self._strict = strict and script is not None
        self._met: set[str] = set()
        self._unanswered: list[str] = []

    def complaints(self) -> list[str]:
        """What a strict test does not let pass."""
        said = list(dict.fromkeys(self._unanswered))
        if self._strict:
            left = dict.fromkeys(self._script.keys() - self._met, 1) | self.answers_left()
            for name in self._script:
                if left.get(name, 0):
                    answers = f"{left[name]} answer{'s' * (left[name] != 1)}"
                    said.append(f"the script has {answers} for {name!r} that nothing asked for")
        return said

    def _fill(
        self, state: SequenceState, index: int, hole: Gen | Select, sink: EventSink
    ) -> HoleResult:
        prompt = state.text()
        result = super()._fill(state, index, hole, sink)
        self.asked.append(Asked(hole.name, prompt, result.text, hole))
        return result

    def _answer(self, name: str, state: SequenceState) -> Any:
        self._met.add(name)
        if self._strict and name not in self._script:
            known = ", ".join(map(repr, self._script)) or "none"
            problem = (
                f"the script has no answer for the hole {name!r}"
                f"{did_you_mean(name, self._script)}; it has answers for: {known}"
            )
        elif self.answers_left().get(name) == 0:
            problem = f"the script has no more answers for the hole {name!r}"
        else:
            return super()._answer(name, state)
        # Kept, too: a batch that gives errors back must not hide it.
        self._unanswered.append(problem)
        raise ValueError(problem)
