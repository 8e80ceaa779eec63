"""Schemas and patterns of the kinds that need searches, and texts drawn under them.

What compiles never fails later: every refusal comes before the first token, soon and with its
reason. By hand, with more examples: python tests/grammars/hostile.py [TRIALS] [SEED].
"""

from __future__ import annotations

import os
import random
import resource
import sys
import time
from typing import Any

from trials import choose, mask_ids, small_vocabulary

from sglite.errors import GrammarError
from sglite.grammars import Grammar, Vocabulary, compile_json_schema, compile_regex

SECONDS = 1.5 * float(os.environ.get("SGLITE_SLOWDOWN", "1"))
"""To compile, on a busy core."""


def pattern(rng: random.Random, depth: int = 3) -> str:
    """Nested counts, lookaheads, word boundaries."""
    kind = rng.random()
    if depth == 0 or kind < 0.25:
        return rng.choice(["a", "b", "[ab]", ".", "[^a]", r"\w", "z1", r"\d", "é"])
    inner = pattern(rng, depth - 1)
    if kind < 0.5:
        return inner + pattern(rng, depth - 1)
    if kind < 0.6:
        return f"(?:{inner}|{pattern(rng, depth - 1)})"
    if kind < 0.8:
        low = rng.choice([0, 0, 1, 2, 17, 60, 300, 5000])
        high = rng.choice(["", low, low + 1, low + 40, low + 1000])
        return f"(?:{inner}){{{low},{high}}}"
    if kind < 0.87:
        return f"(?:{inner})*"
    if kind < 0.94:
        return rng.choice(["(?=", "(?!"]) + inner + ")" + pattern(rng, depth - 1)
    return rng.choice([r"\b", r"\B"]) + inner


def anchored(rng: random.Random) -> str:
    return rng.choice(["", "^"]) + pattern(rng) + rng.choice(["", "$"])


def string(rng: random.Random) -> dict[str, Any]:
    """Products of patterns, formats, lengths and their negations."""
    parts: list[dict[str, Any]] = []
    for _ in range(rng.randint(1, 4)):
        kind = rng.random()
        if kind < 0.6:
            part: dict[str, Any] = {"pattern": anchored(rng)}
        elif kind < 0.75:
            low = rng.choice([0, 1, 5, 100])
            part = {"minLength": low, "maxLength": low + rng.choice([0, 3, 50, 5000])}
        else:
            part = {"format": rng.choice(["date-time", "hostname", "idn-hostname", "email", "uri"])}
        parts.append({"not": part} if rng.random() < 0.25 else part)
    return {"type": "string", "allOf": parts}


def value(rng: random.Random, depth: int) -> dict[str, Any]:
    """Any schema whose liveness takes thought."""
    kind = rng.random()
    if depth == 0 or kind < 0.25:
        few = ["a", "b", "ab", 1, 2, None, True, [1], {"a": 1}]
        leaves: list[dict[str, Any]] = [
            {"enum": rng.sample(few, 3)},
            {"type": "integer", "minimum": 0, "maximum": rng.choice([1, 3, 100])},
            {"type": "number", "multipleOf": rng.choice([1, 0.5, 7, 1234])},
            string(rng),
            {},
        ]
        return rng.choice(leaves)
    if kind < 0.6:
        schema: dict[str, Any] = {"type": "array", "items": value(rng, depth - 1)}
        schema["uniqueItems"] = rng.random() < 0.8
        if rng.random() < 0.5:
            schema["minItems"] = rng.choice([1, 2, 3, 40])
        if rng.random() < 0.3:
            schema["maxItems"] = schema.get("minItems", 0) + rng.randint(0, 3)
        if rng.random() < 0.2:
            schema["prefixItems"] = [value(rng, depth - 1) for _ in range(2)]
        if rng.random() < 0.3:
            schema |= {"contains": value(rng, depth - 1), "minContains": rng.randint(0, 3)}
        return schema
    if kind < 0.9:
        names = rng.sample(["a", "b", "ab", "z1"], rng.randint(0, 3))
        schema = {"type": "object", "properties": {n: value(rng, depth - 1) for n in names}}
        schema["required"] = [n for n in names if rng.random() < 0.5]
        if rng.random() < 0.5:
            schema["patternProperties"] = {
                anchored(rng): value(rng, depth - 1) for _ in range(rng.randint(1, 4))
            }
        if rng.random() < 0.5:
            schema["additionalProperties"] = rng.choice([False, {"type": "null"}])
        if rng.random() < 0.4:
            schema["minProperties"] = rng.randint(1, 4)
        if rng.random() < 0.2:
            schema["not"] = {"patternProperties": {anchored(rng): {"type": "null"}}}
        return schema
    several = [value(rng, depth - 1) for _ in range(2)]
    return {rng.choice(["anyOf", "oneOf", "allOf"]): several}


def draw(grammar: Grammar, vocabulary: Vocabulary, rng: random.Random, longest: int) -> None:
    """One text out of the masks, as far as `longest` tokens. Whatever is raised is a fault."""
    matcher = grammar.matcher()
    for _ in range(longest):
        if matcher.is_finished:
            return
        ids = mask_ids(matcher)
        assert ids, "a dead end"
        matcher.tokens_to_finish()
        assert matcher.accept(choose(ids, vocabulary, rng))


def trial(seed: int, vocabulary: Vocabulary, texts: int = 2, longest: int = 60) -> str:
    """What became of one schema or pattern: "refused", or "compiled" and never refused later."""
    rng = random.Random(seed)
    schema = pattern(rng, 4) if rng.random() < 0.3 else value(rng, 2)
    began = time.process_time()
    try:
        if isinstance(schema, str):
            grammar = compile_regex(schema, vocabulary)
        else:
            order: Any = rng.choice(["declared", "any"])
            spelling: Any = rng.choice(["canonical", "any"])
            grammar = compile_json_schema(schema, vocabulary, order, "single", spelling)
    except GrammarError:
        grammar = None
    took = time.process_time() - began
    try:
        assert took < SECONDS, f"{took:.1f} s to compile"
        if grammar is None:
            return "refused"
        for _ in range(texts):
            draw(grammar, vocabulary, rng, longest)
    except Exception as error:
        error.add_note(f"seed {seed}: {schema!r}")
        raise
    return "compiled"


def main() -> None:
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    first = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(10**9)
    vocabulary = small_vocabulary()
    counts = {"refused": 0, "compiled": 0}
    faults = 0
    for seed in range(first, first + trials):
        began = time.process_time()
        try:
            counts[trial(seed, vocabulary)] += 1
        except Exception as error:
            faults += 1
            print(f"{type(error).__name__}: {str(error)[:150]}", *error.__notes__, sep="\n  ")
        if (took := time.process_time() - began) > 3:
            print(f"seed {seed} took {took:.1f} s")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{counts}, {faults} faults from seed {first} on, {peak} MB at most")


if __name__ == "__main__":
    main()
