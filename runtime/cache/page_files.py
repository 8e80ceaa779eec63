"""Pages of the KV cache in files, so that a prompt costs nothing after a restart.

    FOLDER / IDENTITY / NAME.pages        written once, under another name first, never changed

    magic 8 bytes | identity 32 | bytes of a page u64 | count u64 | count entries | crc32 u32
    entry: digest of the page 32 | crc32 of its bytes u32
    then, from the next multiple of 4096 on, the pages

A page's digest is a hash over the identity (all that its bytes depend on besides tokens: model,
types, instruction set, kernels), the digest of the page before it and its own token ids. So a page
that is found is the right one: a foreign, damaged or truncated file gives none.
"""

from __future__ import annotations

import logging
import mmap
import os
import secrets
import struct
import time
import zlib
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

import numpy as np
import numpy.typing as npt

logger = logging.getLogger("sglite.cache")

DEFAULT_FILE_BYTES = 4 << 30
"""What the files of a folder may take together; beyond it the ones longest unused go."""

_MAGIC = b"SGLKV\0\0\1"
_HEAD = struct.Struct("<8s32sQQ")
_ENTRY = struct.Struct("<32sI")
_CRC = struct.Struct("<I")
_ALIGN = 4096
_DIGEST_BYTES = 32
_PART_SECONDS = 3600  # then whoever wrote it is gone

UInt8 = npt.NDArray[np.uint8]


def next_digest(before: bytes, key: bytes) -> bytes:
    """The digest of the page with token ids `key` behind the page with digest `before`; the first
    page stands behind the identity."""
    return blake2b(key, key=before, digest_size=_DIGEST_BYTES).digest()


class PageFiles:
    """The pages of one identity (32 bytes) in a folder, `page_bytes` each.

    Raises ValueError where `folder` cannot be a folder that is written to. What goes wrong with
    files later is logged, and costs pages alone.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        identity: bytes,
        page_bytes: int,
        most_bytes: int = DEFAULT_FILE_BYTES,
    ) -> None:
        self.identity = identity
        self._root = Path(folder)
        self._folder = self._root / identity.hex()[:32]
        self._page_bytes = page_bytes
        self._most_bytes = most_bytes
        self._places: dict[bytes, tuple[_File, int, int]] = {}
        """digest -> file, offset, crc32."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ValueError(
                f"prefix_cache={os.fspath(folder)!r} cannot hold the cache: {error}; "
                "name a folder that can be written to"
            ) from error
        for path in sorted(self._folder.glob("*.pages")):
            self._take_in(path)

    def __contains__(self, digest: bytes) -> bool:
        return digest in self._places

    def __len__(self) -> int:
        return len(self._places)

    def read(self, digest: bytes) -> UInt8 | None:
        """The bytes of a page, as they lie in the mapped file; None if there are none."""
        place = self._places.get(digest)
        if place is None:
            return None
        file, offset, crc = place
        data = file.data[offset : offset + self._page_bytes]
        if zlib.crc32(data) != crc:
            logger.warning("%s is damaged; the prefix is computed anew", file.path)
            del self._places[digest]
            return None
        file.note_use()
        return np.frombuffer(data, np.uint8)

    def write(self, pages: list[tuple[bytes, UInt8]]) -> None:
        """Keep pages by their digests, in a file of their own. Raises OSError."""
        path = self._folder / f"{secrets.token_hex(16)}.pages"
        part = path.with_suffix(".part")
        head = _HEAD.pack(_MAGIC, self.identity, self._page_bytes, len(pages))
        head += b"".join(_ENTRY.pack(digest, zlib.crc32(data.data)) for digest, data in pages)
        head += _CRC.pack(zlib.crc32(head))
        try:
            with part.open("wb") as file:
                file.write(head + bytes(-len(head) % _ALIGN))
                for _, data in pages:
                    file.write(data.data)
            part.replace(path)
        except OSError:
            part.unlink(missing_ok=True)
            raise
        self._take_in(path)
        self._make_room(keep=path)

    def _take_in(self, path: Path) -> None:
        try:
            for digest, place in self._entries(path):
                self._places.setdefault(digest, place)
        except (OSError, ValueError, struct.error) as error:
            logger.warning("%s is left alone: %s", path, error)

    def _entries(self, path: Path) -> Iterator[tuple[bytes, tuple[_File, int, int]]]:
        file = _File(path)
        raw = file.data
        magic, identity, page_bytes, count = _HEAD.unpack_from(raw)
        if magic != _MAGIC or identity != self.identity or page_bytes != self._page_bytes:
            raise ValueError("it is not of this version, model or machine")
        end = _HEAD.size + count * _ENTRY.size
        first = -(-(end + _CRC.size) // _ALIGN) * _ALIGN
        if first + count * page_bytes != len(raw):
            raise ValueError("it does not have the length that it says")
        if _CRC.unpack_from(raw, end) != (zlib.crc32(raw[:end]),):
            raise ValueError("its table is damaged")
        for i in range(count):
            digest, crc = _ENTRY.unpack_from(raw, _HEAD.size + i * _ENTRY.size)
            yield digest, (file, first + i * page_bytes, crc)

    def _make_room(self, keep: Path) -> None:
        """Remove the files longest unused, of every identity, and what a crash has left half."""
        files = []
        for path in self._root.glob("*/*.pages"):
            try:
                files.append((path.stat().st_mtime_ns, path.stat().st_size, path))
            except OSError:
                continue  # another process was faster
        total = sum(size for _, size, _ in files)
        for _, size, path in sorted(files):
            if total <= self._most_bytes:
                break
            if path == keep:
                continue
            try:
                path.unlink()
            except OSError:
                continue  # where a mapped file cannot be removed
            total -= size
        for part in self._root.glob("*/*.part"):
            try:
                if time.time() - part.stat().st_mtime > _PART_SECONDS:
                    part.unlink()
            except OSError:
                continue


class _File:
    """A mapped file. It stays readable when another process removes it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._used = False
        with path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.data = memoryview(mapped)

    def note_use(self) -> None:
        """The file was of use: it is among the last to go."""
        if not self._used:
            self._used = True
            try:
                os.utime(self.path)
            except OSError:
                return
