"""Gradients of gathering and scattering."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from onward.graph.build import Tensor
from onward.spec import index as spec
from onward.training.autodiff.reverse import Context
from onward.training.autodiff.vjp import Gradients, no_gradient, vjp


@vjp("Gather")
def of_gather(c: Context, g: Tensor, x: Tensor, indices: Tensor, p: spec.Along) -> Gradients:
    return gather(c, g, x, indices, axis=p.axis)


def gather(c: Context, g: Tensor, x: Tensor, indices: Tensor, *, axis: int) -> Gradients:
    """Rows are added where they came from: an embedding costs what it reads."""
    op = c.op
    if x.rank is None or indices.rank is None:
        raise c.refuse("the rank of an input is not known")
    axis %= x.rank
    places = list(range(axis, axis + indices.rank))
    rest = [i for i in range(x.rank - 1 + indices.rank) if i not in places]
    rows = op.transpose(g, [*places, *rest])
    order = [axis, *(i for i in range(x.rank) if i != axis)]
    total = added_rows(op.transpose(c.op.zeros_like(x), order), indices, rows)
    return op.transpose(total, [order.index(i) for i in range(x.rank)])


def added_rows(zeros: Tensor, numbers: Tensor, rows: Tensor, reduction: str = "add") -> Tensor:
    """Rows, added (or multiplied) where their numbers say.

    One after the other: ONNX Runtime's ScatterND adds in several threads at once, and loses what meets.
    """
    op, rank = zeros.op, zeros.rank
    assert rank is not None and zeros.dims is not None
    if numbers.rank != 1:
        size = op.Concat(op.ints([-1]), op.Shape(zeros, start=1), axis=0) if rank > 1 else op.ints([-1])
        rows = op.Reshape(rows, size)
        rows.value.shape = ir.Shape([None, *zeros.dims[1:]])
    places = op.Reshape(numbers.cast(ir.DataType.INT64), op.ints([-1, *[1] * (rank - 1)]))
    if rank > 1:
        places = op.Expand(places, op.Shape(rows))
    return op.ScatterElements(zeros, places, rows, axis=0, reduction=reduction)


@vjp("GatherElements")
def gather_elements(c: Context, g: Tensor, x: Tensor, indices: Tensor, p: spec.Along) -> Gradients:
    return c.op.ScatterElements(c.op.zeros_like(x), indices, g, axis=p.axis, reduction="add")


@vjp("GatherND")
def gather_nd(c: Context, g: Tensor, x: Tensor, indices: Tensor, p: spec.GatherND) -> Gradients:
    return added_at(c, c.op.zeros_like(x), with_batch(c, indices, p.batch_dims), g)


def added_at(c: Context, start: Tensor, indices: Tensor, updates: Tensor, reduction: str = "add") -> Tensor:
    """Updates, added (or multiplied) where indices into the first axes say, one after the other."""
    op = c.op
    depth = None if indices.dims is None else indices.dims[-1]
    if start.rank is None or not isinstance(depth, int) or depth == 0:
        return op.ScatterND(start, indices, updates, reduction=reduction)  # of second derivatives, without shapes
    shape = op.Shape(start)
    number = op.index(0)
    for axis in range(depth):
        size = op.Gather(shape, op.index(axis))
        part = op.Gather(indices, op.index(axis), axis=-1)
        part = op.where(part < 0, part + size, part)
        number = part if axis == 0 else number * size + part
    rest = op.Shape(start, start=depth) if depth < start.rank else op.ints([])
    flat = op.Reshape(start, op.Concat(op.ints([-1]), rest, axis=0))
    flat.value.shape = ir.Shape([None, *(start.dims or [])[depth:]])
    rows = op.Reshape(updates, op.Concat(op.ints([-1]), rest, axis=0))
    rows.value.shape = ir.Shape([None, *(start.dims or [])[depth:]])
    return op.Reshape(added_rows(flat, op.Reshape(number, op.ints([-1])), rows, reduction), shape)


def with_batch(c: Context, indices: Tensor, batch_dims: int) -> Tensor:
    """Indices into all axes, the batch's own among them."""
    op = c.op
    if batch_dims == 0:
        return indices
    if indices.rank is None:
        raise c.refuse("the rank of the indices is not known")
    lead = op.Concat(op.Shape(indices, end=indices.rank - 1), op.ints([1]), axis=0)
    parts = []
    for axis in range(batch_dims):
        size = op.Squeeze(op.Shape(indices, start=axis, end=axis + 1), op.ints([0]))
        along = [1] * indices.rank
        along[axis] = -1
        parts.append(op.Expand(op.Reshape(op.Range(op.index(0), size, op.index(1)), op.ints(along)), lead))
    return op.Concat(*parts, indices, axis=-1)


@vjp("ScatterElements", "Scatter")
def scatter_elements(
    c: Context, g: Tensor, x: Tensor, indices: Tensor, updates: Tensor, p: spec.ScatterElements
) -> Gradients:
    op = c.op
    taken = op.GatherElements(g, indices, axis=p.axis)
    if p.reduction == "add":
        return g, None, taken
    if p.reduction == "none":
        kept = op.ScatterElements(op.filled(x, 1), indices, op.zeros_like(updates), axis=p.axis)
        return g * kept, None, taken
    if p.reduction == "mul":
        return _products(
            g,
            x,
            updates,
            lambda into, what, how: op.ScatterElements(into, indices, what, axis=p.axis, reduction=how),
            lambda tensor: op.GatherElements(tensor, indices, axis=p.axis),
        )
    hit = op.Equal(updates, op.GatherElements(c.y, indices, axis=p.axis)).cast(g.dtype)
    own = op.Equal(x, c.y).cast(g.dtype)
    count = op.ScatterElements(own, indices, hit, axis=p.axis, reduction="add")
    share = g / op.Max(count, op.like(1, g))
    return share * own, None, op.GatherElements(share, indices, axis=p.axis) * hit


@vjp("ScatterND")
def scatter_nd(c: Context, g: Tensor, x: Tensor, indices: Tensor, updates: Tensor, p: spec.ScatterND) -> Gradients:
    op = c.op
    taken = op.GatherND(g, indices)
    if p.reduction == "add":
        return g, None, taken
    if p.reduction == "none":
        kept = op.ScatterND(op.filled(x, 1), indices, op.zeros_like(updates))
        return g * kept, None, taken
    if p.reduction == "mul":
        return _products(
            g,
            x,
            updates,
            lambda into, what, how: added_at(c, into, indices, what, how),
            lambda tensor: op.GatherND(tensor, indices),
        )
    hit = op.Equal(updates, op.GatherND(c.y, indices)).cast(g.dtype)
    own = op.Equal(x, c.y).cast(g.dtype)
    count = added_at(c, own, indices, hit)
    share = g / op.Max(count, op.like(1, g))
    return share * own, None, op.GatherND(share, indices) * hit


def _products(
    g: Tensor, x: Tensor, updates: Tensor, scatter: Callable[[Tensor, Tensor, str], Tensor], take: Callable[..., Tensor]
) -> Gradients:
    """Where updates multiply: for each the product of the others, which zeros forbid to find by division."""
    op = g.op
    zero = op.Equal(updates, op.like(0, updates))
    filled = op.where(zero, 1, updates)
    product = take(g * scatter(x, filled, "mul"))
    zeros = take(scatter(op.zeros_like(x), zero.cast(x.dtype), "add"))
    others = op.where(zeros > zero.cast(x.dtype), 0, product / filled)
    return scatter(g, updates, "mul"), None, others


@vjp("TopK")
def top_k(c: Context, g: Tensor | None, x: Tensor, k: Tensor, p: spec.TopK) -> Gradients:
    return None if g is None else c.op.ScatterElements(c.op.zeros_like(x), c.output(1), g, axis=p.axis)


@vjp("Compress")
def compress(c: Context, g: Tensor, x: Tensor, condition: Tensor, p: spec.Compress) -> Gradients:
    """The positions that were kept."""
    op = c.op
    positions = op.Reshape(op.NonZero(condition), op.ints([-1]))
    if p.axis is not None:
        return gather(c, g, x, positions, axis=p.axis)
    flat = op.Expand(op.like(0, g), op.Unsqueeze(op.Size(x), op.ints([0])))
    return op.reshape_like(op.ScatterElements(flat, positions, g, axis=0), x)


@vjp("OneHot")
def one_hot(c: Context, g: Tensor, indices: Tensor, depth: Tensor, values: Tensor, p: spec.OneHot) -> Gradients:
    op = c.op
    hot = op.OneHot(indices, depth, op.constant(np.asarray([0, 1], g.dtype.numpy())), axis=p.axis)
    on = op.sum(g * hot, keepdims=False)
    off = op.sum(g, keepdims=False) - on
    return None, None, op.Concat(op.Reshape(off, op.ints([1])), op.Reshape(on, op.ints([1])), axis=0)


@vjp("Unique")
def unique(c: Context, g: Tensor | None, x: Tensor, p: spec.Unique) -> Gradients:
    """To the first of equal elements, which is the one that the op points at."""
    op = c.op
    if g is None:
        return None
    positions = c.optional_output(1)
    if p.axis is not None:
        return gather(c, g, x, positions, axis=p.axis)
    flat = op.Expand(op.like(0, g), op.Unsqueeze(op.Size(x), op.ints([0])))
    return op.reshape_like(op.ScatterElements(flat, positions, g, axis=0), x)


@vjp("TensorScatter")
def tensor_scatter(
    c: Context, g: Tensor, past: Tensor, update: Tensor, start: Tensor | None = None, *, p: spec.TensorScatter
) -> Gradients:
    """The cache gets what was not written over, the update what was written."""
    op = c.op
    if update.rank is None:
        raise c.refuse("the rank of the update is not known")
    at = p.axis % update.rank
    kept = op.TensorScatter(g, op.zeros_like(update), start, axis=p.axis, mode=p.mode)
    length, size = (op.Squeeze(op.Shape(t, start=at, end=at + 1), op.ints([0])) for t in (update, g))
    shape = [-1 if i == at else 1 for i in range(update.rank)]
    places = op.Reshape(op.Range(op.index(0), length, op.index(1)), op.ints(shape))
    if start is not None:
        places = places + op.Reshape(start, op.ints([-1, *[1] * (update.rank - 1)]))
    if p.mode == "circular":
        places = op.Mod(places, size)
    return kept, op.GatherElements(g, op.Expand(places, update.shape), axis=at)


@vjp("ReverseSequence")
def reverse_sequence(c: Context, g: Tensor, x: Tensor, lengths: Tensor, p: spec.ReverseSequence) -> Gradients:
    return c.op.ReverseSequence(g, lengths, batch_axis=p.batch_axis, time_axis=p.time_axis)


no_gradient("integers", "NonZero")
