"""Schemas from the wild: time to the first mask and time of every mask, beside other engines.

The sample is a file of lines with `schema` and `tests` (`data`, `valid`). Every valid instance is
written as JSON, tokenised once, and a mask is asked for before each of its tokens. Where
`--peer-python` names a Python that has llguidance or xgrammar, each runs the same in a process of
its own, in turn with ours. All times are of one thread, through the Python faces; a mask's time
includes the step by its token.
"""

from __future__ import annotations

import gzip
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rows import Row, arguments, compare, interleave, report

HERE = Path(__file__).resolve().parent
SAMPLE = HERE.parent.parent / "shared" / "cases" / "maskbench_sample.jsonl.gz"
PEERS = ("llguidance", "xgrammar")
QUICK = 100  # schemas

Step = Callable[[int], bool]
"""Writes the mask of the position, then goes on by the id; False where it is refused."""


def ours(work: dict[str, Any]) -> Callable[[str], Step]:
    """Compile, mask and accept with sglite; the widest options, as the other engines have them."""
    from sglite.grammars import Vocabulary, compile_json_schema

    tokens = [bytes.fromhex(t) for t in work["tokens"]]
    vocab = Vocabulary.from_tokens(tokens, eos_ids=work["eos"], special_ids=work["special"])

    def begin(schema: str) -> Step:
        grammar = compile_json_schema(
            schema, vocab, property_order="any", whitespace="flexible", spelling="any"
        )
        matcher, mask = grammar.matcher(), vocab.empty_mask()

        def step(token: int) -> bool:
            matcher.fill_mask(mask)
            return token < 0 or matcher.accept(token)

        return step

    return begin


def llguidance(work: dict[str, Any]) -> Callable[[str], Step]:
    """The same with llguidance."""
    llg = importlib.import_module("llguidance")
    masks = importlib.import_module("llguidance.numpy")

    class Plain:
        eos_token_id = work["eos"][0]
        bos_token_id = None
        tokens = [bytes.fromhex(t) for t in work["tokens"]]  # noqa: RUF012
        special_token_ids = sorted({*work["special"], *work["eos"]})

        def __call__(self, text: bytes) -> list[int]:
            return [self.tokens.index(bytes([b])) for b in text]

    tokenizer = llg.LLTokenizer(llg.TokenizerWrapper(Plain()))

    def begin(schema: str) -> Step:
        matcher = llg.LLMatcher(tokenizer, llg.LLMatcher.grammar_from_json_schema(schema))
        if matcher.is_error():
            raise ValueError(matcher.get_error())
        mask = masks.allocate_token_bitmask(1, tokenizer.vocab_size)

        def step(token: int) -> bool:
            masks.fill_next_token_bitmask(matcher, mask, 0)
            return token < 0 or bool(matcher.try_consume_tokens([token]))

        return step

    return begin


def xgrammar(work: dict[str, Any]) -> Callable[[str], Step]:
    """The same with xgrammar, one thread and no cache."""
    xg = importlib.import_module("xgrammar")
    tokens = [bytes.fromhex(t) for t in work["tokens"]]
    info = xg.TokenizerInfo(tokens, xg.VocabType.RAW, stop_token_ids=work["eos"])
    compiler = xg.GrammarCompiler(info, max_threads=1, cache_enabled=False)

    def begin(schema: str) -> Step:
        matcher = xg.GrammarMatcher(compiler.compile_json_schema(schema))
        mask = xg.allocate_token_bitmask(1, info.vocab_size)

        def step(token: int) -> bool:
            matcher.fill_next_token_bitmask(mask)
            return token < 0 or bool(matcher.accept_token(token))

        return step

    return begin


def run_once(engine: str, work: dict[str, Any]) -> dict[str, Any]:
    """One pass over the work: percentiles, and how many schemas and instances went through."""
    begin = {"ours": ours, "llguidance": llguidance, "xgrammar": xgrammar}[engine](work)
    first: list[float] = []
    masks: list[float] = []
    passed = 0
    for case in work["cases"]:
        try:
            start = time.perf_counter()
            begin(case["schema"])(-1)
            first.append(time.perf_counter() - start)
        except Exception:
            continue
        for ids in case["instances"]:
            step = begin(case["schema"])
            for token in ids:
                start = time.perf_counter()
                allowed = step(token)
                masks.append(time.perf_counter() - start)
                if not allowed:
                    break
            else:
                passed += 1
    result: dict[str, Any] = {"compiled": len(first), "instances": passed}
    for name, times, unit in (("first", first, 1e3), ("mask", masks, 1e6)):
        for percent in (50, 75, 99):
            result[f"{name}/p{percent}"] = float(np.percentile(times, percent) * unit)
    return result


def prepare(model: str, sample: Path, count: int | None) -> dict[str, Any]:
    """The vocabulary and the tokenised instances, as plain values."""
    from sglite.runtime.models.gguf import GGUFFile
    from sglite.runtime.models.pull import resolve
    from sglite.runtime.models.tokenizer import Tokenizer

    with GGUFFile.open(resolve(model)) as gguf:
        tokenizer = Tokenizer.from_gguf(gguf)
        work: dict[str, Any] = {
            "tokens": [t.hex() for t in tokenizer.token_bytes],
            "eos": sorted(tokenizer.eos_ids),
            "special": sorted(tokenizer.special_ids),
            "cases": [],
        }
        with gzip.open(sample, "rt") as lines:
            for case in map(json.loads, lines):
                texts = [json.dumps(t["data"]) for t in case["tests"] if t["valid"]]
                ids = [tokenizer.encode_bytes(text.encode()) for text in texts]
                work["cases"].append({"schema": json.dumps(case["schema"]), "instances": ids})
    if count is not None:
        work["cases"] = work["cases"][:: max(len(work["cases"]) // count, 1)]
    return work


def main() -> None:
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--model", default="smollm2", help="whose vocabulary")
    parser.add_argument("--sample", type=Path, default=SAMPLE)
    parser.add_argument("--peer-python", default=os.environ.get("SGLITE_PEER_PYTHON"))
    parser.add_argument("--once", choices=("ours", *PEERS), help="one run, as a JSON line")
    parser.add_argument("--work", type=Path, help="with --once: the prepared work")
    args = parser.parse_args()
    if args.once:
        print(json.dumps(run_once(args.once, json.loads(args.work.read_text()))))
        return
    if not args.sample.exists():
        parser.error(f"no sample at {args.sample}; name it with --sample")
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder) / "work.json"
        work.write_text(json.dumps(prepare(args.model, args.sample, QUICK if args.quick else None)))
        rounds = args.rounds or (1 if args.quick else 3)
        report(measure(args.peer_python, work, rounds), args.json)


def measure(peer_python: str | None, work: Path, rounds: int) -> list[Row]:
    """Ours in turn with each engine that is there, or with ours again where none is."""
    rows: list[Row] = []
    sides = [p for p in PEERS if peer_python and _has(peer_python, p)] or ["ours"]
    for peer in sides:
        mine: list[dict[str, Any]] = []
        theirs: list[dict[str, Any]] = []
        python = peer_python if peer in PEERS and peer_python else sys.executable

        def run(python: str, engine: str, seen: list[dict[str, Any]], work: Path = work) -> float:
            seen.append(_child([python, str(HERE / "constraints.py"), "--once", engine], work))
            return float(seen[-1]["mask/p50"])

        interleave(
            lambda mine=mine: run(sys.executable, "ours", mine),
            lambda theirs=theirs, python=python, peer=peer: run(python, peer, theirs),
            rounds,
        )
        name = peer if peer in PEERS else "ours again"
        for key in mine[0]:
            values = [[float(r[key]) for r in side] for side in (mine, theirs)]
            timed = "/" in key
            unit = {"first": "ms", "mask": "us"}.get(key.partition("/")[0], key)
            rows.append(compare(f"{peer}/{key}", unit, *values, name, more_is_better=not timed))
    return rows


def _has(python: str, module: str) -> bool:
    command = [python, "-c", f"import {module}, numpy"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _child(command: list[str], work: Path) -> dict[str, Any]:
    done = subprocess.run(
        [*command, "--work", str(work)], check=True, capture_output=True, text=True
    )
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


if __name__ == "__main__":
    main()
