"""Keywords that combine, negate and count, on random schemas, against the jsonschema package."""

from __future__ import annotations

import json
import math
import random
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from limits import examples
from logic_schemas import VALUES, is_reference, judge, leaves, schemas, whole
from mask_oracle import accepts, draw

from sglite.errors import GrammarError
from sglite.grammars import Vocabulary, compile_json_schema


def _depends_on_order(value: Any) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return (isinstance(value, dict) and len(value) > 1) or any(map(_depends_on_order, inner))


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise OverflowError(text)
    return number


@settings(max_examples=examples(120), deadline=None)
@given(drawn=schemas, x=schemas, y=leaves, declared=st.booleans(), seed=st.integers(0, 2**32))
def test_what_compiles_is_exact(
    vocab: Vocabulary, drawn: Any, x: Any, y: Any, declared: bool, seed: int
) -> None:
    assume(not is_reference(y))
    schema = whole(drawn, x, y)
    validator = judge(schema)
    valid = [v for v in VALUES if validator.is_valid(v)]
    try:
        if declared:
            grammar = compile_json_schema(schema, vocab)
        else:
            grammar = compile_json_schema(
                schema, vocab, property_order="any", whitespace="compact", spelling="any"
            )
    except GrammarError as error:
        reason = error.reason
    else:
        reason = ""
    if reason:
        assert not valid or "nothing can match" not in reason
        return
    for value in VALUES:
        text = json.dumps(value, separators=(", ", ": ") if declared else (",", ":"))
        if declared and (_depends_on_order(value) or "\\u" in text or "1.0" in text):
            continue  # written otherwise under these options
        assert accepts(grammar, text.encode()) == validator.is_valid(value), value
    rng = random.Random(seed)
    for _ in range(4):
        budget = grammar.matcher().tokens_to_finish() + rng.randrange(16)
        text = draw(grammar, rng, budget).decode()
        try:
            value = json.loads(text, parse_float=_finite)
        except OverflowError:  # an integer to us, and infinite to the oracle
            continue
        assert validator.is_valid(value), text
