"""What loops leave behind."""

from typing import Any

import numpy as np
import torch
from torch import Tensor


def stack(items: list[Tensor], empty: tuple[int, ...], dim: int = 0, **options: Any) -> Tensor:
    """The results of a loop as one tensor; it has the shape `empty` where the loop did not run."""
    return torch.stack(items, dim) if items else torch.empty(empty, **options)


def stack_strings(items: list[np.ndarray], empty: tuple[int, ...], axis: int) -> np.ndarray:
    """`stack` for arrays of strings."""
    return np.stack(items, axis) if items else np.empty(empty, dtype=object)
