"""Reductions by a function of two, and exact ones of whole numbers.

ONNX Runtime reduces whole numbers by way of float64, which saturates and loses what is beyond 53 bits; its ReduceMax
and ReduceMin of int64 are wrong beyond 2³¹ where all axes are reduced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from onward.errors import UnsupportedError
from onward.frontends.lax.elementwise import INT32, INT64, UINT32, UINT64
from onward.frontends.lax.sizes import part, product, reshaped, size, vector
from onward.frontends.writer import Writer
from onward.graph.build import Tensor

Pair = Callable[[Sequence[Tensor], Sequence[Tensor]], Sequence[Tensor]]
"""Of several tensors and as many more, all of one shape: what is made of each two."""


def halved(op: Writer, tensors: Sequence[Tensor], axis: int, pair: Pair) -> list[Tensor]:
    """All along one axis joined into one, which stays as an axis of 1: halves are joined until one is left."""
    found = list(tensors)
    length = found[0].dims[axis] if found[0].dims is not None else None
    if not isinstance(length, int) or length == 0:
        raise UnsupportedError(
            "a reduction by a function of its own needs an axis of a known length; give a number for it"
        )
    while length > 1:
        half = length // 2
        first = [part(op, x, axis, 0, half) for x in found]
        second = [part(op, x, axis, half, 2 * half) for x in found]
        joined = list(pair(first, second))
        if length % 2:
            rest = [part(op, x, axis, length - 1, length) for x in found]
            joined = [op.Concat(x, one, axis=axis) for x, one in zip(joined, rest, strict=True)]
        found, length = joined, half + length % 2
    return found


def reduced_by(
    op: Writer, tensors: Sequence[Tensor], starts: Sequence[Tensor], axes: Sequence[int], pair: Pair
) -> list[Tensor]:
    """Several tensors of one shape at once, over some axes, and what they start with, as scalars."""
    rank = op.rank(tensors[0], "what is reduced")
    kept = [axis for axis in range(rank) if axis not in axes]
    lengths = [size(op, tensors[0], axis) for axis in kept]
    total = product(op, [size(op, tensors[0], axis) for axis in axes])
    if total == 0:
        return [op.Expand(start, vector(op, lengths)) for start in starts]
    rows = [reshaped(op, op.transpose(x, [*axes, *kept]), [total, *lengths]) for x in tensors]
    found = [op.squeeze(x, [0]) for x in halved(op, rows, 0, pair)]
    return list(pair([op.Expand(start, x.shape) for start, x in zip(starts, found, strict=True)], found))


def whole_sum(op: Writer, x: Tensor, axes: Sequence[int]) -> Tensor:
    """Of whole numbers, wrapped as sums of them are."""
    if not axes:
        return x
    if x.dtype.itemsize < 8:
        return op.sum(x.cast(INT64), axes, keepdims=False).cast(x.dtype)
    wide = x.cast(INT64)
    lower = op.BitwiseAnd(wide, op.index(2**32 - 1))
    upper = op.Div(wide - lower, op.index(2**32))
    sums = (op.sum(half, axes, keepdims=False) for half in (upper, lower))
    return (next(sums) * 2**32 + next(sums)).cast(x.dtype)


def whole_product(op: Writer, x: Tensor, axes: Sequence[int]) -> Tensor:
    """Of whole numbers, wrapped as products of them are."""
    if not axes:
        return x
    one = op.constant(np.ones((), x.dtype.numpy()))
    return reduced_by(op, [x], [one], axes, lambda a, b: [a[0] * b[0]])[0]


def whole_extreme(op: Writer, op_type: str, x: Tensor, axes: Sequence[int]) -> Tensor:
    """ReduceMax or ReduceMin of whole numbers."""
    if not axes:
        return x
    if x.dtype == UINT32:  # with the first bit turned, they have the order of signed numbers
        turn = op.like(2**31, x)
        found = op.reduced(op_type, op.BitwiseXor(x, turn).cast(INT32), list(axes), keepdims=False)
        return op.BitwiseXor(found.cast(UINT32), turn)
    if x.dtype not in (INT64, UINT64):
        return op.reduced(op_type, x, list(axes), keepdims=False)
    turned = x
    if x.dtype == UINT64:
        turned = op.BitwiseXor(x, op.constant(np.asarray(2**63, np.uint64))).cast(INT64)
    kept = [axis for axis in range(op.rank(x, "what is reduced")) if axis not in axes]
    lengths = [size(op, x, axis) for axis in kept]
    total = product(op, [size(op, x, axis) for axis in axes])
    rows = reshaped(op, op.transpose(turned, [*kept, *axes]), [*lengths, total])
    best = op.many("TopK", 2, rows, op.ints([1]), axis=-1, largest=int(op_type == "ReduceMax"))[0]
    found = op.squeeze(best, [len(kept)])
    if x.dtype == UINT64:
        return op.BitwiseXor(found.cast(UINT64), op.constant(np.asarray(2**63, np.uint64)))
    return found
