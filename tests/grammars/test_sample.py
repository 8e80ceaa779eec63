"""Schemas from the wild and the official test suite: nothing unsound, nothing wrongly refused.

The numbers of compiled schemas are ratchets: they only go up.
"""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest
from judging import SHARED, Case, judge

SAMPLE = SHARED / "cases" / "maskbench_sample.jsonl.gz"
SAMPLE_COMPILED = 402

SUITE = os.environ.get("SGLITE_JSON_SCHEMA_SUITE", "")
SUITE_RIGHT = 1172

# The core specification (2020-12, validation, section 7.2.1) leaves it to us to assert formats.
ANNOTATION = "is only an annotation by default"


@pytest.mark.skipif(not SAMPLE.exists(), reason=f"no sample of MaskBench at {SAMPLE}")
def test_the_sample_of_maskbench() -> None:
    cases = []
    with gzip.open(SAMPLE, "rt") as lines:
        for line in lines:
            case = json.loads(line)
            instances = [(t["description"], t["data"], t["valid"]) for t in case["tests"]]
            cases.append(Case(case["name"], case["schema"], instances))
    verdict = judge(cases)
    assert verdict.unsound == []
    assert verdict.too_strict == []
    assert len(verdict.compiled) >= SAMPLE_COMPILED


@pytest.mark.skipif(
    not SUITE,
    reason="SGLITE_JSON_SCHEMA_SUITE does not name json/tests/ of the sdist of jsonschema",
)
def test_the_official_suite() -> None:
    verdict = judge(suite_cases(Path(SUITE) / "draft2020-12"))
    assert verdict.unsound == []
    assert verdict.too_strict == []
    assert verdict.right >= SUITE_RIGHT


def suite_cases(folder: Path) -> list[Case]:
    """The required tests whose schemas stand alone."""
    cases = []
    for file in sorted(folder.glob("*.json")):
        for group in json.loads(file.read_text()):
            text = json.dumps(group["schema"])
            if "http://localhost:1234" in text or '"$ref": "https://json-schema.org' in text:
                continue
            instances = [
                (t["description"], t["data"], t["valid"])
                for t in group["tests"]
                if ANNOTATION not in t["description"]
            ]
            cases.append(Case(f"{file.stem}: {group['description']}", group["schema"], instances))
    return cases
