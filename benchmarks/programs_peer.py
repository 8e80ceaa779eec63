"""The programs of `programs.py` in SGLang's front end, over a backend that answers at once.

Run by `programs.py` in a Python that has the package `sglang`, or in any with its folder `lang` on
the path (`--sglang`): its front end needs no GPU, and what else its package imports is not used.
"""

from __future__ import annotations

import argparse
import importlib.machinery
import json
import sys
import time
import types
from typing import Any


def load(folder: str | None) -> types.ModuleType:
    """`sglang.lang.api`; from a folder without the rest of the package, which wants a GPU."""
    if folder is not None:
        package = types.ModuleType("sglang")
        package.__path__ = [f"{folder}/sglang"]
        package.__spec__ = importlib.machinery.ModuleSpec("sglang", None, is_package=True)
        utils = types.ModuleType("sglang.utils")
        for name in ("encode_image_base64", "encode_video_base64", "get_exception_traceback"):
            setattr(utils, name, lambda *_: "")
        sys.modules.update({"sglang": package, "sglang.utils": utils})
    import sglang.lang.api as api

    return api


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=["static", "dynamic"])
    parser.add_argument("rows", type=int)
    parser.add_argument("--sglang", help="a folder that has sglang/lang")
    args = parser.parse_args()
    api = load(args.sglang)
    from sglang.lang.backend.base_backend import BaseBackend

    class Instant(BaseBackend):  # type: ignore[misc]
        def generate(self, s: Any, sampling_params: Any) -> tuple[str, dict[str, Any]]:
            return "an answer", {}

    def static(s: Any, doc: str) -> None:
        s += doc + api.gen("a", max_tokens=16) + "\n"
        s += api.gen("b", max_tokens=16) + "\n"
        s += api.gen("c", max_tokens=16)

    def dynamic(s: Any, doc: str) -> None:
        s += doc + api.gen("a", max_tokens=16)
        s += "\nAgain " + s["a"] + api.gen("b", max_tokens=16)
        s += "\nAnd " + s["b"] + api.gen("c", max_tokens=16)

    program = api.function(static if args.kind == "static" else dynamic)
    backend = Instant()
    program.run_batch([{"doc": "warm up"}] * 100, backend=backend)
    rows = [{"doc": f"document {i}: "} for i in range(args.rows)]
    start = time.perf_counter()
    states = program.run_batch(rows, backend=backend)
    for state in states:
        state["c"]
    print(json.dumps({"per_s": args.rows / (time.perf_counter() - start)}))


main()
