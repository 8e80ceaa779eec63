"""Grammar texts beside other engines: time to the first mask, of masks, and of steps.

Every case is one language written twice, in Lark's format and in GBNF, with texts of it. Ours runs
both; llguidance runs the Lark text, xgrammar the GBNF text, each in a process of its own, in turn
with ours, where `--peer-python` names a Python that has them. Every text is tokenised once, and a
mask is asked for before each of its tokens; the grammar is compiled anew, nothing kept, for every
repetition. "warm" is a second pass over the same texts. All times are of one thread, through the
Python faces.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import constraints
import numpy as np
from rows import Row, arguments, compare, interleave, report

HERE = Path(__file__).resolve().parent
TEXTS = HERE / "texts"
LIBRARY = HERE.parent / "grammars" / "library"
FORMATS = {"llguidance": "lark", "xgrammar": "gbnf"}
REPEATS = 2

CASES = {
    "ember": [(TEXTS / "ember.txt").read_text()],
    "json": [json.dumps(json.loads((TEXTS / "sample.json").read_text()), indent=1)],
    "arithmetic": ["1 + 2*(3 - 45.25)/-6 ** 2", "((((7))))*0.5"],
    "csv_row": ['plain,two words,"quoted, with ""quotes""",,3.25,"", last one', "x"],
    "iso_date": ["2024-02-29", "1999-12-31"],
}


def text_of(case: str, form: str) -> str:
    """The grammar of a case: from the library, or its counterpart beside this script."""
    name = f"{case}.{form}"
    return ((LIBRARY if (LIBRARY / name).exists() else TEXTS) / name).read_text()


class Ours(constraints.Ours):
    """sglite."""

    def grammar(self, text: str, form: str) -> constraints.Compiled:
        return self._begin(self.grammars.compile_grammar(text, self.vocabulary, format=form))


class Llguidance(constraints.Llguidance):
    """llguidance, which takes Lark's format."""

    def grammar(self, text: str, form: str) -> constraints.Compiled:
        return self._begin(self.llg.LLMatcher.grammar_from_lark(text))


class Xgrammar(constraints.Xgrammar):
    """xgrammar, which takes GBNF."""

    def grammar(self, text: str, form: str) -> constraints.Compiled:
        return self._begin(self.compiler.compile_grammar(text))


ENGINES = {"ours": Ours, "llguidance": Llguidance, "xgrammar": Xgrammar}


def run_once(name: str, form: str, work: dict[str, Any]) -> dict[str, float]:
    """All figures of one engine for the texts of one format."""
    engine = ENGINES[name](work)
    result: dict[str, float] = {}
    for case, texts in work["cases"].items():
        times: dict[str, list[float]] = {"first": [], "mask": [], "warm": [], "accept": []}
        for _ in range(REPEATS):
            engine.forget()
            start = time.perf_counter()
            begin = engine.grammar(text_of(case, form), form)
            begin().fill()
            times["first"].append(time.perf_counter() - start)
            for ids in texts:
                if not constraints.feed(begin(), ids, times["mask"], times["accept"]):
                    raise SystemExit(f"{name} refuses a text of {case}")
            for ids in texts:
                constraints.feed(begin(), ids, times["warm"], [])
        result[f"{case}/first"] = float(np.median(times["first"])) * 1e3
        for figure, percents in (("mask", (50, 99)), ("warm", (50,)), ("accept", (50,))):
            for percent in percents:
                value = float(np.percentile(times[figure], percent)) * 1e6
                result[f"{case}/{figure}/p{percent}"] = value
        result[f"{case}/mask/mean"] = float(np.mean(times["mask"])) * 1e6
    return result


def prepare(model: str) -> dict[str, Any]:
    """The vocabulary and the tokenised texts, as plain values."""
    from sglite.runtime.models.gguf import GGUFFile
    from sglite.runtime.models.pull import resolve
    from sglite.runtime.models.tokenizer import Tokenizer

    with GGUFFile.open(resolve(constraints.MODELS.get(model, model))) as gguf:
        tokenizer = Tokenizer.from_gguf(gguf)
        return {
            "tokens": [t.hex() for t in tokenizer.token_bytes],
            "eos": sorted(tokenizer.eos_ids),
            "special": sorted(tokenizer.special_ids),
            "cases": {
                name: [tokenizer.encode_bytes(text.encode()) for text in texts]
                for name, texts in CASES.items()
            },
        }


def child(python: str, engine: str, form: str, work: Path) -> dict[str, float]:
    """`run_once` in a process of its own."""
    command = [python, str(HERE / "grammar_texts.py"), "--once", engine, "--format", form]
    done = subprocess.run([*command, "--work", str(work)], check=True, stdout=subprocess.PIPE)
    result: dict[str, float] = json.loads(done.stdout.decode().strip().splitlines()[-1])
    return result


def measure(peer_python: str | None, work: Path, rounds: int) -> list[Row]:
    """Ours in turn with each engine that is there, or with ours again where none is."""
    rows: list[Row] = []
    for peer, form in FORMATS.items():
        there = peer_python is not None and constraints.has(peer_python, peer)
        name, python = (peer, str(peer_python)) if there else ("ours", sys.executable)
        mine: list[dict[str, float]] = []
        theirs: list[dict[str, float]] = []

        def run(python: str, engine: str, seen: list[dict[str, float]], form: str = form) -> float:
            seen.append(child(python, engine, form, work))
            return 0.0

        interleave(
            lambda mine=mine: run(sys.executable, "ours", mine),
            lambda name=name, python=python, theirs=theirs: run(python, name, theirs),
            rounds,
        )
        for key in mine[0]:
            values = [[r[key] for r in side] for side in (mine, theirs)]
            unit = "ms" if key.endswith("first") else "us"
            row = compare(f"{form}/{key}", unit, *values, name, more_is_better=False)
            rows.append(row)
    return rows


def main() -> None:
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--model", default="smollm2", help="whose vocabulary: smollm2, gemma, ...")
    parser.add_argument("--peer-python", default=os.environ.get("SGLITE_PEER_PYTHON"))
    parser.add_argument("--once", choices=tuple(ENGINES), help="one run, as a JSON line")
    parser.add_argument("--format", choices=("lark", "gbnf"), help="with --once: which texts")
    parser.add_argument("--work", type=Path, help="with --once: the prepared work")
    args = parser.parse_args()
    if args.once:
        print(json.dumps(run_once(args.once, args.format, json.loads(args.work.read_text()))))
        return
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder) / "work.json"
        work.write_text(json.dumps(prepare(args.model)))
        report(measure(args.peer_python, work, args.rounds or (1 if args.quick else 3)), args.json)


if __name__ == "__main__":
    main()
