"""Which sequences run in the next step, and whose pages make room for them.

Every sequence has one fixed place in one order: (arrival in steps - priority x AGEING_STEPS, its
first prompt, its number). So a level of priority is worth AGEING_STEPS steps of waiting, rows that
arrive together run in the order of a walk through their common prefix tree, and a program that
began early goes before a later one at each of its holes. Pages are taken back in this order: prefix
pages that only the tree holds, pages of resting sequences, then running sequences from the last
one on; these recompute later, and everything else of them (ids, matcher, emitted text) is kept.

A sequence whose next pages are being prefilled by a running one is parked until they are in the
tree: siblings prefill their common prefix once. A step costs the same however many wait.

`plan` depends on nothing but this state: no clock, no chance, no backend.
"""

from __future__ import annotations

import heapq
from bisect import insort
from dataclasses import dataclass

from sglite.runtime.cache.pages import PageCopies, PagePool
from sglite.runtime.cache.prefix_tree import Lease, PrefixTree, page_key
from sglite.runtime.plan import PAGE_SIZE, PlanRow
from sglite.runtime.sequence import Sequence, State

AGEING_STEPS = 256


@dataclass(slots=True)
class Row:
    """`count` ids of the sequence are computed in this step; the last `logits` give logits."""

    sequence: Sequence
    count: int
    logits: int

    def laid_flat(self) -> PlanRow:
        """The row for the backend."""
        seq = self.sequence
        tokens = seq.ids[seq.computed : seq.computed + self.count]
        return PlanRow(tokens, seq.computed, seq.table.pages, self.logits)


def _note_cached(sequence: Sequence, start: int, stop: int) -> None:
    if sequence.account is not None:
        sequence.account.note_cached(start, stop)
    elif start <= sequence.inherited:  # a fork: the hole that comes later counts them
        sequence.inherited = max(sequence.inherited, stop)


def _order(sequence: Sequence) -> tuple[int, bytes, int]:
    return sequence.order


class Scheduler:
    """`tree` is None without a prefix cache. `chunk_tokens`: ids computed in one step, decodes
    first; `max_rows`: sequences that run at a time."""

    def __init__(
        self, pool: PagePool, tree: PrefixTree | None, *, chunk_tokens: int, max_rows: int
    ) -> None:
        self.copies = PageCopies(pool)
        self.running: list[Sequence] = []
        self.preemptions = 0
        self._pool = pool
        self._tree = tree
        self._chunk_tokens = chunk_tokens
        self._max_rows = max_rows
        self._step = 0
        self._waiting: list[tuple[tuple[int, bytes, int], int, Sequence]] = []
        self._tickets: dict[Sequence, int] = {}
        self._ticket = 0
        self._holding: dict[Sequence, None] = {}
        """Sequences that do not run but hold pages, longest at rest first."""
        self._claims: dict[int, Sequence] = {}
        self._claimed: dict[Sequence, list[int]] = {}
        self._parked: dict[int, dict[Sequence, None]] = {}
        self._parked_at: dict[Sequence, int] = {}

    @property
    def has_work(self) -> bool:
        """Whether a sequence runs or waits."""
        return bool(self.running or self._tickets or self._parked_at)

    def ready(self, sequence: Sequence) -> None:
        """The sequence has ids to compute up to its goal."""
        if sequence.state is State.RUNNING:
            if sequence.goal - sequence.computed <= PAGE_SIZE:
                return
            # A long text was appended: the tree may know more of it than the sequence has.
            self._stop_running(sequence)
        if sequence.arrival is None:
            sequence.arrival = self._step
            level = self._step - sequence.priority * AGEING_STEPS
            sequence.order = (level, sequence.ids.tobytes(), sequence.number)
        self._wait(sequence)

    def rest(self, sequence: Sequence) -> None:
        """No work for now; the pages stay as long as nobody needs them."""
        self._withdraw(sequence)
        sequence.state = State.RESTING
        if sequence.table.pages:
            self._holding[sequence] = None

    def drop(self, sequence: Sequence) -> None:
        """The sequence gives everything back."""
        self._withdraw(sequence)
        sequence.state = State.RESTING
        self._holding.pop(sequence, None)
        sequence.uncompute(0)

    def plan(self) -> list[Row]:
        """The rows of the next step: decodes first, then prefill chunks, under the token budget.
        Empty when nothing runs, or when pages come free only after this step."""
        self._step += 1
        self._admit()
        rows: dict[Sequence, Row] = {}
        budget = self._chunk_tokens
        decodes: list[Sequence] = []
        prefills: list[Sequence] = []
        for seq in self.running:
            (decodes if seq.goal - seq.computed <= PAGE_SIZE else prefills).append(seq)
        for seq in (*decodes, *prefills):
            if budget <= 0:
                break
            if seq.state is not State.RUNNING:
                continue
            start = seq.computed
            stop = min(seq.goal, start + budget)
            if self._make_room(seq, stop, rows):
                rows[seq] = Row(seq, stop - start, max(0, stop - max(start, seq.logits_from)))
                budget -= stop - start
        return list(rows.values())

    def commit(self, rows: list[Row]) -> None:
        """The step was computed: full pages enter the tree, those who waited for them wake."""
        for row in rows:
            seq = row.sequence
            seq.computed += row.count
            if self._tree is None:
                continue
            nodes = seq.table.nodes
            while (len(nodes) + 1) * PAGE_SIZE <= seq.computed:
                index = len(nodes)
                parent = nodes[-1] if nodes else None
                key = page_key(seq.ids, index)
                seq.table.link(self._tree.extend(parent, key, seq.table.pages[index]))
            if seq in self._claimed:
                done = seq.chain(seq.computed // PAGE_SIZE)[: seq.computed // PAGE_SIZE]
                self._release_claims(seq, [c for c in done if self._claims.get(c) is seq])
                if seq.computed >= seq.goal:
                    self._release_claims(seq, self._claimed.get(seq, []))

    # Waiting

    def _wait(self, seq: Sequence) -> None:
        seq.state = State.WAITING
        self._ticket += 1
        self._tickets[seq] = self._ticket
        heapq.heappush(self._waiting, (seq.order, self._ticket, seq))
        if seq.table.pages:
            self._holding[seq] = None

    def _withdraw(self, seq: Sequence) -> None:
        """Out of every queue, whatever the state."""
        self._tickets.pop(seq, None)
        claim = self._parked_at.pop(seq, None)
        if claim is not None:
            self._parked[claim].pop(seq, None)
        if seq.state is State.RUNNING:
            self._stop_running(seq)

    def _stop_running(self, seq: Sequence) -> None:
        self.running.remove(seq)
        self._release_claims(seq, self._claimed.get(seq, []))

    def _admit(self) -> None:
        backlog = sum(s.goal - s.computed for s in self.running)
        while self._waiting and backlog < self._chunk_tokens:
            entry = heapq.heappop(self._waiting)
            _, ticket, seq = entry
            if self._tickets.get(seq) != ticket:
                continue
            outcome = State.WAITING
            if len(self.running) < self._max_rows or self._preempt_for(seq):
                outcome = self._try_admit(seq)
                while outcome is State.WAITING and self._preempt_for(seq):
                    outcome = self._try_admit(seq)
            if outcome is State.WAITING:
                heapq.heappush(self._waiting, entry)
                break
            del self._tickets[seq]
            seq.state = outcome
            if outcome is State.RUNNING:
                self._holding.pop(seq, None)
                insort(self.running, seq, key=_order)
                backlog += seq.goal - seq.computed

    def _try_admit(self, seq: Sequence) -> State:
        """RUNNING with all pages that its goal needs, PARKED behind a sibling, or still WAITING."""
        lease = Lease(self._pool)
        usable = min(seq.goal, seq.logits_from + 1)
        if self._tree is not None and seq.computed < usable - 1:
            lease = self._tree.match(seq.ids[:usable])
            if lease.tokens <= seq.computed:
                lease.release()
        try:
            claim = self._claim_ahead(seq, max(lease.tokens, seq.computed) // PAGE_SIZE)
            if claim is not None:
                self._parked.setdefault(claim, {})[seq] = None
                self._parked_at[seq] = claim
                return State.PARKED
            if lease.nodes or lease.partial:
                before = seq.computed
                seq.table.adopt(lease)
                seq.computed = len(lease.nodes) * PAGE_SIZE
                seq.inherited = min(seq.inherited, seq.computed)
                _note_cached(seq, before, seq.computed)
            if not self._room_to_admit(seq, lease):
                if seq.table.pages:
                    self._holding[seq] = None
                return State.WAITING
            if lease.partial is not None:
                seq.table.append_copy(lease.partial.page, self.copies)
                _note_cached(seq, seq.computed, lease.tokens)
                seq.computed = lease.tokens
            seq.table.make_writable(seq.computed, seq.goal, self.copies)
        finally:
            lease.release()
        if self._tree is not None:
            self._claim(seq)
        return State.RUNNING

    def _room_to_admit(self, seq: Sequence, lease: Lease) -> bool:
        """Free pages for the goal, and one more for each running sequence to grow into."""
        self._holding.pop(seq, None)
        while True:
            need = seq.table.fresh_pages(seq.computed, seq.goal)
            spare = len(self.running)
            while self._pool.free + self._pool.reclaimable < need + spare:
                if not self._strip_resting():
                    break
            else:
                while self._pool.free < need:
                    if not self._reclaim():
                        return False
                return True
            if self.running or lease.partial is None:
                return False
            lease.drop_partial()

    # Claims: pages that a running sequence is about to put into the tree

    def _claim(self, seq: Sequence) -> None:
        pages = seq.goal // PAGE_SIZE
        chain = seq.chain(pages)
        mine = [c for c in chain[seq.computed // PAGE_SIZE : pages] if c not in self._claims]
        for claim in mine:
            self._claims[claim] = seq
        if mine:
            self._claimed[seq] = mine

    def _claim_ahead(self, seq: Sequence, page: int) -> int | None:
        """The last of the next usable pages that one running sequence is about to compute."""
        usable = (seq.goal - 1) // PAGE_SIZE
        if not self._claims or page >= usable:
            return None
        chain = seq.chain(usable)
        owner = self._claims.get(chain[page])
        if owner is None:
            return None
        while page + 1 < usable and self._claims.get(chain[page + 1]) is owner:
            page += 1
        return chain[page]

    def _release_claims(self, seq: Sequence, claims: list[int]) -> None:
        if not claims:
            return
        gone = set(claims)
        left = [c for c in self._claimed[seq] if c not in gone]
        if left:
            self._claimed[seq] = left
        else:
            del self._claimed[seq]
        for claim in gone:
            del self._claims[claim]
            for sibling in self._parked.pop(claim, ()):
                del self._parked_at[sibling]
                self._wait(sibling)

    # Pages

    def _make_room(self, seq: Sequence, stop: int, rows: dict[Sequence, Row]) -> bool:
        """Own the pages up to `stop`, at the cost of sequences later in the order. False: it was
        the last itself and has to wait."""
        if not seq.table.fresh_pages(seq.computed, stop):
            return True
        while self._pool.free < seq.table.fresh_pages(seq.computed, stop):
            if self._reclaim():
                continue
            victim = self.running[-1]
            rows.pop(victim, None)
            self._preempt(victim)
            if victim is seq:
                return False
        seq.table.make_writable(seq.computed, stop, self.copies)
        return True

    def _reclaim(self) -> bool:
        """A step towards a free page without touching a running sequence."""
        return (self._tree is not None and self._tree.evict()) or self._strip_resting()

    def _strip_resting(self) -> bool:
        for seq in self._holding:
            del self._holding[seq]
            seq.uncompute(0)
            return True
        return False

    def _preempt(self, victim: Sequence) -> None:
        self.preemptions += 1
        self._stop_running(victim)
        victim.uncompute(0)
        self._wait(victim)

    def _preempt_for(self, seq: Sequence) -> bool:
        """Stop the last running sequence for one of higher priority that also stands before it."""
        if not self.running:
            return False
        victim = self.running[-1]
        if victim.priority >= seq.priority or victim.order <= seq.order:
            return False
        self._preempt(victim)
        return True
