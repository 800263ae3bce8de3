"""Products of tensors: contracted over some axes, side by side over others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from onward.frontends.jax.dimensions import Dim, is_known
from onward.frontends.jax.registry import rule
from onward.frontends.jax.writer import Writer, onnx_dtype
from onward.graph.build import Tensor
from onward.hub.types import FLOATING

PRODUCTS = {
    ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.INT32, ir.DataType.INT64, ir.DataType.UINT32,
    ir.DataType.UINT64, ir.DataType.FLOAT16, ir.DataType.BFLOAT16,
}  # fmt: skip
"""Dtypes that ONNX has products of matrices for."""


@rule("dot_general")
def dot_general(
    op: Writer, a: Tensor, b: Tensor, *, dimension_numbers: Any, preferred_element_type: Any = None
) -> Tensor:
    dtype = onnx_dtype(op.outs[0].dtype)
    inside = computed_in(dtype, a.dtype, b.dtype)
    a, b = a.cast(inside), b.cast(inside)
    product = contracted(op, a, b, [aval.shape for aval in op.ins], dimension_numbers)
    return product.cast(dtype)


def computed_in(dtype: ir.DataType, *given: ir.DataType) -> ir.DataType:
    """What to multiply in: as wide as what is multiplied, and what comes out."""
    if dtype in FLOATING:
        wide = [one for one in (dtype, *given) if one in (ir.DataType.DOUBLE, ir.DataType.FLOAT)]
        return dtype if not wide else ir.DataType.DOUBLE if ir.DataType.DOUBLE in wide else ir.DataType.FLOAT
    return dtype if dtype in PRODUCTS else ir.DataType.INT32


def contracted(op: Writer, a: Tensor, b: Tensor, shapes: Sequence[Sequence[Dim]], dimension_numbers: Any) -> Tensor:
    """What XLA calls dot_general, as one MatMul: batch axes first, then those of `a`, then those of `b`."""
    (sum_a, sum_b), (batch_a, batch_b) = ([list(side) for side in pair] for pair in dimension_numbers)
    free_a = [axis for axis in range(len(shapes[0])) if axis not in (*sum_a, *batch_a)]
    free_b = [axis for axis in range(len(shapes[1])) if axis not in (*sum_b, *batch_b)]
    sum_a, sum_b = _aligned(sum_a, sum_b, shapes, free_a, batch_a)
    batch = [shapes[0][axis] for axis in batch_a]
    rows, columns = [shapes[0][axis] for axis in free_a], [shapes[1][axis] for axis in free_b]
    result = [*batch, *rows, *columns]
    if not sum_a and not batch:
        return op.Mul(op.reshape(a, [*rows, *[1] * len(columns)]), b)
    depth = _product([shapes[0][axis] for axis in sum_a])
    if not batch and len(free_b) <= 1 and len(sum_a) == 1 and len(free_a) >= 1:  # leading axes need not be joined
        left = op.reordered(a, [*free_a, *sum_a])
        right = op.reordered(b, [*sum_b, *free_b])
        return op.MatMul(left, right)
    left = op.reordered(a, [*batch_a, *free_a, *sum_a])
    if batch or len(sum_a) != 1:
        keeps = rows if not batch else [_product(rows)]
        left = _shaped(op, left, [*batch, *keeps, depth])
    right = _shaped(op, op.reordered(b, [*batch_b, *sum_b, *free_b]), [*batch, depth, _product(columns)])
    product = op.MatMul(left, right)
    product.value.shape = ir.Shape(op.dims([*batch, *(rows if not batch else [_product(rows)]), _product(columns)]))
    return op.reshape(product, result)


def _aligned(
    sum_a: list[int], sum_b: list[int], shapes: Sequence[Sequence[Dim]], free_a: list[int], batch_a: list[int]
) -> tuple[list[int], list[int]]:
    """Axes that are contracted, in the order that they have in `b`, the constant one of a layer."""
    order = sorted(range(len(sum_a)), key=lambda i: sum_b[i])
    return [sum_a[i] for i in order], [sum_b[i] for i in order]


def _product(dims: Sequence[Dim]) -> Dim:
    return math.prod(dims)


def _shaped(op: Writer, x: Tensor, shape: Sequence[Dim]) -> Tensor:
    if op.dims(shape) == x.dims:
        return x
    array = op.known(x)
    if array is not None and all(map(is_known, shape)):
        return op.stored(x, array.reshape([int(dim) for dim in shape]))
    return op.reshape(x, shape)
