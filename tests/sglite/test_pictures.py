"""Graphs and rows as pictures and HTML: whole, escaped, without scripts."""

from __future__ import annotations

from html.parser import HTMLParser
from xml.etree import ElementTree

from hypothesis import given, settings
from hypothesis import strategies as st
from recorder import MakeScripted, Scripted

import sglite as sgl


@sgl.function
def program(s: sgl.State, doc: str) -> None:
    s += doc + sgl.gen("n", int) + sgl.user("<script>alert(1)</script>\x00&\x07")
    branches = s.fork(["a", "b"])
    for branch in branches.values():
        branch += "<b>" + sgl.gen("<i>") + f"{doc}]]>"
    s.join(branches)


def boxes(picture: str) -> list[str]:
    root = ElementTree.fromstring(picture)
    tags = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert tags <= {"svg", "g", "title", "rect", "path", "text"}
    names = {name for element in root.iter() for name in element.attrib}
    assert not any(name.startswith("on") or "href" in name for name in names)
    return [e.text or "" for e in root.iter() if e.tag.endswith("}text")]


def test_a_box_for_each_node(scripted: MakeScripted) -> None:
    scripted()
    for graph in (program.compile(), program.run("doc").graph):
        texts = boxes(graph.svg())
        assert len(texts) == len(graph.steps)
        assert sum(text.startswith("gen('<i>')") for text in texts) == 2
        assert graph._repr_html_() == graph.svg()


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.open.append(tag)
        assert all(name in ("style", "title") for name, _ in attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@settings(deadline=None)
@given(st.text(alphabet="<>&\"'/ab\x00é", max_size=30))
def test_html_has_only_our_tags(text: str) -> None:
    with Scripted({"<i>": text}) as model:
        good = program.run(text, model=model)
        bad = sgl.function(lambda s: 1 / 0).run_batch([{}], errors="return", model=model)[0]
        wrong = program.run_batch([{"doc": 3}], errors="return", model=model)[0]
    for row in (good, bad, wrong):
        parser = Tags()
        parser.feed(row._repr_html_())
        assert parser.open == []
        assert parser.tags <= {"div", "table", "tr", "th", "td", "details", "summary", "span", "p"}
    boxes(good.graph.svg())
