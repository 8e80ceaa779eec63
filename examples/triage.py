"""Messages are sorted into classes, with the probability of each class.

python examples/triage.py
python examples/triage.py "I was charged twice."
"""

from __future__ import annotations

import sys

import sglite as sgl

LABELS = [" billing", " delivery", " praise"]
MESSAGES = [
    "I was charged twice for the same lamp, please give me the money back.",
    "My parcel was promised for Monday and is still not here.",
    "Thank you so much, the best service I have ever had!",
    "The invoice has the wrong amount on it.",
]
EXAMPLES = """\
Each message belongs to one class: delivery, praise, billing.

Message: The courier left the box in the rain.
Class: delivery

Message: Wonderful people, I will tell my friends.
Class: praise

Message: Why is there a fee of five euros on my bill?
Class: billing

Message: I still wait for my package, it should have come last week.
Class: delivery

Message: I love it, great work!
Class: praise

Message: You took the money from my card two times.
Class: billing

"""


@sgl.function
def triage(s: sgl.State, message: str) -> None:
    # A plain prompt, so that it works with a base model too. All rows share the examples.
    s += EXAMPLES
    s += f"Message: {message}\nClass:" + sgl.select("label", LABELS)


def main(messages: list[str]) -> None:
    rows = triage.run_batch([{"message": message} for message in messages or MESSAGES])
    for message, row in zip(messages or MESSAGES, rows, strict=True):
        distribution = row.meta("label").distribution or {}
        odds = "  ".join(f"{label.strip()} {p:4.0%}" for label, p in distribution.items())
        print(f"{row['label'].strip():9} {odds}  | {message}")


if __name__ == "__main__":
    with sgl.Model("smollm2") as model, sgl.use(model):
        main(sys.argv[1:])
