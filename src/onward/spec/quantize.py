"""When sums of products of 8-bit integers can be computed in floating point."""

from typing import Any

import numpy as np
import onnx_ir as ir

from onward.spec.cast import INTEGER_RANGES

EXACT = 2**24
"""All integers up to this are float32 numbers: a sum whose terms add up to no more is exact in any order."""


def largest_distance(of: ir.DataType | None, zero_point: np.ndarray[Any, Any] | None) -> int:
    """How far an 8-bit integer can be from its zero point; None is a zero point that is not known."""
    low, high = INTEGER_RANGES.get(of or ir.DataType.UNDEFINED, (-128, 255))
    if zero_point is None:
        return high - low
    points = zero_point.astype(np.int64)
    return int(max(high - points.min(), points.max() - low))


def largest_sum(
    x_distance: int, weight: np.ndarray[Any, Any], weight_zero_point: np.ndarray[Any, Any], axes: tuple[int, ...]
) -> int:
    """A bound of every sum over `axes` of products of a constant weight and integers, both without zero points."""
    distance = np.abs(weight.astype(np.int16) - weight_zero_point.astype(np.int16))
    return x_distance * int(distance.sum(axis=axes, dtype=np.int64).max(initial=0))
