"""One number for each row of several columns, side by side in a tensor (N, K)."""

from __future__ import annotations

import math

import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.graph.build import Tensor


def statistic(name: str, x: Tensor, valid: Tensor | None, ddof: int = 1, min_count: int = 0) -> Tensor:
    """`sum`, `mean` and so on of each row, over what counts: (N, 1). Of nothing a sum is 0, and a mean NaN."""
    op = x.op
    axis = op.ints([1])
    if name in ("sum", "prod", "product"):
        start, op_type = (0, "ReduceSum") if name == "sum" else (1, "ReduceProd")
        found: Tensor = getattr(op, op_type)(_only(x, valid, start), axis, keepdims=1)
        if min_count <= 0 or valid is None:
            return found
        return op.Where(_count(x, valid) < min_count, op.like(math.nan, x), found)
    if name in ("min", "max"):
        if valid is None:
            return op.ReduceMin(x, axis, keepdims=1) if name == "min" else op.ReduceMax(x, axis, keepdims=1)
        blank = math.inf if name == "min" else -math.inf
        best = (op.ReduceMin if name == "min" else op.ReduceMax)(_only(x, valid, blank), axis, keepdims=1)
        return op.Where(op.Equal(_count(x, valid), op.index(0)), op.like(math.nan, x), best)
    if name == "mean":
        return op.ReduceSum(_only(x, valid, 0), axis, keepdims=1) / _count(x, valid).cast(x.dtype)
    if name in ("var", "std"):
        return _variance(x, valid, ddof, name == "std")
    if name == "median":
        return _median(x, valid)
    raise UnsupportedError(f"{name} across columns cannot be converted")


def _only(x: Tensor, valid: Tensor | None, blank: float) -> Tensor:
    return x if valid is None else x.op.Where(valid, x, x.op.like(blank, x))


def _count(x: Tensor, valid: Tensor | None) -> Tensor:
    """How many count in each row, int64."""
    op = x.op
    if valid is None:
        return op.index(x.dims[1] if x.dims is not None and isinstance(x.dims[1], int) else 0)
    return op.ReduceSum(valid.cast(ir.DataType.INT64), op.ints([1]), keepdims=1)


def _variance(x: Tensor, valid: Tensor | None, ddof: int, is_root: bool) -> Tensor:
    op, axis = x.op, x.op.ints([1])
    number = _count(x, valid)
    mean = op.ReduceSum(_only(x, valid, 0), axis, keepdims=1) / number.cast(x.dtype)
    distance = _only(x - mean, valid, 0)
    found = op.ReduceSum(distance * distance, axis, keepdims=1) / (number - ddof).cast(x.dtype)
    found = op.Where(number > ddof, found, op.like(math.nan, x))
    return op.Sqrt(found) if is_root else found


def _median(x: Tensor, valid: Tensor | None) -> Tensor:
    """Of the sorted row, the mean of the two in the middle; what does not count stands behind."""
    op = x.op
    width = x.dims[1] if x.dims is not None else None
    if not isinstance(width, int):
        raise UnsupportedError("a median across columns needs a known number of columns")
    ordered = op.many("TopK", 2, _only(x, valid, math.inf), op.ints([width]), axis=1, largest=0, sorted=1)[0]
    number = _count(x, valid)
    low = op.Max((number - 1) / 2, op.index(0))
    high = number / 2
    if valid is None:
        low, high = op.unsqueeze(low, [0, 1]), op.unsqueeze(high, [0, 1])
        shape = op.Concat(op.Shape(x, start=0, end=1), op.ints([1]), axis=0)
        low, high = op.Expand(low, shape), op.Expand(high, shape)
    high = op.Min(high, op.index(width - 1))
    first, second = (op.GatherElements(ordered, place, axis=1) for place in (low, high))
    found = op.Where(op.Equal(first, second), first, (first + second) * 0.5)
    return op.Where(number > 0, found, op.like(math.nan, x))
