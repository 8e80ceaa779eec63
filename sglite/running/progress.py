"""The progress bar of a batch: rows a second, time left, and how much of the prompts was reused."""

from __future__ import annotations

from collections.abc import Sized
from typing import TYPE_CHECKING, NoReturn

from sglite.running.result import Result

if TYPE_CHECKING:
    from tqdm import tqdm


class Bar:
    """A progress bar, or nothing."""

    def __init__(self, rows: object, title: str, *, shown: bool) -> None:
        self._bar: tqdm[NoReturn] | None = None
        self._prompt = self._cached = self._failed = 0
        if shown:
            from tqdm import tqdm

            total = len(rows) if isinstance(rows, Sized) else None
            self._bar = tqdm(total=total, desc=title, unit="row")

    def advance(self, result: Result, *, recalled: bool = False) -> None:
        """A row is done; `recalled`: it had been done before, by an earlier run of the batch."""
        if self._bar is None:
            return
        if recalled:  # neither its time nor its tokens belong to this run
            self._bar.initial += 1
        else:
            usage = result.usage
            self._prompt += usage.prompt_tokens
            self._cached += usage.cached_tokens
        self._failed += result.error is not None
        said = {"reused": f"{self._cached / self._prompt:.0%}"} if self._prompt else {}
        if self._failed:
            said["failed"] = str(self._failed)
        self._bar.set_postfix(said, refresh=False)
        self._bar.update()

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
