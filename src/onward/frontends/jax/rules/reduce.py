"""Reductions: sums, products, extremes, and where they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.jax.registry import rule
from onward.frontends.jax.writer import Writer, onnx_dtype
from onward.frontends.lax.reduce import reduced_by, whole_extreme, whole_product, whole_sum
from onward.graph.build import Tensor
from onward.hub.types import FLOATING


@rule("reduce_sum")
def reduce_sum(op: Writer, x: Tensor, *, axes: Sequence[int]) -> Tensor:
    return _total(op, "ReduceSum", x, axes)


@rule("reduce_prod")
def reduce_prod(op: Writer, x: Tensor, *, axes: Sequence[int]) -> Tensor:
    return _total(op, "ReduceProd", x, axes)


def _total(op: Writer, op_type: str, x: Tensor, axes: Sequence[int]) -> Tensor:
    if not axes:
        return x
    if x.dtype.is_integer():
        return (whole_sum if op_type == "ReduceSum" else whole_product)(op, x, list(axes))
    return op.reduced(op_type, x, list(axes), keepdims=False)


@rule("psum", "psum2", "pmax", "pmin")
def over_batches(op: Writer, *inputs: Tensor, axes: Sequence[Any], axis_index_groups: Any = None) -> list[Tensor]:
    """What a named axis of vmap becomes: a reduction over an axis of the tensors."""
    places = [axis for axis in axes if isinstance(axis, int)]
    if len(places) != len(axes) or axis_index_groups is not None:
        raise UnsupportedError("a named axis is that of pmap or shard_map: convert what runs on one device")
    name = op.eqn.primitive.name
    if name.startswith("psum"):
        return [_total(op, "ReduceSum", x, places) for x in inputs]
    return [_extreme(op, "ReduceMax" if name == "pmax" else "ReduceMin", x, places) for x in inputs]


@rule("reduce_max")
def reduce_max(op: Writer, x: Tensor, *, axes: Sequence[int]) -> Tensor:
    return _extreme(op, "ReduceMax", x, axes)


@rule("reduce_min")
def reduce_min(op: Writer, x: Tensor, *, axes: Sequence[int]) -> Tensor:
    return _extreme(op, "ReduceMin", x, axes)


def _extreme(op: Writer, op_type: str, x: Tensor, axes: Sequence[int]) -> Tensor:
    """A reduction in which NaN wins, as it does not in ONNX Runtime."""
    if not axes:
        return x
    if x.dtype == ir.DataType.BOOL:
        return _of_truths(op, op_type, x, axes)
    if x.dtype.is_integer():
        return whole_extreme(op, op_type, x, list(axes))
    found = op.reduced(op_type, x, list(axes), keepdims=False)
    exact = op.where(_of_truths(op, "ReduceMax", op.IsNaN(x), axes), op.like(math.nan, x), found)
    op.extremes[exact.value] = found
    return exact


def _of_truths(op: Writer, op_type: str, x: Tensor, axes: Sequence[int]) -> Tensor:
    if not axes:
        return x
    return op.reduced(op_type, x, list(axes), keepdims=False)


@rule("reduce_and")
def reduce_and(op: Writer, x: Tensor, *, axes: Sequence[int]) -> Tensor:
    return _of_truths(op, "ReduceMin", x, axes) if x.dtype == ir.DataType.BOOL else _bits(op, "BitwiseAnd", x, axes)


@rule("reduce_or")
def reduce_or(op: Writer, x: Tensor, *, axes: Sequence[int]) -> Tensor:
    return _of_truths(op, "ReduceMax", x, axes) if x.dtype == ir.DataType.BOOL else _bits(op, "BitwiseOr", x, axes)


@rule("reduce_xor")
def reduce_xor(op: Writer, x: Tensor, *, axes: Sequence[int]) -> Tensor:
    if x.dtype != ir.DataType.BOOL:
        return _bits(op, "BitwiseXor", x, axes)
    number = op.reduced("ReduceSum", x.cast(ir.DataType.INT32), list(axes), keepdims=False)
    return op.Mod(number, op.like(2, number)).cast(ir.DataType.BOOL)


def _bits(op: Writer, op_type: str, x: Tensor, axes: Sequence[int]) -> Tensor:
    """A reduction of integers bit by bit."""
    start = op.like(-1 if op_type == "BitwiseAnd" else 0, x)
    return reduced_by(op, [x], [start], list(axes), lambda a, b: op.many(op_type, 1, a[0], b[0]))[0]


@rule("argmax")
def argmax(op: Writer, x: Tensor, *, axes: Sequence[int], index_dtype: Any) -> Tensor:
    return _place(op, "ArgMax", x, axes, onnx_dtype(index_dtype))


@rule("argmin")
def argmin(op: Writer, x: Tensor, *, axes: Sequence[int], index_dtype: Any) -> Tensor:
    return _place(op, "ArgMin", x, axes, onnx_dtype(index_dtype))


def _place(op: Writer, op_type: str, x: Tensor, axes: Sequence[int], dtype: ir.DataType) -> Tensor:
    """Where the extreme is, the first of several; the first NaN, where there is one."""
    (axis,) = axes
    if x.dtype == ir.DataType.BOOL:
        x = x.cast(ir.DataType.INT32)
    found = op.many(op_type, 1, x, axis=axis, keepdims=0)[0]
    if x.dtype in FLOATING:
        nothing = op.IsNaN(x)
        numbers = nothing.cast(ir.DataType.UINT8)
        first = op.ArgMax(numbers, axis=axis, keepdims=0)
        found = op.where(_of_truths(op, "ReduceMax", nothing, [axis]), first, found)
    return found.cast(dtype)
