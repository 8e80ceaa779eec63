"""Every mask on the way of every valid instance of real schemas, with budgets, forks, rollbacks.

    python tests/grammars/sample_masks.py [--sample FILE] [--first N] [--count N] [--model NAME]

What is checked here is little (the next token is allowed, a budget at the bound leaves a way,
positions come back), but all of the native code is walked through: `make sanitize-sample` does it
under sanitizers.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from conformance import SAMPLE, sample_cases
from fuzz_completions import OPTIONS, real_vocabulary
from judging import Case
from trials import ids_of

from sglite.errors import GrammarError
from sglite.grammars import Matcher, Vocabulary, compile_json_schema, fill_masks

MOST_TOKENS = 1500
"""Of an instance."""
LONGER = ['{"', '":', '": ', '", "', '"}', "}]", "}}", "], [", "true", "null", "ab", "the ", "é"]


@dataclass(slots=True)
class Totals:
    """What came out."""

    compiled: int = 0
    refused: int = 0
    instances: int = 0
    tokens: int = 0
    masks: int = 0


def byte_vocabulary() -> Vocabulary:
    """All bytes, some longer tokens, and an end."""
    tokens = [bytes([i]) for i in range(256)] + [t.encode() for t in LONGER] + [b""]
    return Vocabulary.from_tokens(tokens, eos_ids=[len(tokens) - 1])


def longest_first(vocabulary: Vocabulary, text: bytes) -> list[int]:
    """The ids of a text, at each place the longest token."""
    if vocabulary.encode is not None:
        return list(vocabulary.encode(text))
    ids = {vocabulary.token(i): i for i in range(vocabulary.size) if vocabulary.token(i)}
    found, at = [], 0
    while at < len(text):
        size = next(n for n in range(8, 0, -1) if text[at : at + n] in ids)
        found.append(ids[text[at : at + size]])
        at += size
    return found


def aside(matcher: Matcher, rng: random.Random, steps: int) -> int:
    """A fork goes some random steps within a budget and back again. Returns its masks."""
    fork, vocabulary = matcher.fork(), matcher.grammar.vocabulary
    mask, taken = vocabulary.empty_mask(), 0
    budget = fork.tokens_to_finish() + steps
    for _ in range(steps):
        fork.fill_mask(mask, budget - taken)
        ids = [i for i in ids_of(mask) if i not in vocabulary.eos_ids]
        if not ids:
            break
        assert fork.accept(rng.choice(ids))
        taken += 1
    fork.forced_bytes()
    fork.rollback(taken)
    assert fork.key() == matcher.key()
    return taken


def walk(matcher: Matcher, ids: list[int], rng: random.Random, totals: Totals) -> None:
    """Along the ids, with all masks on the way, and some of them a second time."""
    vocabulary = matcher.grammar.vocabulary
    masks = np.zeros((4, vocabulary.mask_words), np.uint32)
    for number, token in enumerate(ids):
        bound = matcher.tokens_to_finish()
        budgets = np.array([-1, bound, bound + 1, max(bound - 1, 0)], np.int32)
        fill_masks([matcher] * 4, masks, budgets)
        assert masks[0][token >> 5] >> (token & 31) & 1, (number, vocabulary.token(token))
        assert masks[1].any()
        assert not (masks[1] & ~masks[0]).any()
        totals.masks += 4
        if rng.random() < 0.1:
            totals.masks += aside(matcher, rng, 6)
        assert matcher.accept(token)
        totals.tokens += 1
    back = rng.randint(0, len(ids))
    matcher.rollback(back)
    assert matcher.accept_tokens(ids[len(ids) - back :])


def one(case: Case, vocabulary: Vocabulary, seed: int, totals: Totals) -> None:
    """All valid instances of a schema, under options that differ from schema to schema."""
    rng = random.Random(seed)
    options: dict[str, Any] = {k: rng.choice(v) for k, v in OPTIONS.items()}
    options["property_order"] = "any"
    options["whitespace"] = rng.choice(["flexible", "single"])
    try:
        grammar = compile_json_schema(case.schema, vocabulary, **options)
    except GrammarError:
        totals.refused += 1
        return
    totals.compiled += 1
    if rng.random() < 0.3:
        grammar._native.limit_memory(1 << rng.randint(20, 24))  # several generations
    for _, value, valid in case.instances:
        if not valid:
            continue
        text = json.dumps(value, ensure_ascii=False).encode(errors="surrogatepass")
        matcher = grammar.matcher()
        ids = longest_first(vocabulary, text)[:MOST_TOKENS]
        if matcher.fork().accept_tokens(ids):  # floats may be written in other ways than asked for
            walk(matcher, ids, rng, totals)
            totals.instances += 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sample", type=Path, default=SAMPLE)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=10**9)
    parser.add_argument("--model", help="whose vocabulary; without it one of bytes")
    args = parser.parse_args()
    vocabulary = real_vocabulary(args.model) if args.model else byte_vocabulary()
    cases = sample_cases(args.sample)[args.first :][: args.count]
    totals, begin = Totals(), time.perf_counter()
    for number, case in enumerate(cases, args.first):
        try:
            one(case, vocabulary, number, totals)
        except Exception as error:
            error.add_note(f"schema {number}: {case.name}")
            raise
        if number % 50 == 49:
            print(f"{number + 1} schemas: {totals}", flush=True)
    print(f"{len(cases)} schemas: {totals}, {time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main()
