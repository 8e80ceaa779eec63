"""Our CPU backend beside llama.cpp: the same file, tokens, threads and KV state, in turn.

`prefill512` is one call for 512 tokens; `decode8@512` a step for 8 sequences of 512 tokens each,
with the logits of all; `kept@4096` what of the speed at 64 tokens is left at 4,096; `start` from
the start of a process to its first token. The peer is llama-cpp-python, in the Python that
`--peer-python` names (`make peers` builds one); with `--best` also on its fastest format, which it
makes of the same file. Without a peer, ours on one thread takes its place. `--types` measures the
weight formats alone.
"""

from __future__ import annotations

import fnmatch
import functools
import math
import os
import random
import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cpu_sides import Process
from rows import Row, arguments, compare, interleave, report
from start import PROGRAM, start

WORKS = {
    "smollm2": (
        "prefill512 decode1@64 decode1@512 decode8@64 decode8@512 decode32@64 decode1@4096 start"
    ),
    "gemma3-270m": "prefill512 decode1@64 decode8@64 decode32@64 decode1@4096 start",
}
PEER_START = """
import json, resource, sys, time
from llama_cpp import Llama

model = Llama(sys.argv[1], verbose=False)
model.create_completion("The capital of France is", max_tokens=1)
usage = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({"at": time.time(), "peak_mb": usage.ru_maxrss / 1024}))
"""


@dataclass(frozen=True, slots=True)
class Work:
    """`sequences` of `context` tokens each, that go on for `steps`; a prefill where that is 0."""

    sequences: int
    context: int
    steps: int

    @classmethod
    def named(cls, name: str) -> Work | None:
        """None for a name that is not of this kind."""
        if match := re.fullmatch(r"prefill(\d+)", name):
            return cls(1, int(match[1]), 0)
        if match := re.fullmatch(r"decode(\d+)@(\d+)", name):
            sequences = int(match[1])
            return cls(sequences, int(match[2]), max(8, 64 // math.isqrt(sequences)))
        return None

    @property
    def tokens(self) -> int:
        """Tokens that one measurement computes."""
        return self.sequences * self.steps if self.steps else self.context

    @property
    def room(self) -> int:
        """Slots of the cache that it needs, in whole pages."""
        return self.sequences * (self.context + self.steps + 16)


class Runner:
    """Runs works on sides that hold the same model, all on the same tokens."""

    def __init__(self, work: Work, sides: list[Process]) -> None:
        self._work = work
        ids = random.Random(work.context)
        vocab = min(side.vocab_size for side in sides)
        self._contexts = [
            [ids.randrange(vocab) for _ in range(work.context)] for _ in range(work.sequences)
        ]
        self._steps = [
            [ids.randrange(vocab) for _ in range(work.sequences)] for _ in range(work.steps)
        ]
        for side in sides:
            if work.steps:
                side.call("fill", self._contexts, work.steps)
            else:
                side.call("fill", [[]], work.context)

    def rate(self, side: Process) -> float:
        """Tokens a second."""
        if not self._work.steps:
            return self._work.tokens / float(side.call("prefill", self._contexts[0]))
        side.call("decode", self._steps[:2])  # the caches are the other side's
        return self._work.tokens / float(side.call("decode", self._steps))


def measure(model: str, names: list[str], args: Any, rounds: int) -> list[Row]:
    """The rows of one model."""
    from sglite.runtime.models.pull import resolve

    path = resolve(model)
    known = {name: work for name in names if (work := Work.named(name))}
    rows = []
    if known:
        room = max(work.room for work in known.values())
        with Process("ours", sys.executable, path, args.threads, room) as ours:
            if args.peer_python is None:
                with Process("ours", sys.executable, path, 1, room) as single:
                    rows += beside(model, known, ours, single, "ours on one thread", rounds)
            else:
                with Process("llama", args.peer_python, path, args.threads, room) as llama:
                    rows += beside(model, known, ours, llama, "llama.cpp", rounds)
                    if args.best:
                        rows += beside_best(model, known, ours, llama, path, args, rounds)
    if "start" in names:
        rows.append(starts(model, path, args.peer_python, rounds))
    return rows


def beside(
    model: str, works: dict[str, Work], ours: Process, peer: Process, peer_name: str, rounds: int
) -> list[Row]:
    """A row for each work, and how much of its speed each side keeps from 64 tokens to 4,096."""
    rows, sides = [], {}
    for name, work in works.items():
        runner = Runner(work, [ours, peer])
        mine = functools.partial(runner.rate, ours)
        theirs = functools.partial(runner.rate, peer)
        interleave(mine, theirs, 1)
        sides[name] = interleave(mine, theirs, rounds)
        rows.append(compare(f"{model}/{name}", "tokens/s", *sides[name], peer_name))
    if near := sides.get("decode1@64"):
        for name, far in sides.items():
            if name.startswith("decode1@") and name != "decode1@64" and works[name].context > 512:
                kept_ours, kept_peer = (
                    [b / a for a, b in zip(*pair, strict=True)]
                    for pair in zip(near, far, strict=True)
                )
                label = f"{model}/kept@{works[name].context}"
                rows.append(
                    compare(label, "of the speed at 64 tokens", kept_ours, kept_peer, peer_name)
                )
    return rows


def beside_best(
    model: str,
    works: dict[str, Work],
    ours: Process,
    llama: Process,
    path: Path,
    args: Any,
    rounds: int,
) -> list[Row]:
    """The same against llama.cpp on Q4_0, which it repacks for its fastest kernels."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "best.gguf"
        try:
            llama.call("requantise", str(path), str(target))
        except RuntimeError as error:
            print(f"{model}: no row on llama.cpp's best format: {error}")
            return []
        room = max(work.room for work in works.values())
        with Process("llama", args.peer_python, target, args.threads, room) as best:
            rows = beside(f"{model}/best", works, ours, best, "llama.cpp on Q4_0", rounds)
    return rows


def starts(model: str, path: Path, peer_python: str | None, rounds: int) -> Row:
    """From the start of a process to its first token; where no peer is, two of our own."""
    peaks: dict[str, list[float]] = {"ours": [], "peer": []}
    peer = (peer_python, PEER_START) if peer_python else (sys.executable, PROGRAM)
    sides = interleave(
        lambda: start(str(path), peaks["ours"]),
        lambda: start(str(path), peaks["peer"], *peer),
        rounds,
    )
    print(f"{model}: peak memory {max(peaks['ours']):.0f} MB, peer {max(peaks['peer']):.0f} MB")
    name = "llama-cpp-python" if peer_python else "another start"
    return compare(f"{model}/start", "s to first token", *sides, name, more_is_better=False)


def main() -> None:
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--model", action="append", help="a name or file; may be given again")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--peer-python", default=os.environ.get("SGLITE_PEER_PYTHON"))
    parser.add_argument("--best", action="store_true", help="also llama.cpp on its best format")
    parser.add_argument(
        "--only", default="*", help="works whose names match, as decode*@64; or types"
    )
    parser.add_argument("--types", action="store_true", help="measure the weight formats instead")
    parser.add_argument("--megabytes", type=float, default=192, help="of one matrix of --types")
    args = parser.parse_args()
    if args.types:
        import cpu_types

        rounds = args.rounds or (3 if args.quick else 9)
        report(cpu_types.measure(args.threads, args.megabytes, args.only, rounds), args.json)
        return
    rounds = args.rounds or (1 if args.quick else 7)
    rows = []
    for model in args.model or list(WORKS):
        names = WORKS.get(model, WORKS["smollm2"]).split()
        names = [name for name in names if fnmatch.fnmatch(name, args.only)]
        rows += measure(model, names, args, rounds)
    if not rows:
        parser.error(f"no row is called {args.only!r}")
    report(rows, args.json)


if __name__ == "__main__":
    main()
