"""The engine's semantics for one sequence at a time: no pages, no batches, no cache, no chunks."""

from __future__ import annotations

import math
import re

import numpy as np
from fakes import (
    EOS,
    SPECIAL,
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
        before, healable = list(self.ids), self.healable
        prefix = self._heal()
        done = self._gen(step, prefix) if isinstance(step, Gen) else self._select(step, prefix)
        if step.hidden:
            self.ids, self.healable = before, healable
        return done

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
        marks = {SPECIAL[s] for s in (*gen.stop, *gen.until) if s in SPECIAL}
        barred = {*gen.stop_ids, *marks, EOS}
        prompt = list(self.ids)
        self.tops = []
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
            ends = {*gen.stop_ids, *marks}
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
            could_end = not grammar or matcher.is_complete
            if could_end and len(out) < gen.min_tokens and allowed - barred:
                allowed, ends, rest = allowed - barred, set(), False
            s = gen.sampling
            logits = _shaped(logits_after(self.ids + out), gen, prompt, out)
            token, _ = draw_one(
                logits,
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
                best = max(sorted(ends), key=lambda t: logits[t])
                if best in marks:
                    text = next(t for t in (*gen.stop, *gen.until) if SPECIAL.get(t) == best)
                    finish = "stop" if text in gen.stop else "until"
                break
            self.tops.append(_log_probs(logits, allowed, ends, rest))
            if grammar or len(done) < len(prefix):
                assert matcher.accept(token)
            out.append(token)
            left -= 1
            if not grammar and len(out) > gen.min_tokens:
                done += TOKEN_BYTES[token]
                early = b"".join(TOKEN_BYTES[t] for t in out[: gen.min_tokens])
                found = _first_end(done, stops, gen.stop_regex, max(len(prefix), len(early)))
                if found is not None:
                    at, which = found
                    finish = "until" if len(gen.stop) <= which < len(stops) else "stop"
                    out = _cut(out, at)
        text = b"".join(TOKEN_BYTES[t] for t in out)[len(prefix) :].decode("utf-8", "replace")
        self.ids += out
        return text, tuple(out), finish

    def _select(self, select: Select, prefix: bytes):
        paths = [TOKENIZER.encode_bytes(prefix + c.encode()) for c in select.choices]
        # What all paths spell of the prompt, id by id, is no part of any choice.
        told = 0
        while len({path[told] if told < len(path) else None for path in paths}) == 1 and len(
            b"".join(TOKEN_BYTES[t] for t in paths[0][: told + 1])
        ) <= len(prefix):
            told += 1
        self.scores = scores = [self._score(select, path, paths, told) for path in paths]
        top = max(scores)
        weights = [math.exp(s - top) for s in scores]
        total = sum(weights)
        self.distribution = [w / total for w in weights]
        temperature = select.sampling.temperature
        if temperature == 0 and select.method == "greedy":
            way: list[int] = []
            while True:
                options = self._options(select, way, paths)
                step = max(options, key=options.get) if options else None
                if step is None:
                    break
                way.append(step)
            best = paths.index(way)
        elif temperature == 0:
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

    def _options(self, select, way, paths):
        """Log probability of each id with which the choices go on behind `way`; None: of the end
        of a choice there."""
        here = _log_softmax(self.ids + way)
        going_on = {p[len(way)] for p in paths if len(p) > len(way) and p[: len(way)] == way}
        options = {token: here[token] for token in sorted(going_on, key=_order_in(paths, way))}
        if way in paths:
            ends = {t for text in select.until for t in VOCABULARY.tokens_beginning(text.encode())}
            if select.until:
                ends.add(EOS)
                options[None] = math.log(sum(math.exp(here[t]) for t in ends))
            elif going_on:
                left = 1 - sum(math.exp(here[t]) for t in going_on)
                options[None] = math.log(max(left, 1e-12))
        return options

    def _score(self, select, path, paths, told):
        def plain(before, ids):
            return sum(_log_softmax(before + ids[:at])[t] for at, t in enumerate(ids))

        own = path[told:]
        if select.method == "mean":
            return plain(self.ids + path[:told], own) / len(own)
        if select.method == "pmi":
            return plain(self.ids + path[:told], own) - plain([TOKENIZER.bos_id], own)
        score = 0.0
        for at in range(told, len(path) + 1):
            options = self._options(select, path[:at], paths)
            step = path[at] if at < len(path) else None
            if select.method == "prob":
                score += options.get(step, 0.0)
            elif step is not None or len(options) > 1:
                score += options[step] - math.log(sum(map(math.exp, options.values())))
        return score


def _order_in(paths, way):
    return lambda token: next(i for i, p in enumerate(paths) if p[: len(way) + 1] == [*way, token])


def _shaped(logits, gen, prompt, out):
    s = gen.sampling
    logits = [np.float32(x) for x in logits]
    for token, bias in gen.logit_bias:
        logits[token] += np.float32(bias)
    if s.repetition_penalty != 1:
        for token in {*prompt, *out}:
            penalty, logit = np.float32(s.repetition_penalty), logits[token]
            logits[token] = logit / penalty if logit > 0 else logit * penalty
    for token in set(out):
        per_count = np.float32(s.frequency_penalty) * np.float32(out.count(token))
        logits[token] -= np.float32(s.presence_penalty) + per_count
    return np.array(logits, np.float32)


def _log_probs(logits, allowed, ends, rest):
    """Log probability of every outcome of a draw, the most probable first."""
    weights = {t: math.exp(logits[t]) for t in allowed - ends}
    end = ends | (set(range(VOCAB)) - allowed if rest else set())
    if end:
        weights[-1] = sum(math.exp(logits[t]) for t in end)
    total = sum(weights.values())
    ranked = sorted(weights, key=lambda t: (-weights[t], t < 0, t))
    return {t: math.log(weights[t] / total) for t in ranked if weights[t] > 0}


def _first_end(done, stops, patterns, begin):
    """Where the stop begins that ends first, and which one it is."""
    found = []
    for which, stop in enumerate(stops):
        if (at := done.find(stop, begin)) >= 0:
            found.append((at + len(stop), at, which))
    for which, pattern in enumerate(patterns, len(stops)):
        spans = []
        for at in range(begin, len(done)):
            for end in range(at + 1, len(done) + 1):
                try:
                    if re.fullmatch(pattern, done[at:end].decode()):
                        spans.append((end, at, which))
                except UnicodeDecodeError:
                    continue
        found += spans
    return None if not found else min(found)[1:]


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
    return float(np.float32(value))
