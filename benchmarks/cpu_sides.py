"""The two sides of `cpu.py`: one model each, in a process of its own that is told what to do.

Run as a script by the Python that has the side's package, it reads one request a line and answers
each with one line of JSON. Both sides do the same work on the same token ids: `Ours` on sglite's
CPU backend, `Llama` on the C functions of llama.cpp as llama-cpp-python binds them. What a step
reads is laid out before the clock starts.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

CHUNK = 512  # tokens of one call that fills a context, and of one prefill at most


class Side(ABC):
    """A loaded model. `vocab_size`: ids are below it."""

    vocab_size: int

    @abstractmethod
    def fill(self, contexts: list[list[int]], room: int) -> None:
        """Forget everything; hold these sequences, each with room for so many tokens more."""

    @abstractmethod
    def decode(self, steps: list[list[int]]) -> float:
        """Seconds of these steps, each one token for every sequence, with the logits of all.

        The sequences are as long as before afterwards.
        """

    @abstractmethod
    def prefill(self, tokens: list[int]) -> float:
        """Seconds of one call for these tokens, with the logits of the last.

        The side holds one sequence, without a token but with room for them: `fill([[]], room)`.
        """

    def spin(self, on: bool) -> None:
        """A thread of this process runs Python code all the time, or no longer."""
        self._stop = getattr(self, "_stop", None)
        if self._stop is not None:
            self._stop.set()
            self._thread.join()
            self._stop = None
        if on:
            self._stop = stop = threading.Event()

            def burn() -> None:
                x = 0
                while not stop.is_set():
                    x = (x * 3 + 1) % 1_000_003

            self._thread = threading.Thread(target=burn)
            self._thread.start()


class Ours(Side):
    """sglite's CPU backend."""

    def __init__(self, path: str, threads: int, tokens: int) -> None:
        from sglite.runtime.backends.cpu import CpuBackend
        from sglite.runtime.models.config import ModelConfig
        from sglite.runtime.models.gguf import GGUFFile
        from sglite.runtime.plan import PAGE_SIZE, PlanRow, flatten

        self._page, self._row, self._flatten = PAGE_SIZE, PlanRow, flatten
        gguf = GGUFFile.open(path)
        config = ModelConfig.from_gguf(gguf)
        self.vocab_size = config.vocab_size
        self._backend = CpuBackend(gguf, config, threads=threads, pages=-(-tokens // PAGE_SIZE))
        self._tables: list[list[int]] = []
        self._lengths: list[int] = []

    def _plan(self, rows: list[tuple[int, list[int], int]]) -> Any:
        """Of (sequence, tokens, tokens before them)."""
        from array import array

        return self._flatten(
            self._row(array("i", tokens), before, array("i", self._tables[i]), 1)
            for i, tokens, before in rows
        )

    def fill(self, contexts: list[list[int]], room: int) -> None:
        pages = [-(-(len(tokens) + room) // self._page) for tokens in contexts]
        starts = [sum(pages[:i]) for i in range(len(pages))]
        self._tables = [
            list(range(start, start + n)) for start, n in zip(starts, pages, strict=True)
        ]
        self._lengths = [len(tokens) for tokens in contexts]
        for i, tokens in enumerate(contexts):
            for at in range(0, len(tokens), CHUNK):
                self._backend.forward(self._plan([(i, tokens[at : at + CHUNK], at)]))

    def decode(self, steps: list[list[int]]) -> float:
        plans = [
            self._plan([(i, [token], self._lengths[i] + n) for i, token in enumerate(step)])
            for n, step in enumerate(steps)
        ]
        start = time.perf_counter()
        for plan in plans:
            self._backend.forward(plan)
        return time.perf_counter() - start

    def prefill(self, tokens: list[int]) -> float:
        plan = self._plan([(0, tokens, 0)])
        start = time.perf_counter()
        self._backend.forward(plan)
        return time.perf_counter() - start


class Llama(Side):
    """llama.cpp, with a KV cache in f16 and a stream of it for each sequence, as ours has."""

    def __init__(self, path: str, threads: int, tokens: int) -> None:
        import llama_cpp

        self._c = c = llama_cpp
        self._log = c.llama_log_callback(lambda *_: None)
        c.llama_log_set(self._log, None)
        c.llama_backend_init()
        self._model = c.llama_model_load_from_file(path.encode(), c.llama_model_default_params())
        if not self._model:
            raise RuntimeError(f"llama.cpp does not load {path}")
        self.vocab_size = c.llama_vocab_n_tokens(c.llama_model_get_vocab(self._model))
        self._threads = threads
        self._context: Any = None
        self._lengths: list[int] = []

    def _open(self, sequences: int, tokens: int) -> None:
        if self._context is not None:
            self._c.llama_free(self._context)
        params = self._c.llama_context_default_params()
        params.n_ctx = sequences * -(-tokens // 256) * 256
        params.n_batch = params.n_ubatch = CHUNK
        params.n_seq_max = sequences
        params.n_threads = params.n_threads_batch = self._threads
        params.swa_full = False  # keep a window's keys alone where layers have windows
        self._context = self._c.llama_init_from_model(self._model, params)
        if not self._context:
            raise RuntimeError("llama.cpp makes no context")

    def _batch(self, entries: list[tuple[int, int, int, bool]]) -> Any:
        """Of (token, position, sequence, whether its logits are wanted)."""
        batch = self._c.llama_batch_init(len(entries), 0, 1)
        batch.n_tokens = len(entries)
        for i, (token, position, sequence, wanted) in enumerate(entries):
            batch.token[i], batch.pos[i], batch.logits[i] = token, position, wanted
            batch.n_seq_id[i], batch.seq_id[i][0] = 1, sequence
        return batch

    def _run(self, batches: list[Any]) -> float:
        c, context = self._c, self._context
        start = time.perf_counter()
        for batch in batches:
            if c.llama_decode(context, batch) != 0:
                raise RuntimeError("llama_decode failed")
            c.llama_get_logits(context)  # waits for them
        seconds = time.perf_counter() - start
        for batch in batches:
            c.llama_batch_free(batch)
        return seconds

    def fill(self, contexts: list[list[int]], room: int) -> None:
        self._open(len(contexts), max(map(len, contexts)) + room)
        self._lengths = [len(tokens) for tokens in contexts]
        for i, tokens in enumerate(contexts):
            for at in range(0, len(tokens), CHUNK):
                piece = list(enumerate(tokens[at : at + CHUNK], at))
                entries = [(token, n, i, n == piece[-1][0]) for n, token in piece]
                self._run([self._batch(entries)])

    def decode(self, steps: list[list[int]]) -> float:
        seconds = self._run(
            [
                self._batch([(t, self._lengths[i] + n, i, True) for i, t in enumerate(step)])
                for n, step in enumerate(steps)
            ]
        )
        memory = self._c.llama_get_memory(self._context)
        for i, length in enumerate(self._lengths):
            if not self._c.llama_memory_seq_rm(memory, i, length, -1):
                raise RuntimeError("llama.cpp does not cut a sequence")
        return seconds

    def prefill(self, tokens: list[int]) -> float:
        self._c.llama_memory_clear(self._c.llama_get_memory(self._context), False)
        last = len(tokens) - 1
        return self._run([self._batch([(t, n, 0, n == last) for n, t in enumerate(tokens)])])

    def requantise(self, source: str, target: str) -> None:
        """Write the model of `source` with matrices of Q4_0, which llama.cpp repacks at load."""
        import ctypes

        params = self._c.llama_model_quantize_default_params()
        params.ftype = self._c.LLAMA_FTYPE_MOSTLY_Q4_0
        params.allow_requantize = True
        params.nthread = self._threads
        status = self._c.llama_model_quantize(
            source.encode(), target.encode(), ctypes.byref(params)
        )
        if status != 0:
            raise RuntimeError(f"llama.cpp does not requantise {source}")


class Process:
    """A side in a process of its own; calls are handed to it by name. Close it once."""

    def __init__(self, kind: str, python: str, path: Path, threads: int, tokens: int) -> None:
        command = [python, __file__, kind, str(path), str(threads), str(tokens)]
        self._name = f"{kind} on {path}"
        self._child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.vocab_size = int(self._answer())

    def call(self, name: str, *arguments: Any) -> Any:
        """What the side's method returns. Raises RuntimeError with what it said it could not do."""
        assert self._child.stdin is not None
        self._child.stdin.write(json.dumps([name, *arguments]) + "\n")
        self._child.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        if not line:
            raise RuntimeError(f"the process of {self._name} ended early: see its error above")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["value"]

    def close(self) -> None:
        """End the process."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.close()
        self._child.wait()
        self._child.stdout.close()

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def main() -> None:
    kind, path, threads, tokens = sys.argv[1:]
    side = {"ours": Ours, "llama": Llama}[kind](path, int(threads), int(tokens))
    print(json.dumps({"value": side.vocab_size}), flush=True)
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        try:
            answer = {"value": getattr(side, name)(*arguments)}
        except RuntimeError as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)
    side.spin(False)


if __name__ == "__main__":
    main()
