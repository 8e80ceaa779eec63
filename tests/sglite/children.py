"""Processes of tests that send them signals."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def child(command: Sequence[str], cwd: Path, **pipes: int) -> Iterator[subprocess.Popen[str]]:
    """A process that does not outlive the block. SIGINT interrupts it, also where the tests run in
    the background of a shell, which lets all that they start ignore it."""
    with subprocess.Popen(
        command, cwd=cwd, text=True, preexec_fn=_take_interrupts, **pipes
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _take_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
