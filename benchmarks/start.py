"""From the start of the process to the first token, and the memory that it takes at most.

With `--drop-caches` (Linux, as root) every other start finds nothing of the file in memory: the
first start ever after a boot. The peer side of a row is that cold start.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from rows import arguments, compare, interleave, report

PROGRAM = """
import json, resource, sys
import sglite as sgl

@sgl.function
def hello(s):
    s += "The capital of France is" + sgl.gen("city", max_tokens=1)

with sgl.use(sgl.Model(sys.argv[1])) as model:
    row = hello.run()
    import time
    usage = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"at": time.time(), "peak_mb": usage.ru_maxrss / 1024}))
"""
DROP_CACHES = Path("/proc/sys/vm/drop_caches")


def start(
    model: str, peaks: list[float], python: str = sys.executable, program: str = PROGRAM
) -> float:
    """Seconds from the start of a new process to its first token."""
    began = time.time()
    done = subprocess.run(
        [python, "-c", program, model], check=True, capture_output=True, text=True
    )
    result = json.loads(done.stdout.splitlines()[-1])
    peaks.append(result["peak_mb"])
    return float(result["at"] - began)


def main() -> None:
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--drop-caches", action="store_true", help="compare with cold starts")
    args = parser.parse_args()
    rounds = args.rounds or (3 if args.quick else 7)
    rows = []
    for model in ("smollm2", "gemma3-270m"):
        peaks: list[float] = []

        def warm(model: str = model, peaks: list[float] = peaks) -> float:
            return start(model, peaks)

        def cold(model: str = model, peaks: list[float] = peaks) -> float:
            if args.drop_caches:
                DROP_CACHES.write_text("3\n")
            return start(model, peaks)

        peer = "first start after a boot" if args.drop_caches else "another start"
        later, first = interleave(warm, cold, rounds)
        rows.append(
            compare(f"{model}/start", "s to first token", later, first, peer, more_is_better=False)
        )
        print(f"{model}: peak memory {max(peaks):.0f} MB")
    report(rows, args.json)


if __name__ == "__main__":
    main()
