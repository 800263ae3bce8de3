"""What the numbers of a weight are like, in time and memory that do not grow with it: of a large one, of a sample."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from onward.hub.stored import in_place
from onward.hub.tensors import SparseTensor

MOST = 2**20
"""Elements of a tensor that are looked at; of a larger one, runs that lie evenly in it."""
RUN = 2**12
ALL = 2**28
"""Elements of all tensors together, beyond which `FEW` of each are looked at."""
FEW = 2**13
UNPACKED = 2**26
"""Elements that are unpacked at most where several of them share a byte."""
BINS = 24


class Statistics:
    """Looks at one tensor after the other, and at less of each once it has seen a lot."""

    def __init__(self) -> None:
        self._left = ALL

    def of(self, tensor: ir.TensorProtocol) -> dict[str, Any] | None:
        """Minimum, maximum, mean, deviation and so on; None where a tensor has none, as strings and empty ones."""
        if isinstance(tensor, SparseTensor | ir.StringTensor) or tensor.dtype == ir.DataType.STRING or not tensor.size:
            return None
        if tensor.dtype.itemsize < 1 and tensor.size > UNPACKED:
            return None
        most = MOST if self._left > 0 else FEW
        flat = np.asarray(in_place(tensor)).reshape(-1)
        taken = sample(flat, most)
        self._left -= taken.size
        if taken.dtype.kind == "c":
            taken = np.abs(taken)
        return {**figures(taken.astype(np.float64)), "sampled": taken.size if taken.size < flat.size else 0}


def sample(flat: np.ndarray[Any, Any], most: int) -> np.ndarray[Any, Any]:
    """All elements, or as many as are asked for, in runs from the first to the last."""
    if flat.size <= most:
        return flat
    count = max(2, most // RUN)
    run = most // count
    starts = np.linspace(0, flat.size - run, count).astype(np.int64)
    return np.concatenate([flat[start : start + run] for start in starts])


def figures(values: np.ndarray[Any, Any]) -> dict[str, Any]:
    """Of numbers of which some may be infinite or NaN: these are counted apart."""
    finite = values[np.isfinite(values)]
    found: dict[str, Any] = {"odd": int(values.size - finite.size), "zeros": float(np.mean(values == 0))}
    if not finite.size:
        return found
    low, high = float(finite.min()), float(finite.max())
    with np.errstate(over="ignore", invalid="ignore"):
        mean, deviation = float(finite.mean()), float(finite.std())
    found |= {"min": low, "max": high, "mean": _told(mean), "std": _told(deviation)}
    if low < high and np.isfinite(high - low):
        found["histogram"] = np.histogram(finite, bins=BINS, range=(low, high))[0].tolist()
    return found


def _told(value: float) -> float | None:
    """None where it is too large for a number."""
    return value if np.isfinite(value) else None
