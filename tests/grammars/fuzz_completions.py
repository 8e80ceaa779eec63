"""Random completions drawn from the masks over real schemas, each one validated.

    python tests/grammars/fuzz_completions.py --count 100000 [--sample FILE] [--seed N]

The sample is a file of lines with `name` and `schema`. Completion i depends on the seed and i only:
`--seed N --only I` repeats it. Prints the totals and every violation: a text that is invalid, a
mask that is empty or offers what is refused, a bound that was broken, a text that is refused when
it is tokenised otherwise.
"""

from __future__ import annotations

import argparse
import functools
import gzip
import json
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from judging import SHARED
from numpy.typing import NDArray
from validator import OutOfReach, validator_of
from writing import restyled

from sglite.errors import GrammarError
from sglite.grammars import Grammar, Vocabulary, compile_json_schema

SAMPLE = SHARED / "cases" / "maskbench_sample.jsonl.gz"
SLACK = (0, 1, 3, 10, 30, 100)
"""Tokens that a completion may take beyond the bound of its grammar."""
FREE_STEPS = (0, 0, 5, 20, 60)
"""Tokens that a completion begins with before there is a budget."""
OPTIONS = {
    "property_order": ("declared", "any"),
    "whitespace": ("single", "compact", "flexible"),
    "spelling": ("canonical", "any"),
}


@dataclass(slots=True)
class Totals:
    """What came out of a run."""

    completions: int = 0
    tokens: int = 0
    unjudged: int = 0
    schemas: set[str] = field(default_factory=set)
    refused: dict[str, str] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)
    lengths: Counter[int] = field(default_factory=Counter)


class Violation(Exception):  # noqa: N818
    """What the masks of a grammar did wrong, with the text so far."""

    def __init__(self, what: str, text: bytes) -> None:
        super().__init__(what)
        self.text = text


def load_schemas(sample: Path) -> list[tuple[str, str]]:
    """(name, JSON text) of every schema."""
    with gzip.open(sample, "rt") as lines:
        cases = [json.loads(line) for line in lines]
    return [(case["name"], json.dumps(case["schema"])) for case in cases]


def real_vocabulary(model: str = "smollm2") -> Vocabulary:
    """The vocabulary of a model that is fetched on first use."""
    from sglite.runtime.models.gguf import GGUFFile
    from sglite.runtime.models.pull import resolve
    from sglite.runtime.models.tokenizer import Tokenizer

    with GGUFFile.open(resolve(model)) as gguf:
        tokenizer = Tokenizer.from_gguf(gguf)
        return Vocabulary.from_tokens(
            tokenizer.token_bytes,
            eos_ids=tokenizer.eos_ids,
            special_ids=tokenizer.special_ids,
            encode=tokenizer.encode_bytes,
        )


def completion(grammar: Grammar, rng: random.Random) -> tuple[bytes, int]:
    """A text drawn from the masks, in the end within a budget, and its number of tokens."""
    vocabulary = grammar.vocabulary
    tokens = _tokens(vocabulary)
    matcher, mask = grammar.matcher(), vocabulary.empty_mask()
    free, slack = rng.choice(FREE_STEPS), rng.choice(SLACK)
    budget: int | None = None
    eos = vocabulary.eos_ids
    parts: list[bytes] = []
    taken = 0
    leaps = rng.random()  # how much this completion likes tokens that lead towards the end
    while not matcher.is_finished:
        if taken == free:
            budget = taken + matcher.tokens_to_finish() + slack
        left = None if budget is None else budget - taken
        matcher.fill_mask(mask, left)
        ends = [i for i in eos if mask[i >> 5] >> (i & 31) & 1]
        for i in ends:
            mask[i >> 5] &= ~np.uint32(1 << (i & 31))
        if bool(ends) != matcher.is_complete:
            complaint = f"the mask has {ends}, but complete: {matcher.is_complete}"
            raise Violation(complaint, b"".join(parts))
        words = np.flatnonzero(mask)
        if not len(words) and not ends:
            raise Violation(f"nothing is allowed with {left} tokens left", b"".join(parts))
        if ends and (not len(words) or rng.random() < 0.3):
            break
        token = _choose(mask, words, tokens, rng, leaps)
        if not matcher.accept(token):
            raise Violation(f"{tokens.texts[token]!r} is allowed, but refused", b"".join(parts))
        parts.append(tokens.texts[token])
        taken += 1
    text = b"".join(parts)
    if not matcher.is_complete or (budget is not None and taken > budget):
        raise Violation("the budget is spent and nothing complete", text)
    return text, taken


@dataclass(slots=True)
class _Tokens:
    """The bytes of the ids, and which of them hold a mark of structure."""

    texts: list[bytes]
    marks: list[bool]


@functools.cache
def _tokens(vocabulary: Vocabulary) -> _Tokens:
    texts = [vocabulary.token(i) for i in range(vocabulary.size)]
    return _Tokens(texts, [any(c in b'"{}[],:\\' for c in text) for text in texts])


def _choose(
    mask: NDArray[np.uint32],
    words: NDArray[np.intp],
    tokens: _Tokens,
    rng: random.Random,
    leaps: float,
) -> int:
    """One of the ids of a mask whose `words` are not 0: any, or rather one with a mark of
    structure, or rather a short one."""
    some = []
    for _ in range(8):
        word = int(words[int(rng.random() * len(words))])
        some.append(32 * word + rng.choice(_bits(int(mask[word]))))
    kind = rng.random()
    if kind < leaps:
        return next((i for i in some if tokens.marks[i]), some[0])
    if kind < leaps + 0.2:
        return min(some, key=lambda i: len(tokens.texts[i]))
    return some[0]


@functools.lru_cache(1 << 16)
def _bits(word: int) -> list[int]:
    return [bit for bit in range(32) if word >> bit & 1]


def check(grammar: Grammar, schema: str, options: dict[str, Any], text: bytes) -> None:
    """Raises Violation for a finished text that is wrong in any way."""
    complaint = validator_of(schema).complaint(text)
    if complaint is not None:
        raise Violation(complaint, text)
    vocabulary = grammar.vocabulary
    if options["whitespace"] != "flexible":
        same = restyled(text.decode(), options["whitespace"], options["spelling"] == "any")
        if same != text.decode():
            raise Violation(f"json.dumps writes {same}", text)
    if vocabulary.encode is not None:
        ids = list(vocabulary.encode(text))
        if b"".join(vocabulary.token(i) for i in ids) == text:
            matcher = grammar.matcher()
            if not matcher.accept_tokens(ids) or not matcher.is_complete:
                raise Violation("the ids of the tokeniser are refused", text)


def one(
    i: int, seed: int, vocabulary: Vocabulary, cases: list[tuple[str, str]], totals: Totals
) -> None:
    """Completion i of a run, counted."""
    rng = random.Random(f"{seed}:{i}")
    name, schema = cases[i % len(cases)]
    options: dict[str, Any] = {key: rng.choice(values) for key, values in OPTIONS.items()}
    try:
        grammar = compile_json_schema(schema, vocabulary, **options)
    except GrammarError as error:
        totals.refused[name] = f"{error.pointer}: {error.reason}"
        return
    try:
        text, taken = completion(grammar, rng)
        check(grammar, schema, options, text)
    except (Violation, GrammarError) as violation:
        text = violation.text if isinstance(violation, Violation) else b""
        totals.violations.append(f"{name}, seed {seed}, only {i}, {options}: {violation}: {text!r}")
        return
    except OutOfReach:
        totals.unjudged += 1
        return
    totals.completions += 1
    totals.tokens += taken
    totals.schemas.add(name)
    totals.lengths[len(text).bit_length()] += 1


def run(count: int, seed: int, vocabulary: Vocabulary, cases: list[tuple[str, str]]) -> Totals:
    """`count` completions over the schemas in an order of their own."""
    cases = random.Random(seed).sample(cases, len(cases))
    totals = Totals()
    for i in range(count):
        one(i, seed, vocabulary, cases, totals)
    return totals


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--sample", type=Path, default=SAMPLE)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("--only", type=int, help="this completion of the seed alone")
    parser.add_argument("--model", default="smollm2", help="whose vocabulary")
    args = parser.parse_args()
    if not args.sample.exists():
        parser.error(f"no sample at {args.sample}; name it with --sample")
    cases, vocabulary = load_schemas(args.sample), real_vocabulary(args.model)
    print(f"{len(cases)} schemas, {vocabulary.size} tokens, seed {args.seed}", flush=True)
    begin = time.perf_counter()
    if args.only is not None:
        totals = Totals()
        shuffled = random.Random(args.seed).sample(cases, len(cases))
        one(args.only, args.seed, vocabulary, shuffled, totals)
    else:
        totals = run(args.count, args.seed, vocabulary, cases)
    print(
        f"{totals.completions} valid completions of {len(totals.schemas)} schemas, "
        f"{totals.tokens} tokens, {time.perf_counter() - begin:.0f} s; bytes: "
        + ", ".join(f"<{2**bits}: {n}" for bits, n in sorted(totals.lengths.items()))
    )
    print(f"{totals.unjudged} with exponents beyond those of the judge")
    print(f"{len(totals.refused)} schemas refused")
    for name, reason in sorted(totals.refused.items()):
        print(f"  {name}: {reason}")
    print(f"{len(totals.violations)} violations")
    for violation in totals.violations:
        print(f"  {violation}")
    return bool(totals.violations)


if __name__ == "__main__":
    sys.exit(main())
