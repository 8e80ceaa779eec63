"""Native CPU backend: packed weights, paged KV cache, one call a step."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

UInt8 = npt.NDArray[np.uint8]
Int32 = npt.NDArray[np.int32]
Float32 = npt.NDArray[np.float32]

def available_isas() -> list[str]:
    """Instruction sets that this build and this machine have, the best one first."""

def panel_formats() -> dict[int, tuple[str, int]]:
    """By ggml type: how a matrix of it is packed, and the bytes of 16 rows x 256 columns.

    Types that are not there are not supported.
    """

def draw(
    logits: npt.NDArray[np.float32],
    mask: npt.NDArray[np.uint32],
    temperature: npt.NDArray[np.float32],
    top_p: npt.NDArray[np.float32],
    top_k: npt.NDArray[np.int32],
    min_p: npt.NDArray[np.float32],
    uniform: npt.NDArray[np.float64],
    end_ids: npt.NDArray[np.int32],
    end_start: npt.NDArray[np.int32],
    end_rest: npt.NDArray[np.uint8],
    vectors: str = "auto",
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """Draw one outcome a row; the contract is that of Backend.draw and DrawRequest.

    vectors: auto or a name of `available_isas`; it changes speed only.
    """

class Model:
    """Weights, KV pages and threads. Everything is checked against the shapes given here.

    tensors: (name, ggml type, shape with the rows first, uint8 data). windows and ropes: one a
    layer, window 0 for all keys, rope -1 or a number of `frequencies` and `magnitudes`; 0
    experts and a cap of 0 are none. isa: a name of `available_isas`, "" for the best one. Raises
    ValueError that names the tensor or value that is wrong.
    """

    def __init__(
        self,
        tensors: Sequence[tuple[str, int, Sequence[int], npt.NDArray[np.uint8]]],
        *,
        vocab_size: int,
        context_length: int,
        width: int,
        ff_width: int,
        heads: int,
        kv_heads: int,
        head_dim: int,
        norm_epsilon: float,
        embedding_scale: float,
        attention_scale: float,
        attention_cap: float,
        logit_cap: float,
        experts: int,
        experts_used: int,
        normalise_experts: bool,
        activation: str,
        rope_interleaved: bool,
        qkv_bias: bool,
        qk_norm: bool,
        post_norms: bool,
        tied_output: bool,
        windows: Sequence[int],
        ropes: Sequence[int],
        frequencies: Sequence[Sequence[float]],
        magnitudes: Sequence[float],
        pages: int,
        threads: int,
        half_kv: bool,
        int8_activations: bool,
        isa: str,
    ) -> None: ...
    def forward(
        self,
        tokens: Int32,
        query_start: Int32,
        context_start: Int32,
        pages: Int32,
        page_start: Int32,
        logit_tokens: Int32,
        logits: Float32,
        head_panels: Int32 | None = None,
    ) -> None:
        """One step of a StepPlan's arrays; writes logits float32 [L, V]. Releases the GIL.

        head_panels: int32, ascending; panel p stands for the columns 16 p to 16 p + 15 of the
        logits, and others are left as they are. None: all.

        Raises ValueError, with nothing written, for a plan that does not hold together.
        """

    def copy_pages(self, pairs: Int32) -> None:
        """Copy whole pages: int32 [N, 2] of (source, destination), in this order."""

    def read_page(self, page: int, out: UInt8) -> None:
        """K and V of a page over all layers, uint8 [bytes of a page]. Releases the GIL.

        Raises ValueError for a page or a length that there is not.
        """

    def write_page(self, page: int, data: UInt8) -> None:
        """Put back what `read_page` gave, into any page of a model made alike."""

    @property
    def isa(self) -> str: ...
    @property
    def threads(self) -> int: ...
