"""Rows of tables, looked up by number or by key."""

from __future__ import annotations

import onnx_ir as ir

from onward.frontends.tensorflow.rules.segment import grouped
from onward.frontends.tensorflow.writer import FAR, Writer
from onward.frontends.tflite.registry import rule
from onward.graph.build import Tensor

SUM, MEAN = 0, 1


@rule("EMBEDDING_LOOKUP")
def embedding_lookup(op: Writer, indices: Tensor, table: Tensor) -> Tensor:
    return op.Gather(table, indices, axis=0)


@rule("EMBEDDING_LOOKUP_SPARSE")
def embedding_lookup_sparse(
    op: Writer, ids: Tensor, places: Tensor, shape: Tensor, weights: Tensor, table: Tensor
) -> Tensor:
    """For each place but for its last coordinate: the rows of that place, weighted and put together."""
    wide, sizes = op.int64(places), op.int64(shape)
    outer = op.Slice(sizes, op.ints([0]), op.ints([-1]), op.ints([0]))
    steps = op.CumSum(op.Log(outer.cast(ir.DataType.DOUBLE)), op.index(0), exclusive=1, reverse=1)
    strides = op.Round(op.Exp(steps)).cast(ir.DataType.INT64)
    bucket = op.sum(op.Slice(wide, op.ints([0]), op.ints([-1]), op.ints([1])) * strides, [1], keepdims=False)
    count = op.reduced("ReduceProd", outer, [0], keepdims=False)
    rank = op.rank(table, "a table of rows")
    lying = op.unsqueeze(weights, list(range(1, rank)))
    total = grouped(op, op.Gather(table, ids, axis=0) * lying, bucket, count, "Sum")
    combiner = op.operation.options.combiner
    if combiner != SUM:
        size = grouped(op, lying if combiner == MEAN else lying * lying, bucket, count, "Sum")
        size = size if combiner == MEAN else op.Sqrt(size)
        total = total / op.where(op.Equal(size, op.like(0, size)), op.like(1, size), size)
    inner = op.Slice(op.Shape(table), op.ints([1]), op.ints([FAR]), op.ints([0]))
    return op.Reshape(total, op.Concat(outer, inner, axis=0))


@rule("HASHTABLE_LOOKUP")
def hashtable_lookup(op: Writer, wanted: Tensor, keys: Tensor, values: Tensor) -> list[Tensor]:
    """The row of each key, zeros where there is none; and whether there is."""
    same = op.Equal(op.unsqueeze(wanted, [1]), op.unsqueeze(keys, [0])).cast(ir.DataType.INT32)
    there = op.reduced("ReduceMax", same, [1], keepdims=False)
    rows = op.Gather(values, op.ArgMax(same, axis=1, keepdims=0), axis=0)
    rank = op.rank(values, "the values of a table")
    found = op.unsqueeze(there, list(range(1, rank))).cast(ir.DataType.BOOL)
    return [op.Where(found, rows, op.like(0, values)), there.cast(ir.DataType.UINT8)]
