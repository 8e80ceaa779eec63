"""A conversation of several turns.

python examples/chat.py                 three questions, written below
python examples/chat.py --interactive   yours; an empty line ends it
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

import sglite as sgl

QUESTIONS = [
    "What is the capital of France?",
    "Name one thing to see there.",
    "How tall is it?",
]


@sgl.function
def conversation(s: sgl.State, questions: Iterable[str]) -> None:
    s += sgl.system("You are a helpful assistant.")
    for question in questions:
        s += sgl.user(question)
        s += sgl.assistant(sgl.gen("answer", max_tokens=60))
        # Reading waits for the answer; the next turn goes on from the same tokens.
        print(f"> {question}\n{s['answer'].strip()}\n", flush=True)


def typed() -> Iterator[str]:
    """Questions from the keyboard."""
    while question := input("? ").strip():
        yield question


def main(arguments: list[str]) -> None:
    row = conversation.run(typed() if "--interactive" in arguments else QUESTIONS)
    usage = row.usage
    print(f"{len(row.all('answer'))} answers, {usage.decoded_tokens} tokens written", end=", ")
    print(f"{usage.prompt_tokens} read, {usage.cached_tokens} of them reused")


if __name__ == "__main__":
    with sgl.Model("smollm2") as model, sgl.use(model):
        main(sys.argv[1:])
