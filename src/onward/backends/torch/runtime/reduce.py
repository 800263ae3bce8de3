"""Reductions with the edge cases of ONNX: no axes, several axes, nothing to reduce."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor


def over_axes(
    function: Callable[..., Tensor], x: Tensor, axes: Sequence[int], keepdim: bool = False, **options: Any
) -> Tensor:
    """`function(x, dim=axes)`, or `x` itself if there are no axes."""
    return function(x, dim=axes, keepdim=keepdim, **options) if axes else x


def reduce_max(x: Tensor, dim: int | list[int] | tuple[int, ...] = (), keepdim: bool = False) -> Tensor:
    """`torch.amax`; of nothing it is the smallest value of the dtype."""
    if x.numel():
        return torch.amax(x, dim, keepdim)
    return torch.full_like(x.sum(dim, keepdim), dtype_range(x.dtype)[0], dtype=x.dtype)


def reduce_min(x: Tensor, dim: int | list[int] | tuple[int, ...] = (), keepdim: bool = False) -> Tensor:
    """`torch.amin`; of nothing it is the largest value of the dtype."""
    if x.numel():
        return torch.amin(x, dim, keepdim)
    return torch.full_like(x.sum(dim, keepdim), dtype_range(x.dtype)[1], dtype=x.dtype)


def dtype_range(dtype: torch.dtype) -> tuple[float, float]:
    """The smallest and the largest value of a dtype, infinities included."""
    if dtype.is_floating_point:
        return -float("inf"), float("inf")
    return (False, True) if dtype == torch.bool else (torch.iinfo(dtype).min, torch.iinfo(dtype).max)


def reduce_prod(
    x: Tensor, dim: int | list[int] | tuple[int, ...] = (), keepdim: bool = False, dtype: torch.dtype | None = None
) -> Tensor:
    """The product over several axes; `()` are all of them."""
    axes = [dim] if isinstance(dim, int) else list(dim) or list(range(x.ndim))
    for axis in axes:
        x = torch.prod(x, axis, keepdim=True, dtype=dtype)
    return x if keepdim else x.squeeze(tuple(axes))


def log_sum_exp(x: Tensor, dim: int | list[int] | tuple[int, ...] = (), keepdim: bool = False) -> Tensor:
    """`torch.logsumexp`, with `()` for all axes as in other reductions."""
    return torch.logsumexp(x, tuple(range(x.ndim)) if dim in ((), []) else dim, keepdim)


def integer_mean(x: Tensor, dim: int | list[int] | tuple[int, ...] = (), keepdim: bool = False) -> Tensor:
    """The mean of integers, rounded towards zero."""
    total = x.sum(dim, keepdim)
    return torch.div(total, x.numel() // max(total.numel(), 1), rounding_mode="trunc").to(x.dtype)


def last_index(function: Callable[..., Tensor], x: Tensor, dim: int, keepdim: bool = False) -> Tensor:
    """The index that `torch.argmax` or `torch.argmin` finds, the last where several are equal."""
    return x.shape[dim] - 1 - function(x.flip(dim), dim=dim, keepdim=keepdim)


def shifted(x: Tensor, dim: int, start: int) -> Tensor:
    """`x` moved one step along `dim`, with `start` in the first place: what an exclusive running sum adds up."""
    first = torch.full_like(x.narrow(dim, 0, min(1, x.shape[dim])), start)
    return torch.cat([first, x.narrow(dim, 0, max(x.shape[dim] - 1, 0))], dim=dim)
