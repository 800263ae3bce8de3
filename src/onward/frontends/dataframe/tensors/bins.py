"""In which of some intervals a number lies."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onward.graph.build import Tensor

FEW = 40
"""Up to so many borders, a comparison with all of them at once is the fastest."""


def positions(x: Tensor, edges: npt.NDArray[Any], *, right: bool) -> Tensor:
    """How many borders lie below x; without `right`, also those that equal it. NaN lies above none. int32, (N, 1)."""
    op = x.op
    if len(edges) > FEW:
        return _searched(x, edges, right).cast(ir.DataType.INT32)
    # One long row beside the borders in a column: ONNX Runtime compares and adds whole rows at once.
    table = op.constant(np.asarray(edges).reshape(-1, 1))
    line = op.Reshape(x, op.ints([1, -1]))
    above = op.Greater(line, table) if right else op.GreaterOrEqual(line, table)
    count = op.ReduceSum(above.cast(ir.DataType.INT32), op.ints([0]), keepdims=0)
    return op.Reshape(count, op.ints([-1, 1]))


def _searched(x: Tensor, edges: npt.NDArray[Any], right: bool) -> Tensor:
    """By halving: as many steps as the number of borders has bits."""
    op = x.op
    size = 1 << len(edges).bit_length()
    low: Any = np.iinfo(np.int64).max if edges.dtype.kind == "i" else np.inf
    table = op.constant(np.concatenate([edges, np.full(size - len(edges), low, edges.dtype)]))
    place = op.Expand(op.index(0), x.shape)
    step = size
    while step > 1:
        step //= 2
        border = op.Gather(table, place + (step - 1))
        above = op.Greater(x, border) if right else op.GreaterOrEqual(x, border)
        place = op.Where(above, place + step, place)
    return op.Min(place, op.index(len(edges)))
