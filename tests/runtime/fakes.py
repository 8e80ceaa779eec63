"""A backend, tokeniser, vocabulary and grammars small enough to be obviously right.

The backend keeps token ids in its pages and hashes the whole context, as it reads it through the
block table, into logits: every mistake in paging changes tokens.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache

import numpy as np

from sglite.runtime.backends.base import Backend, DrawRequest
from sglite.runtime.plan import PAGE_SIZE, StepPlan
from sglite.runtime.segment import Constraint

BOS, EOS, TURN = 0, 1, 2
SPECIAL = {"<s>": BOS, "</s>": EOS, "<turn>": TURN}
PIECES = [
    "ab",
    "abc",
    "abcd",
    "bc",
    "cd",
    "de",
    "yes",
    "ye",
    " the",
    " th",
    "he",
    "er",
    "no",
    "\n\n",
    "ö",
    "日本",
    '":',
    ", ",
    "12",
    "123",
]
TOKEN_BYTES = [b"", b"", b""] + [bytes([b]) for b in range(256)] + [p.encode() for p in PIECES]
VOCAB = len(TOKEN_BYTES)
WORDS = -(-VOCAB // 32)


def mask_of(ids) -> np.ndarray:
    bits = np.zeros(WORDS * 32, np.uint8)
    bits[list(ids)] = 1
    return np.packbits(bits, bitorder="little").view(np.uint32)


class FakeTokenizer:
    token_bytes = TOKEN_BYTES
    vocab_size = VOCAB
    chat_template = None
    eos_ids = (EOS,)
    special_ids = (BOS, EOS, TURN)

    def __init__(
        self, *, add_bos: bool = True, bos_id: int | None = BOS, space_prefix: bool = False
    ) -> None:
        self.add_bos = add_bos
        self.space_prefix = space_prefix
        self.bos_id = bos_id
        self.template_variables = {"bos_token": "<s>", "eos_token": "</s>"}

    def encode_bytes(self, data: bytes) -> list[int]:
        ids = []
        while data:
            best = max(
                (t for t in range(3, VOCAB) if data.startswith(TOKEN_BYTES[t])),
                key=lambda t: len(TOKEN_BYTES[t]),
            )
            ids.append(best)
            data = data[len(TOKEN_BYTES[best]) :]
        return ids

    def encode(self, text: str) -> list[int]:
        return self.encode_bytes(text.encode())

    def special_id(self, text: str) -> int | None:
        return SPECIAL.get(text)

    def split_special(self, text: str) -> list[str | int]:
        parts: list[str | int] = [text] if text else []
        for name, token in SPECIAL.items():
            cut: list[str | int] = []
            for part in parts:
                if isinstance(part, int):
                    cut.append(part)
                    continue
                for index, bit in enumerate(part.split(name)):
                    cut.extend(([token] if index else []) + ([bit] if bit else []))
            parts = cut
        return parts


class FakeVocabulary:
    tokens = TOKEN_BYTES
    eos_ids = (EOS,)
    mask_words = WORDS

    def __init__(self) -> None:
        self.text_mask = mask_of(range(3, VOCAB))

    def tokens_beginning(self, data: bytes) -> list[int]:
        """Tokens that begin `data` or begin with it."""
        return [
            t for t, b in enumerate(TOKEN_BYTES) if b and (data.startswith(b) or b.startswith(data))
        ]

    def extends(self, tail: bytes) -> bool:
        return any(len(b) > len(tail) and b.startswith(tail) for b in TOKEN_BYTES)


class FakeMatcher:
    """One of a finite set of byte strings; None stands for any text."""

    def __init__(self, words: tuple[bytes, ...] | None, prefix: bytes, force: bool) -> None:
        self.words = None if words is None else tuple(prefix + w for w in words)
        self.prefix = prefix
        self.force = force
        self.tokens: list[int] = []

    @property
    def done(self) -> bytes:
        return b"".join(TOKEN_BYTES[t] for t in self.tokens)

    @property
    def is_complete(self) -> bool:
        if self.words is None:
            return len(self.done) >= len(self.prefix)
        return self.done in self.words

    @property
    def is_finished(self) -> bool:
        return self.words is not None and self.is_complete and not _rests(self.words, self.done)

    def allowed(self, budget: int | None) -> list[int]:
        if self.words is None:
            rest = self.prefix[len(self.done) :]
            return [
                t
                for t in range(3, VOCAB)
                if TOKEN_BYTES[t].startswith(rest) or rest.startswith(TOKEN_BYTES[t])
            ]
        left = 10**6 if budget is None else budget
        return [
            t for t in range(3, VOCAB) if _least(self.words, self.done + TOKEN_BYTES[t]) <= left - 1
        ]

    def accept(self, token: int) -> bool:
        if token not in self.allowed(None):
            return False
        self.tokens.append(token)
        return True

    def accept_tokens(self, ids: Sequence[int]) -> bool:
        return all(self.accept(t) for t in ids)

    def rollback(self, count: int) -> None:
        del self.tokens[len(self.tokens) - count :]

    def tokens_to_finish(self) -> int:
        return 0 if self.words is None else _least(self.words, self.done)

    def forced_tokens(self) -> list[int]:
        """The canonical tokens of what must follow, two held back where it may go on."""
        if self.words is None or not self.force or self.is_complete:
            return []
        rests = _rests(self.words, self.done)
        common = rests[0]
        for rest in rests:
            while not rest.startswith(common):
                common = common[:-1]
        ids = FakeTokenizer().encode_bytes(common)
        return ids if rests == [common] else ids[:-2]


@cache
def _rests(words: tuple[bytes, ...], done: bytes) -> list[bytes]:
    return [w[len(done) :] for w in words if w.startswith(done) and w != done]


@cache
def _least(words: tuple[bytes, ...], done: bytes) -> int:
    if done in words:
        return 0
    least = 10**9
    for rest in _rests(words, done):
        for token in range(3, VOCAB):
            if rest.startswith(TOKEN_BYTES[token]):
                least = min(least, 1 + _least(words, done + TOKEN_BYTES[token]))
    return least


class FakeGrammar:
    def __init__(self, words: tuple[bytes, ...] | None, force: bool = True) -> None:
        self.words = words
        self.force = force
        self.vocabulary = FakeVocabulary()

    def matcher(self, prefix: bytes = b"") -> FakeMatcher:
        return FakeMatcher(self.words, prefix, self.force)


class FakeConstraints:
    """The source of a constraint lists the words, separated by `|`; `boom` is a bad matcher."""

    def __init__(self) -> None:
        self.vocabulary = FakeVocabulary()

    def compile(self, constraint: Constraint) -> FakeGrammar:
        words = tuple(w.encode() for w in constraint.source.split("|"))
        return FakeGrammar(words, dict(constraint.options).get("force", True))

    def free_text(self) -> FakeGrammar:
        return FakeGrammar(None)

    def fill_masks(self, matchers, masks, budgets) -> None:
        for row, matcher in enumerate(matchers):
            if matcher.words is not None and b"boom" in matcher.words:
                raise ArithmeticError("boom")
            ids = matcher.allowed(int(budgets[row]))
            masks[row] = mask_of([*ids, EOS] if matcher.is_complete else ids)


def logits_after(context: Sequence[int]) -> np.ndarray:
    """Pseudo-random logits [V] of a context: likely enough to repeat and to end."""
    seed = hashlib.blake2b(np.asarray(context, np.int64).tobytes(), digest_size=8).digest()
    rng = np.random.default_rng(int.from_bytes(seed, "little"))
    logits = rng.standard_normal(VOCAB).astype(np.float32) * 2
    logits[[EOS, TOKEN_BYTES.index(b"a"), TOKEN_BYTES.index(b"ab"), TOKEN_BYTES.index(b"y")]] += 3
    return logits


def draw_one(logits, allowed, end_ids, end_rest, temperature, top_p, top_k, min_p, uniform):
    """The contract of Backend.draw for one row, word by word."""
    end = set(end_ids)
    counts = [end_rest or t in allowed or t in end for t in range(len(logits))]
    assert not np.isnan(logits[counts]).any(), "reads a logit that was not asked for"
    top = logits[counts].max(initial=-np.inf)
    if top == -np.inf:
        raise ValueError("every logit that counts is -inf")
    p = np.exp(np.where(counts, logits, -np.inf).astype(np.float64) - top)
    keep = np.array([t in allowed and t not in end for t in range(len(p))])
    ends = bool(end) or end_rest
    mass_end = sum(p[t] for t in end)
    if end_rest:
        mass_end += sum(p[t] for t in range(len(p)) if t not in allowed and t not in end)
    weights = np.append(np.where(keep, p, 0.0), mass_end if ends else 0.0)
    if weights.sum() == 0:
        raise ValueError("every logit that counts is -inf")
    weights /= weights.sum()
    with np.errstate(divide="ignore"):
        logprobs = np.log(weights)
    if temperature == 0:
        best = int(weights.argmax())
    else:
        tempered = np.exp((logprobs - logprobs.max()) / temperature)
        tempered /= tempered.sum()
        order = sorted(range(len(tempered)), key=lambda t: (-tempered[t], t))
        if top_k:
            order = order[:top_k]
        total, kept = 0.0, []
        whole = sum(tempered[t] for t in order)
        for t in order:
            if total >= top_p * whole:
                break
            kept.append(t)
            total += tempered[t]
        kept = [t for t in kept if tempered[t] >= min_p * tempered[order[0]]]
        whole, mark, best = sum(tempered[t] for t in kept), 0.0, max(kept)
        for t in sorted(kept):
            mark += tempered[t]
            if mark > uniform * whole:
                best = t
                break
    return (-1 if best == len(p) else best), float(logprobs[best])


class FakeBackend(Backend):
    vocab_size = VOCAB
    bytes_per_page = PAGE_SIZE * 8

    def __init__(self, pages: int = 64, max_context: int = 512, name: str = "fake") -> None:
        self.name = name
        self.pages_total = pages
        self.max_context = max_context
        self.store = np.full((pages, PAGE_SIZE), -1, np.int64)
        self.closed = False
        self.computed = 0
        self.batches: list[int] = []
        self.poison: int | None = None
        self.partial = 0

    def forward(self, plan: StepPlan):
        rows = len(plan.context_start)
        self.batches.append(rows)
        wanted = set(plan.logit_tokens.tolist())
        out = []
        for row in range(rows):
            begin, end = plan.query_start[row], plan.query_start[row + 1]
            pages = plan.pages[plan.page_start[row] : plan.page_start[row + 1]]
            start = int(plan.context_start[row])
            for at in range(begin, end):
                position = start + at - begin
                if int(plan.tokens[at]) == self.poison:
                    raise FloatingPointError("poison")
                self.store[pages[position // PAGE_SIZE], position % PAGE_SIZE] = plan.tokens[at]
                self.computed += 1
                if at in wanted:
                    context = self.store[pages].reshape(-1)[: position + 1]
                    assert (context >= 0).all(), "reads a slot that was never written"
                    out.append(logits_after(context))
        logits = np.array(out, np.float32).reshape(len(out), VOCAB)
        if plan.logit_mask is not None:
            self.partial += 1
            bits = np.unpackbits(plan.logit_mask.view(np.uint8), bitorder="little")[:VOCAB]
            logits[:, bits == 0] = np.nan  # whoever reads them gets nothing of use
        return logits

    def copy_pages(self, pairs) -> None:
        for source, destination in pairs:
            self.store[destination] = self.store[source]

    def page_identity(self, memo) -> bytes:
        return hashlib.blake2b(self.name.encode(), digest_size=32).digest()

    def read_page(self, page, out) -> None:
        out[:] = self.store[page].view(np.uint8)

    def write_page(self, page, data) -> None:
        self.store[page] = np.array(data).view(np.int64)

    def draw(self, logits, request: DrawRequest):
        ids, logprobs = [], []
        for row in range(len(logits)):
            bits = np.unpackbits(request.mask[row].view(np.uint8), bitorder="little")
            ends = request.end_ids[request.end_start[row] : request.end_start[row + 1]]
            token, logprob = draw_one(
                logits[row],
                set(np.flatnonzero(bits).tolist()),
                ends.tolist(),
                bool(request.end_rest[row]),
                float(request.temperature[row]),
                float(request.top_p[row]),
                int(request.top_k[row]),
                float(request.min_p[row]),
                float(request.uniform[row]),
            )
            ids.append(token)
            logprobs.append(logprob)
        return np.array(ids, np.int32), np.array(logprobs, np.float32)

    def close(self) -> None:
        self.closed = True
