"""The radix tree over token ids: which pages hold the KV of which prefix.

A node is one full page; its key is the bytes of the page's int32 token ids. The children of a node
are also kept in sorted order, because the longest common prefix with any query stands right beside
the place where the query would be inserted: so a partial match costs one bisection.

Eviction takes the least recently used leaf that nobody else holds. The heap of leaves is lazy: an
entry whose node was used or has grown since is put right when it surfaces.
"""

from __future__ import annotations

import heapq
from array import array
from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from sglite.runtime.cache.page_files import next_digest
from sglite.runtime.cache.pages import PagePool
from sglite.runtime.plan import PAGE_SIZE

_ID_BYTES = 4


class Node:
    """A full page under the path of its ancestors."""

    __slots__ = ("children", "digest", "key", "page", "parent", "queued", "sorted_keys", "used")

    def __init__(self, key: bytes, page: int, parent: Node | None) -> None:
        self.key = key
        self.page = page
        self.parent = parent
        self.children: dict[bytes, Node] = {}
        self.sorted_keys: list[bytes] = []
        self.used = 0
        self.queued = False
        self.digest = b""
        """Of this page and all before it, see `page_files`; empty where no pages are saved."""


class SavedPages(Protocol):
    """Pages that outlive the process."""

    identity: bytes

    def __contains__(self, digest: bytes) -> bool:
        """Whether a page may be there."""

    def restore(self, digest: bytes, page: int) -> bool:
        """Write it into a page of the pool; False if it is not there after all."""


@dataclass(slots=True)
class Lease:
    """A match: `tokens` ids, of which the full pages are those of `nodes` and the rest are the
    first ids of `partial`. The pages stay alive until `release`."""

    pool: PagePool
    nodes: list[Node] = field(default_factory=list)
    partial: Node | None = None
    tokens: int = 0

    def pages(self) -> list[int]:
        """The pages it keeps alive."""
        nodes = self.nodes if self.partial is None else [*self.nodes, self.partial]
        return [node.page for node in nodes]

    def drop_partial(self) -> None:
        """Keep only the full pages."""
        if self.partial is not None:
            self.pool.release(self.partial.page)
            self.partial = None
            self.tokens = len(self.nodes) * PAGE_SIZE

    def release(self) -> None:
        """Let go of everything."""
        for page in self.pages():
            self.pool.release(page)
        self.nodes, self.partial, self.tokens = [], None, 0


def page_key(ids: array[int], index: int) -> bytes:
    """The key of the page `index` of a sequence."""
    return ids[index * PAGE_SIZE : (index + 1) * PAGE_SIZE].tobytes()


class PrefixTree:
    """Owns one reference to the page of every node."""

    def __init__(self, pool: PagePool, saved: SavedPages | None = None) -> None:
        self._pool = pool
        self._saved = saved
        self.root = Node(b"", -1, None)
        if saved is not None:
            self.root.digest = saved.identity
        self.unsaved: dict[Node, None] = {}
        """Nodes of which `saved` has no page yet, each behind its parent."""
        self._clock = 0
        self._tick = 0
        self._leaves: list[tuple[int, int, Node]] = []

    def match(self, ids: array[int]) -> Lease:
        """The longest known prefix of `ids`, at most len(ids) - 1 tokens of it."""
        self._clock += 1
        lease = Lease(self._pool)
        limit = len(ids) - 1
        node = self.root
        while (len(lease.nodes) + 1) * PAGE_SIZE <= limit:
            key = page_key(ids, len(lease.nodes))
            child = node.children.get(key) or self._restored(node, key)
            if child is None:
                break
            self._use(child)
            self._pool.retain(child.page)
            lease.nodes.append(child)
            node = child
        done = len(lease.nodes) * PAGE_SIZE
        lease.partial, shared = self._closest(node, ids[done : min(done + PAGE_SIZE, limit)])
        if lease.partial is not None:
            self._pool.retain(lease.partial.page)
        lease.tokens = done + shared
        return lease

    def _restored(self, parent: Node, key: bytes) -> Node | None:
        """The node of a saved page, in memory again."""
        if self._saved is None:
            return None
        digest = next_digest(parent.digest, key)
        if digest not in self._saved or not (self._pool.free or self.evict()):
            return None
        page = self._pool.take()
        try:
            if not self._saved.restore(digest, page):
                return None
            return self.extend(parent, key, page)
        finally:
            self._pool.release(page)

    def extend(self, parent: Node | None, key: bytes, page: int) -> Node:
        """The node for `key` below `parent` (None: the root). Makes it, with `page`, if missing."""
        above = parent or self.root
        node = above.children.get(key)
        self._clock += 1
        if node is not None:
            self._use(node)
            return node
        node = Node(key, page, above)
        above.children[key] = node
        if self._saved is not None:
            node.digest = next_digest(above.digest, key)
            if node.digest not in self._saved:
                self.unsaved[node] = None
        insort(above.sorted_keys, key)
        self._pool.enter_tree(page)
        self._use(node)
        self._queue(node)
        return node

    def evict(self) -> bool:
        """Free the least recently used page that only the tree holds; False if there is none."""
        busy: list[Node] = []
        victim: Node | None = None
        while self._leaves and victim is None:
            used, _, node = heapq.heappop(self._leaves)
            node.queued = False
            if node.children:
                continue
            if node.used != used:
                self._queue(node)
            elif self._pool.owners(node.page) > 1:
                busy.append(node)
            else:
                victim = node
        for node in busy:
            # Held by a running sequence: as good as used now, so it does not surface every time.
            self._use(node)
            self._queue(node)
        if victim is None:
            return False
        parent = victim.parent
        assert parent is not None
        del parent.children[victim.key]
        del parent.sorted_keys[bisect_left(parent.sorted_keys, victim.key)]
        if parent is not self.root and not parent.children:
            self._queue(parent)
        self.unsaved.pop(victim, None)
        self._pool.leave_tree(victim.page)
        return True

    def pages(self) -> Iterator[int]:
        """Every page of the tree."""
        stack = list(self.root.children.values())
        while stack:
            node = stack.pop()
            yield node.page
            stack.extend(node.children.values())

    def check_integrity(self) -> None:
        """Raise RuntimeError for a broken link, an unsorted child list or a lost leaf."""
        queued = {node for _, _, node in self._leaves if node.queued}
        stack = [self.root]
        while stack:
            node = stack.pop()
            if node.sorted_keys != sorted(node.children):
                raise RuntimeError(f"the children of page {node.page} are not sorted")
            if node is not self.root and not node.children and node not in queued:
                raise RuntimeError(f"the leaf with page {node.page} can never be evicted")
            for key, child in node.children.items():
                if child.parent is not node or child.key != key:
                    raise RuntimeError(f"page {child.page} hangs under the wrong key or parent")
                stack.append(child)

    def _use(self, node: Node) -> None:
        node.used = self._clock

    def _queue(self, node: Node) -> None:
        if not node.queued:
            node.queued = True
            self._tick += 1
            heapq.heappush(self._leaves, (node.used, self._tick, node))

    def _closest(self, node: Node, ids: array[int]) -> tuple[Node | None, int]:
        """The child that shares most leading ids, and how many."""
        query = ids.tobytes()
        if not query or not node.sorted_keys:
            return None, 0
        at = bisect_left(node.sorted_keys, query)
        best, most = None, 0
        for key in node.sorted_keys[max(at - 1, 0) : at + 1]:
            shared = _common_ids(key, query)
            if shared > most:
                best, most = node.children[key], shared
        if best is not None:
            self._use(best)
        return best, most


def _common_ids(a: bytes, b: bytes) -> int:
    for at in range(0, len(b), _ID_BYTES):
        if a[at : at + _ID_BYTES] != b[at : at + _ID_BYTES]:
            return at // _ID_BYTES
    return len(b) // _ID_BYTES
