"""Compiled programs and replays on a real model: the same ids, log probabilities and scores."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

import sglite as sgl

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def small(smollm2_path: Path) -> Iterator[sgl.Model]:
    with sgl.Model(smollm2_path, kv_memory=1 << 28) as model:
        yield model


@sgl.function
def mixed(s: sgl.State, subject: str, kinds: list[str]) -> Any:
    s += sgl.system("You know facts about ", subject, ".")
    with s.user():
        s += f"Tell me about {subject.upper()}, please."
    with s.assistant():
        s += sgl.gen("fact", max_tokens=8, stop="\n") + " It is " + sgl.gen("age", int) + " years."
        s += sgl.select("kind", [f" {kind}" for kind in kinds])
        # Text that ends in the middle of a word waits, and every branch heals it for itself.
        s += f" In sum, {subject[:3]} are inter"
        branches = s.fork(["a", "b"])
        for name, branch in branches.items():
            branch += sgl.gen("more", max_tokens=6, temperature=1.0)
            branch += f" ({name})" + sgl.gen("live", Literal["yes", "no"])
        s.join(branches)
    s += f"\n{s['more']['b']!r} and {s['age']:,}:" + sgl.gen("end", max_tokens=4)
    s += sgl.gen("verdict", grammar=sgl.one_of("good", "bad", name="vote") + sgl.regex("!{0,2}"))
    return [s["more"], s["vote"]]


def everything(row: sgl.Result) -> Any:
    metas = [
        (meta.name, meta.ids, meta.logprobs, meta.distribution, meta.finish, meta.healed)
        for name in row.variables
        for meta in row.metas(name)
    ]
    return row.ids, metas, row.text(), row.variables, row.returned, row.messages()


def test_graphs_give_the_same_bits(small: sgl.Model) -> None:
    options = sgl.Options(seed=7)
    kinds = ["animal", "plant"]
    rows = [{"subject": "oaks"}, {"subject": "the moon"}, {"subject": "cats"}]
    wanted = [
        everything(mixed.run(**row, kinds=kinds, row=i, options=options, model=small))
        for i, row in enumerate(rows)
    ]
    assert wanted[0] != wanted[1]
    for passes in ((), ("release",), None):
        graph = mixed.compile(kinds=kinds, passes=passes)
        for each in (graph, sgl.Graph.from_json(graph.to_json())):
            together = each.run_batch(rows, options=options, model=small)
            assert [everything(row) for row in together] == wanted


def test_each_fork_heals_for_itself(small: sgl.Model) -> None:
    @sgl.function
    def forked(s: sgl.State) -> None:
        s += "The capital of France is the city of "
        for branch in s.fork(2):
            branch += sgl.gen("city", max_tokens=3)

    @sgl.function
    def straight(s: sgl.State) -> None:
        s += "The capital of France is the city of " + sgl.gen("city", max_tokens=3)

    row = forked.run(model=small)
    alone = straight.run(model=small)
    assert alone.meta("city").healed
    branches = [meta for fork in row._record.forks[0] for meta in [next(fork.slots()).done]]
    for meta in branches:
        assert (meta.ids, meta.healed) == (alone.meta("city").ids, alone.meta("city").healed)


def test_a_trace_is_run_again_without_a_difference(small: sgl.Model) -> None:
    row = mixed.run("oaks", ["animal", "plant"], options=sgl.Options(seed=2), model=small)
    trace = row.trace()
    again = sgl.replay(trace)
    assert everything(again)[:4] == everything(row)[:4]
    assert again.messages() == row.messages()
    assert again.model == {"name": row.model["name"], "path": small.path}
    repeated = sgl.replay(trace, small)
    assert repeated.difference is None
    assert repeated.ids == row.ids
