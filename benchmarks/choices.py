"""Which method of `select` picks the right choice: six small labelled tasks, two models.

A row compares a method with the mean over the tokens, which is SGLang's default; spread is the
standard error of the difference. `too long` and `too short` say how much more often a method picks
the longest (shortest) choice than that is right. `trailing space`: how often `prob` picks the same
where the space before a choice stands at the end of the prompt instead.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from choice_tasks import Item, tasks
from rows import Row, arguments, report

import sglite as sgl

MODELS = ("smollm2", "gemma3-270m")
METHODS: dict[str, tuple[str, bool]] = {
    "prob": ("prob", False),
    "prob, until": ("prob", True),
    "mean": ("mean", False),
    "greedy": ("greedy", False),
    "greedy, until": ("greedy", True),
    "pmi": ("pmi", False),
}
PEER = "mean"


@sgl.function
def pick(s: Any, prompt: str, choices: Sequence[str], method: str, until: str) -> None:
    s += prompt + sgl.select("choice", choices, method=method, until=until or ())


def picks(items: Sequence[Item], method: str, until: bool, *, spaced: bool = True) -> list[str]:
    """What is picked for every item; not `spaced`: the space stands in the prompt."""
    rows = pick.run_batch(
        [
            {
                "prompt": item.prompt if spaced else f"{item.prompt} ",
                "choices": item.choices if spaced else [c.lstrip() for c in item.choices],
                "method": method,
                "until": item.until if until else "",
            }
            for item in items
        ]
    )
    return [row["choice"] for row in rows]


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--model", action="append", choices=MODELS, help="only this one")
    args = parser.parse_args()
    made = tasks(12 if args.quick else None)
    rows: list[Row] = []
    for name in args.model or MODELS:
        with sgl.Model(name) as model, sgl.use(model):
            rows += _rows_of(name, made)
    report(rows, args.json)


def _rows_of(model: str, made: dict[str, list[Item]]) -> list[Row]:
    found = {
        label: {task: picks(items, method, until) for task, items in made.items()}
        for label, (method, until) in METHODS.items()
    }
    rows = []
    every = [item for items in made.values() for item in items]
    whole = {label: [c for chosen in by.values() for c in chosen] for label, by in found.items()}
    for label, by_task in found.items():
        for task, items in made.items():
            rows.append(
                _right(f"{model}, {task}, {label}", items, by_task[task], found[PEER][task])
            )
        rows.append(_right(f"{model}, all, {label}", every, whole[label], whole[PEER]))
        for word, of in (("long", max), ("short", min)):
            mine, peer = (_too_often(every, whole[side], of) for side in (label, PEER))
            name = f"{model}, too {word}, {label}"
            ratio = (abs(peer) + 0.01) / (abs(mine) + 0.01)
            rows.append(Row(name, "share", mine, peer, PEER, ratio, 0.0))
    normal = found["prob"]["capitals"]
    trailing = picks(made["capitals"], "prob", False, spaced=False)
    same = statistics.mean(a.lstrip() == b for a, b in zip(normal, trailing, strict=True))
    rows.append(Row(f"{model}, trailing space, prob", "share", same, 1.0, "no space", same, 0.0))
    return rows


def _right(name: str, items: Sequence[Item], mine: list[str], peer: list[str]) -> Row:
    right = [
        [c == item.answer for c, item in zip(side, items, strict=True)] for side in (mine, peer)
    ]
    ours, theirs = (statistics.mean(side) for side in right)
    differences = [int(a) - int(b) for a, b in zip(*right, strict=True)]
    error = statistics.pstdev(differences) / len(differences) ** 0.5
    return Row(name, "share right", ours, theirs, PEER, ours / max(theirs, 0.01), error)


def _too_often(items: Sequence[Item], chosen: list[str], of: Any) -> float:
    """How much more often the longest (shortest) choice is picked than it is right."""
    extreme = [of(item.choices, key=len) for item in items]
    picked = statistics.mean(c == e for c, e in zip(chosen, extreme, strict=True))
    return picked - statistics.mean(i.answer == e for i, e in zip(items, extreme, strict=True))


if __name__ == "__main__":
    main()
