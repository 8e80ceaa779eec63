"""What is done to a graph so that it runs with less work. No pass changes a token.

Each is on by default and has a name: `fn.compile(passes=["fold"])` takes some of them, `passes=()`
none. `fold` and `release` make another list of steps; `plan` is how a graph is executed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from sglite.graphs.values import Argument, Branch, Operand, Reading, substitute
from sglite.language import ir

Steps = tuple[ir.Step, ...]


def fold(steps: Steps, returned: Operand) -> Steps:
    """Literals that stand next to each other become one, and those without text none."""
    folded: list[ir.Step] = []
    last: dict[int, int] = {}  # branch -> where its last node is
    for branch, node in steps:
        before = last.get(branch)
        if isinstance(node, ir.Literal):
            if not node.text:
                continue
            if before is not None and isinstance(known := folded[before].node, ir.Literal):
                folded[before] = ir.Step(branch, replace(known, text=known.text + node.text))
                continue
        last[branch] = len(folded)
        folded.append(ir.Step(branch, node))
    return tuple(folded)


def release(steps: Steps, returned: Operand) -> Steps:
    """A branch is closed, and its memory given back, once nothing uses it any more."""
    last: dict[int, int] = {}

    def used(operand: Operand, place: int) -> None:
        def leaf(value: Argument | Reading | Branch) -> Operand:
            if isinstance(value, Reading):
                last[value.branch] = place
            elif isinstance(value, Branch):
                last[value.number] = len(steps)
            return value

        substitute(operand, leaf)

    for place, (branch, node) in enumerate(steps):
        last[branch] = place
        if isinstance(node, ir.Join):
            last.update(dict.fromkeys(node.branches, place))
        elif isinstance(node, ir.Insert):
            used(node.value, place)
        elif isinstance(node, ir.Late):
            used([operand for _, operand in node.arguments], place)
    used(returned, len(steps))
    ends: dict[int, list[int]] = {}
    for branch, place in last.items():
        if branch and place < len(steps):
            ends.setdefault(place, []).append(branch)
    released: list[ir.Step] = []
    for place, step in enumerate(steps):
        released.append(step)
        released.extend(
            ir.Step(branch, ir.Release(place=step.node.place)) for branch in ends.get(place, ())
        )
    return tuple(released)


def plan(steps: Steps, returned: Operand) -> Steps:
    """What does not depend on the row is settled when the graph is made: see `graphs.plan`."""
    return steps


_ALL: dict[str, Callable[[Steps, Operand], Steps]] = {
    "fold": fold,
    "release": release,
    "plan": plan,
}
PASSES = tuple(_ALL)
"""The names of all passes, in the order in which they are applied."""


def chosen(passes: Iterable[str] | None) -> tuple[str, ...]:
    """The passes by these names, None: all. Raises ValueError for others."""
    if passes is None:
        return PASSES
    names = [passes] if isinstance(passes, str) else list(passes)
    unknown = [name for name in names if name not in _ALL]
    if unknown:
        raise ValueError(f"unknown pass {unknown[0]!r}; there are {', '.join(PASSES)}")
    return tuple(name for name in PASSES if name in names)


def applied(steps: Sequence[ir.Step], returned: Operand, passes: Iterable[str]) -> Steps:
    """The steps after these passes."""
    changed = tuple(steps)
    for name in passes:
        changed = _ALL[name](changed, returned)
    return changed
