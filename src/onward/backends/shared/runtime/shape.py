"""Tensors of another shape."""

import math
from typing import Any


def reshape(x: Any, shape: list[int], allow_zero: bool = False) -> Any:
    """Reshape where a 0 keeps the dimension of `x` at that place, unless zeros are allowed, and one -1 is inferred."""
    if not allow_zero:
        shape = [x.shape[i] if n == 0 else n for i, n in enumerate(shape)]
    return x.reshape(tuple(shape))


def flatten_to_matrix(x: Any, axis: int) -> Any:
    """A matrix whose rows run over the axes before `axis`, its columns over the others."""
    axis = axis + x.ndim if axis < 0 else axis
    return x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))
