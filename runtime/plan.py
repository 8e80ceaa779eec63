"""StepPlan: flat arrays that describe one forward pass of a mixed batch.

Row r of the batch owns tokens[query_start[r] : query_start[r + 1]]; they stand at the positions
context_start[r], context_start[r] + 1, ... of its sequence. Their K and V are written to the pages
of the row's block table before attention reads them. Prefill chunks and decodes differ only in
their number of tokens.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Int32 = npt.NDArray[np.int32]

PAGE_SIZE = 16
"""KV slots in a page."""


@dataclass(frozen=True, slots=True)
class StepPlan:
    """One forward pass: B rows, T tokens in all, L rows of logits asked for.

    tokens: int32 [T]. query_start: int32 [B + 1], query_start[0] = 0. context_start: int32 [B],
    tokens of the row that are already in the cache. pages: int32 [total], the block tables of the
    rows one after the other; page_start: int32 [B + 1] into it; row r has at least
    ceil((context_start[r] + its tokens) / PAGE_SIZE) pages. logit_tokens: int32 [L], ascending
    indices into `tokens` whose logits are wanted. logit_mask: uint32 [ceil(V / 32)], the ids whose
    logits are wanted, in all of these rows; the other columns may hold anything. None: all.
    """

    tokens: Int32
    query_start: Int32
    context_start: Int32
    pages: Int32
    page_start: Int32
    logit_tokens: Int32
    logit_mask: npt.NDArray[np.uint32] | None = None


class PlanRow(NamedTuple):
    """One row before it is laid flat: `tokens` (int32 array) follow on `context` cached ones in
    `pages` (int32 array); the logits of the last `logits` tokens are wanted."""

    tokens: array[int]
    context: int
    pages: array[int]
    logits: int


def flatten(rows: Iterable[PlanRow], logit_mask: npt.NDArray[np.uint32] | None = None) -> StepPlan:
    """Lay the rows of one step one after the other."""
    tokens, pages, wanted = array("i"), array("i"), array("i")
    query_start, page_start, context = array("i", [0]), array("i", [0]), array("i")
    for own_tokens, own_context, own_pages, logits in rows:
        tokens.extend(own_tokens)
        pages.extend(own_pages)
        end = len(tokens)
        query_start.append(end)
        page_start.append(len(pages))
        context.append(own_context)
        wanted.extend(range(end - logits, end))
    return StepPlan(
        tokens=np.frombuffer(tokens, np.int32),
        query_start=np.frombuffer(query_start, np.int32),
        context_start=np.frombuffer(context, np.int32),
        pages=np.frombuffer(pages, np.int32),
        page_start=np.frombuffer(page_start, np.int32),
        logit_tokens=np.frombuffer(wanted, np.int32),
        logit_mask=logit_mask,
    )
