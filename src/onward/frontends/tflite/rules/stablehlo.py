"""Ops of StableHLO that the interpreter has kernels for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.tensorflow.rules.index import scattered
from onward.frontends.tensorflow.writer import Writer
from onward.frontends.tflite.like_tensorflow import like
from onward.frontends.tflite.registry import rule
from onward.frontends.tflite.rules.window import body_kind, sizes_of
from onward.graph.build import Tensor

SAME = {
    "STABLEHLO_ADD": "AddV2",
    "STABLEHLO_MULTIPLY": "Mul",
    "STABLEHLO_MAXIMUM": "Maximum",
    "STABLEHLO_MINIMUM": "Minimum",
    "STABLEHLO_SHIFT_LEFT": "LeftShift",
}


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


def _starts(op: Writer, indices: Tensor, axis: int, dims: Sequence[int], rank: int) -> Tensor:
    """Where windows begin in all dimensions, as the last axis: zero where the indices do not say."""
    if axis == indices.rank:
        indices = op.unsqueeze(indices, [axis])
    order = [i for i in range(op.rank(indices, "indices")) if i != axis]
    last = op.transpose(op.int64(indices), [*order, axis])
    zero = op.zeros_like(op.Slice(last, op.ints([0]), op.ints([1]), op.ints([-1])))
    columns = [dims.index(d) if d in dims else len(dims) for d in range(rank)]
    return op.Gather(op.Concat(last, zero, axis=-1), op.ints(columns), axis=-1)


def _grid(window: Sequence[int]) -> Any:
    return np.stack(np.meshgrid(*(np.arange(n) for n in window), indexing="ij"), -1).astype(np.int64)


def _places(op: Writer, starts: Tensor, window: Sequence[int], gone: Sequence[int]) -> Tensor:
    """All indices of all windows; the dimensions that are gone have a size of one."""
    grid = _grid(window)
    kept = [n for d, n in enumerate(window) if d not in gone]
    spaced = op.unsqueeze(starts, [-2 - i for i in range(len(kept))][::-1])
    return spaced + op.constant(grid.reshape(*kept, len(window)))


@rule("STABLEHLO_GATHER")
def gather(op: Writer, x: Tensor, indices: Tensor) -> Tensor:
    """Windows that would reach beyond the end begin earlier."""
    options, sizes = op.operation.options, sizes_of(x)
    window, gone = whole(options.sliceSizes), whole(options.collapsedSliceDims)
    starts = _starts(op, indices, int(options.indexVectorDim), whole(options.startIndexMap), len(sizes))
    most = op.ints([n - w for n, w in zip(sizes, window, strict=True)])
    found = op.GatherND(x, _places(op, op.Max(op.Min(starts, most), op.index(0)), window, gone))
    inner = whole(options.offsetDims)
    rank = op.rank(found, "what was gathered")
    outer = rank - len(inner)
    by_place = iter(range(outer))
    perm = [outer + inner.index(i) if i in inner else next(by_place) for i in range(rank)]
    return op.transpose(found, perm)


@rule("STABLEHLO_SCATTER")
def scatter(op: Writer, x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    options, sizes = op.operation.options, sizes_of(x)
    kind = body_kind(op, options.updateComputationSubgraphIndex)
    reductions = {"": "none", "ADD": "add", "MUL": "mul", "MAXIMUM": "max", "MINIMUM": "min"}
    if kind not in reductions:
        raise UnsupportedError(f"a scatter by {kind} is not supported")
    inner, gone = whole(options.updateWindowDims), whole(options.insertedWindowDims)
    given = sizes_of(updates)
    by_place = iter(inner)
    window = [1 if d in gone else given[next(by_place)] for d in range(len(sizes))]
    dims = whole(options.scatterDimsToOperandDims)
    starts = _starts(op, indices, int(options.indexVectorDim), dims, len(sizes))
    outer = [d for d in range(len(given)) if d not in inner]
    values = op.transpose(updates, [*outer, *inner])
    return scattered(op, x, _places(op, starts, window, gone), values, reductions[kind])
