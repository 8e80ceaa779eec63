"""The pages of the KV cache and who owns them.

    total = free + used;   used = tables only + tree and tables + tree only (reclaimable)

A page has one reference for each block table that lists it, one if the prefix tree holds it, and
one for each lease or pending copy. Only this folder changes references. What the pages hold is the
business of the backend.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt


class PagePool:
    """Reference counts of pages 0 .. total - 1 and the list of the free ones."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.reclaimable = 0
        """Pages that only the prefix tree holds."""
        self._owners = [0] * total
        self._in_tree = bytearray(total)
        self._free = list(range(total - 1, -1, -1))

    @property
    def free(self) -> int:
        """Pages that nobody holds."""
        return len(self._free)

    def owners(self, page: int) -> int:
        """References to `page`."""
        return self._owners[page]

    def take(self) -> int:
        """A free page with one reference. The caller has made sure that there is one."""
        page = self._free.pop()
        self._owners[page] = 1
        return page

    def retain(self, page: int) -> None:
        """One more owner."""
        self._owners[page] += 1
        if self._in_tree[page] and self._owners[page] == 2:
            self.reclaimable -= 1

    def release(self, page: int) -> None:
        """One owner less; the page is free when it was the last."""
        self._owners[page] -= 1
        left = self._owners[page]
        if left == 0:
            self._free.append(page)
        elif left == 1 and self._in_tree[page]:
            self.reclaimable += 1

    def enter_tree(self, page: int) -> None:
        """The prefix tree becomes an owner beside the table that computed the page."""
        self.retain(page)
        self._in_tree[page] = 1

    def leave_tree(self, page: int) -> None:
        """The prefix tree lets go of the page."""
        if self._owners[page] == 1:
            self.reclaimable -= 1
        self._in_tree[page] = 0
        self.release(page)

    def check_integrity(self, tree: Iterable[int], others: Iterable[int]) -> None:
        """Raise RuntimeError unless references equal what tree and other owners hold, and free and
        referenced pages partition the pool. `others` names a page once for each reference."""
        in_tree = set(tree)
        expected = Counter(others)
        expected.update(in_tree)
        free = set(self._free)
        wrong = [p for p in range(self.total) if self._owners[p] != expected[p]]
        if wrong:
            page = wrong[0]
            raise RuntimeError(
                f"page {page} has {self._owners[page]} references, {expected[page]} owners"
            )
        if len(free) != len(self._free) or free != {
            p for p in range(self.total) if not self._owners[p]
        }:
            raise RuntimeError("the free list is not the set of pages without references")
        if in_tree != {p for p in range(self.total) if self._in_tree[p]}:
            raise RuntimeError("the pool's marks differ from the pages of the prefix tree")
        if self.reclaimable != sum(self._owners[p] == 1 for p in in_tree):
            raise RuntimeError(f"reclaimable is {self.reclaimable}, not what the tree alone holds")


class PageCopies:
    """Copies to make before the next forward pass. The sources stay referenced until then, so none
    is overwritten before it was copied."""

    def __init__(self, pool: PagePool) -> None:
        self._pool = pool
        self._source_of: dict[int, int] = {}

    def add(self, source: int, destination: int) -> None:
        """Plan to copy a page. Whoever was to get `destination` before has given it back."""
        self._pool.retain(source)
        before = self._source_of.pop(destination, None)
        if before is not None:
            self._pool.release(before)
        self._source_of[destination] = source

    def flush(self, copy: Callable[[npt.NDArray[np.int32]], None]) -> None:
        """Make the copies with `copy` (int32 [N, 2]) and let go of the sources."""
        if not self._source_of:
            return
        try:
            copy(np.array([(s, d) for d, s in self._source_of.items()], np.int32))
        finally:
            for page in self.held():
                self._pool.release(page)
            self._source_of.clear()

    def held(self) -> list[int]:
        """The sources of the pending copies, one entry a reference."""
        return list(self._source_of.values())
