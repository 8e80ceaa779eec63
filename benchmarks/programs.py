"""Programs a second: what the front end itself costs, over an engine that answers at once.

Three gens each. Static: no value is read before the end. Dynamic: two are read on the way. The
peer is SGLang's front end over a backend as instant, where `--peer-python` names a Python that has
it, and `--sglang` the folder with its `lang`, if that Python has no whole package. Also measured:
the memory of a program that waits for its first value, against that of a thread.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from rows import Row, arguments, compare, interleave, report

import sglite as sgl

HERE = Path(__file__).resolve().parent


@sgl.function
def static(s: sgl.State, doc: str) -> None:
    s += doc + sgl.gen("a", max_tokens=16) + "\n"
    s += sgl.gen("b", max_tokens=16) + "\n"
    s += sgl.gen("c", max_tokens=16)


@sgl.function
def dynamic(s: sgl.State, doc: str) -> None:
    s += doc + sgl.gen("a", max_tokens=16)
    s += "\nAgain " + s["a"] + sgl.gen("b", max_tokens=16)
    s += "\nAnd " + s["b"] + sgl.gen("c", max_tokens=16)


@sgl.function
async def tasks(s: sgl.State, doc: str) -> None:
    s += doc + sgl.gen("a", max_tokens=16)
    s += "\nAgain " + await s.read("a") + sgl.gen("b", max_tokens=16)
    s += "\nAnd " + await s.read("b") + sgl.gen("c", max_tokens=16)


PROGRAMS = {"static": static, "dynamic": dynamic, "tasks": tasks}


def run_ours(kind: str, count: int) -> float:
    """Programs a second in this process."""
    script = dict.fromkeys("abc", "an answer")
    with sgl.use(sgl.Model("scripted", backend="scripted", script=script)):
        program = PROGRAMS[kind]
        program.run_batch([{"doc": "warm up"}] * 100)
        rows = [{"doc": f"document {i}: "} for i in range(count)]
        start = time.perf_counter()
        results = program.run_batch(rows)
        for result in results:
            result["c"]
        return count / (time.perf_counter() - start)


def memory(kind: str, count: int) -> float:
    """KiB for each of `count` programs that all wait for their first value."""
    gate = threading.Event()

    def answer(_: str) -> str:
        gate.wait()
        return "an answer"

    with sgl.use(sgl.Model("scripted", backend="scripted", script={"a": answer})):
        program = PROGRAMS[kind]
        rows = [{"doc": f"document {i}: "} for i in range(count)]
        gc.collect()
        before = _resident()
        if kind == "tasks":
            return asyncio.run(_waiting_tasks(program, rows, gate, before))
        runs = threading.Thread(target=program.run_batch, args=(rows,), kwargs={"window": count})
        runs.start()
        _settle()
        used = _resident() - before
        gate.set()
        runs.join()
    return used / count / 1024


async def _waiting_tasks(
    program: sgl.Function, rows: list[dict[str, str]], gate: threading.Event, before: int
) -> float:
    runs = asyncio.ensure_future(program.arun_batch(rows, window=len(rows)))
    last = -1
    while last != (last := _resident()):
        await asyncio.sleep(0.5)
    gate.set()
    await runs
    return (last - before) / len(rows) / 1024


def _settle() -> None:
    last = -1
    while last != (last := _resident()):
        time.sleep(0.5)


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--peer-python", default=os.environ.get("SGLITE_PEER_PYTHON"))
    parser.add_argument("--sglang", type=Path, help="a folder that has sglang/lang")
    parser.add_argument("--once", nargs=3, metavar=("WHAT", "KIND", "ROWS"))
    args = parser.parse_args()
    if args.once:
        what, kind, count = args.once
        measured = (run_ours if what == "speed" else memory)(kind, int(count))
        print(json.dumps({"per_s": measured}))
        return
    report(measure(args, args.rounds or (3 if args.quick else 7)), args.json)


def measure(args: Any, rounds: int) -> list[Row]:
    """Every comparison, each interleaved."""
    rows = []
    for kind in ("static", "dynamic"):
        for count in (1000, 10_000):
            ours = _once("speed", kind, count)
            name = f"programs/{kind}-{count}"
            if args.peer_python:
                command = [args.peer_python, str(HERE / "programs_peer.py"), kind, str(count)]
                if args.sglang:
                    command += ["--sglang", str(args.sglang)]
                pairs = interleave(ours, lambda command=command: _child(command), rounds)
                rows.append(compare(name, "programs/s", *pairs, "SGLang's front end"))
            if kind == "dynamic":
                sides = interleave(_once("speed", "tasks", count), ours, rounds)
                rows.append(compare(f"{name}-tasks", "programs/s", *sides, "with threads"))
    for kind in ("static", "tasks"):
        used = [_once("memory", kind, 10_000)() for _ in range(min(rounds, 3))]
        rows.append(
            compare(
                f"programs/memory-{kind}",
                "KiB each, 10,000 waiting",
                used,
                [_thread_kib()] * len(used),
                "a waiting thread",
                more_is_better=False,
            )
        )
    return rows


def _thread_kib(count: int = 1000) -> float:
    """KiB that a thread of Python holds while it waits."""
    gate = threading.Event()
    before = _resident()
    threads = [threading.Thread(target=gate.wait) for _ in range(count)]
    for thread in threads:
        thread.start()
    used = _resident() - before
    gate.set()
    for thread in threads:
        thread.join()
    return used / count / 1024


def _once(what: str, kind: str, count: int) -> Any:
    command = [sys.executable, str(HERE / "programs.py"), "--once", what, kind, str(count)]
    return lambda: _child(command)


def _child(command: list[str]) -> float:
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout.splitlines()[-1])["per_s"])


if __name__ == "__main__":
    main()
