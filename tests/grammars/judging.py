"""Real schemas with instances that are known to be valid or not, and the judge over them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sglite.errors import GrammarError
from sglite.grammars import Grammar, Vocabulary, compile_json_schema

SHARED = Path(os.environ.get("SGLITE_SHARED", Path(__file__).parents[2].parent / "shared"))


@dataclass(frozen=True, slots=True)
class Case:
    """A schema with its instances: (description, value, whether it is valid)."""

    name: str
    schema: Any
    instances: list[tuple[str, Any, bool]]


@dataclass(slots=True)
class Verdict:
    """What came out: names of cases and of instances judged wrongly."""

    compiled: set[str] = field(default_factory=set)
    refused: dict[str, GrammarError] = field(default_factory=dict)
    right: int = 0
    unsound: list[str] = field(default_factory=list)
    too_strict: list[str] = field(default_factory=list)


def judge(cases: Iterable[Case]) -> Verdict:
    """Compile every case under the widest options and feed it every instance, written several
    ways. An unsatisfiable schema counts as compiled: it refuses all of its instances."""
    vocab = Vocabulary.from_tokens([bytes([i]) for i in range(256)] + [b""], eos_ids=[256])
    verdict = Verdict()
    for case in cases:
        try:
            grammar = compile_json_schema(
                case.schema, vocab, property_order="any", whitespace="flexible", spelling="any"
            )
        except GrammarError as error:
            if "nothing can match" not in error.reason:
                verdict.refused[case.name] = error
                continue
            verdict.compiled.add(case.name)
            verdict.right += sum(not valid for _, _, valid in case.instances)
            verdict.too_strict += [f"{case.name}: {d}" for d, _, valid in case.instances if valid]
            continue
        verdict.compiled.add(case.name)
        for description, value, valid in case.instances:
            accepted = {_accepts(grammar, text) for text in _written(value)}
            if accepted == {valid}:
                verdict.right += 1
            else:
                kind = verdict.too_strict if valid else verdict.unsound
                kind.append(f"{case.name}: {description}")
    return verdict


def _written(value: Any) -> Iterator[str]:
    yield json.dumps(value)
    yield json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    yield json.dumps(value, indent=2, sort_keys=True)


def _accepts(grammar: Grammar, text: str) -> bool:
    matcher = grammar.matcher()
    return matcher.accept_tokens(list(text.encode())) and matcher.is_complete
