"""The prefix cache in a folder: it finds what it saved, and takes nothing else for it."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from fakes import FakeBackend
from harness import drain, make_engine, run, submit, text
from hypothesis import given, settings
from hypothesis import strategies as st

import sglite as sgl
from sglite.runtime.cache import page_files
from sglite.runtime.cache.page_files import PageFiles, next_digest
from sglite.runtime.models.file_digest import digest_of
from sglite.runtime.plan import PAGE_SIZE
from sglite.runtime.segment import Gen

LONG = "the yes no " * 30


def hole(name: str = "a") -> Gen:
    return Gen(name, 7, None, 6)


def engine_in(folder: Path, **options):
    backend = FakeBackend(
        options.pop("pages", 64), max_context=4096, name=options.pop("name", "fake")
    )
    return make_engine(backend, prefix_cache=folder, **options), backend


def outcome(engine, *parts: str) -> tuple[tuple[int, ...] | None, int]:
    done = run(engine, text(*parts), hole())
    return done.ids, done.results[0].usage.cached_tokens


def test_a_prompt_is_not_computed_again_after_a_restart(tmp_path: Path) -> None:
    engine, backend = engine_in(tmp_path)
    expected, cached = outcome(engine, LONG)
    assert cached == 0
    computed = backend.computed
    engine.shutdown()
    engine, backend = engine_in(tmp_path)
    found, cached = outcome(engine, LONG)
    assert found == expected
    assert cached >= len(LONG) // 11 * 3 // PAGE_SIZE * PAGE_SIZE - PAGE_SIZE
    assert backend.computed <= computed - cached
    assert engine.stats()["pages_restored"] == cached // PAGE_SIZE
    engine.shutdown()


def test_what_was_restored_is_not_saved_again(tmp_path: Path) -> None:
    for _ in range(3):
        engine, _ = engine_in(tmp_path)
        outcome(engine, LONG)
        engine.shutdown()
    assert len(list(tmp_path.glob("*/*.pages"))) == 1


def test_another_model_finds_nothing(tmp_path: Path) -> None:
    for name in ("one", "two"):
        engine, _ = engine_in(tmp_path, name=name)
        assert outcome(engine, LONG)[1] == 0
        engine.shutdown()
    # Not even in a file that was put into its folder.
    identities = [FakeBackend(name=name).page_identity(tmp_path) for name in ("one", "two")]
    one, two = (tmp_path / identity.hex()[:32] for identity in identities)
    for file in two.glob("*.pages"):
        file.rename(one / file.name)
    own = len(PageFiles(tmp_path, identities[0], PAGE_SIZE * 8))
    assert len(list(one.glob("*.pages"))) == 2
    for file in one.glob("*.pages"):
        file.rename(two / file.name)
    assert len(PageFiles(tmp_path, identities[1], PAGE_SIZE * 8)) == own


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_a_damaged_file_is_a_miss(data: st.DataObject, tmp_path_factory) -> None:
    folder = tmp_path_factory.mktemp("cache")
    engine, _ = engine_in(folder)
    expected, _ = outcome(engine, LONG)
    engine.shutdown()
    (file,) = folder.glob("*/*.pages")
    raw = bytearray(file.read_bytes())
    if data.draw(st.booleans(), label="cut"):
        raw = raw[: data.draw(st.integers(0, len(raw) - 1), label="length")]
    else:
        for _ in range(data.draw(st.integers(1, 3), label="flips")):
            at = data.draw(st.integers(0, len(raw) - 1), label="at")
            raw[at] ^= 1 << data.draw(st.integers(0, 7), label="bit")
    file.write_bytes(raw)
    engine, _ = engine_in(folder)
    assert outcome(engine, LONG)[0] == expected
    engine.shutdown()


def test_restarts_under_pressure_change_no_token(tmp_path: Path) -> None:
    rng = random.Random(5)
    words = ["the ", "yes ", "no ", "12 ", "abcd "]
    prompts = ["".join(rng.choices(words, k=40)) for _ in range(3)]
    asked = [p + "".join(rng.choices(words, k=rng.randrange(30))) for p in prompts * 4]
    plain = make_engine(FakeBackend(max_context=4096), prefix_cache=False)
    expected = [outcome(plain, prompt)[0] for prompt in asked]
    for _ in range(3):
        engine, _ = engine_in(tmp_path, pages=14)
        sequences = [engine.open() for _ in asked]
        done = [
            submit(engine, s, text(prompt), hole())
            for s, prompt in zip(sequences, asked, strict=True)
        ]
        drain(engine)
        assert [d.ids for d in done] == expected
        for sequence in sequences:
            engine.close(sequence)
        drain(engine)
        engine.shutdown()


def test_an_idle_engine_saves_without_being_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sglite.runtime.engine.SAVE_AFTER", 0.01)
    engine, _ = engine_in(tmp_path, threaded=True, check=False)
    sequence = engine.open()
    submit(engine, sequence, text(LONG), hole())
    for _ in range(1000):
        if engine.stats()["pages_saved"]:
            break
        page_files.time.sleep(0.01)
    assert list(tmp_path.glob("*/*.pages"))
    engine.shutdown()


def test_the_folder_keeps_to_its_size(tmp_path: Path) -> None:
    page = np.zeros(4096, np.uint8)
    files = PageFiles(tmp_path, bytes(32), 4096, most_bytes=10 * 4096)
    digests = [next_digest(bytes(32), bytes([i])) for i in range(8)]
    for digest in digests:
        files.write([(digest, page)])
    assert sum(p.stat().st_size for p in tmp_path.glob("*/*.pages")) <= 10 * 4096
    assert digests[-1] in PageFiles(tmp_path, bytes(32), 4096)


def test_a_path_that_cannot_be_a_folder_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(ValueError, match="name a folder that can be written to"):
        engine_in(file)


def test_a_disk_that_is_full_costs_the_cache_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(self, pages) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(PageFiles, "write", full)
    engine, _ = engine_in(tmp_path)
    outcome(engine, LONG)
    engine.shutdown()
    assert "No space left" in caplog.text


def test_the_digest_of_a_file_is_remembered_while_it_stays(tmp_path: Path) -> None:
    file, memo = tmp_path / "model", tmp_path / "digests.json"
    file.write_bytes(b"one")
    first = digest_of(file, memo)
    assert digest_of(file, memo) == first == digest_of(file, tmp_path / "none.json")
    file.write_bytes(b"another")
    assert digest_of(file, memo) != first
    memo.write_text("no JSON")
    assert digest_of(file, memo) == digest_of(file, tmp_path / "none.json")


@sgl.function
def ask(s: sgl.State, prompt: str) -> None:
    s += prompt + sgl.gen("a", max_tokens=8)


def test_on_the_small_model(smollm2_path: Path, tmp_path: Path) -> None:
    prompt = "A long rule for all letters: answer in one word. " * 20
    answers = []
    for saved in (False, tmp_path, tmp_path):
        with (
            sgl.Model(smollm2_path, kv_memory=1 << 26, prefix_cache=saved) as model,
            sgl.use(model),
        ):
            row = ask.run(prompt=prompt)
            answers.append(row["a"])
            cached = row.usage.cached_tokens
    assert answers[0] == answers[1] == answers[2]
    assert cached > 200
