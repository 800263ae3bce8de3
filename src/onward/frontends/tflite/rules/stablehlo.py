"""Ops of StableHLO that the interpreter has kernels for."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.lax import index
from onward.frontends.lax.index import Windows
from onward.frontends.lax.scatter import scatter as scattered
from onward.frontends.tensorflow.writer import Writer
from onward.frontends.tflite.like_tensorflow import like
from onward.frontends.tflite.registry import rule
from onward.frontends.tflite.rules.window import body_kind
from onward.graph.build import Tensor

SAME = {
    "STABLEHLO_ADD": "AddV2",
    "STABLEHLO_MULTIPLY": "Mul",
    "STABLEHLO_MAXIMUM": "Maximum",
    "STABLEHLO_MINIMUM": "Minimum",
    "STABLEHLO_SHIFT_LEFT": "LeftShift",
}

SCATTERS = {"": "set", "ADD": "add", "MUL": "mul", "MAXIMUM": "max", "MINIMUM": "min"}
"""What is made of two numbers, as a kind of scatter."""


@rule(*SAME)
def same(op: Writer, a: Tensor, b: Tensor) -> Any:
    return like(op, SAME[op.operation.type], a, b)


@rule("STABLEHLO_AND")
def stablehlo_and(op: Writer, a: Tensor, b: Tensor) -> Any:
    return like(op, "LogicalAnd" if a.dtype == ir.DataType.BOOL else "BitwiseAnd", a, b)


@rule("STABLEHLO_COMPOSITE")
def composite(op: Writer, *inputs: Any) -> Any:
    """What it is made of is another graph of the file."""
    return op.operation.graph.called(op.operation.options.decompositionSubgraphIndex, inputs)


def whole(numbers: Any) -> list[int]:
    """A list of the file, empty where it is not there."""
    return [] if numbers is None else [int(n) for n in numbers]


@rule("STABLEHLO_GATHER")
def gather(op: Writer, x: Tensor, indices: Tensor) -> Tensor:
    """Windows that would reach beyond the end begin earlier."""
    options = op.operation.options
    windows = Windows(whole(options.offsetDims), whole(options.collapsedSliceDims), whole(options.startIndexMap))
    at = index.vectors_last(op, indices, int(options.indexVectorDim))
    return index.gather(op, x, at, windows, whole(options.sliceSizes), "clip")


@rule("STABLEHLO_SCATTER")
def scatter(op: Writer, x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """Windows that would reach beyond the end are left out."""
    options = op.operation.options
    kind = body_kind(op, options.updateComputationSubgraphIndex)
    if kind not in SCATTERS:
        raise UnsupportedError(f"a scatter by {kind} is not supported")
    inner, gone = whole(options.updateWindowDims), whole(options.insertedWindowDims)
    windows = Windows(inner, gone, whole(options.scatterDimsToOperandDims))
    at = index.vectors_last(op, indices, int(options.indexVectorDim))
    return scattered(op, x, at, updates, windows, SCATTERS[kind], "fill", bool(options.uniqueIndices))
