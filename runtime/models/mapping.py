"""Files mapped into memory."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

from sglite.errors import ModelError


def map_file(path: Path) -> mmap.mmap:
    """The file, to be read. Raises ModelError where it cannot be opened or is empty."""
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                raise ModelError(f"{path}: the file is empty (byte 0)")
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: the file cannot be opened: {error}") from error
