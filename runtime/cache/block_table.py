"""The pages of one sequence, in order. Forks share them; a shared page is copied before it is
written.

    position   0        16       32       48
    pages      [ p0    ][ p1    ][ p2 .. ]
    nodes      [ n0    ][ n1    ]            the leading pages that are also in the prefix tree
"""

from __future__ import annotations

from array import array

from sglite.runtime.cache.pages import PageCopies, PagePool
from sglite.runtime.cache.prefix_tree import Lease, Node
from sglite.runtime.plan import PAGE_SIZE


def pages_for(tokens: int) -> int:
    """Pages that `tokens` tokens need."""
    return -(-tokens // PAGE_SIZE)


class BlockTable:
    """`pages`: int32 array of page numbers. `nodes`: tree nodes of its leading pages; it owns
    each of them, so none can be evicted while the table lives."""

    __slots__ = ("_pool", "nodes", "pages")

    def __init__(self, pool: PagePool) -> None:
        self._pool = pool
        self.pages = array("i")
        self.nodes: list[Node] = []

    def fork(self, tokens: int) -> BlockTable:
        """A table that shares the pages of the first `tokens` tokens."""
        other = BlockTable(self._pool)
        other.pages = self.pages[: pages_for(tokens)]
        other.nodes = self.nodes[: tokens // PAGE_SIZE]
        for page in other.pages:
            self._pool.retain(page)
        return other

    def truncate(self, tokens: int) -> None:
        """Give back every page beyond the first `tokens` tokens."""
        keep = pages_for(tokens)
        for page in self.pages[keep:]:
            self._pool.release(page)
        del self.pages[keep:]
        del self.nodes[tokens // PAGE_SIZE :]

    def adopt(self, lease: Lease) -> None:
        """Hold the full pages of a match instead of the present ones."""
        self.truncate(0)
        self.nodes = list(lease.nodes)
        self.pages = array("i", [node.page for node in lease.nodes])
        for page in self.pages:
            self._pool.retain(page)

    def fresh_pages(self, start: int, stop: int) -> int:
        """Free pages that `make_writable(start, stop)` takes."""
        first = start // PAGE_SIZE
        shared = first < len(self.pages) and self._pool.owners(self.pages[first]) > 1
        return max(0, pages_for(stop) - len(self.pages)) + shared

    def make_writable(self, start: int, stop: int, copies: PageCopies) -> None:
        """Own alone the pages of the positions start .. stop - 1. Those after the first are never
        shared: forks and the tree take only pages that hold computed tokens."""
        first = start // PAGE_SIZE
        if first < len(self.pages) and self._pool.owners(self.pages[first]) > 1:
            shared, mine = self.pages[first], self._pool.take()
            if start % PAGE_SIZE:
                copies.add(shared, mine)
            self.pages[first] = mine
            self._pool.release(shared)
        for _ in range(pages_for(stop) - len(self.pages)):
            self.pages.append(self._pool.take())

    def append_copy(self, source: int, copies: PageCopies) -> None:
        """Go on with a copy of `source`."""
        mine = self._pool.take()
        copies.add(source, mine)
        self.pages.append(mine)

    def link(self, node: Node) -> None:
        """The next page without a node is in the tree as `node`; where another table computed the
        same tokens first, its page is shared and ours given back."""
        index = len(self.nodes)
        mine = self.pages[index]
        if node.page != mine:
            self._pool.retain(node.page)
            self.pages[index] = node.page
            self._pool.release(mine)
        self.nodes.append(node)
