"""Constraints of holes to compiled grammars over the model's vocabulary, each compiled once.

Compiling happens on the thread of the caller that submits; the engine's thread only runs matchers.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from sglite import grammars
from sglite.runtime.segment import Constraint

if TYPE_CHECKING:
    from sglite.grammars import Grammar, Matcher, Vocabulary

_KEPT = 512


class Constraints:
    """The compiled grammars of one vocabulary; the `_KEPT` last used ones are remembered."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self._lock = threading.Lock()
        self._compiled: OrderedDict[Constraint, Future[Grammar]] = OrderedDict()

    def compile(self, constraint: Constraint) -> Grammar:
        """The grammar of `constraint`. Threads that want the same one wait for one compilation.
        Raises GrammarError, which is not remembered."""
        with self._lock:
            known = self._compiled.get(constraint)
            if known is None:
                mine: Future[Grammar] = Future()
                self._compiled[constraint] = mine
                if len(self._compiled) > _KEPT:
                    self._compiled.popitem(last=False)
            else:
                self._compiled.move_to_end(constraint)
        if known is not None:
            return known.result()
        try:
            grammar = self._compile(constraint)
        except BaseException as error:
            mine.set_exception(error)
            with self._lock:
                self._compiled.pop(constraint, None)
            raise
        mine.set_result(grammar)
        return grammar

    def free_text(self) -> Grammar:
        """Any text."""
        return grammars.free_text(self.vocabulary)

    def fill_masks(
        self,
        matchers: Sequence[Matcher],
        masks: npt.NDArray[np.uint32],
        budgets: npt.NDArray[np.int32],
    ) -> None:
        """Masks uint32 [N, W] of N matchers, with the tokens that each may still use."""
        grammars.fill_masks(matchers, masks, budgets)

    def _compile(self, constraint: Constraint) -> Grammar:
        options = dict(constraint.options)
        if constraint.kind == "json_schema":
            return grammars.compile_json_schema(constraint.source, self.vocabulary, **options)
        if constraint.kind == "regex":
            return grammars.compile_regex(constraint.source, self.vocabulary, **options)
        return grammars.compile_grammar(constraint.source, self.vocabulary, **options)
