"""The child of a fork has an engine without its threads: it says so, or begins anew."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

PROGRAM = """
import os, sys
import sglite as sgl

@sgl.function
def story(s):
    s += "Once upon a" + sgl.gen("x", max_tokens=4)

arguments = {"backend": "scripted"} if sys.argv[1] == "scripted" else {"kv_memory": 1 << 24}
model = sgl.Model(sys.argv[1], **arguments)
first = story.run(model=model)["x"]
child = os.fork()
if child == 0:
    try:
        print("child:", story.run(model=model)["x"] == first)
    except sgl.ProgramError as error:
        print("child:", error)
    model.close()
    sys.exit(7)
print("status:", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print("parent:", story.run(model=model)["x"] == first)
"""


def run(model: str) -> str:
    command = [sys.executable, "-u", "-c", PROGRAM, model]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_scripted_engine_begins_anew() -> None:
    out = run("scripted")
    assert "child: True" in out
    assert "status: 7" in out
    assert "parent: True" in out


@pytest.mark.model
def test_a_real_engine_says_where_its_threads_are(smollm2_path: Path) -> None:
    out = run(str(smollm2_path))
    assert "was loaded before this process was forked" in out
    assert "status: 7" in out  # closing and leaving do not wait for threads that do not exist
    assert "parent: True" in out
