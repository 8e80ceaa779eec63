"""What is covered, keyword file by keyword file, and what is refused, with its reason.

    python tests/grammars/conformance.py [--suite FOLDER] [--draft draft2020-12] [--sample FILE]

The suite is the folder `json/tests/` of the sdist of jsonschema (or SGLITE_JSON_SCHEMA_SUITE).
Judged as the tests do: every instance written several ways, under the widest options.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
from collections import Counter
from pathlib import Path

from judging import SHARED, Case, Verdict, judge

SAMPLE = SHARED / "cases" / "maskbench_sample.jsonl.gz"
ANNOTATION = "is only an annotation by default"
REMOTE = ("http://localhost:1234", '"$ref": "https://json-schema.org')


def suite_file(file: Path, name: str) -> list[Case]:
    """The tests of one file whose schemas stand alone; formats are asserted."""
    cases = []
    for group in json.loads(file.read_text()):
        text = json.dumps(group["schema"])
        if not any(mark in text for mark in REMOTE):
            instances = [
                (t["description"], t["data"], t["valid"])
                for t in group["tests"]
                if ANNOTATION not in t["description"]
            ]
            cases.append(Case(f"{name}: {group['description']}", group["schema"], instances))
    return cases


def sample_cases(file: Path) -> list[Case]:
    """The schemas of a sample with their instances."""
    with gzip.open(file, "rt") as lines:
        return [
            Case(c["name"], c["schema"], [(t["description"], t["data"], t["valid"]) for t in tests])
            for c in map(json.loads, lines)
            for tests in [c["tests"]]
        ]


def row(name: str, cases: list[Case], verdict: Verdict) -> str:
    """One line of the table."""
    tests = sum(len(case.instances) for case in cases)
    compiled = f"{len(verdict.compiled)}/{len(cases)}"
    return (
        f"{name:36} {compiled:>9} {verdict.right:>6} of {tests:<5} "
        f"{len(verdict.unsound):>8} {len(verdict.too_strict):>11} {len(verdict.refused):>8}"
    )


def faults(verdict: Verdict) -> list[str]:
    """What is wrong or refused, a line each."""
    lines = [f"  unsound: {what}" for what in verdict.unsound]
    lines += [f"  too strict: {what}" for what in verdict.too_strict]
    return lines + [
        f"  refused: {name}: {error.pointer or '(root)'}: {error.reason}"
        for name, error in verdict.refused.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suite", type=Path, default=os.environ.get("SGLITE_JSON_SCHEMA_SUITE"))
    parser.add_argument("--draft", default="draft2020-12", help="folder of the suite")
    parser.add_argument("--sample", type=Path, default=SAMPLE)
    args = parser.parse_args()
    table, listed, totals = [], [], Counter[str]()
    if args.suite:
        folder = Path(args.suite) / args.draft
        # What is required comes first, then what is optional.
        for file in sorted(folder.rglob("*.json"), key=lambda f: (len(f.parts), f)):
            name = file.relative_to(folder).with_suffix("").as_posix()
            cases = suite_file(file, name)
            verdict = judge(cases)
            table.append(row(name, cases, verdict))
            listed += faults(verdict)
            kind = "all optional files" if "/" in name else "all required files"
            totals[f"{kind}: right"] += verdict.right
            totals[f"{kind}: tests"] += sum(len(case.instances) for case in cases)
            totals[f"{kind}: unsound"] += len(verdict.unsound)
            totals[f"{kind}: too strict"] += len(verdict.too_strict)
    if args.sample.exists():
        cases = sample_cases(args.sample)
        verdict = judge(cases)
        table.append(row(f"sample {args.sample.name}"[:36], cases, verdict))
        listed += faults(verdict)
    print(f"{'file':36} {'compiled':>9} {'right':>15} {'unsound':>8} {'too strict':>11}  refused")
    print("\n".join([*table, *(f"{name} {n}" for name, n in totals.items()), *listed]))


if __name__ == "__main__":
    main()
