"""Parts of tensors and borders around them, in the cases that PyTorch's own indexing and `F.pad` do not know."""

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from onward.backends.shared.runtime.slice import clamped_sides


def slice_tensor(
    x: Any, starts: list[int], ends: list[int], axes: list[int] | None = None, steps: list[int] | None = None
) -> Any:
    """x[start:end:step] along each of the axes; steps may be negative."""
    axes = list(range(len(starts))) if axes is None else axes
    steps = [1] * len(starts) if steps is None else steps
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        if step < 0:
            x = slice_backward(x, axis, start, end, step)
        else:
            x = x[(slice(None),) * (axis % x.ndim) + (slice(max(start, -x.shape[axis]), end, step),)]
    return x


def slice_backward(x: Any, axis: int, start: int, end: int, step: int) -> Any:
    """x[start:end:step] along one axis, for a negative step."""
    axis, size = axis % x.ndim, x.shape[axis]
    first = min(max(start + size if start < 0 else start, 0), size - 1)
    stop = min(max(end + size if end < 0 else end, -1), size - 1)
    flipped = np.flip(x, axis) if isinstance(x, np.ndarray) else x.flip(axis)
    return flipped[(slice(None),) * axis + (slice(size - 1 - first, size - 1 - stop, -step),)]


def pad(x: Any, widths: list[int], mode: str, value: Any = None, axes: list[int] | None = None) -> Any:
    """Add to the begin and the end of each axis, or cut from it where negative. `widths`: all begins, then all ends."""
    axes = list(range(x.ndim)) if axes is None else [axis % x.ndim for axis in axes]
    sides = {axis: clamped_sides(x.shape[axis], widths[i], widths[i + len(axes)]) for i, axis in enumerate(axes)}
    if mode == "constant" and isinstance(x, Tensor):
        flat = [n for axis in reversed(range(x.ndim)) for n in sides.get(axis, (0, 0))]
        if not isinstance(value, int) or abs(value) <= 2**53:
            return F.pad(x, flat, value=0 if value is None else value)
        inside = F.pad(torch.ones(x.shape, dtype=torch.bool, device=x.device), flat)
        return torch.where(inside, F.pad(x, flat), torch.tensor(value, dtype=x.dtype, device=x.device))
    if mode == "constant":
        each = [sides.get(axis, (0, 0)) for axis in range(x.ndim)]
        kept = x[tuple(slice(max(-a, 0), n - max(-b, 0)) for n, (a, b) in zip(x.shape, each, strict=True))]
        added = [(max(a, 0), max(b, 0)) for a, b in each]
        return np.pad(kept, added, constant_values="" if value is None else value)
    for axis, (before, after) in sides.items():
        if before or after:
            index = border_index(x.shape[axis], before, after, mode)
            x = x.index_select(axis, index.to(x.device)) if isinstance(x, Tensor) else x.take(index.numpy(), axis)
    return x


def border_index(size: int, before: int, after: int, mode: str) -> Tensor:
    """Which element of an axis each element of the padded axis is."""
    first = max(-before, 0)
    size = size - max(-after, 0) - first
    place = torch.arange(-max(before, 0), size + max(after, 0))
    if size == 0 and len(place):
        raise ValueError(f"an axis without elements cannot be padded in mode {mode!r}")
    if mode == "edge":
        place = place.clamp(0, size - 1)
    elif mode == "wrap":
        place = place % size
    else:
        place = size - 1 - (place % max(2 * size - 2, 1) - (size - 1)).abs()
    return place + first


def center_crop_pad(x: Any, shape: list[int], axes: list[int] | None = None) -> Any:
    """Cut or pad with zeros on both sides, so that the axes get the given sizes."""
    axes = list(range(len(shape))) if axes is None else [axis % x.ndim for axis in axes]
    flat = [0] * (2 * x.ndim)
    for axis, size in zip(axes, shape, strict=True):
        missing = size - x.shape[axis]
        before = missing // 2 if missing > 0 else -(-missing // 2)
        flat[2 * (x.ndim - 1 - axis)] = before
        flat[2 * (x.ndim - 1 - axis) + 1] = missing - before
    return F.pad(x, flat)
