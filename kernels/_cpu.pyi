import numpy as np
import numpy.typing as npt

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
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]: ...
