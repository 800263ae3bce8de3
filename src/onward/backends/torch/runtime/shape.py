"""Tensors of another shape, and tensors made of nothing but a shape."""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor


def unsqueeze(x: Any, axes: list[int]) -> Any:
    """Insert dimensions of size 1 at the given axes of the result."""
    rank = x.ndim + len(axes)
    new = {axis % rank for axis in axes}
    return x[tuple(None if axis in new else slice(None) for axis in range(rank))]


def split_strings(x: np.ndarray, sizes: list[int] | int, axis: int) -> list[np.ndarray]:
    """Parts of the given sizes along an axis, or that many parts of which the last may be smaller."""
    if isinstance(sizes, int):
        sizes = [-(-x.shape[axis] // sizes)] * sizes
    return np.split(x, np.cumsum(sizes)[:-1], axis=axis)


def integer_range(start: int, limit: int, delta: int, **options: Any) -> Tensor:
    """start, start + delta, … before `limit`; empty where `limit` lies the other way."""
    return torch.arange(start, max(start, limit) if delta > 0 else min(start, limit), delta, **options)


def float_range(start: float, limit: float, delta: float, dtype: torch.dtype, device: torch.device) -> Tensor:
    """start + i * delta before `limit`; half precision is computed in single precision."""
    start, limit, delta = torch.tensor([start, limit, delta], dtype=dtype).tolist()
    count = max(math.ceil((limit - start) / delta), 0)
    precision = torch.float64 if dtype == torch.float64 else torch.float32
    return (start + torch.arange(count, dtype=precision, device=device) * delta).to(dtype)


def shifted_eye(rows: int, columns: int, k: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Ones on the k-th diagonal."""
    row = torch.arange(rows, device=device)[:, None]
    return (torch.arange(columns, device=device) - row == k).to(dtype)


def depth_to_space(x: Tensor, block: int) -> Tensor:
    """Channels to blocks of pixels; the position in a block is the outer part of the channel number."""
    n, c, h, w = x.shape
    x = x.reshape(n, block, block, c // block**2, h, w).permute(0, 3, 4, 1, 5, 2)
    return x.reshape(n, c // block**2, h * block, w * block)


def space_to_depth(x: Tensor, block: int) -> Tensor:
    """Blocks of pixels to channels: the inverse of `depth_to_space`."""
    n, c, h, w = x.shape
    x = x.reshape(n, c, h // block, block, w // block, block).permute(0, 3, 5, 1, 2, 4)
    return x.reshape(n, c * block**2, h // block, w // block)
