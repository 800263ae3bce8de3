"""Reductions, and the place of the largest."""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from onward.frontends.tensorflow.registry import rule
from onward.frontends.tensorflow.writer import Writer
from onward.graph.build import Tensor

SAME = {
    "Sum": "ReduceSum",
    "Mean": "ReduceMean",
    "Prod": "ReduceProd",
    "Max": "ReduceMax",
    "Min": "ReduceMin",
    "EuclideanNorm": "ReduceL2",
}


def _reduction(op_type: str) -> Callable[..., Tensor]:
    def function(op: Writer, x: Tensor, axes: Tensor, *, keep_dims: bool = False) -> Tensor:
        return op.reduced(op_type, x, axes, keep_dims)

    return function


for _tensorflow, _onnx in SAME.items():
    rule(_tensorflow)(_reduction(_onnx))


@rule("All")
def reduce_all(op: Writer, x: Tensor, axes: Tensor, *, keep_dims: bool = False) -> Tensor:
    return op.reduced("ReduceMin", x.cast(ir.DataType.INT32), axes, keep_dims).cast(ir.DataType.BOOL)


@rule("Any")
def reduce_any(op: Writer, x: Tensor, axes: Tensor, *, keep_dims: bool = False) -> Tensor:
    return op.reduced("ReduceMax", x.cast(ir.DataType.INT32), axes, keep_dims).cast(ir.DataType.BOOL)


@rule("ArgMax", "ArgMin")
def arg(op: Writer, x: Tensor, axis: Tensor, *, output_type: ir.DataType = ir.DataType.INT64) -> Tensor:
    found = op.many(op.operation.type, 1, x, axis=op.numbers(axis, "the axis")[0], keepdims=0)[0]
    return found.cast(output_type)


@rule("Cumsum")
def cumsum(op: Writer, x: Tensor, axis: Tensor, *, exclusive: bool = False, reverse: bool = False) -> Tensor:
    return op.CumSum(x, axis, exclusive=int(exclusive), reverse=int(reverse))


@rule("TopKV2")
def top_k(op: Writer, x: Tensor, k: Tensor, *, sorted: bool = True) -> list[Tensor]:
    values, places = op.many("TopK", 2, x, op.flat(op.int64(k)), axis=-1, largest=1, sorted=int(sorted))
    return [values, places.cast(ir.DataType.INT32)]
