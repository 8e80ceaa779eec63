"""StepPlan: flat arrays that describe one forward pass of a mixed batch.

Row r of the batch owns tokens[query_start[r] : query_start[r + 1]]; they stand at the positions
context_start[r], context_start[r] + 1, ... of its sequence. Their K and V are written to the pages
of the row's block table before attention reads them. Prefill chunks and decodes differ only in
their number of tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

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
    indices into `tokens` whose logits are wanted.
    """

    tokens: Int32
    query_start: Int32
    context_start: Int32
    pages: Int32
    page_start: Int32
    logit_tokens: Int32
