"""The door to the grammars: constraints of holes compiled over the model's vocabulary, and masks.

Compiling happens on the thread of the caller that submits; the engine's thread only runs matchers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from sglite import grammars
from sglite.grammars.compose import compile_parts
from sglite.runtime.segment import Constraint

if TYPE_CHECKING:
    from sglite.grammars import Grammar, Matcher, Vocabulary


class Constraints:
    """The grammars of one vocabulary, which keeps those used last."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary

    def compile(self, constraint: Constraint) -> Grammar:
        """The grammar of `constraint`. Raises GrammarError for one that cannot be compiled."""
        compilers: dict[str, Callable[..., Grammar]] = {
            "json_schema": grammars.compile_json_schema,
            "regex": grammars.compile_regex,
            "grammar": grammars.compile_grammar,
            "parts": compile_parts,
        }
        options = dict(constraint.options)
        return compilers[constraint.kind](constraint.source, self.vocabulary, **options)

    def free_text(self) -> Grammar:
        """Any text."""
        return grammars.free_text(self.vocabulary)

    def tokens_beginning(self, pattern: str) -> list[int]:
        """Ids of text that begin a match of `pattern` or begin with one."""
        mask = self.vocabulary.empty_mask()
        # Brackets of a class, not a dot: a line may end behind the match.
        grammars.compile_regex(f"(?:{pattern})[\\s\\S]*", self.vocabulary).matcher().fill_mask(mask)
        bits = np.unpackbits(mask.view(np.uint8), bitorder="little")
        return [int(token) for token in np.flatnonzero(bits)]

    def fill_masks(
        self,
        matchers: Sequence[Matcher],
        masks: npt.NDArray[np.uint32],
        budgets: npt.NDArray[np.int32],
    ) -> None:
        """Masks uint32 [N, W] of N matchers, with the tokens that each may still use."""
        grammars.fill_masks(matchers, masks, budgets)
