"""Random expressions over arguments and read values: a graph works out what Python does, or none
is made."""

from __future__ import annotations

import linecache
from itertools import count
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from recorder import Scripted

import sglite as sgl

_numbers = count()


def program_of(expression: str) -> sgl.Function:
    """A program that adds the text of an expression over `a`, `b` (texts), `n` and `r` (read)."""
    source = (
        "def program(s, a, b, n):\n"
        "    s += gen('r')\n"
        "    r = s['r']\n"
        f"    s += {expression}\n"
        f"    return [{expression}]\n"
    )
    name = f"<traced {next(_numbers)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    space: dict[str, Any] = {"gen": sgl.gen}
    exec(compile(source, name, "exec", dont_inherit=True), space)
    return sgl.function(space["program"])


_F_STRING = "f'<{p}{q!r:>5}>'"

texts = st.recursive(
    st.sampled_from(["a", "b", "r", "'x'", "''", "' y, '", "str(n)", "f'{n:3d}'"]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda p: f"({p[0]} + {p[1]})"),
        st.tuples(inner, inner).map(lambda p: f"(lambda p, q: {_F_STRING})({p[0]}, {p[1]})"),
        inner.map(lambda t: f"{t}.strip()"),
        inner.map(lambda t: f"{t}.upper()"),
        inner.map(lambda t: f"{t}[1:]"),
        inner.map(lambda t: f"{t}[-3:n]"),
        inner.map(lambda t: f"{t}.ljust(n)"),
        st.tuples(inner, inner).map(lambda p: f"{p[0]}.replace('x', {p[1]})"),
        st.tuples(inner, inner).map(lambda p: f"', '.join([{p[0]}, {p[1]}])"),
        inner.map(lambda t: f"{t}.split(',')[0]"),
        # What a graph cannot know, and must not guess.
        st.tuples(inner, inner).map(lambda p: f"({p[0]} or {p[1]})"),
        st.tuples(inner, inner).map(lambda p: f"({p[0]} if {p[1]} == a else 'z')"),
        inner.map(lambda t: f"({t} if len({t}) > 2 else 'z')"),
        inner.map(lambda t: f"(lambda v: 'p' if v is None else v)({t})"),
        inner.map(lambda t: f"('q' if {t}.startswith('x') else {t})"),
        inner.map(lambda t: f"''.join(c for c in {t} if c != 'x')"),
        inner.map(lambda t: f"'%s' % {t}"),
        inner.map(lambda t: f"'{{}}'.format({t})"),
        inner.map(lambda t: f"{{'x': 'y'}}.get({t}, 'w')"),
        inner.map(lambda t: f"('s' if isinstance({t}, str) else 't')"),
    ),
    max_leaves=6,
)


@settings(deadline=None, max_examples=400)
@given(texts, st.text("ax, \n'{", max_size=5), st.text("xb ", max_size=4), st.integers(0, 9))
def test_a_graph_does_what_python_does(expression: str, a: str, b: str, n: int) -> None:
    program = program_of(expression)
    with Scripted({"r": " x,r"}) as model:
        wanted = program.run(a, b, n, model=model)
        try:
            graph = program.compile()
        except sgl.GraphBreak:
            return
        for each in (graph, sgl.Graph.from_json(graph.to_json())):
            row = each.run(a, b, n, model=model)
            assert (row.text(), row.returned) == (wanted.text(), wanted.returned), expression
