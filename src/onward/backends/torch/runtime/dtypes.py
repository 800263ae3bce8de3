"""Unsigned 64-bit integers, for which PyTorch has few kernels, computed as signed ones."""

import torch
from torch import Tensor


def uint64_ordered(x: Tensor) -> Tensor:
    """uint64 as int64 of the same order, to compare, sort or select by."""
    return x.view(torch.int64) ^ -(2**63)


def uint64_restored(x: Tensor) -> Tensor:
    """The inverse of `uint64_ordered`."""
    return (x ^ -(2**63)).view(torch.uint64)


def uint64_divide(a: Tensor, b: Tensor) -> Tensor:
    """The quotient of two uint64 tensors, rounded down."""
    x, y = a.view(torch.int64), b.view(torch.int64)
    large = y < 0
    divisor = torch.where(large, 1, y)
    half = torch.div((x >> 1) & (2**63 - 1), divisor, rounding_mode="trunc") << 1
    rest = x - half * divisor
    low = half + uint64_not_below(rest, divisor)
    return torch.where(large, uint64_not_below(x, y).to(torch.int64), low).view(torch.uint64)


def uint64_remainder(a: Tensor, b: Tensor) -> Tensor:
    """What remains of dividing two uint64 tensors."""
    quotient = uint64_divide(a, b).view(torch.int64)
    return (a.view(torch.int64) - quotient * b.view(torch.int64)).view(torch.uint64)


def uint64_not_below(x: Tensor, y: Tensor) -> Tensor:
    """x >= y, of uint64 numbers held in int64."""
    return (x ^ -(2**63)) >= (y ^ -(2**63))
