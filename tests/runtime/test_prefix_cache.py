"""The prefix tree against brute force, the page pool against a plain model."""

from __future__ import annotations

import random
import time
from array import array

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sglite.runtime.cache.block_table import BlockTable, pages_for
from sglite.runtime.cache.pages import PageCopies, PagePool
from sglite.runtime.cache.prefix_tree import PrefixTree, page_key
from sglite.runtime.plan import PAGE_SIZE

ids_like = st.lists(st.integers(0, 1), min_size=1, max_size=70).map(
    # Few different pages, so that prefixes are shared often.
    lambda bits: array("i", [7] * 14 + bits)
)


class Bench:
    """A tree and a pool; tables are filled and inserted as the scheduler does it."""

    def __init__(self, pages: int) -> None:
        self.pool = PagePool(pages)
        self.tree = PrefixTree(self.pool)
        self.tables: list[BlockTable] = []

    def insert(self, ids: array[int]) -> BlockTable:
        table, lease = BlockTable(self.pool), self.tree.match(ids)
        table.adopt(lease)
        lease.release()
        for _ in range(pages_for(len(ids)) - len(table.pages)):
            while not self.pool.free:
                assert self.tree.evict()
            table.pages.append(self.pool.take())
        for index in range(len(table.nodes), len(ids) // PAGE_SIZE):
            parent = table.nodes[-1] if table.nodes else None
            table.link(self.tree.extend(parent, page_key(ids, index), table.pages[index]))
        self.tables.append(table)
        return table

    def check(self) -> None:
        held = [page for table in self.tables for page in table.pages]
        self.pool.check_integrity(list(self.tree.pages()), held)
        self.tree.check_integrity()


def longest_match(known: list[array[int]], ids: array[int]) -> int:
    """Tokens of `ids` that full pages of `known` cover, by comparing everything."""
    best = 0
    for other in known:
        whole = len(other) - len(other) % PAGE_SIZE
        same = 0
        while same < min(whole, len(ids) - 1) and other[same] == ids[same]:
            same += 1
        best = max(best, same)
    return best


@settings(max_examples=150, deadline=None)
@given(st.lists(ids_like, min_size=1, max_size=12), ids_like)
def test_match_is_the_longest_common_prefix(known, query):
    bench = Bench(200)
    for ids in known:
        bench.insert(ids)
    lease = bench.tree.match(query)
    assert lease.tokens == longest_match(known, query)
    assert lease.tokens < len(query)
    assert len(lease.nodes) == lease.tokens // PAGE_SIZE
    assert (lease.partial is not None) == (lease.tokens % PAGE_SIZE > 0)
    for index, node in enumerate(lease.nodes):
        assert node.key == page_key(query, index)
    lease.release()
    bench.check()


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(ids_like, st.booleans()), max_size=25))
def test_insertion_and_eviction_keep_the_accounts(script):
    bench = Bench(40)
    for ids, close in script:
        if len(bench.tables) > 4 or (close and bench.tables):
            bench.tables.pop(0).truncate(0)
        bench.insert(ids)
        bench.check()
    for table in bench.tables:
        table.truncate(0)
    bench.tables.clear()
    bench.check()
    assert bench.pool.free + bench.pool.reclaimable == bench.pool.total
    while bench.tree.evict():
        bench.check()
    assert bench.pool.free == bench.pool.total


def test_eviction_takes_the_least_recently_used_and_never_what_is_held():
    bench = Bench(8)
    rows = [array("i", [n] * 32 + [9]) for n in range(3)]
    for ids in rows[:2]:
        bench.insert(ids).truncate(0)
    held = bench.insert(rows[2])
    bench.tree.match(rows[0]).release()
    assert bench.tree.evict()
    assert bench.tree.match(rows[1]).tokens == 16
    bench.tree.match(rows[1]).release()
    while bench.tree.evict():
        pass
    assert bench.tree.match(rows[2]).tokens == 32
    assert len(held.nodes) == 2


def test_a_lease_keeps_its_pages_through_eviction():
    bench = Bench(8)
    ids = array("i", range(40))
    bench.insert(ids).truncate(0)
    lease = bench.tree.match(array("i", [*range(20), 5, 5]))
    assert (lease.tokens, len(lease.nodes)) == (20, 1)
    while bench.tree.evict():
        pass
    assert bench.pool.total - bench.pool.free == 2
    lease.release()
    while bench.tree.evict():
        pass
    assert bench.pool.free == bench.pool.total


def test_eviction_does_not_sort_all_leaves_each_time():
    """The cost of one eviction among many leaves: a few times that among few."""

    def seconds_each(leaves: int) -> float:
        bench = Bench(leaves + 1)
        for number in range(leaves):
            bench.insert(array("i", [number] * PAGE_SIZE)).truncate(0)
        bench.tables.clear()
        start = time.perf_counter()
        for _ in range(100):
            assert bench.tree.evict()
        return time.perf_counter() - start

    ratios = [seconds_each(10_000) / seconds_each(200) for _ in range(3)]
    assert min(ratios) < 20, ratios


def test_a_shared_page_is_copied_before_it_is_written():
    pool = PagePool(6)
    copies = PageCopies(pool)
    table = BlockTable(pool)
    table.make_writable(0, 20, copies)
    fork = table.fork(20)
    assert fork.pages == table.pages
    assert fork.fresh_pages(20, 21) == 1
    shared = table.pages[1]
    fork.make_writable(20, 21, copies)
    made: list[list[int]] = []
    copies.flush(lambda pairs: made.extend(pairs.tolist()))
    assert made == [[shared, fork.pages[1]]]
    assert table.fresh_pages(20, 21) == 0
    pool.check_integrity([], [*table.pages, *fork.pages])


def test_no_copy_for_a_shared_page_that_is_written_from_its_start():
    pool = PagePool(6)
    copies = PageCopies(pool)
    table = BlockTable(pool)
    table.make_writable(0, 20, copies)
    fork = table.fork(20)
    fork.make_writable(16, 20, copies)
    assert copies.held() == []
    assert fork.pages[0] == table.pages[0]
    assert fork.pages[1] != table.pages[1]


def test_the_source_of_a_pending_copy_is_not_handed_out():
    pool = PagePool(3)
    copies = PageCopies(pool)
    source, destination = pool.take(), pool.take()
    copies.add(source, destination)
    pool.release(source)
    assert pool.free == 1
    with pytest.raises(ZeroDivisionError):
        copies.flush(lambda pairs: 1 // 0)
    assert pool.free == 2


def test_the_last_copy_into_a_page_counts():
    pool = PagePool(4)
    copies = PageCopies(pool)
    first, second, destination = pool.take(), pool.take(), pool.take()
    copies.add(first, destination)
    copies.add(second, destination)
    assert copies.held() == [second]
    made: list[list[int]] = []
    copies.flush(lambda pairs: made.extend(pairs.tolist()))
    assert made == [[second, destination]]
    pool.check_integrity([], [first, second, destination])


@pytest.mark.parametrize("damage", ["leak", "free twice", "lost owner"])
def test_the_check_sees_damage(damage):
    pool = PagePool(4)
    page = pool.take()
    if damage == "leak":
        with pytest.raises(RuntimeError, match="1 references, 0 owners"):
            pool.check_integrity([], [])
    elif damage == "free twice":
        pool.release(page)
        pool._free.append(page)
        with pytest.raises(RuntimeError, match="free list"):
            pool.check_integrity([], [])
    else:
        with pytest.raises(RuntimeError, match="1 references, 2 owners"):
            pool.check_integrity([page], [page])


def test_partial_match_finds_the_best_of_many_children():
    seed = random.randrange(2**32)
    print("seed", seed)
    rng = np.random.default_rng(seed)
    bench = Bench(600)
    known = [array("i", rng.integers(0, 3, PAGE_SIZE).tolist()) for _ in range(500)]
    for ids in known:
        bench.insert(ids)
    for _ in range(200):
        query = array("i", rng.integers(0, 3, PAGE_SIZE + 4).tolist())
        lease = bench.tree.match(query)
        assert lease.tokens == longest_match(known, query)
        lease.release()
