"""What every benchmark script shares: the rows it writes and how two sides are interleaved."""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Row:
    """One comparison. `ratio` above 1 means ours is better, whatever the unit.

    spread: (largest - smallest) / median of the paired ratios.
    """

    name: str
    unit: str
    ours: float
    peer: float
    peer_name: str
    ratio: float
    spread: float


def interleave(
    ours: Callable[[], float], peer: Callable[[], float], rounds: int
) -> tuple[list[float], list[float]]:
    """Run the two sides in turn, `rounds` times each, the order swapped every round."""
    mine: list[float] = []
    theirs: list[float] = []
    for i in range(rounds):
        for side, out in ((ours, mine), (peer, theirs))[:: 1 if i % 2 == 0 else -1]:
            out.append(side())
    return mine, theirs


def compare(
    name: str,
    unit: str,
    ours: Sequence[float],
    peer: Sequence[float],
    peer_name: str,
    *,
    more_is_better: bool = True,
) -> Row:
    """The medians of both sides and the median of the ratios of each pair."""
    ratios = [a / b if more_is_better else b / a for a, b in zip(ours, peer, strict=True)]
    middle = statistics.median(ratios)
    return Row(
        name,
        unit,
        statistics.median(ours),
        statistics.median(peer),
        peer_name,
        middle,
        (max(ratios) - min(ratios)) / middle,
    )


def arguments(description: str) -> argparse.ArgumentParser:
    """The options that every script takes."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, under ten minutes")
    parser.add_argument("--rounds", type=int, help="how often each side runs")
    return parser


def report(rows: Sequence[Row], target: Path | None) -> None:
    """Print one table and write the rows where the user asked for them."""
    width = max(len(row.name) for row in rows)
    print(f"{'name':{width}}  {'ours':>10}  {'peer':>10}  {'ratio':>6}  {'spread':>6}  unit, peer")
    for row in rows:
        print(
            f"{row.name:{width}}  {row.ours:10.3f}  {row.peer:10.3f}  {row.ratio:6.2f}"
            f"  {row.spread:6.2f}  {row.unit}, {row.peer_name}"
        )
    if target is not None:
        target.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
