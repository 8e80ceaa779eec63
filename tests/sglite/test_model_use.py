"""Which model a run takes, and the life of a model."""

from __future__ import annotations

import asyncio
import threading

import pytest

import sglite as sgl


@pytest.fixture(autouse=True)
def nothing_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sglite.model._latest", None)


def model_that_says(text: str) -> sgl.Model:
    return sgl.Model("scripted", backend="scripted", script={"x": text})


@sgl.function
def program(s: sgl.State) -> None:
    s += sgl.gen("x")


def test_the_innermost_choice_holds() -> None:
    with model_that_says("outer") as outer, model_that_says("inner") as inner:
        with sgl.use(outer) as used:
            assert used is outer is sgl.current_model()
            with sgl.use(inner):
                assert program.run()["x"] == "inner"
                assert program.run(model=outer)["x"] == "outer"
            assert program.run()["x"] == "outer"
        with pytest.raises(sgl.ModelError, match="no model is in use"):
            sgl.current_model()


def test_a_statement_holds_for_other_threads_too() -> None:
    def work() -> None:
        seen.append(sgl.current_model())

    seen: list[sgl.Model] = []
    with model_that_says("x") as model:
        used = sgl.use(model)
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        used.__exit__(None, None, None)
    assert seen == [model]


def test_threads_and_tasks_choose_for_themselves() -> None:
    async def work(text: str) -> str:
        with model_that_says(text) as model, sgl.use(model):
            await asyncio.sleep(0.001)
            return str((await asyncio.to_thread(program.run))["x"])

    async def main() -> list[str]:
        return await asyncio.gather(*(work(text) for text in "abcd"))

    assert asyncio.run(main()) == list("abcd")


def test_the_model_is_settled_when_a_run_is_submitted() -> None:
    with model_that_says("first") as first, model_that_says("second") as second:

        @sgl.function
        def outer(s: sgl.State) -> str:
            assert sgl.current_model() is first
            return str(program.run()["x"])

        with sgl.use(first):
            stream = program.stream()
        with sgl.use(second):
            last = list(stream)[-1]
            assert isinstance(last, sgl.End)
            assert last.row["x"] == "first"
            assert outer.run(model=first).returned == "first"
            rows = outer.run_batch([{}] * 3, model=first)
            assert [row.returned for row in rows] == ["first"] * 3


def test_a_model_named_for_one_run_is_not_in_use_after_it() -> None:
    with model_that_says("x") as model:
        assert program.run(model=model)["x"] == "x"
        assert program.run_batch([{}], model=model)[0]["x"] == "x"
        with pytest.raises(sgl.ModelError, match="no model is in use"):
            program.run()


def test_a_closed_model_is_named() -> None:
    model = model_that_says("x")
    model.close()
    model.close()
    with pytest.raises(sgl.ModelError, match="scripted is closed"):
        program.run(model=model)
    assert "closed" in repr(model)


def test_what_a_model_shows() -> None:
    with model_that_says("four") as model, sgl.use(model):
        assert model.path is None
        program.run()
        assert model.stats()["decoded_tokens"] == 4
        assert model.engine.count_tokens("ä") == 2
        assert model.chat is model.chat


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="backend='scripted'"):
        sgl.Model("smollm2", script={"x": "y"})
    with pytest.raises(TypeError, match=r"sgl\.Model"):
        sgl.use("smollm2")  # type: ignore[arg-type]


def test_what_is_in_use_says_its_name() -> None:
    with sgl.Model("tiny", backend="scripted") as model, sgl.use(model):
        used = sgl.use(model)
        assert repr(used) == "<using tiny>"
        used.__exit__()
