"""Sparse tensors: where values stand, the values, and the size of the whole."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.tensorflow.registry import rule
from onward.frontends.tensorflow.rules.segment import grouped
from onward.frontends.tensorflow.writer import FAR, Writer
from onward.graph.build import Tensor


def _rank(places: Tensor, shape: Tensor) -> int:
    sizes = (places.dims or [None, None])[1], (shape.dims or [None])[0]
    known = [size for size in sizes if isinstance(size, int)]
    if not known:
        raise UnsupportedError("the rank of a sparse tensor is not known")
    return known[0]


def _size(op: Writer, shape: Tensor, axis: int) -> Tensor:
    return op.Slice(shape, op.ints([axis]), op.ints([axis + 1]))


def _steps(op: Writer, shape: Tensor, rank: int) -> Tensor:
    """How many elements of the whole one step along each axis is."""
    steps = [op.ints([1])]
    for axis in range(rank - 1, 0, -1):
        steps.insert(0, steps[0] * _size(op, shape, axis))
    return steps[0] if rank == 1 else op.Concat(*steps, axis=0)


def _numbered(op: Writer, places: Tensor, shape: Tensor, rank: int) -> Tensor:
    """The place in the whole, counted row by row."""
    return op.reduced("ReduceSum", op.int64(places) * _steps(op, shape, rank), [1], keepdims=False)


def _placed(op: Writer, numbers: Tensor, shape: Tensor, rank: int) -> Tensor:
    """Back from places in the whole."""
    return op.Mod(op.Div(op.unsqueeze(numbers, [1]), _steps(op, shape, rank)), op.Max(shape, op.ints([1])))


def _order(op: Writer, keys: Tensor) -> Tensor:
    """Where the smallest key stands, the next, and so on; no two are the same."""
    return op.many("TopK", 2, keys, op.Shape(keys), axis=0, largest=0, sorted=1)[1]


def dense(op: Writer, places: Tensor, values: Tensor, shape: Tensor, default: Tensor | None = None) -> Tensor:
    empty = op.Expand(op.like(0, values) if default is None else default, op.int64(shape))
    return op.ScatterND(empty, op.int64(places), values)


@rule("SparseToDense")
def sparse_to_dense(op: Writer, places: Tensor, shape: Tensor, values: Tensor, default: Tensor) -> Tensor:
    if places.rank is not None and places.rank < 2:
        places = op.Reshape(places, op.ints([-1, 1]))
    count = op.Slice(op.Shape(places), op.ints([0]), op.ints([1]))
    return dense(op, places, op.Expand(values, count), shape, default)


@rule("SparseTensorDenseMatMul")
def sparse_matmul(
    op: Writer,
    places: Tensor,
    values: Tensor,
    shape: Tensor,
    other: Tensor,
    *,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
) -> Tensor:
    a = dense(op, places, values, shape)
    a = op.Transpose(a, perm=[1, 0]) if adjoint_a else a
    return op.MatMul(a, op.Transpose(other, perm=[1, 0]) if adjoint_b else other)


@rule("SparseReduceSum")
def sparse_reduce(
    op: Writer, places: Tensor, values: Tensor, shape: Tensor, axes: Tensor, *, keep_dims: bool = False
) -> Tensor:
    along = op.numbers(axes, "the axes") or list(range(_rank(places, shape)))
    return op.reduced("ReduceSum", dense(op, places, values, shape), along, keep_dims)


@rule("SparseTensorDenseAdd")
def sparse_dense_add(op: Writer, places: Tensor, values: Tensor, shape: Tensor, other: Tensor) -> Tensor:
    return op.ScatterND(other, op.int64(places), values, reduction="add")


@rule("SparseDenseCwiseMul", "SparseDenseCwiseDiv", "SparseDenseCwiseAdd")
def with_dense(op: Writer, places: Tensor, values: Tensor, shape: Tensor, other: Tensor) -> Tensor:
    """The values that are there, each with its counterpart."""
    counterparts = op.GatherND(op.Expand(other, op.int64(shape)), op.int64(places))
    kind = op.operation.type.removeprefix("SparseDenseCwise")
    return op.many(kind, 1, values, counterparts)[0]


@rule("SparseReduceMax")
def sparse_reduce_max(
    op: Writer, places: Tensor, values: Tensor, shape: Tensor, axes: Tensor, *, keep_dims: bool = False
) -> Tensor:
    """Where nothing is, zero."""
    along = op.numbers(axes, "the axes") or list(range(_rank(places, shape)))
    lowest = np.finfo(values.dtype.numpy()) if values.dtype.numpy().kind == "f" else np.iinfo(values.dtype.numpy())
    most = op.reduced("ReduceMax", dense(op, places, values, shape, op.like(lowest.min, values)), along, keep_dims)
    there = dense(op, places, op.Expand(op.index(1), op.Shape(values)), shape)
    return op.where(op.reduced("ReduceMax", there, along, keep_dims) > op.index(0), most, op.like(0, values))


@rule("SparseReorder")
def sparse_reorder(op: Writer, places: Tensor, values: Tensor, shape: Tensor) -> list[Tensor]:
    order = _order(op, _numbered(op, places, op.int64(shape), _rank(places, shape)))
    return [op.Gather(places, order), op.Gather(values, order)]


@rule("SparseReshape")
def sparse_reshape(op: Writer, places: Tensor, shape: Tensor, wanted: Tensor) -> list[Tensor]:
    before, asked = op.int64(shape), op.int64(wanted)
    ranks = _rank(places, shape), (asked.dims or [None])[0]
    if not isinstance(ranks[1], int):
        raise UnsupportedError("the rank of a sparse tensor is not known")
    known = op.reduced("ReduceProd", op.where(asked < op.index(0), op.index(1), asked), [0], keepdims=True)
    rest = op.Div(op.reduced("ReduceProd", before, [0], keepdims=True), op.Max(known, op.ints([1])))
    after = op.where(asked < op.index(0), rest, asked)
    numbers = _numbered(op, places, before, ranks[0])
    return [_placed(op, numbers, after, ranks[1]), after]


@rule("SparseSlice")
def sparse_slice(
    op: Writer, places: Tensor, values: Tensor, shape: Tensor, start: Tensor, size: Tensor
) -> list[Tensor]:
    return _cut(op, places, values, op.int64(shape), op.int64(start), op.int64(size))


def _cut(op: Writer, places: Tensor, values: Tensor, shape: Tensor, start: Tensor, size: Tensor) -> list[Tensor]:
    end = op.Min(start + size, shape)
    inside = op.And(places >= start, places < end).cast(ir.DataType.INT32)
    kept = op.squeeze(op.NonZero(op.reduced("ReduceMin", inside, [1], keepdims=False)), [0])
    return [op.Gather(places, kept) - start, op.Gather(values, kept), op.Max(end - start, op.ints([0]))]


@rule("SparseSplit")
def sparse_split(
    op: Writer, axis: Tensor, places: Tensor, values: Tensor, shape: Tensor, *, num_split: int
) -> list[Tensor]:
    """As even as can be, the first ones larger."""
    rank = _rank(places, shape)
    where = op.axis(op.numbers(axis, "the axis")[0], rank)
    whole, mine = op.int64(shape), op.constant(np.arange(rank) == where)
    length = _size(op, whole, where)
    least, more = op.Div(length, op.ints([num_split])), op.Mod(length, op.ints([num_split]))
    parts = []
    for i in range(num_split):
        begin = least * op.ints([i]) + op.Min(more, op.ints([i]))
        size = least + (more > op.ints([i])).cast(ir.DataType.INT64)
        begins, sizes = op.where(mine, begin, op.ints([0])), op.where(mine, size, whole)
        parts.append(_cut(op, places, values, whole, begins, sizes))
    return [part[kind] for kind in range(3) for part in parts]


@rule("SparseConcat")
def sparse_concat(op: Writer, *parts: Tensor, concat_dim: int, N: int) -> list[Tensor]:
    places, values = parts[:N], parts[N : 2 * N]
    shapes = [op.int64(part) for part in parts[2 * N :]]
    rank = _rank(places[0], shapes[0])
    where = op.axis(concat_dim, rank)
    mine = op.constant((np.arange(rank) == where).astype(np.int64))
    moved, offset = [], op.ints([0])
    for own, shape in zip(places, shapes, strict=True):
        moved.append(own + mine * offset)
        offset = offset + _size(op, shape, where)
    whole = op.where(op.constant(np.arange(rank) == where), offset, shapes[0])
    sorted_places, sorted_values = sparse_reorder(op, op.Concat(*moved, axis=0), op.Concat(*values, axis=0), whole)
    return [sorted_places, sorted_values, whole]


def _united(op: Writer, a: Sequence[Tensor], b: Sequence[Tensor]) -> tuple[Tensor, list[Tensor]]:
    """The places that either has, in order, and the values of each there, with zeros where it has none."""
    shape, rank = op.int64(a[2]), _rank(a[0], a[2])
    numbers = [_numbered(op, side[0], shape, rank) for side in (a, b)]
    every, _, which, _ = op.many("Unique", 4, op.Concat(*numbers, axis=0), sorted=1)
    first = op.Shape(numbers[0])
    sides = [op.Slice(which, op.ints([0]), first), op.Slice(which, first, op.ints([FAR]))]
    values = [
        op.ScatterElements(op.Expand(op.like(0, side[1]), op.Shape(every)), at, side[1], axis=0)
        for side, at in zip((a, b), sides, strict=True)
    ]
    return _placed(op, every, shape, rank), values


@rule("SparseAdd")
def sparse_add(
    op: Writer, ai: Tensor, av: Tensor, shape: Tensor, bi: Tensor, bv: Tensor, other: Tensor, least: Tensor
) -> list[Tensor]:
    places, values = _united(op, (ai, av, shape), (bi, bv, other))
    total = values[0] + values[1]
    kept = op.squeeze(op.NonZero(op.Abs(total) >= least), [0])
    return [op.Gather(places, kept), op.Gather(total, kept), shape]


@rule("SparseSparseMinimum", "SparseSparseMaximum")
def sparse_extreme(
    op: Writer, ai: Tensor, av: Tensor, shape: Tensor, bi: Tensor, bv: Tensor, other: Tensor
) -> list[Tensor]:
    places, values = _united(op, (ai, av, shape), (bi, bv, other))
    return [places, op.Min(*values) if op.operation.type.endswith("Minimum") else op.Max(*values)]


@rule("SparseSoftmax")
def sparse_softmax(op: Writer, places: Tensor, values: Tensor, shape: Tensor) -> Tensor:
    """Among the values that are in a row; those that are not there count as nothing."""
    rank = _rank(places, shape)
    rows = _numbered(op, op.Slice(places, op.ints([0]), op.ints([rank - 1]), op.ints([1])), op.int64(shape), rank - 1)
    names, _, which, _ = op.many("Unique", 4, rows, sorted=1)
    count = op.Shape(names)
    shifted = op.Exp(values - op.Gather(grouped(op, values, which, count, "Max"), which))
    return shifted / op.Gather(grouped(op, shifted, which, count, "Sum"), which)


@rule("SparseFillEmptyRows")
def sparse_fill_empty_rows(op: Writer, places: Tensor, values: Tensor, shape: Tensor, default: Tensor) -> list[Tensor]:
    """Rows in order, those without a value with one at their start; which those are, and where each value went."""
    rank, rows = _rank(places, shape), _size(op, op.int64(shape), 0)
    row = op.squeeze(op.Slice(places, op.ints([0]), op.ints([1]), op.ints([1])), [1])
    counts = grouped(op, op.Expand(op.index(1), op.Shape(row)), row, rows, "Sum")
    empty = op.Equal(counts, op.index(0))
    added = op.Transpose(op.NonZero(empty), perm=[1, 0])
    beside = op.Expand(op.ints([0]), op.Concat(_size(op, op.Shape(added), 0), op.ints([rank - 1]), axis=0))
    all_places = op.Concat(places, op.Concat(added, beside, axis=1) if rank > 1 else added, axis=0)
    all_values = op.Concat(values, op.Expand(default, _size(op, op.Shape(added), 0)), axis=0)
    total = op.Shape(all_values)
    places_in_order = op.Range(op.index(0), op.squeeze(total, [0]), op.index(1))
    all_rows = op.squeeze(op.Slice(all_places, op.ints([0]), op.ints([1]), op.ints([1])), [1])
    order = _order(op, all_rows * total + places_in_order)
    back = op.ScatterElements(places_in_order, order, places_in_order, axis=0)
    return [
        op.Gather(all_places, order),
        op.Gather(all_values, order),
        empty,
        op.Slice(back, op.ints([0]), op.Shape(values)),
    ]


@rule("DenseCountSparseOutput")
def counts(
    op: Writer,
    values: Tensor,
    weights: Tensor,
    *,
    minlength: int = -1,
    maxlength: int = -1,
    binary_output: bool = False,
) -> list[Tensor]:
    """How often each number is in each row, or in a vector; those beyond the most are left out."""
    rank = op.rank(values, "the numbers")
    if op.known(weights) is None or weights.sizes != [0]:
        raise UnsupportedError("counts with weights are not supported")
    rows = values if rank == 2 else op.unsqueeze(values, [0])
    most = op.reduced("ReduceMax", op.int64(rows), [0, 1], keepdims=False) + op.index(1)
    size = op.Max(most, op.index(max(minlength, 0)))
    size = op.Min(size, op.index(maxlength)) if maxlength >= 0 else size
    numbers = op.unsqueeze(op.Range(op.index(0), size, op.index(1)), [0, 2])
    same = op.Equal(op.unsqueeze(op.int64(rows), [1]), numbers).cast(ir.DataType.INT64)
    counted = op.reduced("ReduceSum", same, [2], keepdims=False)
    places = op.Transpose(op.NonZero(counted), perm=[1, 0])
    found = op.GatherND(counted, places)
    found = op.Min(found, op.index(1)) if binary_output else found
    height = op.Slice(op.Shape(rows), op.ints([0]), op.ints([1]))
    shape = op.Concat(height, op.flat(size), axis=0)
    if rank == 1:
        places, shape = (op.Slice(t, op.ints([1]), op.ints([2]), op.ints([a])) for t, a in ((places, 1), (shape, 0)))
    return [places, found.cast(weights.dtype), shape]
