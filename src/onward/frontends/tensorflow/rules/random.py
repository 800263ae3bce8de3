"""Random numbers: of the same distribution, not the same numbers."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onward.frontends.decompose import special
from onward.frontends.tensorflow.registry import rule
from onward.frontends.tensorflow.writer import Writer
from onward.graph.build import Tensor


def _like(op: Writer, shape: Tensor, dtype: ir.DataType) -> Tensor:
    return op.Expand(op.constant(np.zeros((), dtype.numpy())), op.int64(shape))


@rule("RandomUniform")
def uniform(op: Writer, shape: Tensor, *, dtype: ir.DataType) -> Tensor:
    return op.RandomUniformLike(_like(op, shape, dtype))


@rule("RandomStandardNormal")
def normal(op: Writer, shape: Tensor, *, dtype: ir.DataType) -> Tensor:
    return op.RandomNormalLike(_like(op, shape, dtype))


@rule("RandomUniformInt")
def uniform_int(op: Writer, shape: Tensor, low: Tensor, high: Tensor) -> Tensor:
    drawn = op.RandomUniformLike(_like(op, shape, ir.DataType.DOUBLE))
    spread = (high - low).cast(ir.DataType.DOUBLE)
    return op.Min(op.Floor(drawn * spread).cast(low.dtype) + low, high - op.like(1, high))


@rule("RandomShuffle")
def shuffle(op: Writer, x: Tensor) -> Tensor:
    """Rows in the order of numbers drawn for them."""
    rows = op.Slice(op.Shape(x), op.ints([0]), op.ints([1]))
    drawn = op.RandomUniformLike(_like(op, rows, ir.DataType.FLOAT))
    return op.Gather(x, op.many("TopK", 2, drawn, rows, axis=0)[1], axis=0)


@rule("TruncatedNormal")
def truncated_normal(op: Writer, shape: Tensor, *, dtype: ir.DataType) -> Tensor:
    """Within two standard deviations: numbers drawn evenly between the shares below either end, as quantiles."""
    low, high = 0.022750131948179195, 0.9772498680518208
    drawn = op.RandomUniformLike(_like(op, shape, ir.DataType.FLOAT), low=low, high=high)
    return special.ndtri(op, drawn).cast(dtype)


@rule("Multinomial")
def multinomial(op: Writer, logits: Tensor, count: Tensor, *, output_dtype: ir.DataType = ir.DataType.INT64) -> Tensor:
    drawn = op.Multinomial(logits, sample_size=op.numbers(count, "how many are drawn")[0], dtype=int(ir.DataType.INT64))
    return drawn.cast(output_dtype)
