"""What moves elements, repeats them, or counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.jax import idioms
from onward.frontends.jax.dimensions import Dim, is_known, name_of
from onward.frontends.jax.registry import rule
from onward.frontends.jax.writer import Writer, onnx_dtype
from onward.frontends.tensorflow.values import Complex
from onward.frontends.writer import FAR
from onward.graph.build import Tensor

LIMIT = 4096
"""Numbers of a count that are written down."""


@rule("broadcast_in_dim", broadcasts=True)
def broadcast_in_dim(
    op: Writer, x: Tensor, *sizes: Tensor, shape: Sequence[Dim], broadcast_dimensions: Sequence[int]
) -> Tensor:
    """The axes where they belong, of size 1 where they are repeated; repeating is put off."""
    x = _with_rank(op, x, len(op.ins[0].shape))
    given = x.dims or []
    if all(dim == 1 for dim in given):  # one number is the same along all axes, and along none
        return op.reshape(x, []) if given else x
    if list(broadcast_dimensions) == list(range(len(shape) - len(given), len(shape))):
        return x
    places = dict(zip(broadcast_dimensions, given, strict=True))
    if (whole := idioms.kept(op, x, [axis for axis in range(len(shape)) if axis not in places])) is not None:
        return whole
    first = min(place for place, dim in places.items() if dim != 1)
    wanted = [places.get(axis, 1) for axis in range(first, len(shape))]
    if wanted == given:
        return x
    missing = [axis - first for axis in range(first, len(shape)) if axis not in places]
    if len(wanted) == len(missing) + len(given) and not _is_constant(op, x):
        return op.unsqueeze(x, missing)
    inside = iter(op.ins[0].shape)
    sources = {place: next(inside) for place in broadcast_dimensions}
    return op.reshape(x, [1 if places.get(axis, 1) == 1 else sources[axis] for axis in range(first, len(shape))])


def _is_constant(op: Writer, x: Tensor) -> bool:
    return op.known(x) is not None and x.value not in op.weights


def _with_rank(op: Writer, x: Tensor, rank: int) -> Tensor:
    """What was put off, with axes of size 1 in front."""
    lacking = rank - len(x.dims or [])
    if not lacking:
        return x
    array = op.known(x)
    if array is not None and x.value not in op.weights:
        return op.constant(array.reshape((1,) * lacking + array.shape), x.dtype)
    return op.unsqueeze(x, list(range(lacking)))


@rule("reshape", broadcasts=True)
def reshape(op: Writer, x: Tensor, *sizes: Tensor, new_sizes: Sequence[Dim], dimensions: Any = None) -> Tensor:
    """New axes in front are put off."""
    given, wanted = op.dims(op.ins[0].shape), op.dims(new_sizes)
    if dimensions is None and wanted == [1] * (len(wanted) - len(given)) + given:
        return x
    whole = op.translator.full(x, op.ins[0])
    assert isinstance(whole, Tensor)
    x = whole if dimensions is None else op.transpose(whole, dimensions)
    if [d for d in given if d != 1] == [d for d in wanted if d != 1] and 0 not in given and op.known(x) is None:
        return _ones(op, x, given, wanted)
    return op.reshape(x, new_sizes)


def _ones(op: Writer, x: Tensor, given: list[Any], wanted: list[Any]) -> Tensor:
    """Only axes of size 1 come or go: how this is said, symbolic sizes need not be known."""
    if given == wanted:
        return x
    new = [axis for axis, dim in enumerate(wanted) if dim == 1]
    if [dim for dim in wanted if dim != 1] == given and (found := idioms.kept(op, x, new)) is not None:
        return found
    symbolic = [dim for dim in wanted if not isinstance(dim, int)]
    if len(symbolic) <= 1:
        return op.Reshape(x, op.ints([dim if isinstance(dim, int) else -1 for dim in wanted]))
    gone = [axis for axis, dim in enumerate(given) if dim == 1]
    made = op.squeeze(x, gone)
    return op.unsqueeze(made, [axis for axis, dim in enumerate(wanted) if dim == 1])


@rule("squeeze")
def squeeze(op: Writer, x: Tensor, *, dimensions: Sequence[int]) -> Tensor:
    return op.squeeze(x, [axis % (x.rank or 1) for axis in dimensions])


@rule("expand_dims")
def expand_dims(op: Writer, x: Tensor, *, dimensions: Sequence[int]) -> Tensor:
    return op.unsqueeze(x, list(dimensions))


@rule("transpose")
def transpose(op: Writer, x: Tensor, *, permutation: Sequence[int]) -> Tensor:
    return idioms.turned_product(op, x, permutation) or op.reordered(x, permutation)


@rule("concatenate")
def concatenate(op: Writer, *parts: Tensor, dimension: int) -> Tensor:
    filled = [part for part in parts if (part.dims or [])[dimension] != 0] or list(parts[:1])
    return filled[0] if len(filled) == 1 else op.Concat(*filled, axis=dimension)


@rule("split")
def split(op: Writer, x: Tensor, *, sizes: Sequence[Dim], axis: int) -> list[Tensor]:
    if len(sizes) == 1:
        return [x]
    return op.many("Split", len(sizes), x, op.sizes(sizes), axis=axis)


@rule("unstack")
def unstack(op: Writer, x: Tensor, *, axis: int) -> list[Tensor]:
    parts = split(op, x, sizes=[1] * len(op.outs), axis=axis)
    return [op.squeeze(part, [axis]) for part in parts]


@rule("rev")
def rev(op: Writer, x: Tensor, *, dimensions: Sequence[int]) -> Tensor:
    return op.turned_round(x, list(dimensions)) if dimensions else x


@rule("slice")
def slice_(
    op: Writer,
    x: Tensor,
    *,
    start_indices: Sequence[Dim],
    limit_indices: Sequence[Dim],
    strides: Sequence[Dim] | None,
) -> Tensor:
    steps = list(strides) if strides is not None else [1] * len(start_indices)
    dims = op.ins[0].shape
    cut = [
        axis
        for axis, (start, end, step) in enumerate(zip(start_indices, limit_indices, steps, strict=True))
        if not (_is(start, 0) and str(end) == str(dims[axis]) and _is(step, 1))
    ]
    if not cut:
        return x
    ends = [FAR if str(limit_indices[axis]) == str(dims[axis]) else limit_indices[axis] for axis in cut]
    starts = op.sizes([start_indices[axis] for axis in cut])
    plain = all(_is(steps[axis], 1) for axis in cut)
    return op.Slice(x, starts, op.sizes(ends), op.ints(cut), None if plain else op.sizes([steps[axis] for axis in cut]))


def _is(dim: Dim, number: int) -> bool:
    return is_known(dim) and int(dim) == number


@rule("iota", broadcasts=True)
def iota(op: Writer, *sizes: Tensor, dtype: Any, shape: Sequence[Dim], dimension: int) -> Tensor | Complex:
    """A count along one axis; that it is the same along the others is put off."""
    length, wanted = shape[dimension], onnx_dtype(dtype)
    if is_known(length) and int(length) <= LIMIT:
        row = op.constant(np.arange(int(length)).astype(wanted.numpy()), wanted)
    else:
        row = op.Range(op.index(0), op.size(length), op.index(1)).cast(wanted)
        row.value.shape = ir.Shape([name_of(length)])
    behind = len(shape) - dimension - 1
    row = op.reshape(row, [length, *[1] * behind]) if behind else row
    return Complex(row, op.zeros_like(row)) if np.dtype(dtype).kind == "c" else row


@rule("dim_as_value", broadcasts=True)
def dim_as_value(op: Writer, *, dim: Dim) -> Tensor:
    return op.size(dim).cast(op.dtype)


@rule("tile")
def tile(op: Writer, x: Tensor, *, reps: Sequence[Dim]) -> Tensor:
    return op.Tile(x, op.sizes(reps))


@rule("stack")
def stack(op: Writer, *parts: Tensor, axis: int) -> Tensor:
    return op.Concat(*(op.unsqueeze(part, [axis]) for part in parts), axis=axis)


@rule("empty", "empty2", broadcasts=True)
def empty(op: Writer, *, dtype: Any) -> Tensor:
    return op.constant(np.zeros((), dtype))


@rule("axis_index")
def axis_index(op: Writer) -> Tensor:
    raise UnsupportedError("a named axis is that of pmap or shard_map: convert what runs on one device")


def count(shape: Sequence[Dim]) -> int | None:
    """The elements of a shape, where they are known."""
    return math.prod(int(dim) for dim in shape) if all(map(is_known, shape)) else None
