"""Branches that go on from one shared state.

What they share is computed once, and they are written together.

    python examples/fork.py
    python examples/fork.py "good sleep" "fresh air"
"""

from __future__ import annotations

import sys

import sglite as sgl

TIPS = ["a balanced diet", "regular exercise", "enough sleep"]


@sgl.function
def advice(s: sgl.State, tips: list[str]) -> None:
    s += sgl.user("How do I stay healthy?")
    s += sgl.assistant(f"These help: {', '.join(tips)}.")
    branches = s.fork(len(tips))
    for tip, branch in zip(tips, branches, strict=True):
        branch += sgl.user(f"Why {tip}? Answer in one sentence.")
        branch += sgl.assistant(sgl.gen("reason", max_tokens=48, stop="."))
    s.join(branches)  # the variables of the branches become lists, in their order
    s += sgl.user("Which of these matters most to you?")
    s += sgl.assistant("To me it is " + sgl.select("choice", tips) + ".")


def main(tips: list[str]) -> None:
    row = advice.run(tips or TIPS)
    for tip, reason in zip(tips or TIPS, row["reason"], strict=True):
        print(f"{tip}: {reason.strip()}.")
    for tip, probability in (row.meta("choice").distribution or {}).items():
        print(f"  {probability:4.0%} {tip}")
    usage = row.usage
    print(f"{usage.prompt_tokens} tokens read, {usage.cached_tokens} of them reused")


if __name__ == "__main__":
    with sgl.Model("smollm2") as model, sgl.use(model):
        main(sys.argv[1:])
