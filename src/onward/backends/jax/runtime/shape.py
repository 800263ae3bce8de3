"""Tensors of another shape, and tensors made of nothing but a shape."""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array


def split_parts(x: Any, sizes: list[int] | int, axis: int) -> list[Any]:
    """Parts of the given sizes along an axis, or that many parts of which the last may be smaller."""
    if isinstance(sizes, int):
        size = x.shape[axis]
        part = -(-size // sizes)
        ends = [min(part * (i + 1), size) for i in range(sizes - 1)]
    else:
        ends = [sum(sizes[: i + 1]) for i in range(len(sizes) - 1)]
    parts: list[Any] = (np if isinstance(x, np.ndarray) else jnp).split(x, ends, axis)
    return parts


def float_range(start: float, limit: float, delta: float, dtype: Any) -> Array:
    """start + i * delta before `limit`; half precision is computed in single precision."""
    dtype = jnp.result_type(dtype)
    start, limit, delta = (float(dtype.type(v)) for v in (start, limit, delta))
    count = max(math.ceil((limit - start) / delta), 0)
    precision = jnp.promote_types(dtype, jnp.float32)
    return (start + jnp.arange(count, dtype=precision) * delta).astype(dtype)


def triangle(x: Array, k: Array, upper: bool = True) -> Array:
    """What is above the k-th diagonal of matrices, or below it, with the diagonal; zeros elsewhere."""
    place = jnp.arange(x.shape[-1]) - jnp.arange(x.shape[-2])[:, None]
    return jnp.where(place >= k if upper else place <= k, x, jnp.zeros_like(x))


def depth_to_space(x: Array, block: int, mode: str = "DCR", channels_last: bool = False) -> Array:
    """Channels to blocks of pixels; the place in a block is the outer ("DCR") or inner part of the channel."""
    if channels_last:
        n, h, w, c = x.shape
        split = (c // block**2, block, block) if mode == "CRD" else (block, block, c // block**2)
        order = (0, 1, 4, 2, 5, 3) if mode == "CRD" else (0, 1, 3, 2, 4, 5)
        return x.reshape(n, h, w, *split).transpose(order).reshape(n, h * block, w * block, c // block**2)
    n, c, h, w = x.shape
    if mode == "CRD":
        x = x.reshape(n, c // block**2, block, block, h, w).transpose(0, 1, 4, 2, 5, 3)
    else:
        x = x.reshape(n, block, block, c // block**2, h, w).transpose(0, 3, 4, 1, 5, 2)
    return x.reshape(n, c // block**2, h * block, w * block)


def space_to_depth(x: Array, block: int, mode: str = "DCR", channels_last: bool = False) -> Array:
    """Blocks of pixels to channels: the inverse of `depth_to_space`."""
    if channels_last:
        n, h, w, c = x.shape
        x = x.reshape(n, h // block, block, w // block, block, c)
        x = x.transpose(0, 1, 3, 5, 2, 4) if mode == "CRD" else x.transpose(0, 1, 3, 2, 4, 5)
        return x.reshape(n, h // block, w // block, c * block**2)
    n, c, h, w = x.shape
    x = x.reshape(n, c, h // block, block, w // block, block)
    x = x.transpose(0, 1, 3, 5, 2, 4) if mode == "CRD" else x.transpose(0, 3, 5, 1, 2, 4)
    return x.reshape(n, c * block**2, h // block, w // block)
