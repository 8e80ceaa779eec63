"""The contract of a backend: StepPlan in, logits out. It knows nothing of sequences or sampling."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sglite.runtime.plan import StepPlan

Float32 = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class DrawRequest:
    """What `draw` needs besides the logits, one entry for each of the L rows.

    mask: uint32 [L, ceil(V / 32)], bit set = allowed. temperature, top_p, min_p: float32 [L];
    top_k: int32 [L]. uniform: float64 [L] in [0, 1). end_ids: int32 flat, end_start: int32
    [L + 1]: ids whose total probability is the one virtual outcome that ends the hole; empty where
    the hole cannot end here. end_rest: uint8 [L]: 1 where every id outside the mask counts to the
    end outcome too. An id in end_ids is never drawn as itself, also where the mask allows it.
    """

    mask: npt.NDArray[np.uint32]
    temperature: Float32
    top_p: Float32
    top_k: npt.NDArray[np.int32]
    min_p: Float32
    uniform: npt.NDArray[np.float64]
    end_ids: npt.NDArray[np.int32]
    end_start: npt.NDArray[np.int32]
    end_rest: npt.NDArray[np.uint8]


class Backend(ABC):
    """Owns weights and the KV pages; `pages_total` pages of PAGE_SIZE slots, numbered from 0."""

    vocab_size: int
    pages_total: int
    bytes_per_page: int
    max_context: int

    @abstractmethod
    def forward(self, plan: StepPlan) -> Float32:
        """Logits float32 [L, V]; a view that the next call overwrites. Releases the GIL. Columns
        outside of the plan's `logit_mask` may hold anything.

        A row's logits have the same bits whatever else is in the plan, however its tokens are cut
        into chunks and whichever pages hold its context.
        """

    @abstractmethod
    def copy_pages(self, pairs: npt.NDArray[np.int32]) -> None:
        """Copy whole pages: int32 [N, 2] of (source, destination)."""

    def page_identity(self, memo: Path) -> bytes:
        """32 bytes, a hash over all that the bytes of a page depend on besides tokens. `memo`: a
        file that may remember what takes long to find out. Raises NotImplementedError where pages
        mean nothing outside of this process."""
        raise NotImplementedError(f"{type(self).__name__} has no pages to save")

    def read_page(self, page: int, out: npt.NDArray[np.uint8]) -> None:
        """Copy a page to uint8 [bytes_per_page]."""
        raise NotImplementedError(f"{type(self).__name__} has no pages to save")

    def write_page(self, page: int, data: npt.NDArray[np.uint8]) -> None:
        """Copy to a page what `read_page` gave, also in a backend of the same identity."""
        raise NotImplementedError(f"{type(self).__name__} has no pages to save")

    @abstractmethod
    def draw(self, logits: Float32, request: DrawRequest) -> tuple[npt.NDArray[np.int32], Float32]:
        """Draw one outcome a row: ids int32 [L] (-1 = the end outcome) and its log probability
        float32 [L] under the distribution over mask and end outcome, before temperature.

        Greedy where temperature is 0: the largest probability, ties to the lowest id, the end
        outcome after all ids. Otherwise the filters (top_k, then top_p, then min_p, the end outcome
        being one entry) cut the distribution at `temperature`, and the first outcome whose
        cumulated probability, in ascending order of ids with the end outcome last, exceeds
        `uniform` is drawn.
        """

    @abstractmethod
    def close(self) -> None:
        """Free weights, pages and threads. Calling it twice is fine."""
