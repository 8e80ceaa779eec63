"""Records out of letters: 40 documents that share one long instruction and one JSON schema.

Compares `run_batch` with the same run without the prefix cache, with our own run one at a time,
and, where `--peer-python` names a Python that has guidance and llama-cpp-python, with guidance
over llama.cpp. The workload is read from a folder with `extract_workload.py` and `peers.py`.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jsonschema
from rows import Row, arguments, compare, interleave, report

HERE = Path(__file__).resolve().parent
WORKLOAD = HERE.parent.parent / "shared" / "bench"


def run_ours(args: Any) -> dict[str, Any]:
    """One whole run in this process: load, one untimed call, then `--count` documents."""
    from extract_workload import INSTRUCTION, SCHEMA, documents, field_accuracy

    import sglite as sgl

    @sgl.function
    def extract(s: sgl.State, doc: str) -> None:
        s += sgl.system(INSTRUCTION)
        s += sgl.user(doc)
        s += sgl.assistant(sgl.gen("record", json=SCHEMA, max_tokens=200, temperature=0.0))

    model = sgl.Model(args.model, threads=args.threads, prefix_cache=not args.no_prefix_cache)
    with sgl.use(model):
        docs = documents(args.count)
        extract.run(doc=docs[0])
        start = time.perf_counter()
        if args.one_at_a_time:
            rows = [extract.run(doc=doc) for doc in docs]
        else:
            rows = extract.run_batch([{"doc": doc} for doc in docs])
        seconds = time.perf_counter() - start
        outputs = [row.meta("record").text for row in rows]
        ids = [list(row.meta("record").ids) for row in rows]
        usage = {
            field: sum(getattr(row.usage, field) for row in rows)
            for field in ("prompt_tokens", "cached_tokens", "forced_tokens", "decoded_tokens")
        }
        steps = model.stats()["steps"]
    for output in outputs:
        jsonschema.validate(json.loads(output), SCHEMA)
    return {
        "per_s": len(docs) / seconds,
        "seconds": seconds,
        "valid": len(outputs),
        "accuracy": field_accuracy(outputs, args.count),
        "mean_chars": sum(map(len, outputs)) / len(outputs),
        "usage": usage,
        "steps": steps,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "ids": ids,
    }


def main() -> None:
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--workload", type=Path, default=WORKLOAD)
    parser.add_argument("--peer-python", default=os.environ.get("SGLITE_PEER_PYTHON"))
    parser.add_argument("--no-prefix-cache", action="store_true")
    parser.add_argument("--one-at-a-time", action="store_true")
    parser.add_argument("--once", action="store_true", help="one run of ours, as a JSON line")
    args = parser.parse_args()
    if not (args.workload / "extract_workload.py").exists():
        parser.error(f"no extract_workload.py in {args.workload}; name its folder with --workload")
    sys.path.insert(0, str(args.workload))
    if args.once:
        print(json.dumps(run_ours(args)))
        return
    rounds = args.rounds or (2 if args.quick else 5)
    report(measure(args, rounds), args.json)


def measure(args: Any, rounds: int) -> list[Row]:
    """Every comparison, each interleaved; also checks that all ways give the same tokens."""
    common = ["--once", "--model", args.model, "--count", str(args.count)]
    common += ["--threads", str(args.threads), "--workload", str(args.workload)]
    seen: list[dict[str, Any]] = []

    def ours(*flags: str) -> float:
        seen.append(_child([sys.executable, str(HERE / "extract.py"), *common, *flags]))
        return float(seen[-1]["per_s"])

    rows = []
    unit = "documents/s"
    batch, cold = interleave(ours, lambda: ours("--no-prefix-cache"), rounds)
    rows.append(compare("extract/prefix-cache", unit, batch, cold, "no prefix cache"))
    batch, single = interleave(ours, lambda: ours("--one-at-a-time", "--no-prefix-cache"), 1)
    rows.append(compare("extract/batch", unit, batch, single, "one at a time, no cache"))
    if args.peer_python:
        from sglite.runtime.models.pull import resolve

        peers = [args.peer_python, str(args.workload / "peers.py"), "guidance", "extract"]
        peers += [str(resolve(args.model)), str(args.count), str(args.threads)]
        theirs: list[dict[str, Any]] = []

        def guidance() -> float:
            theirs.append(_child(peers))
            return float(theirs[-1]["per_s"])

        batch, peer = interleave(ours, guidance, rounds)
        rows.append(compare("extract/guidance", unit, batch, peer, "guidance over llama.cpp"))
        print("guidance:", {k: theirs[-1][k] for k in ("valid", "field_accuracy", "mean_chars")})
    if any(run["ids"] != seen[0]["ids"] for run in seen):
        sys.exit("the tokens of two runs differ: batch, cache and single runs must be equal")
    print("ours:", {k: v for k, v in seen[0].items() if k != "ids"})
    return rows


def _child(command: list[str]) -> dict[str, Any]:
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


if __name__ == "__main__":
    main()
