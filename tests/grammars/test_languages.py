"""Languages against Python's `re` and a walk over all short texts of a small alphabet."""

import itertools
import re
import time
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sglite.grammars import _native

ENDLESS = 2**31 - 1
ALPHABET = "ab-é"
TEXTS = ["".join(t) for n in range(6) for t in itertools.product(ALPHABET, repeat=n)]
BARRED = bytes(b for b in range(256) if b not in "".join(ALPHABET).encode())


@dataclass(frozen=True)
class Expression:
    """A language, how to build it, and what tells whether a text is in it."""

    name: str
    build: Callable[[_native.Languages], int]
    holds: Callable[[str], bool]


def pattern(source: str, search: bool) -> Expression:
    # In an empty text, \B matches by ECMA-262 and from Python 3.14 on.
    compiled = re.compile(source.replace(r"\B", r"(?!\b)"))
    test = compiled.search if search else compiled.fullmatch
    return Expression(
        f"{'search' if search else 'match'}({source})",
        lambda pool: pool.pattern(source, True, search),
        lambda text: test(text) is not None,
    )


def words(texts: list[str]) -> Expression:
    return Expression(
        f"words({texts})",
        lambda pool: pool.words([text.encode() for text in texts]),
        lambda text: text in texts,
    )


def length(low: int, high: int) -> Expression:
    return Expression(
        f"length({low}, {high})",
        lambda pool: pool.length(low, high),
        lambda text: len(text) >= low and (high < 0 or len(text) <= high),
    )


def even() -> Expression:
    """An automaton given as a whole: an even number of `a`, and nothing but `a` and `b`."""
    edges = [[(97, 97, 1), (98, 98, 0)], [(97, 97, 0), (98, 98, 1), (45, 45, 2)], []]
    return Expression(
        "even",
        lambda pool: pool.automaton(edges, [True, False, False]),
        lambda text: set(text) <= {"a", "b"} and text.count("a") % 2 == 0,
    )


def both(parts: list[Expression]) -> Expression:
    return Expression(
        f"both({', '.join(p.name for p in parts)})",
        lambda pool: pool.both([p.build(pool) for p in parts]),
        lambda text: all(p.holds(text) for p in parts),
    )


def either(parts: list[Expression]) -> Expression:
    return Expression(
        f"either({', '.join(p.name for p in parts)})",
        lambda pool: pool.either([p.build(pool) for p in parts]),
        lambda text: any(p.holds(text) for p in parts),
    )


def complement(part: Expression) -> Expression:
    return Expression(
        f"not({part.name})",
        lambda pool: pool.complement(part.build(pool)),
        lambda text: not part.holds(text),
    )


def sources(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    counts = st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{2,}", "{0,60}", "{2,60}", "{1,3}"])
    grouped = inner.map(lambda s: f"(?:{s})")
    return (
        st.tuples(grouped, grouped).map("".join)
        | st.tuples(grouped, grouped).map("|".join)
        | st.tuples(grouped, counts).map("".join)
    )


CHARACTERS = st.sampled_from(["a", "b", "-", "é", ".", "[ab]", "[^a]", r"\w", r"[\s\S]", "[aé]"])
PLAIN = st.recursive(CHARACTERS, sources, max_leaves=5)
CONDITIONS = st.sampled_from(["^", "$", r"\b", r"\B"]) | st.tuples(
    st.sampled_from(["(?={})", "(?!{})"]), PLAIN
).map(lambda t: t[0].format(t[1]))
CONDITIONAL = st.recursive(
    CHARACTERS | CONDITIONS,
    lambda inner: st.tuples(inner.map("(?:{})".format), inner.map("(?:{})".format)).map("".join)
    | st.tuples(inner, inner).map("(?:{0[0]}|{0[1]})".format)
    | st.tuples(inner, st.sampled_from("*?+")).map("(?:{0[0]}){0[1]}".format),
    max_leaves=6,
)
SHORT = st.text(ALPHABET, max_size=3)
SIMPLE = (
    st.builds(pattern, PLAIN, st.booleans())
    | st.builds(words, st.lists(SHORT, max_size=4))
    | st.builds(lambda low, more: length(low, low + more), st.integers(0, 3), st.integers(-2, 4))
    | st.builds(length, st.integers(0, 3), st.just(-1))
    | st.builds(even)
)


def combined(simple: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    return st.recursive(
        simple,
        lambda inner: st.builds(both, st.lists(inner, min_size=2, max_size=3))
        | st.builds(either, st.lists(inner, min_size=2, max_size=3))
        | st.builds(complement, inner),
        max_leaves=4,
    )


def walk(pool: _native.Languages, state: int, text: bytes) -> int:
    for byte in text:
        state = pool.next(state, byte)
    return state


def finish(pool: _native.Languages, state: int) -> bytes:
    """The rest that the distances lead along, one byte nearer to the end each."""
    rest = b""
    while (left := pool.distance(state)) > 0:
        for byte in set("".join(ALPHABET).encode()):
            to = pool.next(state, byte)
            if to >= 0 and pool.distance(to) == left - 1:
                rest, state = rest + bytes([byte]), to
                break
        else:
            raise AssertionError("no byte leads nearer to the end")
    assert pool.accepts(state)
    return rest


def check(expression: Expression) -> None:
    pool = _native.Languages(BARRED, longest_token=2)
    language = expression.build(pool)
    start = pool.start(language)
    members = [text for text in TEXTS if expression.holds(text)]
    shortest: dict[bytes, int] = {}
    for text in members:
        encoded = text.encode()
        for i in range(len(encoded) + 1):
            left = len(encoded) - i
            shortest[encoded[:i]] = min(left, shortest.get(encoded[:i], left))
    held = set(members)
    for text in TEXTS:
        encoded = text.encode()
        assert pool.contains(language, encoded) == (text in held), (expression.name, text)
        for cut in {len(encoded), max(len(encoded) - 1, 0)}:
            begun = encoded[:cut]
            state = walk(pool, start, begun)
            assert state >= 0 or begun not in shortest, (expression.name, begun)
            if state < 0:
                continue
            distance = pool.distance(state)
            assert distance <= shortest.get(begun, distance), (expression.name, begun)
            rest = finish(pool, state)
            assert len(rest) == distance
            assert expression.holds((begun + rest).decode()), (expression.name, begun, rest)
    check_bounds(pool, expression, start)
    check_survey(pool, expression, language, members)


def check_bounds(pool: _native.Languages, expression: Expression, start: int) -> None:
    for text in TEXTS[:85]:  # up to three characters
        state = walk(pool, start, text.encode())
        if state < 0:
            continue
        free, hard = pool.reach(state)
        alike = pool.clipped(state)
        assert pool.can_go_on(state) == any(pool.next(state, b) >= 0 for b in range(256))
        for more in TEXTS[:21] + (TEXTS if text == "" else []):
            then = walk(pool, state, more.encode())
            if len(more) <= free:
                assert then >= 0, (expression.name, text, more, free)
            elif hard:
                assert then < 0, (expression.name, text, more, free)
            if len(more.encode()) <= 2:
                other = walk(pool, alike, more.encode())
                assert (other >= 0) == (then >= 0), (expression.name, text, more)
                if then >= 0:
                    assert pool.accepts(other) == pool.accepts(then), (expression.name, text, more)
        for character in ALPHABET:
            can = walk(pool, state, character.encode()) >= 0
            assert pool.allows(state, ord(character), ord(character)) == can
        can = any(walk(pool, state, c.encode()) >= 0 for c in "bé")
        assert pool.allows(state, ord("b"), ord("ÿ")) == can


def check_survey(
    pool: _native.Languages, expression: Expression, language: int, members: list[str]
) -> None:
    count = pool.count(language, 500)
    assert count == 500 or count >= len(members), expression.name
    examples = pool.examples(language, 20)
    assert len(examples) == min(count, 20), expression.name
    assert len(set(examples)) == len(examples)
    assert [len(e) for e in examples] == sorted(len(e) for e in examples)
    assert all(expression.holds(e.decode()) for e in examples), expression.name
    if count < 20:
        assert {e.decode() for e in examples if len(e.decode()) <= 5} == set(members)
    used = set(pool.bytes(language))
    assert used >= {byte for text in members for byte in text.encode()}, expression.name
    for byte in used:
        # Some text holds the byte: the language is not within those without it.
        other = [(b, b, 0) for b in range(256) if b != byte]
        without = pool.automaton([other], [True])
        assert pool.start(pool.both([language, pool.complement(without)])) >= 0, expression.name


@settings(max_examples=60, deadline=None)
@given(SIMPLE)
def test_simple(expression: Expression) -> None:
    check(expression)


@settings(max_examples=90, deadline=None)
@given(combined(SIMPLE))
def test_combinations(expression: Expression) -> None:
    check(expression)


@settings(max_examples=90, deadline=None)
@given(st.builds(pattern, CONDITIONAL, st.booleans()))
def test_conditions(expression: Expression) -> None:
    check(expression)


@settings(max_examples=40, deadline=None)
@given(combined(SIMPLE | st.builds(pattern, CONDITIONAL, st.booleans())))
def test_combined_conditions(expression: Expression) -> None:
    check(expression)
