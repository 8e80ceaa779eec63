"""Masks of grammars, with and without budgets, against matchers that try every token.

The grammars hold what masks take short cuts for: letters that lead nowhere else, long repetitions
that are counted, frames that share what they say by themselves.
"""

from __future__ import annotations

import random
import string

import pytest
from mask_oracle import allowed

from sglite.grammars import Vocabulary, compile_grammar

GRAMMARS = {
    "names that keywords end": """
        root ::= name (" " name | "as" name | "(" root ")")*
        name ::= [a-z_] [a-z_0-9]*
    """,
    "counted inside of a frame": """
        root ::= item ("," item)*
        item ::= "'" [a-z ]{3,90} "'" | "<" [a-z]{70} ">" | "[" ([a-c]{2} | "x"){0,99} "]"
    """,
    "counted at the top": "root ::= [a-z]{66,99} [0-9]{0,70}",
    "two counts at once": 'root ::= ([a-z]{2,80} ";" | [a-m]{1,70} "!")+',
}


@pytest.mark.parametrize("name", GRAMMARS)
def test_masks_are_what_every_single_token_says(name: str) -> None:
    rng = random.Random()
    letters = string.ascii_lowercase + " ',;!<>()[]_0"
    words = {"".join(rng.choices(letters[:28], k=rng.randint(2, 8))) for _ in range(300)}
    words |= {"".join(rng.choices("asx,'; ", k=rng.randint(2, 4))) for _ in range(100)}
    tokens = [bytes([b]) for b in range(128)] + [w.encode() for w in sorted(words)] + [b""]
    vocabulary = Vocabulary.from_tokens(tokens, eos_ids=[len(tokens) - 1])
    grammar = compile_grammar(GRAMMARS[name], vocabulary)
    for _ in range(3):
        matcher = grammar.matcher()
        for _ in range(60):
            ids = allowed(matcher) - {len(tokens) - 1}
            after: dict[int, int] = {}
            for token in range(len(tokens) - 1):
                fork = matcher.fork()
                if fork.accept(token):
                    after[token] = fork.tokens_to_finish()
            assert ids == after.keys()
            budget = matcher.tokens_to_finish() + rng.randrange(3)
            within = {token for token, left in after.items() if left < budget}
            assert allowed(matcher, budget) - {len(tokens) - 1} == within
            if not ids:
                break
            assert matcher.accept(rng.choice(sorted(ids)))
