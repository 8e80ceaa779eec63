"""Speed beside a busy neighbour, as shares of the speed without one.

`process`: another process computes all the time, held to one core where the system lets it be.
`thread`: a Python thread of the user does, in the process that runs the model. Where
`--peer-python` names a Python that has llama-cpp-python, its shares are the peer's; otherwise the
undisturbed speed is, and the ratio is our share. 1 of 2 cores is half of the machine.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator

from cpu import Runner, Work
from cpu_sides import Process
from rows import Row, arguments, compare, report

WORKS = "prefill512 decode1@64"
NEIGHBOURS = ("none", "process", "thread")
BUSY = """
import os, sys
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
print(flush=True)
while True:
    sum(range(1000))
"""


@contextlib.contextmanager
def neighbour(kind: str, side: Process) -> Iterator[None]:
    """Something busy beside the side while the context is open."""
    if kind == "process":
        busy = subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE)
        assert busy.stdout is not None
        busy.stdout.readline()
        try:
            yield
        finally:
            busy.kill()
            busy.wait()
            busy.stdout.close()
    elif kind == "thread":
        side.call("spin", True)
        try:
            yield
        finally:
            side.call("spin", False)
    else:
        yield


def measure(
    model: str, threads: int, peer_python: str | None, works: list[str], rounds: int
) -> list[Row]:
    """Two rows for each work, one for each kind of neighbour."""
    from sglite.runtime.models.pull import resolve

    path = resolve(model)
    kinds = [("ours", sys.executable)] + ([("llama", peer_python)] if peer_python else [])
    rows = []
    with contextlib.ExitStack() as stack:
        named = {name: work for name in works if (work := Work.named(name))}
        room = max(work.room for work in named.values())
        sides = [
            stack.enter_context(Process(kind, python, path, threads, room))
            for kind, python in kinds
        ]
        for name, work in named.items():
            runner = Runner(work, sides)
            rates: dict[tuple[str, int], list[float]] = {}
            for side in sides:
                runner.rate(side)
            for _ in range(rounds):
                for kind in NEIGHBOURS:
                    for i, side in enumerate(sides):
                        with neighbour(kind, side):
                            rates.setdefault((kind, i), []).append(runner.rate(side))
            rows += _shares(f"{model}/{name}", rates, len(sides) > 1)
            print(
                f"{model}/{name}:",
                ", ".join(
                    f"{'llama.cpp' if i else 'ours'} {kind} {statistics.median(values):.0f}"
                    for (kind, i), values in rates.items()
                ),
                "tokens/s",
            )
    return rows


def _shares(name: str, rates: dict[tuple[str, int], list[float]], peer: bool) -> list[Row]:
    rows = []
    for kind in NEIGHBOURS[1:]:
        shares = [
            [b / a for a, b in zip(rates["none", i], rates[kind, i], strict=True)]
            for i in range(1 + peer)
        ]
        theirs = shares[1] if peer else [1.0] * len(shares[0])
        label = "llama.cpp" if peer else "undisturbed"
        rows.append(compare(f"{name}/{kind}", "share of its speed", shares[0], theirs, label))
    return rows


def main() -> None:
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--peer-python", default=os.environ.get("SGLITE_PEER_PYTHON"))
    parser.add_argument("--works", default=WORKS, help="as in cpu.py, with spaces between")
    args = parser.parse_args()
    rounds = args.rounds or (2 if args.quick else 7)
    report(
        measure(args.model, args.threads, args.peer_python, args.works.split(), rounds), args.json
    )


if __name__ == "__main__":
    main()
