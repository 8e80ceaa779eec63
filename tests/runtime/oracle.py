"""The engine's semantics for one sequence at a time: no pages, no batches, no cache, no chunks."""

from __future__ import annotations

import math

from fakes import (
    EOS,
    TOKEN_BYTES,
    VOCAB,
    FakeConstraints,
    FakeTokenizer,
    FakeVocabulary,
    draw_one,
    logits_after,
)

from sglite.runtime.prompt import encode_pieces
from sglite.runtime.sampling import uniform
from sglite.runtime.segment import Append, Gen, Select

TOKENIZER, VOCABULARY = FakeTokenizer(), FakeVocabulary()
TEXT = set(range(3, VOCAB))
LONGEST = max(map(len, TOKEN_BYTES))


class Oracle:
    """`ids` is the state; `run` carries out a step and gives (text, ids, finish) of a hole."""

    def __init__(self, capacity: int, ids=(), healable: int = 0) -> None:
        self.capacity = capacity
        self.ids = list(ids)
        self.healable = healable

    def fork(self) -> Oracle:
        return Oracle(self.capacity, self.ids, self.healable)

    def run(self, step):
        if isinstance(step, Append):
            prompt = encode_pieces(step.pieces, TOKENIZER)
            if not self.ids and list(prompt.ids[:1]) != [TOKENIZER.bos_id]:
                self.ids.append(TOKENIZER.bos_id)
                self.healable = 0
            if prompt.ids:
                self.ids.extend(prompt.ids)
                self.healable = prompt.healable
            return None
        if not self.ids:
            self.ids.append(TOKENIZER.bos_id)
        prefix = self._heal()
        return self._gen(step, prefix) if isinstance(step, Gen) else self._select(step, prefix)

    def _heal(self) -> bytes:
        best = 0
        for count in range(1, min(self.healable, len(self.ids) - 1) + 1):
            tail = b"".join(TOKEN_BYTES[t] for t in self.ids[-count:])
            if any(b.startswith(tail) and b != tail for b in TOKEN_BYTES):
                best = count
        self.healable = 0
        prefix = b"".join(TOKEN_BYTES[t] for t in self.ids[len(self.ids) - best :])
        del self.ids[len(self.ids) - best :]
        return prefix

    def _gen(self, gen: Gen, prefix: bytes):
        base = len(self.ids)
        left = min(gen.max_tokens, self.capacity - base)
        grammar = FakeConstraints().compile(gen.constraint) if gen.constraint else None
        matcher = (
            grammar.matcher(prefix) if grammar else FakeConstraints().free_text().matcher(prefix)
        )
        if left < 1 or (grammar and matcher.tokens_to_finish() > gen.max_tokens):
            raise ValueError("the hole cannot even begin")
        stops = [s.encode() for s in (*gen.stop, *gen.until)]
        out: list[int] = []
        finish = None
        while finish is None:
            if grammar:
                forced = matcher.forced_tokens()
                if forced and len(forced) <= left and matcher.accept_tokens(forced):
                    if matcher.tokens_to_finish() > left - len(forced):
                        matcher.rollback(len(forced))
                    else:
                        out += forced
                        left -= len(forced)
                if matcher.is_finished:
                    finish = "grammar"
                    break
            if left == 0:
                finish = "length" if len(out) >= gen.max_tokens else "context"
                break
            done = b"".join(TOKEN_BYTES[t] for t in out)
            ends = set(gen.stop_ids)
            if grammar:
                ends |= {EOS}
                for stop in stops:
                    ends |= set(VOCABULARY.tokens_beginning(stop))
                if not matcher.is_complete:
                    ends = set()
                allowed = set(matcher.allowed(left))
            else:
                ends |= set() if gen.ignore_eos else {EOS}
                allowed = TEXT if len(done) >= len(prefix) else set(matcher.allowed(None))
            rest = bool(grammar and matcher.is_complete)
            s = gen.sampling
            token, _ = draw_one(
                logits_after(self.ids + out),
                allowed,
                ends,
                rest,
                _f32(s.temperature),
                _f32(s.top_p),
                s.top_k,
                _f32(s.min_p),
                uniform(gen.key, len(out)),
            )
            if token < 0:
                finish = "until" if grammar and gen.until else "eos"
                break
            if grammar or len(done) < len(prefix):
                assert matcher.accept(token)
            out.append(token)
            left -= 1
            if not grammar:
                done += TOKEN_BYTES[token]
                found = [
                    (at, i)
                    for i, stop in enumerate(stops)
                    if (at := done.find(stop, len(prefix))) >= 0
                ]
                if found:
                    at, which = min(found)
                    finish = "stop" if which < len(gen.stop) else "until"
                    out = _cut(out, at)
        text = b"".join(TOKEN_BYTES[t] for t in out)[len(prefix) :].decode("utf-8", "replace")
        self.ids += out
        return text, tuple(out), finish

    def _select(self, select: Select, prefix: bytes):
        paths = [TOKENIZER.encode_bytes(prefix + c.encode()) for c in select.choices]
        scores = []
        for path in paths:
            score = 0.0
            for at, token in enumerate(path):
                score += _log_softmax(self.ids + path[:at])[token]
            going_on = {
                p[len(path)] for p in paths if len(p) > len(path) and p[: len(path)] == path
            }
            if going_on:
                after = _log_softmax(self.ids + path)
                score += math.log(max(1 - sum(math.exp(after[t]) for t in going_on), 1e-12))
            scores.append(score)
        top = max(scores)
        weights = [math.exp(s - top) for s in scores]
        total = sum(weights)
        self.distribution = [w / total for w in weights]
        temperature = select.sampling.temperature
        if temperature == 0:
            best = max(range(len(scores)), key=lambda i: (self.distribution[i], -i))
        else:
            tempered = [math.exp((s - top) / temperature) for s in scores]
            mark, run, best = uniform(select.key, 0) * sum(tempered), 0.0, len(scores) - 1
            for i, weight in enumerate(tempered):
                run += weight
                if run > mark:
                    best = i
                    break
        self.ids += paths[best]
        return select.choices[best], tuple(paths[best]), "select"


def _cut(ids, at):
    kept = []
    for token in ids:
        if at < len(TOKEN_BYTES[token]):
            return kept + TOKENIZER.encode_bytes(TOKEN_BYTES[token][:at])
        at -= len(TOKEN_BYTES[token])
        kept.append(token)
    return kept


def _log_softmax(ids):
    logits = [float(x) for x in logits_after(ids)]
    top = max(logits)
    total = top + math.log(sum(math.exp(x - top) for x in logits))
    return [x - total for x in logits]


def _f32(value: float) -> float:
    import numpy as np

    return float(np.float32(value))
