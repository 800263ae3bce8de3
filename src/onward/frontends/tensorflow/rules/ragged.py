"""Ragged tensors: values, and where their rows end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.tensorflow.registry import rule
from onward.frontends.tensorflow.rules.segment import bins, grouped
from onward.frontends.tensorflow.writer import FAR, Writer
from onward.graph.build import Tensor


def _one(op: Writer, tensor: Tensor) -> Tensor:
    """A scalar as a vector of one."""
    return op.Reshape(tensor, op.ints([1]))


def rows_of(op: Writer, splits: Tensor, count: Tensor) -> Tensor:
    """For each value the number of its row: how many rows end before it."""
    ends = op.unsqueeze(op.Slice(splits, op.ints([1]), op.ints([FAR])), [0])
    places = op.unsqueeze(op.Range(op.index(0), op.squeeze(count, [0]), op.index(1)), [1])
    return op.reduced("ReduceSum", (places >= ends).cast(ir.DataType.INT64), [1], keepdims=False)


@rule("RaggedTensorToTensor")
def ragged_to_tensor(
    op: Writer,
    shape: Tensor,
    values: Tensor,
    default: Tensor,
    *partitions: Tensor,
    row_partition_types: Sequence[str],
) -> Tensor:
    """Of one ragged axis, given by where its rows end or by the row of each value."""
    inner = op.Slice(op.Shape(values), op.ints([1]), op.ints([FAR]))
    count = op.Slice(op.Shape(values), op.ints([0]), op.ints([1]))
    if list(row_partition_types) == ["ROW_SPLITS"]:
        splits = op.int64(partitions[0])
        rows = op.Shape(splits) - op.index(1)
        row = rows_of(op, splits, count)
    elif list(row_partition_types) == ["FIRST_DIM_SIZE", "VALUE_ROWIDS"]:
        rows, row = _one(op, op.int64(partitions[0])), op.int64(partitions[1])
        ones = op.Expand(op.index(1), op.Shape(row))
        lengths = grouped(op, ones, row, rows, "Sum")
        splits = op.Concat(op.ints([0]), op.CumSum(lengths, op.index(0)), axis=0)
    else:
        raise UnsupportedError("a tensor of more than one ragged axis is not supported")
    place = op.Range(op.index(0), op.squeeze(count, [0]), op.index(1)) - op.Gather(splits, row)
    lengths = op.Slice(splits, op.ints([1]), op.ints([FAR])) - op.Slice(splits, op.ints([0]), op.ints([-1]))
    longest = op.reduced("ReduceMax", op.Concat(lengths, op.ints([0]), axis=0), [0], keepdims=True)
    wanted = op.known(shape)
    if wanted is None or (wanted.ndim and (wanted[:1] >= 0).any()):
        raise UnsupportedError("a given number of rows is not supported")
    width = longest
    if wanted.ndim and wanted.size > 1 and int(wanted[1]) >= 0:
        width = op.ints([int(wanted[1])])
    kept = op.NonZero(place < op.squeeze(width, [0]))
    kept = op.squeeze(kept, [0])
    target = op.Concat(op.unsqueeze(op.Gather(row, kept), [1]), op.unsqueeze(op.Gather(place, kept), [1]), axis=1)
    empty = op.Expand(default, op.Concat(rows, width, inner, axis=0))
    return op.ScatterND(empty, target, op.Gather(values, kept))


@rule("RaggedRange")
def ragged_range(op: Writer, starts: Tensor, limits: Tensor, deltas: Tensor) -> list[Tensor]:
    """Rows of numbers one after the other: each number is its place in the row times the step."""
    if starts.dtype.numpy().kind not in "iu":
        raise UnsupportedError("rows have to be of whole numbers")
    begin, end, step = (op.flat(op.int64(t)) for t in (starts, limits, deltas))
    lengths = op.Max(op.Div(end - begin + step - op.Sign(step), step), op.index(0))
    splits = op.Concat(op.ints([0]), op.CumSum(lengths, op.index(0)), axis=0)
    count = op.Slice(splits, op.ints([-1]), op.ints([FAR]))
    row = rows_of(op, splits, count)
    place = op.Range(op.index(0), op.squeeze(count, [0]), op.index(1)) - op.Gather(splits, row)
    size = op.Shape(lengths)
    first, by = (op.Gather(op.Expand(t, size), row) for t in (begin, step))
    wanted = op.operation.outputs[0].dtype
    return [splits.cast(_dtype(wanted)), (first + place * by).cast(starts.dtype)]


def _dtype(dtype: object) -> ir.DataType:
    from onward.frontends.tensorflow.dtypes import onnx_dtype

    return onnx_dtype(dtype.as_datatype_enum)  # type: ignore[attr-defined]


@rule("RaggedGather")
def ragged_gather(op: Writer, splits: Tensor, values: Tensor, indices: Tensor) -> list[Tensor]:
    """Rows by their numbers."""
    if len(op.operation.inputs) != 3 or indices.rank != 1:
        raise UnsupportedError("rows of more than one ragged axis are not supported")
    ends = op.int64(splits)
    chosen = op.int64(indices)
    begin = op.Gather(ends, chosen)
    lengths = op.Gather(ends, chosen + op.index(1)) - begin
    new = op.Concat(op.ints([0]), op.CumSum(lengths, op.index(0)), axis=0)
    count = op.Slice(new, op.ints([-1]), op.ints([FAR]))
    row = rows_of(op, new, count)
    place = op.Range(op.index(0), op.squeeze(count, [0]), op.index(1)) - op.Gather(new, row)
    return [new.cast(splits.dtype), op.Gather(values, op.Gather(begin, row) + place)]


@rule("RaggedTensorToSparse")
def ragged_to_sparse(op: Writer, *parts: Tensor) -> list[Tensor]:
    """Of one ragged axis: where each value stands, the values, and the size of the whole."""
    if len(parts) != 2:
        raise UnsupportedError("rows of more than one ragged axis are not supported")
    splits, values = op.int64(parts[0]), parts[1]
    count = op.Shape(values)
    row = rows_of(op, splits, count)
    place = op.Range(op.index(0), op.squeeze(count, [0]), op.index(1)) - op.Gather(splits, row)
    lengths = op.Slice(splits, op.ints([1]), op.ints([FAR])) - op.Slice(splits, op.ints([0]), op.ints([-1]))
    longest = op.reduced("ReduceMax", op.Concat(lengths, op.ints([0]), axis=0), [0], keepdims=True)
    places = op.Concat(op.unsqueeze(row, [1]), op.unsqueeze(place, [1]), axis=1)
    return [places, values, op.Concat(op.Shape(lengths), longest, axis=0)]


@rule("RaggedBincount")
def ragged_bincount(
    op: Writer, splits: Tensor, x: Tensor, size: Tensor, weights: Tensor, *, binary_output: bool = False
) -> Tensor:
    """The bins of each row of a ragged tensor."""
    row = rows_of(op, splits, op.flat(op.Size(x)))
    return bins(op, x, size, weights, binary_output, row, op.flat(op.Size(splits)) - op.ints([1]))


@rule("StringNGrams")
def ngrams(
    op: Writer,
    data: Tensor,
    splits: Tensor,
    *,
    ngram_widths: Sequence[int],
    separator: str,
    pad_width: int = 0,
    preserve_short_sequences: bool = False,
    left_pad: str = "",
    right_pad: str = "",
) -> list[Tensor]:
    """The runs of words of each row, by their lengths in the order given, and where rows of them begin."""
    if pad_width or left_pad or right_pad or preserve_short_sequences:
        raise UnsupportedError("runs of words that are filled up, or that are too short, are not supported")
    count = op.flat(op.Size(data))
    row = rows_of(op, splits, count)
    runs, rows, order = [], [], []
    for place, width in enumerate(ngram_widths):
        last = op.Max(count - op.ints([width - 1]), op.index(0))
        words = [op.Slice(data, op.ints([i]), last + op.ints([i]), op.ints([0])) for i in range(width)]
        run = words[0]
        for word in words[1:]:
            run = op.StringConcat(op.StringConcat(run, op.text(separator)), word)
        first, end = (op.Slice(row, op.ints([i]), last + op.ints([i]), op.ints([0])) for i in (0, width - 1))
        whole = op.flat(op.NonZero(op.Equal(first, end)))
        runs.append(op.Gather(run, whole))
        rows.append(op.Gather(first, whole))
        order.append(rows[-1] * op.index(len(ngram_widths)) + op.index(place))
    row_of_run = op.Concat(*rows, axis=0)
    total = op.flat(op.Size(row_of_run))
    places = op.Range(op.index(0), op.squeeze(total, [0]), op.index(1))
    key = op.Concat(*order, axis=0) * op.Max(total, op.index(1)) + places
    sorted_ = op.many("TopK", 2, key, total, axis=0, largest=0, sorted=1)[1]
    counts = bins(op, row_of_run, op.Size(splits) - op.index(1), op.constant(np.zeros(0, np.int64)), binary=False)
    ends = op.Concat(op.ints([0]), op.CumSum(counts, op.index(0)), axis=0)
    return [op.Gather(op.Concat(*runs, axis=0), sorted_), ends.cast(splits.dtype)]
