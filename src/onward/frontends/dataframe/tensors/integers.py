"""Division, remainders and products of integers, exact for every value, in nodes that cannot stop ONNX Runtime.

ONNX's Div truncates; it fails on a divisor of 0, and the lowest integer by -1 ends the process, in Mod too.
Here `floor` rounds a quotient down, as Python, pandas and Polars do, and a remainder has the sign of the divisor.
A divisor of 0 gives 0 (callers put what their library has there: a null, an infinity, an error).
The lowest integer by -1 is itself, wrapped, as in numpy.
Two tensors are int8, int32, int64 or unsigned: there is no Where for int16.

Min, Max, Clip and Sign of int64 are not used on numbers of 2³¹ and more: where upper halves are equal, ONNX Runtime's
kernels on x86 compare the lower halves as signed numbers, so that Max of 2³¹ and 0 is 0. Less and Greater are right.
"""

from __future__ import annotations

import numpy as np

from onward.errors import UnsupportedError
from onward.graph.build import Tensor


def lowest(x: Tensor) -> int:
    """The lowest integer of the dtype of `x`."""
    return int(np.iinfo(x.dtype.numpy()).min)


def signed(x: Tensor) -> bool:
    return lowest(x) < 0


def floor_by(x: Tensor, divisor: int) -> Tensor:
    """`x // divisor` for a positive constant: 5 nodes, 1 of an unsigned `x`."""
    if divisor < 1:
        raise UnsupportedError(f"a division by {divisor} is not one by a positive number: give it as a tensor")
    if divisor == 1:
        return x
    if not signed(x):
        return x / divisor
    # For x < 0 the floor is one below the truncated quotient of x + 1.
    below = (x < 0).cast(x.dtype)
    return (x + below) / divisor - below


def truncate_by(x: Tensor, divisor: int) -> Tensor:
    """`x / divisor` without its fraction, for a positive constant: 1 node."""
    if divisor < 1:
        raise UnsupportedError(f"a division by {divisor} is not one by a positive number: give it as a tensor")
    return x if divisor == 1 else x / divisor


def remainder_by(x: Tensor, divisor: int) -> Tensor:
    """`x % divisor` for a positive constant, from 0 to `divisor - 1`: 1 node."""
    if divisor < 1:
        raise UnsupportedError(f"a remainder by {divisor} is not one by a positive number: give it as a tensor")
    return x.op.Mod(x, divisor)


def _safe(x: Tensor, divisor: Tensor) -> Tensor:
    """The divisor, with 1 where Div or Mod could fail: 0, and -1 for signed ones."""
    op = x.op
    if not signed(x):
        return divisor + op.Equal(divisor, 0).cast(x.dtype)
    # -1 and 0 alone become 0 or 1 after adding 1.
    raised = divisor + 1
    return op.where(op.And(raised >= 0, raised <= 1), 1, divisor)


def _of_minus_one(divisor: Tensor) -> Tensor:
    return divisor.op.Equal(divisor, -1)


def truncate_divide(x: Tensor, divisor: Tensor) -> Tensor:
    """The quotient without its fraction, of two tensors of one dtype; 0 where the divisor is 0: 11 nodes."""
    op = x.op
    quotient = x / _safe(x, divisor)
    if not signed(x):
        return quotient * (divisor > 0).cast(x.dtype)
    quotient = op.Where(_of_minus_one(divisor), op.Neg(x), quotient)
    return op.where(op.Equal(divisor, 0), 0, quotient)


def floor_divide(x: Tensor, divisor: Tensor) -> Tensor:
    """`x // divisor` of two tensors of one dtype; 0 where the divisor is 0: 21 nodes."""
    op = x.op
    if not signed(x):
        return truncate_divide(x, divisor)
    safe = _safe(x, divisor)
    quotient = x / safe
    # The product lies between 0 and x, so that it cannot overflow; the quotient is too high where signs differ.
    rest = x - quotient * safe
    uneven = op.And(op.Not(op.Equal(rest, 0)), op.Xor(rest < 0, safe < 0))
    quotient = quotient - uneven.cast(x.dtype)
    quotient = op.Where(_of_minus_one(divisor), op.Neg(x), quotient)
    return op.where(op.Equal(divisor, 0), 0, quotient)


def floor_remainder(x: Tensor, divisor: Tensor) -> Tensor:
    """`x % divisor` of two tensors of one dtype, with the sign of the divisor; 0 where it is 0: 6 nodes."""
    return x.op.Mod(x, _safe(x, divisor))


def truncate_remainder(x: Tensor, divisor: Tensor) -> Tensor:
    """What `truncate_divide` leaves, with the sign of `x`; 0 where the divisor is 0: 8 nodes.

    Mod with `fmod=1` is no way: ONNX Runtime computes it in float64, also of integers.
    """
    safe = _safe(x, divisor)
    return x - x / safe * safe


def multiply_by(x: Tensor, factor: int) -> tuple[Tensor, Tensor]:
    """The product by a positive constant, and a mask of where it fits the dtype; elsewhere it is wrapped. 4 nodes."""
    if factor < 1:
        raise UnsupportedError(f"a product by {factor} is not one by a positive number: give it as a tensor")
    limits = np.iinfo(x.dtype.numpy())
    low, high = -(-int(limits.min) // factor), int(limits.max) // factor
    return x * factor, x.op.And(x >= low, x <= high)


def multiply(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """The product of two tensors of one dtype, and a mask of where it fits; elsewhere it is wrapped.

    A product fits if dividing it gives a factor back; the lowest integer by -1 is the one exception.
    """
    op = x.op
    product = x * y
    back = op.Equal(truncate_divide(product, y), x)
    fits = op.Or(back, op.Equal(y, 0))
    if signed(x):
        fits = op.And(fits, op.Not(op.And(_of_minus_one(y), op.Equal(x, lowest(x)))))
    return product, fits


def add(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """The sum of two int64 or int32 tensors, and a mask of where it fits; elsewhere it is wrapped. 4 nodes."""
    total = x + y
    # One summand lowers the other if and only if it is negative.
    return total, x.op.Equal(total < x, y < 0)
