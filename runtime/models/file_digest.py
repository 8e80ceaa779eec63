"""What is in a file, as a digest that is worked out once for as long as the file stays the same."""

from __future__ import annotations

import json
import os
from hashlib import blake2b, file_digest
from pathlib import Path


def digest_of(path: Path, memo: Path) -> str:
    """The BLAKE2b-256 digest of a file, in hex. `memo` is a JSON file that remembers it by name,
    size and time of change; it need not exist. Raises OSError for a file that cannot be read."""
    status = path.stat()
    key = f"{path.resolve()} {status.st_size} {status.st_mtime_ns}"
    known = _known(memo)
    if key in known:
        return known[key]
    with path.open("rb") as file:
        digest = file_digest(file, lambda: blake2b(digest_size=32)).hexdigest()
    part = memo.with_name(f"{memo.name}.{os.getpid()}")
    try:
        part.write_text(json.dumps(known | {key: digest}, indent=0))
        part.replace(memo)
    except OSError:
        part.unlink(missing_ok=True)
    return digest


def _known(memo: Path) -> dict[str, str]:
    try:
        known = json.loads(memo.read_text())
    except (OSError, ValueError):
        return {}
    if not isinstance(known, dict):
        return {}
    return {key: value for key, value in known.items() if isinstance(value, str)}
