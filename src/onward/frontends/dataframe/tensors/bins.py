"""In which of some intervals a number lies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onward.frontends.boosting.trees import AT_MOST, BELOW, Tree, scores
from onward.frontends.dataframe.tensors.lookup import encoded
from onward.frontends.dataframe.tensors.numbers import between
from onward.graph.build import Tensor

EXACT = 2**53
"""Integers below this are floats as well, so that a float tells on which side of them an integer lies."""
LARGEST = 1024
"""Up to so many whole numbers are a table, in which a number is found in a third of the time of a tree."""


def positions(x: Tensor, edges: npt.NDArray[Any], *, right: bool) -> Tensor:
    """How many borders lie below x; without `right`, also those that equal it. NaN lies above none. int64, (N, 1).

    The borders go up. `x` is float64, or int64 with borders of that dtype.
    """
    if edges.dtype.kind == "i" and ((edges <= -EXACT) | (edges >= EXACT)).any():
        return _searched(x, edges, right)
    places = np.arange(len(edges) + 1, dtype=np.float64)
    return steps(x, edges, places, right=right, nan_is_low=True).cast(ir.DataType.INT64)


def steps(
    x: Tensor, edges: npt.NDArray[Any], values: Sequence[float] | npt.NDArray[Any], *, right: bool, nan_is_low: bool
) -> Tensor:
    """The float64 that stands for the interval x lies in: one more of them than of borders, which go up. 1 to 3 nodes.

    With `right`, a border belongs to the interval below it. NaN is in the first interval or in the last.
    """
    if not len(edges):
        return x.op.Expand(x.op.constant(np.asarray([[values[0]]], np.float64)), x.shape)
    found = _by_table(x, np.asarray(edges, np.float64), np.asarray(values, np.float64), right, nan_is_low)
    return _by_tree(x, edges, values, right, nan_is_low) if found is None else found


def _by_table(
    x: Tensor, edges: npt.NDArray[Any], values: npt.NDArray[Any], right: bool, nan_is_low: bool
) -> Tensor | None:
    """By the whole number next to x, if it lies in the same interval, and there are few of them."""
    is_whole = not x.dtype.is_floating_point()
    near = edges[np.isfinite(edges)]
    if not len(near) or near[-1] - near[0] > LARGEST - 4 or np.abs(near).max() >= EXACT:
        return None
    x, given = x.cast(ir.DataType.DOUBLE), x
    if not is_whole and right and (near == np.floor(near)).all():
        x = x.op.Ceil(x)
    elif not is_whole:
        whole = np.nextafter(near, np.inf) if right else near
        if not (whole == np.floor(whole)).all():
            return None
        x = x.op.Floor(x)
    keys = np.arange(np.floor(near[0]) - 1, np.ceil(near[-1]) + 2)
    top = np.finfo(np.float64).max
    side: Any = "left" if right else "right"
    table, far, ends = (values[np.searchsorted(edges, at, side)] for at in (keys, [-top, top], [-np.inf, np.inf]))
    if not is_whole and far.tobytes() != ends.tobytes():
        return None
    other = values[0 if nan_is_low or is_whole else -1]
    is_low, is_high = (end.tobytes() != other.tobytes() for end in far)
    if is_low or is_high:
        x = between(x, keys[0] if is_low else -np.inf, keys[-1] if is_high else np.inf)
    elif is_whole and given.dtype == ir.DataType.INT64:
        x, keys = given, keys.astype(np.int64)
    return encoded(x, list(keys), table, other)


def _by_tree(
    x: Tensor, edges: npt.NDArray[Any], values: Sequence[float] | npt.NDArray[Any], right: bool, nan_is_low: bool
) -> Tensor:
    passed, failed = [0] * len(edges), [0] * len(edges)
    order: list[int] = []

    def halved(low: int, high: int) -> int:
        """The node that tells the intervals from `low` to `high` apart; of one alone, its leaf."""
        if low == high:
            return ~low
        middle, node = (low + high) // 2, len(order)
        order.append(middle)
        passed[node], failed[node] = halved(low, middle), halved(middle + 1, high)
        return node

    halved(0, len(edges))
    tree = Tree(
        feature=np.zeros(len(order), np.int64),
        threshold=np.asarray(edges, np.float64)[order],
        missing=np.full(len(order), nan_is_low),
        passed=np.asarray(passed),
        failed=np.asarray(failed),
        values=np.asarray(values, np.float64),
    )
    return scores(x.op, x.cast(ir.DataType.DOUBLE), [tree], AT_MOST if right else BELOW, 1)


def _searched(x: Tensor, edges: npt.NDArray[Any], right: bool) -> Tensor:
    """By halving: as many steps as the number of borders has bits."""
    op = x.op
    size = 1 << len(edges).bit_length()
    table = op.constant(np.concatenate([edges, np.full(size - len(edges), np.iinfo(np.int64).max, edges.dtype)]))
    place = op.Expand(op.index(0), x.shape)
    step = size
    while step > 1:
        step //= 2
        border = op.Gather(table, place + (step - 1))
        above = op.Greater(x, border) if right else op.GreaterOrEqual(x, border)
        place = op.Where(above, place + step, place)
    return op.Min(place, op.index(len(edges)))
