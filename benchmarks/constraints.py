"""Constraints beside other engines: time to the first mask, of masks, of steps, and of building.

The sample is a file of lines with `schema` and `tests` (`data`, `valid`). Every valid instance is
written as JSON, tokenised once, and a mask is asked for before each of its tokens. A schema is
compiled once and shared by its instances; nothing is shared between schemas. "warm" is a second
pass over the same instances. Patterns are built anew for every repetition. Where `--peer-python`
names a Python that has llguidance or xgrammar, each runs the same in a process of its own, in turn
with ours. All times are of one thread, through the Python faces.
"""

from __future__ import annotations

import gc
import gzip
import importlib
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rows import Row, arguments, compare, interleave, report

HERE = Path(__file__).resolve().parent
SAMPLE = HERE.parent.parent / "shared" / "cases" / "maskbench_sample.jsonl.gz"
PEERS = ("llguidance", "xgrammar")
MODELS = {"gemma": "gemma3-270m"}
QUICK = 100  # schemas
REPEATS = 10  # of each pattern
PERCENTS = {"first": (50, 75, 99), "mask": (50, 75, 99, 99.9), "warm": (50, 99), "accept": (50, 99)}
UNITS = {"first": "ms", "mask": "us", "warm": "us", "accept": "us", "vocabulary": ""}


@dataclass(frozen=True, slots=True)
class Session:
    """A sequence: `fill` writes the mask of its position, `accept` says whether an id fits."""

    fill: Callable[[], object]
    accept: Callable[[int], bool]


Compiled = Callable[[], Session]
"""Begins a sequence."""


class Ours:
    """sglite, under the widest options, as the other engines have them."""

    def __init__(self, work: dict[str, Any]) -> None:
        from sglite import grammars

        self.grammars = grammars
        self.tokens = [bytes.fromhex(t) for t in work["tokens"]]
        self.vocabulary = grammars.Vocabulary.from_tokens(self.tokens, work["eos"], work["special"])
        self.forget()

    def forget(self) -> None:
        """Go on without compiled grammars: they are kept per object, not per native vocabulary."""
        known = self.vocabulary
        self.vocabulary = self.grammars.Vocabulary(
            known.native, self.tokens, known.eos_ids, known.special_ids, None
        )

    def schema(self, source: str) -> Compiled:
        options = {"property_order": "any", "whitespace": "flexible", "spelling": "any"}
        return self._begin(self.grammars.compile_json_schema(source, self.vocabulary, **options))

    def pattern(self, source: str) -> Compiled:
        return self._begin(self.grammars.compile_regex(source, self.vocabulary))

    def _begin(self, grammar: Any) -> Compiled:
        mask = self.vocabulary.empty_mask()

        def begin() -> Session:
            matcher = grammar.matcher()
            return Session(lambda: matcher.fill_mask(mask), matcher.accept)

        return begin


class Llguidance:
    """llguidance."""

    def __init__(self, work: dict[str, Any]) -> None:
        self.llg = importlib.import_module("llguidance")
        self.masks = importlib.import_module("llguidance.numpy")

        class Plain:
            eos_token_id = work["eos"][0]
            bos_token_id = None
            tokens = [bytes.fromhex(t) for t in work["tokens"]]  # noqa: RUF012
            special_token_ids = sorted({*work["special"], *work["eos"]})

            def __call__(self, text: bytes) -> list[int]:
                return [self.tokens.index(bytes([b])) for b in text]

        self.tokenizer = self.llg.LLTokenizer(self.llg.TokenizerWrapper(Plain()))

    def forget(self) -> None:
        pass

    def schema(self, source: str) -> Compiled:
        return self._begin(self.llg.LLMatcher.grammar_from_json_schema(source))

    def pattern(self, source: str) -> Compiled:
        return self._begin(self.llg.LLMatcher.grammar_from_regex(source))

    def _begin(self, grammar: str) -> Compiled:
        first = self.llg.LLMatcher(self.tokenizer, grammar)
        if first.is_error():
            raise ValueError(first.get_error())
        mask = self.masks.allocate_token_bitmask(1, self.tokenizer.vocab_size)

        def begin() -> Session:
            matcher = first.deep_copy()
            return Session(
                lambda: self.masks.fill_next_token_bitmask(matcher, mask, 0),
                lambda token: bool(matcher.try_consume_tokens([token])),
            )

        return begin


class Xgrammar:
    """xgrammar, one thread and no cache."""

    def __init__(self, work: dict[str, Any]) -> None:
        self.xg = importlib.import_module("xgrammar")
        tokens = [bytes.fromhex(t) for t in work["tokens"]]
        self.info = self.xg.TokenizerInfo(tokens, self.xg.VocabType.RAW, stop_token_ids=work["eos"])
        self.compiler = self.xg.GrammarCompiler(self.info, max_threads=1, cache_enabled=False)

    def forget(self) -> None:
        pass

    def schema(self, source: str) -> Compiled:
        return self._begin(self.compiler.compile_json_schema(source))

    def pattern(self, source: str) -> Compiled:
        return self._begin(self.compiler.compile_regex(source))

    def _begin(self, compiled: Any) -> Compiled:
        mask = self.xg.allocate_token_bitmask(1, self.info.vocab_size)

        def begin() -> Session:
            matcher = self.xg.GrammarMatcher(compiled)
            return Session(
                lambda: matcher.fill_next_token_bitmask(mask),
                lambda token: bool(matcher.accept_token(token)),
            )

        return begin


ENGINES = {"ours": Ours, "llguidance": Llguidance, "xgrammar": Xgrammar}


def feed(session: Session, ids: list[int], masks: list[float], steps: list[float]) -> bool:
    """Ask for a mask before each id; False where one is refused."""
    clock = time.perf_counter
    for token in ids:
        begin = clock()
        session.fill()
        middle = clock()
        accepted = session.accept(token)
        steps.append(clock() - middle)
        masks.append(middle - begin)
        if not accepted:
            return False
    return True


def run_schemas(engine: Any, cases: list[dict[str, Any]]) -> dict[str, float]:
    """Percentiles over all schemas, and how many of them and of their instances went through."""
    times: dict[str, list[float]] = {name: [] for name in PERCENTS}
    passed = 0
    for case in cases:
        engine.forget()
        gc.collect()  # of what came before, which is none of this one's time
        try:
            start = time.perf_counter()
            begin = engine.schema(case["schema"])
            begin().fill()
            times["first"].append(time.perf_counter() - start)
        except Exception:
            continue
        for ids in case["instances"]:
            passed += feed(begin(), ids, times["mask"], times["accept"])
        for ids in case["instances"]:
            feed(begin(), ids, times["warm"], [])
    result: dict[str, float] = {"compiled": len(times["first"]), "instances": passed}
    for name, percents in PERCENTS.items():
        for percent in percents:
            scale = 1e3 if UNITS[name] == "ms" else 1e6
            result[f"{name}/p{percent}"] = float(np.percentile(times[name], percent)) * scale
    return result


def run_patterns(engine: Any, patterns: dict[str, dict[str, Any]]) -> dict[str, float]:
    """Medians of the time to build each pattern and of the masks along one text."""
    result: dict[str, float] = {}
    for name, case in patterns.items():
        builds: list[float] = []
        masks: list[float] = []
        for _ in range(REPEATS):
            engine.forget()
            start = time.perf_counter()
            session = engine.pattern(case["pattern"])()
            builds.append(time.perf_counter() - start)
            feed(session, case["ids"], masks, [])
        result[f"{name}/build"] = float(np.median(builds)) * 1e3
        result[f"{name}/mask"] = float(np.median(masks)) * 1e6
    return result


def run_once(name: str, work: dict[str, Any]) -> dict[str, float]:
    """All figures of one engine. Python's collector need not go through the work every time."""
    gc.freeze()
    before, start = _resident(), time.perf_counter()
    engine = ENGINES[name](work)
    result = {
        "vocabulary/s": time.perf_counter() - start,
        "vocabulary/MB": (_resident() - before) / 1e6,
    }
    return result | run_schemas(engine, work["cases"]) | run_patterns(engine, work["patterns"])


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def texts_of_patterns() -> dict[str, tuple[str, str]]:
    """Patterns, each with a text that it matches."""
    rng = random.Random(1)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(rng.choices(letters, k=rng.randint(4, 12))) for _ in range(200)]
    return {
        "date": (r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])", "2024-02-29"),
        "uuid": (
            "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
            "01234567-89ab-cdef-0123-456789abcdef",
        ),
        "200 words": ("|".join(words), words[17]),
        ".{0,2000}": (".{0,2000}", "The quick brown fox jumps over the lazy dog. " * 10),
    }


def prepare(model: str, sample: Path, count: int | None) -> dict[str, Any]:
    """The vocabulary and the tokenised instances, as plain values."""
    from sglite.runtime.models.gguf import GGUFFile
    from sglite.runtime.models.pull import resolve
    from sglite.runtime.models.tokenizer import Tokenizer

    with GGUFFile.open(resolve(MODELS.get(model, model))) as gguf:
        tokenizer = Tokenizer.from_gguf(gguf)
        work: dict[str, Any] = {
            "tokens": [t.hex() for t in tokenizer.token_bytes],
            "eos": sorted(tokenizer.eos_ids),
            "special": sorted(tokenizer.special_ids),
            "cases": [],
        }
        work["patterns"] = {
            name: {"pattern": pattern, "ids": tokenizer.encode_bytes(text.encode())}
            for name, (pattern, text) in texts_of_patterns().items()
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
    parser.add_argument("--model", default="smollm2", help="whose vocabulary: smollm2, gemma, ...")
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
    sides = [p for p in PEERS if peer_python and has(peer_python, p)] or ["ours"]
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
            rows.append(
                compare(f"{peer}/{key}", _unit(key), *values, name, more_is_better=not timed)
            )
    return rows


def _unit(key: str) -> str:
    group, _, figure = key.partition("/")
    return {"build": "ms", "mask": "us"}.get(figure) or UNITS.get(group) or figure or key


def has(python: str, module: str) -> bool:
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
