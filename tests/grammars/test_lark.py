"""Grammars in Lark's format: what each construct means, what is refused, and where."""

from __future__ import annotations

import ast
import contextlib
import itertools
import random
import re
import time
from pathlib import Path

import pytest
from cfg_oracle import Rules, judge
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from limits import SLOWDOWN
from mask_oracle import accepts, draw

from sglite.errors import GrammarError
from sglite.grammars import Grammar, Vocabulary, compile_grammar

CALCULATOR = r"""
// The calculator of every tutorial.
?start: sum
?sum: product
    | sum "+" product   -> add
    | sum "-" product   -> sub
?product: atom
    | product "*" atom  -> mul
    | product "/" atom  -> div
?atom: NUMBER           -> number
     | "-" atom         -> neg
     | NAME             -> var
     | "(" sum ")"
%import common.CNAME -> NAME
%import common.NUMBER
%import common.WS_INLINE
%ignore WS_INLINE
"""


def lark(text: str, vocab: Vocabulary, start: str = "root") -> Grammar:
    return compile_grammar(text, vocab, start, format="lark")


def test_the_calculator(vocab: Vocabulary) -> None:
    grammar = lark(CALCULATOR, vocab)
    for text in ["1+2*3", " ( a_1 - 2.5e-3 )/-x ", "--1", "1\t"]:
        assert accepts(grammar, text.encode()), text
    for text in ["", "1+", "(1", "1 2", "a b", "+1", "1\n"]:
        assert not accepts(grammar, text.encode()), text


def test_random_calculations_are_python(vocab: Vocabulary) -> None:
    # Python has no 1.e5e or 007, and keywords are no names.
    plain = re.sub("%import common.(CNAME|NUMBER).*", "", CALCULATOR)
    grammar = lark(plain + "NAME: /[a-z]/\nNUMBER: /[1-9][0-9]{0,2}/", vocab)
    rng = random.Random()
    for _ in range(30):
        text = draw(grammar, rng, budget=20).decode()
        ast.parse(text.strip(" \t"), mode="eval")


@pytest.mark.parametrize(
    ("text", "yes", "no"),
    [
        ('start: "a" | "b" "c"', ["a", "bc"], ["b", "ac", ""]),
        ('start: "a"\n     | "b"\n\n     | "c"', ["a", "b", "c"], ["ab"]),
        ('start: ("a" | "b")* "c"+ "d"?', ["c", "abccd"], ["a", "dd"]),
        ('start: "a" ~ 2 "b" ~ 1..3', ["aab", "aabbb"], ["ab", "aa", "aabbbb"]),
        ('start: "a" ~ 0 "b" ~ 0..1', ["", "b"], ["a", "bb"]),
        ('start: ["a"] ["b" | "c"]', ["", "a", "ab", "c"], ["bc"]),
        ('start: "a"i "ß"i', ["aß", "Aẞ"], ["a"]),
        (r'start: "\"\\\n\x41\u00e9\U0001F600"', ['"\\\nAé😀'], []),
        ('start: "a".."c"+', ["abc", "c"], ["d", ""]),
        ("start: /[a-c]+/i /x.y/s", ["aBCx\ny"], ["x\ny"]),
        (r"start: /a\/b/ /x.y/", ["a/bxzy"], ["a\\/bxzy", "a/bx\ny"]),
        (r"start: /(?!if\b)[a-z]+/ /x{3,90}/", ["ixxx", "if" + "ax" * 2 + "xxx"], ["ifxx", "ixx"]),
        ("start: /(a|b\\101){80,}/i", ["A" * 80, "ba" * 40 + "A" * 40], ["a" * 79, "b" * 99]),
        ("start: /a b # comment\n [ #] \\# /x", ["ab #", "ab##"], ["a b", "ab"]),
        ("start: A\nA: B B | \"x\"\nB: /[0-9]/ \"-\"?", ["12", "1-2-", "x"], ["1", "1x"]),
        ("start: A+\nA.2: \"a\"\n_B: A", ["aa"], [""]),
        ('!start: _x\n?_x.3: "a" -> named', ["a"], [""]),
        ("start: | \"a\" |", ["", "a"], ["aa"]),
        ('start: "a" // comment\n# another\n', ["a"], []),
        ('start: "#" "//"', ["#//"], [""]),
        ('start: _sep{NUM, ","}\n_sep{x, y}: x (y x)*\nNUM: /[0-9]/', ["1", "1,2,3"], ["1,", ""]),
        ('start: t{"a", u{"b"}}\nt{x, y}: x y | x t{x, y} y\nu{z}: "<" z ">"',
         ["a<b>", "aa<b><b>"], ["aa<b>", "ab"]),
        ('start: "a" start "b" |', ["", "ab", "aabb"], ["aab", "ba"]),
        ('start: start start | "a" | b\nb: start "b"', ["a", "aba", "abbab"], ["b", ""]),
        ('start: "x" %json {"type": "integer", "maximum": 9, "minimum": 0} "y"',
         ["x5y"], ["x10y", "xy"]),
        ('root: "r"\nstart: "s"', ["r"], ["s"]),
    ],
)  # fmt: skip
def test_pieces(vocab: Vocabulary, text: str, yes: list[str], no: list[str]) -> None:
    grammar = lark(text, vocab)
    assert [t for t in yes if not accepts(grammar, t.encode())] == []
    assert [t for t in no if accepts(grammar, t.encode())] == []


def test_another_start(vocab: Vocabulary) -> None:
    text = 'start: "a"\nother: "b"'
    assert accepts(lark(text, vocab, "other"), b"b")
    assert accepts(lark(text, vocab, "start"), b"a")
    with pytest.raises(GrammarError, match="no rule 'third'"):
        lark(text, vocab, "third")


def test_what_is_ignored_stands_around_terminals_only(vocab: Vocabulary) -> None:
    grammar = lark(
        'start: WORD "=" /[0-9]+/\nWORD: "ab" "c"\n%ignore " "\n%ignore /#[a-z]*;/', vocab
    )
    for text in ["abc=12", " abc  =#x; 12 ", "#;#a;abc=1#;"]:
        assert accepts(grammar, text.encode()), text
    for text in ["ab c=1", "abc=1 2", "a#;bc=1", "abc=1#", "abc=1#;1", " "]:
        assert not accepts(grammar, text.encode()), text


def test_a_schema_is_followed_by_what_is_ignored(vocab: Vocabulary) -> None:
    grammar = lark('start: %json {"const": {"a": 1}} ";"\n%ignore " "', vocab)
    assert accepts(grammar, b' {"a": 1} ;')
    assert not accepts(grammar, b' { "a": 1} ;')


COMMON = {
    "INT": (r"[0-9]+", "0a"),
    "SIGNED_INT": (r"[+-]?[0-9]+", "+1"),
    "NUMBER": (r"[0-9]+([eE][+-]?[0-9]+)?|([0-9]+\.[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", "1.e+"),
    "SIGNED_NUMBER": (
        r"[+-]?([0-9]+([eE][+-]?[0-9]+)?|([0-9]+\.[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?)", "1.e-"),
    "ESCAPED_STRING": (r'"([^"\\\n]|\\.)*"', '"\\a\n'),
    "WORD": (r"[a-zA-Z]+", "aZ_"),
    "CNAME": (r"[a-zA-Z_][a-zA-Z_0-9]*", "a_1"),
    "WS": (r"[ \t\f\r\n]+", " \n\ta"),
    "WS_INLINE": (r"[ \t]+", " \n\t"),
    "NEWLINE": (r"(\r?\n)+", "\r\na"),
    "HEXDIGIT": (r"[0-9a-fA-F]", "0fg"),
    "SH_COMMENT": (r"#[^\n]*", "#a\n"),
    "CPP_COMMENT": (r"//[^\n]*", "/a\n"),
    "C_COMMENT": (r"/\*((?!\*/)(.|\n))*\*/", "/*a"),
}  # fmt: skip


@pytest.mark.parametrize("name", COMMON)
def test_common_terminals(vocab: Vocabulary, name: str) -> None:
    pattern, letters = COMMON[name]
    grammar = lark(f"start: {name}\n%import common.{name}", vocab)
    longest = 7 if len(letters) < 4 else 5
    for length in range(longest + 1):
        for word in map("".join, itertools.product(letters, repeat=length)):
            assert accepts(grammar, word.encode()) == bool(re.fullmatch(pattern, word)), word


NAMES = ["root", "p", "q"]
alternatives = st.lists(st.sampled_from([*NAMES, "a", "b", "a"]), max_size=3).map(tuple)
grammars = st.fixed_dictionaries(
    {name: st.lists(alternatives, min_size=1, max_size=3) for name in NAMES}
)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(rules=grammars, seed=st.integers(0, 2**32))
def test_random_grammars_with_blanks(vocab: Vocabulary, rules: Rules, seed: int) -> None:
    """A text with blanks in it is a match if it is one without them."""

    def side(alternative: tuple[str, ...]) -> str:
        return " ".join(s if s in rules else f'"{s}"' for s in alternative)

    text = "\n".join(f"{n}: {' | '.join(map(side, rules[n]))}" for n in rules)
    expected = judge(rules, "root", "ab", 4)
    if not expected[""][0]:
        with pytest.raises(GrammarError, match="nothing can match"):
            lark(text, vocab)
        return
    grammar = lark(text + '\n%ignore " "', vocab)
    rng = random.Random(seed)
    for word, (live, complete) in expected.items():
        spaced = "".join(" " * rng.randrange(3) + c for c in word) + " " * rng.randrange(2)
        matcher = grammar.matcher()
        assert matcher.accept_tokens(list(spaced.encode())) == live, (text, spaced)
        assert not live or matcher.is_complete == complete, (text, spaced)


@pytest.mark.parametrize(
    ("text", "place", "word"),
    [
        ('start: "a" missing', "1:12", "rule 'missing' is used"),
        ("start: A", "1:8", "terminal 'A' is used"),
        ('start: "a"\nstart: "b"', "2:1", "twice"),
        ('start: "a', "1:8", "string is not closed"),
        ("start: /a", "1:8", "pattern is not closed"),
        ('start: ("a"', "1:12", "expected ')'"),
        ('start: "a" )', "1:12", "expected the end"),
        ('start "a"', "1:7", "expected ':'"),
        ('start: "\\q"', "1:9", "escape"),
        ('start: "\\ud800"', "1:9", "escape"),
        ('start: "b".."a"', "1:8", "range"),
        ('start: "a"~3..2', "1:12", "maximum"),
        ('start: "a"~999999', "1:12", "count"),
        ("start: /a(?=b)/", "1:8", "its own text"),
        (r"start: /a\/(b)\1/", "1:15", "backreference"),
        ("start: /a[/x", "1:10", "brackets are not closed"),
        ("start: /^a/", "1:8", "anchor"),
        ("start: /a/l", "1:8", "flag 'l'"),
        ("start: A\nA: B\nB: A", "2:1", "terminal 'A' uses itself"),
        ('start: A\nA: b\nb: "x"', "2:4", "'b' is a rule"),
        ('start: A\nA: %json {"const": 1}', "2:4", "schema"),
        ('start: %json {"type": "nothing"}', "1:8", "at /type"),
        ("start: %json {", "1:15", "JSON"),
        ("%declare A\nstart: A", "1:1", "define the terminal"),
        ("%override a: b", "1:1", "%override is not supported"),
        ("%extend a: b", "1:1", "%extend is not supported"),
        ("%lark", "1:1", "unknown directive"),
        ("%import python.X\nstart: X", "1:9", "unknown grammar 'python'"),
        ("%import common.X\nstart: X", "1:9", "has no 'X'"),
        ("%import .other.X\nstart: X", "1:9", "read from a file"),
        ("%import common.WS -> ws\nstart: ws", "1:9", "both be rules or terminals"),
        ('start: t{"a"}\nt{x, y}: x y', "1:8", "2 arguments, not 1"),
        ("start: t\nt{x}: x", "1:8", "1 arguments, not 0"),
        ('start: t{"a"}\nt{x}: x | t{u{x}}\nu{x}: "(" x ")"', "2:1", "growing arguments"),
        ('start: t{"a"}\nt{x}: x{"b"}', "2:7", "takes no arguments"),
        ('T{x}: "a"\nstart: T', "1:1", "cannot be a template"),
        ('start: start "a"', "", "nothing can match"),
        ("", "1:1", "no rule 'start'"),
        ("start: *", "1:8", "expected a name"),
        ("start: $", "1:8", "unexpected '$'"),
    ],
)
def test_refusals(vocab: Vocabulary, text: str, place: str, word: str) -> None:
    with pytest.raises(GrammarError) as caught:
        lark(text, vocab)
    assert word in caught.value.reason
    assert caught.value.pointer == place


def test_imports_of_files(vocab: Vocabulary, tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "main.lark").write_text(
        "start: list{item} END\n%import .parts.lists (list, END)\n%import .item.value -> item\n"
    )
    (tmp_path / "parts" / "lists.lark").write_text(
        'list{x}: "[" x ("," x)* "]"\nEND: _DOT _DOT\n_DOT: "."\n%ignore " "\n%import .more.a\n'
    )
    (tmp_path / "parts" / "more.lark").write_text('a: "a" | b\nb: "b"')
    (tmp_path / "item.lark").write_text('value: "x" | "(" value ")" | _A\n_A: "a"')
    grammar = compile_grammar(tmp_path / "main.lark", vocab)
    assert accepts(grammar, b"[x,(a)]..")
    assert not accepts(grammar, b"[x, a]..")  # what imported files ignore stays there
    (tmp_path / "item.lark").write_text('value: "y"')
    assert accepts(compile_grammar(tmp_path / "main.lark", vocab), b"[y]..")
    (tmp_path / "item.lark").write_text("value: missing")
    with pytest.raises(GrammarError, match="'missing' is used") as caught:
        compile_grammar(tmp_path / "main.lark", vocab)
    assert caught.value.pointer == "item.lark:1:8"
    (tmp_path / "item.lark").unlink()
    with pytest.raises(GrammarError, match="cannot read"):
        compile_grammar(tmp_path / "main.lark", vocab)


def test_imports_in_circles(vocab: Vocabulary, tmp_path: Path) -> None:
    (tmp_path / "a.lark").write_text('start: b "a" | "x"\n%import .b.b')
    (tmp_path / "b.lark").write_text('b: start "b"\n%import .a.start')
    grammar = compile_grammar(tmp_path / "a.lark", vocab)
    assert accepts(grammar, b"xba")
    assert not accepts(grammar, b"xb")
    (tmp_path / "b.lark").write_text("%import .a.b")
    with pytest.raises(GrammarError, match="leads back to itself"):
        compile_grammar(tmp_path / "a.lark", vocab)


def test_formats_of_files(vocab: Vocabulary, tmp_path: Path) -> None:
    (tmp_path / "x.gbnf").write_text('root ::= "a"')
    (tmp_path / "x.txt").write_text('start: "b"')
    assert accepts(compile_grammar(tmp_path / "x.gbnf", vocab), b"a")
    assert accepts(compile_grammar(tmp_path / "x.txt", vocab, format="lark"), b"b")
    with pytest.raises(GrammarError, match=r"name it \.gbnf or \.lark"):
        compile_grammar(tmp_path / "x.txt", vocab)
    with pytest.raises(GrammarError, match="cannot read"):
        compile_grammar(tmp_path / "none.lark", vocab)


HOSTILE = {
    "rules": "start: r0\n" + "".join(f'r{i}: "a" r{i + 1}\n' for i in range(1_000_000)),
    "names": "start: " + "a " * 150_000,
    "groups": "start: " + "(" * 100_000 + '"a"' + ")" * 100_000,
    "repeats": 'start: ((("a"~1000)~1000)~1000)~1000',
    "templates": 'start: t{"a"}\nt{x}: t{t{x}} | x',
    "doubling": "\n".join(f"T{i}: T{i + 1} T{i + 1}" for i in range(60)) + '\nT60: "a"\nstart: T0',
    "json": "start: %json " + "[" * 100_000,
    "marks": "start: " + "?" * 390_000,
    "circle": "start: r0\n" + "\n".join(f'r{i}: r{(i + 1) % 5000} "a" | "b"' for i in range(5000)),
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_grammars_end_soon(vocab: Vocabulary, text: str) -> None:
    began = time.process_time()
    with contextlib.suppress(GrammarError):
        lark(text, vocab)
    assert time.process_time() - began < 2 * SLOWDOWN
