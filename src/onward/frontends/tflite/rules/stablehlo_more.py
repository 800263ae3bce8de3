"""Ops of StableHLO that TensorFlow's converter writes, but that the interpreter has no kernels for."""

from __future__ import annotations

import string
from typing import Any

import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.lax import index
from onward.frontends.tensorflow.writer import Writer
from onward.frontends.tflite.like_tensorflow import like
from onward.frontends.tflite.read import dtype_of
from onward.frontends.tflite.registry import rule
from onward.frontends.tflite.rules.stablehlo import whole
from onward.frontends.tflite.rules.window import REDUCTIONS, body_kind
from onward.graph.build import Tensor

SAME = {
    "STABLEHLO_ABS": "Abs",
    "STABLEHLO_COSINE": "Cos",
    "STABLEHLO_EXPONENTIAL": "Exp",
    "STABLEHLO_FLOOR": "Floor",
    "STABLEHLO_LOG": "Log",
    "STABLEHLO_LOGISTIC": "Sigmoid",
    "STABLEHLO_NEGATE": "Neg",
    "STABLEHLO_POWER": "Pow",
    "STABLEHLO_REMAINDER": "TruncateMod",
    "STABLEHLO_RSQRT": "Rsqrt",
    "STABLEHLO_SELECT": "SelectV2",
    "STABLEHLO_SUBTRACT": "Sub",
    "STABLEHLO_TANH": "Tanh",
}
COMPARISONS = ("Equal", "NotEqual", "GreaterEqual", "Greater", "LessEqual", "Less")
"""By the number of a direction."""


@rule(*SAME)
def same(op: Writer, *inputs: Tensor) -> Any:
    return like(op, SAME[op.operation.type], *inputs)


@rule("STABLEHLO_DIVIDE")
def divide(op: Writer, a: Tensor, b: Tensor) -> Any:
    """Of whole numbers, towards zero, which is how ONNX divides them."""
    return op.Div(a, b)


@rule("STABLEHLO_OR")
def either(op: Writer, a: Tensor, b: Tensor) -> Any:
    return like(op, "LogicalOr" if a.dtype == ir.DataType.BOOL else "BitwiseOr", a, b)


@rule("STABLEHLO_COMPARE")
def compare(op: Writer, a: Tensor, b: Tensor) -> Any:
    return like(op, COMPARISONS[op.operation.options.comparisonDirection], a, b)


@rule("STABLEHLO_CLAMP")
def clamp(op: Writer, low: Tensor, x: Tensor, high: Tensor) -> Tensor:
    return op.Min(op.Max(x, low), high)


@rule("STABLEHLO_CONVERT")
def convert(op: Writer, x: Tensor) -> Tensor:
    return op.converted(x, dtype_of(op.operation.outputs[0]))


def _declared(op: Writer) -> list[int]:
    """The size of the result: ops of StableHLO do not say it otherwise."""
    shape = op.operation.outputs[0].shape
    if shape is None or any(n < 0 for n in shape):
        raise UnsupportedError("the size of the result is not known")
    return whole(shape)


@rule("STABLEHLO_RESHAPE")
def reshape(op: Writer, x: Tensor) -> Tensor:
    return op.Reshape(x, op.ints(_declared(op)), allowzero=1)


@rule("STABLEHLO_BROADCAST_IN_DIM")
def broadcast_in_dim(op: Writer, x: Tensor) -> Tensor:
    """Axes of the input are these of the result, in this order."""
    wanted, places = _declared(op), whole(op.operation.options.broadcastDimensions)
    if x.sizes is None:
        raise UnsupportedError("the size of what is repeated is not known")
    lying = [x.sizes[places.index(axis)] if axis in places else 1 for axis in range(len(wanted))]
    return op.Expand(op.Reshape(x, op.ints(lying), allowzero=1), op.ints(wanted))


@rule("STABLEHLO_TRANSPOSE")
def transpose(op: Writer, x: Tensor) -> Tensor:
    return op.transpose(x, whole(op.operation.options.permutation))


@rule("STABLEHLO_CONCATENATE")
def concatenate(op: Writer, *tensors: Tensor) -> Tensor:
    return op.Concat(*tensors, axis=int(op.operation.options.dimension))


@rule("STABLEHLO_SLICE")
def slice_(op: Writer, x: Tensor) -> Tensor:
    options = op.operation.options
    starts, ends, steps = (whole(part) for part in (options.startIndices, options.limitIndices, options.strides))
    return op.Slice(x, op.ints(starts), op.ints(ends), op.ints(list(range(len(starts)))), op.ints(steps))


@rule("STABLEHLO_DYNAMIC_SLICE")
def dynamic_slice(op: Writer, x: Tensor, *starts: Tensor) -> Tensor:
    """What would reach beyond the end begins earlier."""
    return index.dynamic_slice(op, x, starts, whole(op.operation.options.sliceSizes))


@rule("STABLEHLO_REDUCE")
def reduce(op: Writer, *inputs: Tensor) -> Tensor:
    if len(inputs) != 2:
        raise UnsupportedError("a reduction of several tensors at once is not supported")
    x, start = inputs
    kind = body_kind(op, op.operation.options.bodySubgraphIndex)
    if not kind:
        raise UnsupportedError("a reduction to the last number is not supported")
    dtype = x.dtype
    if dtype == ir.DataType.BOOL:
        x, start = x.cast(ir.DataType.INT32), start.cast(ir.DataType.INT32)
    reduction, pair = REDUCTIONS[kind]
    found = op.reduced(reduction, x, whole(op.operation.options.dimensions), keepdims=False)
    return op.many(pair, 1, found, start)[0].cast(dtype)


@rule("STABLEHLO_DOT_GENERAL")
def dot_general(op: Writer, a: Tensor, b: Tensor) -> Tensor:
    """The axes of a batch, then those of the first, then those of the second."""
    options = op.operation.options
    letters = iter(string.ascii_letters)
    left = [next(letters) for _ in range(op.rank(a, "a product's first factor"))]
    right = [next(letters) for _ in range(op.rank(b, "a product's second factor"))]
    batch, summed = (
        list(zip(whole(one), whole(other), strict=True))
        for one, other in (
            (options.lhsBatchingDimensions, options.rhsBatchingDimensions),
            (options.lhsContractingDimensions, options.rhsContractingDimensions),
        )
    )
    for i, k in batch + summed:
        right[k] = left[i]
    both = [left[i] for i, _ in batch]
    gone = {left[i] for i, _ in summed}
    result = both + [c for c in left + right if c not in gone and c not in both]
    return op.Einsum(a, b, equation=f"{''.join(left)},{''.join(right)}->{''.join(result)}")


@rule("STABLEHLO_CONVOLUTION")
def convolution(op: Writer, x: Tensor, filters: Tensor) -> Tensor:
    """Each of the three has its axes in an order of its own."""
    options = op.operation.options
    if int(options.batchGroupCount) != 1 or any(n != 1 for n in whole(options.lhsDilation)):
        raise UnsupportedError("a convolution in groups of the batch, or with a dilated input, is not supported")
    if options.windowReversal is not None and any(options.windowReversal):
        raise UnsupportedError("a convolution with its filters turned round is not supported")
    given, kernel, out = (
        whole(part)
        for part in (
            options.inputSpatialDimensions,
            options.kernelSpatialDimensions,
            options.outputSpatialDimensions,
        )
    )
    image = op.transpose(x, [int(options.inputBatchDimension), int(options.inputFeatureDimension), *given])
    order = [int(options.kernelOutputFeatureDimension), int(options.kernelInputFeatureDimension), *kernel]
    pads = whole(options.padding) or [0] * 2 * len(given)
    y = op.Conv(
        image,
        op.arranged(filters, order),
        strides=whole(options.windowStrides) or None,
        dilations=whole(options.rhsDilation) or None,
        pads=pads[::2] + pads[1::2],
        group=int(options.featureGroupCount),
    )
    places = [int(options.outputBatchDimension), int(options.outputFeatureDimension), *out]
    return op.transpose(y, [places.index(axis) for axis in range(len(places))])
