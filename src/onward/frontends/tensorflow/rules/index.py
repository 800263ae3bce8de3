"""Gathering and scattering."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.tensorflow.registry import rule
from onward.frontends.tensorflow.values import Variable
from onward.frontends.tensorflow.writer import FAR, Writer
from onward.graph.build import Tensor

ONE_HOT = {ir.DataType.FLOAT, ir.DataType.INT64}
"""Dtypes that ONNX Runtime has a kernel of OneHot for, with indices of int64."""


@rule("GatherV2", "Gather")
def gather(op: Writer, x: Tensor, indices: Tensor, axis: Tensor | None = None, *, batch_dims: int = 0) -> Tensor:
    where = 0 if axis is None else op.numbers(axis, "the axis")[0]
    rank = op.rank(indices, "the indices")
    batch = batch_dims + rank if batch_dims < 0 else batch_dims
    if not batch:
        return op.Gather(x, indices, axis=where)
    x_rank = op.rank(x, "what is gathered from")
    where = op.axis(where, x_rank)
    perm = [*range(batch), where, *(a for a in range(batch, x_rank) if a != where)]
    y = op.GatherND(op.transpose(x, perm), op.unsqueeze(op.int64(indices), [rank]), batch_dims=batch)
    inner = list(range(batch, rank))
    rest = list(range(rank, rank + x_rank - batch - 1))
    before = where - batch
    return op.transpose(y, [*range(batch), *rest[:before], *inner, *rest[before:]])


@rule("ResourceGather")
def resource_gather(op: Writer, variable: Variable, indices: Tensor, *, batch_dims: int = 0) -> Tensor:
    return gather(op, op.translator.weight(variable), indices, batch_dims=batch_dims)


@rule("GatherNd")
def gather_nd(op: Writer, x: Tensor, indices: Tensor) -> Tensor:
    return op.GatherND(x, op.int64(indices))


@rule("OneHot")
def one_hot(op: Writer, indices: Tensor, depth: Tensor, on: Tensor, off: Tensor, *, axis: int = -1) -> Tensor:
    """ONNX counts negative indices from the end; here they are nothing, as those beyond the end are."""
    places = op.int64(indices)
    places = op.where(places < op.index(0), op.int64(depth), places)
    if on.dtype in ONE_HOT:
        values = op.Concat(op.unsqueeze(off, [0]), op.unsqueeze(on, [0]), axis=0)
        return op.OneHot(places, op.int64(depth), values, axis=axis)
    values = op.constant(np.asarray([0, 1], np.int64))
    return op.Where(op.OneHot(places, op.int64(depth), values, axis=axis).cast(ir.DataType.BOOL), on, off)


@rule("Where")
def where(op: Writer, condition: Tensor) -> Tensor:
    return op.Transpose(op.NonZero(condition), perm=[1, 0])


def scattered(op: Writer, x: Tensor, indices: Tensor, updates: Tensor, reduction: str) -> Tensor:
    return op.ScatterND(x, op.int64(indices), updates, reduction=None if reduction == "none" else reduction)


@rule("ScatterNd")
def scatter_nd(op: Writer, indices: Tensor, updates: Tensor, shape: Tensor) -> Tensor:
    zeros = op.Expand(op.like(0, updates), op.int64(shape))
    return scattered(op, zeros, indices, updates, "add")


@rule("TensorScatterUpdate")
def tensor_scatter_update(op: Writer, x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    return scattered(op, x, indices, updates, "none")


@rule("TensorScatterAdd")
def tensor_scatter_add(op: Writer, x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    return scattered(op, x, indices, updates, "add")


@rule("TensorScatterSub")
def tensor_scatter_sub(op: Writer, x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    return scattered(op, x, indices, -updates, "add")


@rule("TensorScatterMax")
def tensor_scatter_max(op: Writer, x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    return scattered(op, x, indices, updates, "max")


@rule("TensorScatterMin")
def tensor_scatter_min(op: Writer, x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    return scattered(op, x, indices, updates, "min")


@rule("ReverseV2")
def reverse(op: Writer, x: Tensor, axes: Tensor) -> Tensor:
    turned = op.numbers(axes, "the axes")
    if not turned:
        return x
    return op.turned_round(x, turned)


@rule("ReverseSequence")
def reverse_sequence(op: Writer, x: Tensor, lengths: Tensor, *, seq_dim: int, batch_dim: int = 0) -> Tensor:
    rank = op.rank(x, "the sequences")
    perm = [seq_dim, batch_dim, *(a for a in range(rank) if a not in (seq_dim, batch_dim))]
    back = [perm.index(a) for a in range(rank)]
    y = op.ReverseSequence(op.transpose(x, perm), op.int64(lengths), batch_axis=1, time_axis=0)
    return op.transpose(y, back)


@rule("Roll")
def roll(op: Writer, x: Tensor, shift: Tensor, axis: Tensor) -> Tensor:
    """The end of each axis comes to its front."""
    shifts, rank = op.flat(op.int64(shift)), op.rank(x, "what is rolled")
    for i, where in enumerate(op.numbers(axis, "the axis")):
        length = op.Gather(op.Shape(x), op.ints([op.axis(where, rank)]))
        cut = op.Mod(-op.Slice(shifts, op.ints([i]), op.ints([i + 1])), op.Max(length, op.index(1)))
        axes = op.ints([where])
        tail = op.Slice(x, cut, op.ints([FAR]), axes)
        x = op.Concat(tail, op.Slice(x, op.ints([0]), cut, axes), axis=where)
    return x


@rule("Unique", "UniqueV2")
def unique(
    op: Writer, x: Tensor, axis: Tensor | None = None, *, out_idx: ir.DataType = ir.DataType.INT32
) -> list[Tensor]:
    values, _, places, _ = op.many("Unique", 4, x, sorted=0, axis=_axis(op, axis))
    return [values, places.cast(out_idx)]


@rule("UniqueWithCounts", "UniqueWithCountsV2")
def unique_with_counts(
    op: Writer, x: Tensor, axis: Tensor | None = None, *, out_idx: ir.DataType = ir.DataType.INT32
) -> list[Tensor]:
    values, _, places, counts = op.many("Unique", 4, x, sorted=0, axis=_axis(op, axis))
    return [values, places.cast(out_idx), counts.cast(out_idx)]


def _axis(op: Writer, axis: Tensor | None) -> int | None:
    numbers = [] if axis is None else op.numbers(axis, "the axis")
    return numbers[0] if numbers else None


@rule("ListDiff")
def list_diff(op: Writer, x: Tensor, y: Tensor, *, out_idx: ir.DataType = ir.DataType.INT32) -> list[Tensor]:
    """What is in the first list only, and where it stands there."""
    same = op.Equal(op.unsqueeze(x, [1]), op.unsqueeze(y, [0])).cast(ir.DataType.INT32)
    there = op.reduced("ReduceSum", same, [1], keepdims=False) > op.like(0, same)
    places = op.squeeze(op.NonZero(op.Not(there)), [0])
    return [op.Gather(x, places), places.cast(out_idx)]


@rule("UnravelIndex")
def unravel_index(op: Writer, indices: Tensor, dims: Tensor) -> Tensor:
    """A row an axis: the place along it."""
    sizes = op.numbers(dims, "the shape")
    flat, rows = op.int64(indices), []
    for i, size in enumerate(sizes):
        inner = int(np.prod(sizes[i + 1 :], dtype=np.int64))
        rows.append(op.unsqueeze(op.Mod(op.Div(flat, op.index(inner)), op.index(size)), [0]))
    return op.Concat(*rows, axis=0).cast(indices.dtype)


@rule("HistogramFixedWidth")
def histogram(op: Writer, x: Tensor, limits: Tensor, bins: Tensor, *, dtype: ir.DataType = ir.DataType.INT32) -> Tensor:
    """What lies outside counts for the first and the last bin."""
    count = op.numbers(bins, "the number of bins")[0]
    low, high = (op.Gather(limits, op.index(i)) for i in range(2))
    step = (high - low) / op.like(count, x)
    place = op.Floor((op.flat(x) - low) / step).cast(ir.DataType.INT64)
    place = op.Min(op.Max(place, op.index(0)), op.index(count - 1))
    there = op.Equal(op.unsqueeze(place, [0]), op.constant(np.arange(count, dtype=np.int64).reshape(-1, 1)))
    return op.reduced("ReduceSum", there.cast(dtype), [1], keepdims=False)


@rule("LowerBound")
def lower_bound(op: Writer, rows: Tensor, values: Tensor, *, out_type: ir.DataType = ir.DataType.INT32) -> Tensor:
    """How many of a sorted row are smaller."""
    return _counted(op, op.unsqueeze(rows, [1]) < op.unsqueeze(values, [2]), out_type)


@rule("UpperBound")
def upper_bound(op: Writer, rows: Tensor, values: Tensor, *, out_type: ir.DataType = ir.DataType.INT32) -> Tensor:
    """How many of a sorted row are no larger."""
    return _counted(op, op.unsqueeze(rows, [1]) <= op.unsqueeze(values, [2]), out_type)


def _counted(op: Writer, is_counted: Tensor, dtype: ir.DataType) -> Tensor:
    return op.reduced("ReduceSum", is_counted.cast(ir.DataType.INT64), [2], keepdims=False).cast(dtype)


@rule("DynamicPartition")
def dynamic_partition(op: Writer, x: Tensor, parts: Tensor, *, num_partitions: int) -> list[Tensor]:
    rank = op.rank(parts, "the partitions")
    found = []
    for i in range(num_partitions):
        places = op.Transpose(op.NonZero(op.Equal(parts, op.like(i, parts))), perm=[1, 0])
        found.append(op.GatherND(x, places) if rank > 1 else op.Gather(x, op.squeeze(places, [1])))
    return found


@rule("DynamicStitch", "ParallelDynamicStitch")
def dynamic_stitch(op: Writer, *inputs: Tensor) -> Tensor:
    """Rows go to the places named; the last one to name a place wins."""
    count = len(inputs) // 2
    places = op.Concat(*(op.flat(op.int64(i)) for i in inputs[:count]), axis=0)
    rows = []
    for index, data in zip(inputs[:count], inputs[count:], strict=True):
        index_rank = op.rank(index, "the places")
        tail = op.Shape(data, start=index_rank)
        rows.append(op.Reshape(data, op.Concat(op.ints([-1]), tail, axis=0)))
    joined = op.Concat(*rows, axis=0)
    length = op.flat(op.reduced("ReduceMax", places, [0], keepdims=True) + op.index(1))
    tail = op.Slice(op.Shape(joined), op.ints([1]), op.ints([FAR]))
    empty = op.Expand(op.like(0, joined), op.Concat(length, tail, axis=0))
    return op.ScatterND(empty, op.unsqueeze(places, [1]), joined)


@rule("InvertPermutation")
def invert_permutation(op: Writer, x: Tensor) -> Tensor:
    order = op.Range(op.like(0, x), op.squeeze(op.Shape(x), [0]).cast(x.dtype), op.like(1, x))
    return op.ScatterND(op.zeros_like(x), op.unsqueeze(op.int64(x), [1]), order)


@rule("InTopKV2")
def in_top_k_v2(op: Writer, predictions: Tensor, targets: Tensor, k: Tensor) -> Tensor:
    return _is_among(op, predictions, targets, op.int64(k))


@rule("InTopK")
def in_top_k(op: Writer, predictions: Tensor, targets: Tensor, *, k: int) -> Tensor:
    return _is_among(op, predictions, targets, op.index(k))


def _is_among(op: Writer, predictions: Tensor, targets: Tensor, k: Tensor) -> Tensor:
    """Fewer than k are larger."""
    chosen = op.GatherElements(predictions, op.unsqueeze(op.int64(targets), [1]), axis=1)
    larger = op.reduced("ReduceSum", (predictions > chosen).cast(ir.DataType.INT64), [1], keepdims=False)
    return larger < k


@rule("Bucketize")
def bucketize(op: Writer, x: Tensor, *, boundaries: Sequence[float]) -> Tensor:
    """How many boundaries are no larger."""
    limits = op.constant(np.asarray(boundaries, np.float32))
    rank = op.rank(x, "what is sorted into buckets")
    above = op.unsqueeze(x.cast(ir.DataType.FLOAT), [rank]) >= limits
    return op.reduced("ReduceSum", above.cast(ir.DataType.INT32), [rank], keepdims=False)


@rule("PopulationCount")
def population_count(op: Writer, x: Tensor) -> Tensor:
    """How many bits are set."""
    bits = x.dtype.numpy().itemsize * 8
    if bits > 32:
        raise UnsupportedError("numbers of more than 32 bits are not supported")
    whole = op.BitwiseAnd(op.int64(x), op.index(2**bits - 1))
    places = op.constant(2 ** np.arange(bits, dtype=np.int64))
    set_bits = op.Mod(op.Div(op.unsqueeze(whole, [-1]), places), op.index(2))
    return op.reduced("ReduceSum", set_bits, [-1], keepdims=False).cast(ir.DataType.UINT8)
