"""Languages against Python's `re` and a walk over all short texts of a small alphabet."""

import itertools
import re
import time
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from limits import SLOWDOWN

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
    lambda inner: (
        st.tuples(inner.map("(?:{})".format), inner.map("(?:{})".format)).map("".join)
        | st.tuples(inner, inner).map("(?:{0[0]}|{0[1]})".format)
        | st.tuples(inner, st.sampled_from("*?+")).map("(?:{0[0]}){0[1]}".format)
    ),
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
        lambda inner: (
            st.builds(both, st.lists(inner, min_size=2, max_size=3))
            | st.builds(either, st.lists(inner, min_size=2, max_size=3))
            | st.builds(complement, inner)
        ),
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
    """What is said of a language is right, or it is too much work to say it."""
    try:
        check_all(expression)
    except _native.Refused as refused:
        assume("too long" not in str(refused))
        raise


def check_all(expression: Expression) -> None:
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


@pytest.mark.parametrize(
    "source",
    [
        r".{3,70}",
        r"(?:a|b){50,60}-",
        r"(?:ab?){20,40}",
        r"a.{49,55}b",
        r"(?:[ab]{1,3}-){10,60}a?",
        r"b*a{51}b*",
        r"[ab]{0,50}(?:-a){0,30}",
    ],
)
@pytest.mark.parametrize("search", [False, True])
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_long_counts(source: str, search: bool, data: st.DataObject) -> None:
    expression = pattern(source, search)
    pool = _native.Languages(BARRED)
    start = pool.start(expression.build(pool))
    step = st.sampled_from(["a", "b", "-", "ab", "a-", "ab-", "é", "aaaaaaaa", "babababa"])
    text = "".join(data.draw(st.lists(step, max_size=60)))
    state, encoded = start, text.encode()
    for i in range(len(encoded) + 1):
        try:
            begun = encoded[:i].decode()
        except UnicodeDecodeError:
            pass
        else:
            assert (state >= 0 and pool.accepts(state)) == expression.holds(begun), begun
        if state < 0:
            break
        rest = finish(pool, state)
        assert expression.holds((encoded[:i] + rest).decode())
        if i < len(encoded):
            state = pool.next(state, encoded[i])


@pytest.mark.parametrize("longest", [1, 4, 9])
@given(data=st.data())
@settings(max_examples=20, deadline=None)
def test_clipped_counts(longest: int, data: st.DataObject) -> None:
    parts = [
        "(?:ab?){2,60}-",
        "[ab]{0,80}",
        "(?:ab)*",
        "(?:aba)*b",
        "a+(?:-a+)*",
        ".*",
        "-|[ab]{30}",
    ]
    low, more = data.draw(st.tuples(st.integers(0, 20), st.integers(0, 40)))
    expression = both([pattern(data.draw(st.sampled_from(parts)), False), length(low, low + more)])
    pool = _native.Languages(BARRED, longest_token=longest)
    state = pool.start(expression.build(pool))
    for _ in range(data.draw(st.integers(0, 20))):
        onward = [to for b in b"ab-" if (to := pool.next(state, b)) >= 0]
        if state < 0 or not onward:
            break
        state = data.draw(st.sampled_from(onward))
    if state < 0:
        return
    level = {(state, pool.clipped(state))}
    for _ in range(longest):
        after = set()
        for one, other in level:
            assert pool.accepts(one) == pool.accepts(other), expression.name
            for byte in range(256):
                a, b = pool.next(one, byte), pool.next(other, byte)
                assert (a >= 0) == (b >= 0), expression.name
                if a >= 0:
                    after.add((a, b))
        level = after
    assert all(pool.accepts(a) == pool.accepts(b) for a, b in level)


@given(st.lists(st.characters(codec="utf-8"), max_size=30))
@settings(max_examples=150, deadline=None)
def test_all_characters(characters: list[str]) -> None:
    pool = _native.Languages()
    borders = "\x00\x7f\x80\u07ff\u0800\u2027\u2028\ud7ff\ue000\uffff\U00010000\U0010ffff"
    for source in ["[^a]", r"\w", ".", "[é-\u2028]", "[^\u07ff-\U00010000]", "[\ue000-\uffff]"]:
        language = pool.pattern(source, True, False)
        compiled = re.compile(source)
        for c in [*characters, *borders]:
            if "\ud800" <= c <= "\udfff":
                continue
            assert pool.contains(language, c.encode()) == bool(compiled.fullmatch(c)), (source, c)


def test_only_utf8() -> None:
    pool = _native.Languages()
    for language in [1, pool.complement(pool.words([b"x"])), pool.pattern("[^a]*", True, False)]:
        for bad in [b"\xed\xa0\x80", b"\xc0\x80", b"\xe0\x80\x80", b"\xf4\x90\x80\x80", b"\x80"]:
            assert not pool.contains(language, bad)
        assert not pool.contains(language, b"\xe2\x82")
        assert pool.contains(language, "€".encode())
    assert pool.start(pool.words([b"\xed\xa0\x80"])) < 0


def test_equal_parts_are_one_language() -> None:
    pool = _native.Languages()
    ab = pool.words([b"b", b"a", b"b"])
    assert ab == pool.words([b"a", b"b"]) == pool.pattern("^(?:a|b)$", False, True)
    assert pool.both([]) == 1
    assert pool.either([]) == 0
    assert pool.complement(pool.complement(ab)) == ab
    p = pool.pattern("x+y", True, True)
    assert pool.both([p, 1]) == p == pool.either([p, 0])
    assert pool.both([p, ab]) == 0
    assert pool.either([p, pool.complement(p)]) == 1
    assert pool.length(0, -1) == pool.complement(0) == pool.pattern("", True, True) == 1
    assert pool.either([pool.length(0, 4), pool.length(5, -1)]) == 1
    assert pool.pattern("^.*$", False, True) == pool.pattern("^.{0,}$", False, True)


def test_reach_of_common_languages() -> None:
    pool = _native.Languages()
    name = pool.pattern("abc", False, True)
    cases = [
        (1, (ENDLESS, False)),
        (pool.length(3, -1), (ENDLESS, False)),
        (pool.length(2, 9), (9, True)),
        (pool.complement(pool.words([b"id", b"name"])), (ENDLESS, False)),
        (name, (ENDLESS, False)),
        (pool.pattern("abc$", False, True), (ENDLESS, False)),
        (pool.both([name, pool.pattern("x$", False, True)]), (ENDLESS, False)),
        (pool.both([name, pool.length(5, 20)]), (17, False)),
        (pool.both([name, pool.complement(pool.words([b"xabc"]))]), (ENDLESS, False)),
        (pool.pattern("^a", False, True), (0, False)),
    ]
    for language, reach in cases:
        assert pool.reach(pool.start(language)) == reach
    matched = walk(pool, pool.start(name), b"--abc")
    assert matched == pool.start(1)


def test_far_counts_share_a_clipped_state() -> None:
    pool = _native.Languages()
    slug = pool.pattern("^[a-z]+(-[a-z]+)*$", False, True)
    makers: list[Callable[[int], int]] = [
        lambda n: pool.length(1, n),
        lambda n: pool.pattern(f"^.{{0,{n}}}$", False, True),
        lambda n: pool.both([slug, pool.length(1, n)]),
    ]
    for make in makers:
        starts = [pool.start(make(n)) for n in (900, 1000, 2083)]
        assert len(set(starts)) == 3
        assert len({pool.clipped(state) for state in starts}) == 1
    state = pool.start(pool.pattern("^a(bc|d){2,900}e$", False, True))
    later = [walk(pool, state, b"a" + b"bcd" * n) for n in (2, 3, 200)]
    assert len(set(later)) == 3
    assert len({pool.clipped(one) for one in later}) == 1


def test_weights_steer_distances() -> None:
    pool = _native.Languages(heavy=ord('"'), weight=2)
    language = pool.pattern('"""|aaaa', True, False)
    assert pool.distance(pool.start(language)) == 4
    assert pool.distance(walk(pool, pool.start(language), b'"')) == 4
    assert pool.distance(pool.start(pool.pattern('"+', True, False))) == 2
    both = pool.both([pool.pattern("(?:a|b)*", True, False), pool.pattern("a*b", True, True)])
    assert pool.distance(pool.start(both)) == 1


def test_exact_lengths() -> None:
    pool = _native.Languages()
    pairs = pool.pattern("^(?:ab)*$", False, True)
    assert pool.start(pool.both([pairs, pool.length(101, 101)])) < 0
    even = pool.start(pool.both([pairs, pool.length(100, 101)]))
    assert pool.distance(even) == 100
    assert pool.count(pool.both([pairs, pool.length(3, 9)]), 100) == 3
    three_or_five = pool.pattern("^(?:aaa|bbbbb)*$", False, True)
    lengths = [
        n for n in range(20) if pool.start(pool.both([three_or_five, pool.length(n, n)])) >= 0
    ]
    assert lengths == [n for n in range(20) if n not in (1, 2, 4, 7)]


def test_counts_of_texts() -> None:
    pool = _native.Languages()
    for source, count in [("a{0,999}", 1000), ("[ab]{3}", 8), ("(?:a{70})*", 5000), ("é|b", 2)]:
        assert pool.count(pool.pattern(source, True, False), 5000) == count
    assert pool.count(0, 5) == 0
    assert pool.count(1, 5) == 5


def test_limits_refuse() -> None:
    pool = _native.Languages(most_states=500)
    far = "(?:a|b)*a(?:a|b){9}"
    inside = [pool.pattern(far, True, False), pool.pattern(f"{far}|c", True, False)]
    with pytest.raises(_native.Refused, match="too long"):
        pool.start(pool.both([inside[0], pool.complement(inside[1])]))
    generous = _native.Languages()
    inside = [generous.pattern(far, True, False), generous.pattern(f"{far}|c", True, False)]
    assert generous.start(generous.both([inside[0], generous.complement(inside[1])])) < 0
    with pytest.raises(_native.Refused, match="too large"):
        pool.pattern("(?:(?:(?:a{9}b){99}c){99}d){99}", True, False)


def test_long_repetitions_are_cheap() -> None:
    started = time.perf_counter()
    for _ in range(20):
        pool = _native.Languages()
        for source in ["^.{0,2000}$", "^.{0,2083}$", "^a.{5,100000}b$", "^(?:[a-z]+ ){0,5000}x$"]:
            state = pool.start(pool.pattern(source, False, True))
            assert pool.next(state, ord("a")) >= 0
        assert pool.memory() < 200_000
    assert time.perf_counter() - started < SLOWDOWN
