"""Ops that rearrange elements, and those that make tensors of a shape alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from onward.backends.emit.emitter import Arg, Emitter, Hosted, Unpack
from onward.backends.emit.expr import Expr, Name, lift
from onward.backends.emit.expr import Sequence as Display
from onward.backends.matlab.ranks import only_leaves
from onward.backends.matlab.target import axis_dim, class_of, moves, ops, rank_of, row, sizes
from onward.backends.shared.shape import is_number, is_same, may_copy, note_shape
from onward.graph.values import array
from onward.spec import shape as spec

_D = ir.DataType


def dim_of(e: Emitter, x: Expr, axis: int) -> Any:
    """A size, as a number where it is known."""
    shape = e.shape(x)
    known = None if shape is None else shape[axis]
    return e.dim(x, axis) if known is None else known


def dims_of(e: Emitter, x: Expr) -> list[Any]:
    return [dim_of(e, x, axis) for axis in range(rank_of(e, x))]


def same(x: Expr) -> Expr:
    """The array as it is, for a result that has other dimensions in the file."""
    return x._force() if isinstance(x, Arg) else x


def reshaped(e: Emitter, x: Expr, dims: Sequence[Any], own: Sequence[Any] | None = None) -> Expr:
    """An array with the dimensions that a tensor of the file has; -1 for one that follows from the others."""
    if own is not None and _is_same_shape(own, dims):
        return same(x)
    if any(is_number(n, -1) for n in dims):
        reverse = [None if is_number(n, -1) else n for n in dims][::-1]
        return Name("reshape")(x, *reverse, *([1] * (2 - len(reverse))))
    return Name("reshape")(x, sizes(dims))


def _is_same_shape(own: Sequence[Any], dims: Sequence[Any]) -> bool:
    """Whether MATLAB, which drops the last dimensions of 1, sees no difference."""
    a, b = (_stripped(numbers) for numbers in (own, dims))
    return len(a) == len(b) and all(
        is_same(m, n) or (not isinstance(m, Expr) and not isinstance(n, Expr) and m == n and m != -1)
        for m, n in zip(a, b, strict=True)
    )


def _stripped(numbers: Sequence[Any]) -> list[Any]:
    found = list(numbers)
    while found and is_number(found[0], 1):
        del found[0]
    return found


@moves("Identity")
def identity(e: Emitter, x: Expr) -> Expr:
    return x


@moves("Reshape")
def reshape(e: Emitter, x: Expr, shape: Expr, p: spec.Reshape) -> Expr:
    dims, output = e.numbers(shape), e.node.outputs[0]
    known = e.shape(output)
    if known is not None and None not in known:
        return reshaped(e, x, list(known), e.shape(x) if None not in (e.shape(x) or (None,)) else None)
    if isinstance(dims, Expr):
        rank_of(e, output)
        return ops.shaped(x, dims, row(dims_of(e, x)), bool(p.allowzero))
    if not p.allowzero:
        if may_copy(e, x, shape, dims):
            wanted = row([lift(n) for n in dims])
            return ops.shaped(x, wanted, row(dims_of(e, x)), False)
        dims = [dim_of(e, x, i) if is_number(n, 0) else n for i, n in enumerate(dims)]
    note_shape(e, x, dims)
    if known is not None and sum(n is None for n in known) == 1 and 0 not in known:
        dims = [d if n is None else n for n, d in zip(known, dims, strict=True)]
    return reshaped(e, x, dims, dims_of(e, x))


@moves("Flatten")
def flatten(e: Emitter, x: Expr, p: spec.Flatten) -> Expr:
    dims = dims_of(e, x)
    axis = p.axis + len(dims) if p.axis < 0 else p.axis
    rest, first = dims[axis:], dims[:axis]
    if all(isinstance(n, int) for n in rest) and all(n != 0 for n in rest):
        return reshaped(e, x, [-1, _product(rest)], dims)
    if all(isinstance(n, int) for n in first) and all(n != 0 for n in first):
        return reshaped(e, x, [_product(first), -1], dims)
    return ops.flatten(x, len(rest))


def _product(numbers: Sequence[int]) -> int:
    found = 1
    for n in numbers:
        found *= n
    return found


@moves("Squeeze")
def squeeze(e: Emitter, x: Expr, axes: Expr | None = None) -> Expr:
    dims = dims_of(e, x)
    along = None if axes is None else e.static_ints(axes)
    if axes is not None and along is None:
        rank_of(e, e.node.outputs[0])
        return ops.squeeze(x, Name("double")(axes), len(dims))
    if along is None:
        if any(isinstance(n, Expr) for n in dims):
            output = e.node.outputs[0]
            return ops.squeeze_all(x) if only_leaves(output) else ops.squeeze_all(x, rank_of(e, output))
        along = [i for i, n in enumerate(dims) if n == 1]
    gone = {a % len(dims) for a in along}
    return reshaped(e, x, [n for i, n in enumerate(dims) if i not in gone], dims)


@moves("Unsqueeze")
def unsqueeze(e: Emitter, x: Expr, axes: Expr) -> Expr:
    dims, along = dims_of(e, x), e.static_ints(axes)
    if along is None:
        rank_of(e, e.node.outputs[0])
        return ops.unsqueeze(x, axes, len(dims))
    rank, rest = len(dims) + len(along), iter(dims)
    new = {a % rank for a in along}
    return reshaped(e, x, [1 if i in new else next(rest) for i in range(rank)], dims)


@moves("Transpose")
def transpose(e: Emitter, x: Expr, p: spec.Transpose) -> Expr:
    rank = rank_of(e, x)
    perm = list(range(rank))[::-1] if p.perm is None else list(p.perm)
    if perm == list(range(rank)):
        return x
    if rank == 2:
        return x.T
    return Name("permute")(x, row(rank - perm[rank - j] for j in range(1, rank + 1)))


@moves("Expand")
def expand(e: Emitter, x: Expr, shape: Expr) -> Expr:
    dims, known = e.numbers(shape), e.shape(e.node.outputs[0])
    if known is not None and None not in known:
        return x if known == e.shape(x) else ops.expand(x, sizes(known))
    if isinstance(dims, Expr):
        rank_of(e, e.node.outputs[0])
        return ops.expand(x, ops.sizes(dims))
    return ops.expand(x, sizes(dims))


@moves("Tile")
def tile(e: Emitter, x: Expr, repeats: Expr) -> Expr:
    counts = e.numbers(repeats)
    return Name("repmat")(x, ops.sizes(counts) if isinstance(counts, Expr) else sizes(counts))


@moves("Concat")
def concat(e: Emitter, *parts: Expr, p: spec.Concat) -> Expr:
    if len(parts) == 1:
        return parts[0]
    return Name("cat")(axis_dim(e, parts[0], p.axis), *parts)


@moves("Split")
def split(e: Emitter, x: Expr, lengths: Expr | None = None, *, p: spec.Split) -> Any:
    count = len(e.node.outputs)
    if count == 1:
        return x
    given: Any = count if lengths is None else e.numbers(lengths)
    return Unpack(ops.split(x, axis_dim(e, x, p.axis), row(given) if isinstance(given, list) else given))


@moves("Shape")
def shape(e: Emitter, x: Expr, p: spec.Shape) -> Expr:
    return e.target.tensor(array(dims_of(e, x)[p.start : p.end], (-1,)), _D.INT64)


@moves("Size")
def size(e: Emitter, x: Expr) -> Hosted:
    return Hosted(array([e.let_host(Name("numel")(x), "n", nonnegative=True)], ()))


@moves("Range")
def range_(e: Emitter, start: Expr, limit: Expr, delta: Expr, p: spec.Range) -> Expr:
    numbers = [x if (n := e.scalar(x)) is None else n for x in (start, limit, delta)]
    return ops.range(*numbers, class_of(e.dtype(start) or _D.INT64))


@moves("ConstantOfShape")
def constant_of_shape(e: Emitter, shape: Expr, p: spec.ConstantOfShape) -> Expr:
    dims, kind = e.numbers(shape), class_of(p.dtype)
    if isinstance(dims, Expr):
        rank_of(e, e.node.outputs[0])
    wanted = ops.sizes(dims) if isinstance(dims, Expr) else sizes(dims)
    return filled(p.fill, kind, wanted, is_zero=p.is_zero)


def filled(number: Any, kind: str, wanted: Expr, *, is_zero: bool = False) -> Expr:
    """An array of one number."""
    if kind == "logical":
        return (Name("true") if number else Name("false"))(wanted)
    if is_zero or number == 1:
        return (Name("zeros") if is_zero else Name("ones"))(wanted, kind)
    return Name("repmat")(Name(kind)(number), wanted)


@moves("EyeLike")
def eye_like(e: Emitter, x: Expr, p: spec.EyeLike) -> Expr:
    of = _D(p.dtype) if p.dtype is not None else e.dtype(x) or _D.FLOAT
    return ops.diagonal(dim_of(e, x, 0), dim_of(e, x, 1), p.k, class_of(of))


@moves("Trilu")
def trilu(e: Emitter, x: Expr, k: Expr | None = None, *, p: spec.Trilu) -> Expr:
    shift = 0 if k is None else e.scalar(k, 1)
    return ops.triangle(x, k if shift is None else shift, bool(p.upper))


@moves("DepthToSpace")
def depth_to_space(e: Emitter, x: Expr, p: spec.Blocks) -> Expr:
    return ops.depth_to_space(x, p.blocksize, p.mode)


@moves("SpaceToDepth")
def space_to_depth(e: Emitter, x: Expr, p: spec.Blocks) -> Expr:
    return ops.space_to_depth(x, p.blocksize, p.mode)


def listed(numbers: Any) -> Expr:
    """Numbers as a row, or what gives them."""
    return numbers if isinstance(numbers, Expr) else Display(tuple(map(lift, numbers)), "[]")
