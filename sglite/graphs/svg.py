"""A graph as a picture: a column for each branch, time from top to bottom."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from sglite.language import ir

if TYPE_CHECKING:
    from sglite.graphs.graph import Graph

_WIDE, _HIGH = 260, 26
_GAP_X, _GAP_Y = 24, 14
_CHARACTERS = 38

_COLOURS = {
    "hole": ("#e3f4e1", "#3a7d34"),
    "text": ("#f6f6f2", "#8a8a80"),
    "turn": ("#e6eefb", "#4668a8"),
    "fork": ("#fbeedd", "#b0762a"),
    "call": ("#f2e8f8", "#84519c"),
}
_KINDS: tuple[tuple[type[ir.Node] | tuple[type[ir.Node], ...], str], ...] = (
    ((ir.Gen, ir.Select, ir.Late), "hole"),
    ((ir.RoleOpen, ir.RoleClose), "turn"),
    ((ir.Fork, ir.Join), "fork"),
    ((ir.CallOpen, ir.CallClose), "call"),
)


def svg(graph: Graph) -> str:
    """`Graph.svg`."""
    boxes: list[str] = []
    lines: list[str] = []
    last: dict[int, float] = {}  # the lower end of the last box of each branch
    came: dict[int, tuple[int, float]] = {}  # where a branch left its parent
    y = float(_GAP_Y)
    columns = 1
    for branch, node in graph.steps:
        columns = max(columns, branch + 1)
        if branch in last:
            lines.append(_line(_middle(branch), last[branch], _middle(branch), y))
        elif branch in came:
            parent, below = came[branch]
            lines.append(_line(_middle(parent), below, _middle(branch), y))
        if isinstance(node, ir.Join):
            for number in node.branches:
                if number in last:
                    lines.append(_line(_middle(number), last[number], _middle(branch), y))
        boxes.extend(_box(branch, y, node))
        last[branch] = y + _HIGH
        if isinstance(node, ir.Fork):
            numbers = range(node.first, node.first + node.branches)
            came.update(dict.fromkeys(numbers, (branch, y + _HIGH)))
            columns = max(columns, node.first + node.branches)
        y += _HIGH + _GAP_Y
    width = columns * (_WIDE + _GAP_X) + _GAP_X
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y:g}" '
        f'viewBox="0 0 {width} {y:g}" font-family="monospace" font-size="12">'
        f"<title>{_escaped(graph.__name__)}</title>"
        f'<rect width="100%" height="100%" fill="#ffffff"/>{"".join(lines)}{"".join(boxes)}</svg>'
    )


def _box(branch: int, y: float, node: ir.Node) -> Iterator[str]:
    kind = next((name for types, name in _KINDS if isinstance(node, types)), "text")
    fill, stroke = _COLOURS[kind]
    x = _left(branch)
    whole = f"{node.describe()}{ir.details(node)}"
    shown = whole if len(whole) <= _CHARACTERS else f"{whole[: _CHARACTERS - 3]}..."
    place = f"\n{node.place.filename}:{node.place.line}" if node.place else ""
    yield f"<g><title>{_escaped(whole + place)}</title>"
    yield (
        f'<rect x="{x}" y="{y:g}" width="{_WIDE}" height="{_HIGH}" rx="4" fill="{fill}" '
        f'stroke="{stroke}"/>'
    )
    yield f'<text x="{x + 8}" y="{y + 17:g}" fill="#222222">{_escaped(shown)}</text></g>'


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<path d="M{x1:g} {y1:g} L{x2:g} {y2:g}" stroke="#999999" fill="none"/>'


def _left(branch: int) -> int:
    return _GAP_X + branch * (_WIDE + _GAP_X)


def _middle(branch: int) -> float:
    return _left(branch) + _WIDE / 2


def _escaped(text: str) -> str:
    """Text for XML, which takes no control characters."""
    return escape(
        "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)
    )
