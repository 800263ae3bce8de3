"""Ops that rearrange elements: reshaping, transposing, broadcasting, joining; and tensors made of nothing but a shape.

String tensors are numpy arrays, which share most of the methods used here; where they do not, a rule asks `is_string`.
"""

from __future__ import annotations

import math as pymath
from typing import Any

import onnx_ir as ir

from onward.backends.emit.emitter import Emitter, Hosted, Unpack
from onward.backends.emit.expr import Expr, Name
from onward.backends.emit.host import is_nonnegative
from onward.backends.shared.shape import (
    identity,
    is_broadcast_anyway,
    is_number,
    is_same,
    may_copy,
    note_shape,
    subscript,
    unsqueezed,
)
from onward.backends.torch.dtypes import UNSIGNED, bits, from_bits
from onward.backends.torch.target import F, np_, ops, rule, torch
from onward.backends.torch.target import dtype as typename
from onward.graph.values import array
from onward.spec import shape as spec


def is_string(e: Emitter, x: Expr) -> bool:
    """Whether a value is a numpy array of strings (or a list of those)."""
    return e.dtype(x) == ir.DataType.STRING


def is_identity(perm: list[int]) -> bool:
    return perm == list(range(len(perm)))


def integers(e: Emitter, x: Expr, hint: str = "n") -> Any:
    """The numbers of a one-dimensional input: a list where their count is known, else an expression for a list."""
    numbers = e.numbers(x)
    shape = e.shape(x)
    if not isinstance(numbers, Expr) or shape is None or len(shape) > 1:
        return numbers
    count = pymath.prod(d for d in shape if d is not None) if None not in shape else None
    if count == 1:
        return [e.let_host(x.item(), hint)]
    return numbers if count is None or not 0 < count <= 8 else e.unpack(numbers, count, hint, "host")


def integer(e: Emitter, x: Expr, hint: str = "n") -> Any:
    """An input that holds one integer, as a number or as an expression for one."""
    found = e.scalar(x, 1)
    return e.let_host(x.item(), hint) if found is None else found


rule("Identity")(identity)


@rule("Reshape")
def reshape(e: Emitter, x: Expr, shape: Expr, p: spec.Reshape) -> Expr:
    dims = e.numbers(shape)
    if isinstance(dims, Expr):
        return ops.reshape(x, dims, **({"allow_zero": True} if p.allowzero else {}))
    if not p.allowzero:
        if may_copy(e, x, shape, dims):
            return ops.reshape(x, dims)
        dims = [e.dim(x, i) if not isinstance(n, Expr) and n == 0 else n for i, n in enumerate(dims)]
    if len(dims) == 1 and is_number(dims[0], -1) and e.rank(x) == 1:
        return x
    note_shape(e, x, dims)
    if len(dims) == 2 and is_number(dims[1], -1) and not is_string(e, x):
        rank, known = e.rank(x), e.shape(x)
        if rank is not None and rank >= 2 and (is_same(dims[0], e.dim(x, 0)) or (known and known[0] == dims[0])):
            return x.flatten(1)
    return x.reshape(*dims) if dims else x.reshape(())


@rule("Flatten")
def flatten(e: Emitter, x: Expr, p: spec.Flatten) -> Expr:
    rank, axis = e.rank(x), p.axis
    if axis == 0:
        return x.reshape(1, -1)
    if is_string(e, x) or rank is None or axis == rank:
        return ops.flatten_to_matrix(x, axis)
    rows = x if axis == 1 else x.flatten(0, axis - 1)
    return rows.flatten(1) if rank - axis > 1 else rows if axis > 1 else x


@rule("Squeeze")
def squeeze(e: Emitter, x: Expr, axes: Expr | None = None) -> Expr:
    if axes is None:
        return x.squeeze()
    dims = integers(e, axes)
    if isinstance(dims, Expr):
        return x.squeeze(Name("tuple")(dims))
    return x.squeeze(dims[0] if len(dims) == 1 else tuple(dims))


@rule("Unsqueeze")
def unsqueeze(e: Emitter, x: Expr, axes: Expr) -> Expr:
    dims, rank = e.static_ints(axes), e.rank(x)
    if dims is not None:
        if len(dims) == 1 and not is_string(e, x):
            return x.unsqueeze(dims[0])
        found = subscript(x, dict.fromkeys(dims), None if rank is None else rank + len(dims))
        if found is not None:
            return found
    return ops.unsqueeze(x, e.numbers(axes))


@rule("Transpose")
def transpose(e: Emitter, x: Expr, p: spec.Transpose) -> Expr:
    rank, perm = e.rank(x), p.perm
    if perm is None and rank is not None:
        perm = list(range(rank))[::-1]
    if perm is None:
        return x.T if is_string(e, x) else x.permute(Name("tuple")(Name("reversed")(Name("range")(x.ndim))))
    if is_identity(list(perm)):
        return x
    if is_string(e, x):
        return x.transpose(*perm)
    moved = [i for i, p in enumerate(perm) if i != p]
    if len(moved) == 2:
        return x.mT if moved == [len(perm) - 2, len(perm) - 1] else x.transpose(*moved)
    return x.permute(*perm)


@rule("Expand")
def expand(e: Emitter, x: Expr, shape: Expr) -> Expr:
    dims = e.numbers(shape)
    if is_string(e, x):
        return np_.broadcast_to(
            x, np_.broadcast_shapes(x.shape, Name("tuple")(dims) if isinstance(dims, Expr) else tuple(dims))
        )
    if not isinstance(dims, Expr) and is_broadcast_anyway(e, dims):
        return x
    target = None if isinstance(dims, Expr) else _expanded(e, x, list(dims))
    if target is None:
        return x.expand(torch.broadcast_shapes(x.shape, dims if isinstance(dims, Expr) else tuple(dims)))
    return x.expand(*target) if target else x


def _expanded(e: Emitter, x: Expr, dims: list[Any]) -> list[Any] | None:
    """What `x.expand` takes, -1 for a dimension that stays; None where that depends on run-time numbers.

    ONNX broadcasts both ways: a 1 in the wanted shape leaves the dimension of `x` as it is.
    """
    known = e.shape(x)
    if known is None:
        return None
    target: list[Any] = [-1] * max(len(known) - len(dims), 0) + dims
    for i, size in enumerate(known, len(target) - len(known)):
        axis = i - len(target) + len(known)
        if is_number(target[i], 1) or is_same(target[i], e.dim(x, axis)) or is_number(target[i], -1):
            target[i] = -1
        elif size != 1 and isinstance(target[i], Expr):
            return None
    return target


@rule("Tile")
def tile(e: Emitter, x: Expr, repeats: Expr) -> Expr:
    counts = e.numbers(repeats)
    if is_string(e, x):
        return np_.tile(x, counts)
    return x.repeat(counts) if isinstance(counts, Expr) or not counts else x.repeat(*counts)


@rule("Concat")
def concat(e: Emitter, *parts: Expr, p: spec.Concat) -> Expr:
    if len(parts) == 1:
        return parts[0]
    axis = p.axis
    if is_string(e, parts[0]):
        return np_.concatenate(tuple(parts), axis=axis)
    rows = [unsqueezed(e, part, axis) for part in parts]
    if None not in rows:
        return torch.stack(tuple(rows), **({"dim": axis} if axis else {}))
    return torch.cat(tuple(parts), **({"dim": axis} if axis else {}))


@rule("Split")
def split(e: Emitter, x: Expr, sizes: Expr | None = None, *, p: spec.Split) -> Any:
    count, axis = len(e.node.outputs), p.axis
    if count == 1:
        return x
    if is_string(e, x):
        return Unpack(ops.split_strings(x, count if sizes is None else e.numbers(sizes), axis))
    dim = {"dim": axis} if axis else {}
    lengths = None if sizes is None else e.numbers(sizes)
    if lengths is None or (not isinstance(lengths, Expr) and _equal_parts(e, x, axis, lengths)):
        return Unpack(x.chunk(count, **dim))
    return Unpack(x.split(lengths, **dim))


def _equal_parts(e: Emitter, x: Expr, axis: int, lengths: list[Any]) -> bool:
    shape = e.shape(x)
    size = shape[axis] if shape is not None else None
    return size is not None and size > 0 and all(is_number(n, lengths[0]) and n * len(lengths) == size for n in lengths)


@rule("Shape")
def shape(e: Emitter, x: Expr, p: spec.Shape) -> Expr:
    whole = not p.start and p.end is None
    return torch.tensor(x.shape if whole else x.shape[p.start or None : p.end], dtype=torch.int64, device=e.device)


@rule("Size")
def size(e: Emitter, x: Expr) -> Hosted:
    count = x.size if is_string(e, x) else x.numel()
    return Hosted(array([e.let_host(count, "n", nonnegative=True)], ()))


@rule("Range")
def range_(e: Emitter, start: Expr, limit: Expr, delta: Expr, p: spec.Range) -> Expr:
    of = e.dtype(start) or ir.DataType.INT64
    if of.is_floating_point():
        bounds = [number(e, v) for v in (start, limit, delta)]
        return ops.float_range(*bounds, dtype=typename(of), device=e.device)
    first, last, step = (integer(e, v) for v in (start, limit, delta))
    typed = {} if of == ir.DataType.INT64 else {"dtype": typename(of)}
    if isinstance(step, Expr):
        return ops.integer_range(first, last, step, **typed, device=e.device)
    if isinstance(first, Expr) or isinstance(last, Expr):
        if not (is_number(first, 0) and step > 0 and is_nonnegative(e, last)):
            is_data = any(e.scalar(v, 1) is None for v in (start, limit))  # which torch.export cannot compare
            more, less = (torch.sym_max, torch.sym_min) if is_data else (Name("max"), Name("min"))
            last = (more if step > 0 else less)(first, last)
    elif (last - first) * step < 0:
        last = first
    if step == 1:
        if is_number(first, 0):
            e.note_dim(0, last)
        return torch.arange(*([last] if is_number(first, 0) else [first, last]), **typed, device=e.device)
    return torch.arange(first, last, step, **typed, device=e.device)


def number(e: Emitter, x: Expr) -> Any:
    """An input that holds one number, as that number or as an expression for it."""
    found = e.scalar(x, 1)
    return e.let_host(x.item(), "n") if found is None else found


@rule("ConstantOfShape")
def constant_of_shape(e: Emitter, shape: Expr, p: spec.ConstantOfShape) -> Expr:
    dims = e.numbers(shape)
    dims = dims if isinstance(dims, Expr) else tuple(dims)
    typed = {"dtype": typename(p.dtype), "device": e.device}
    if p.is_zero:
        return torch.zeros(dims, **typed)
    return torch.ones(dims, **typed) if p.fill == 1 else torch.full(dims, p.fill, **typed)


@rule("EyeLike")
def eye_like(e: Emitter, x: Expr, p: spec.EyeLike) -> Expr:
    of = ir.DataType(p.dtype) if p.dtype is not None else e.dtype(x) or ir.DataType.FLOAT
    rows, columns = e.dim(x, 0), e.dim(x, 1)
    if p.k == 0 and of not in UNSIGNED:
        return torch.eye(rows, columns, dtype=typename(of), device=e.device)
    return ops.shifted_eye(rows, columns, p.k, dtype=typename(of), device=e.device)


@rule("Trilu")
def trilu(e: Emitter, x: Expr, k: Expr | None = None, *, p: spec.Trilu) -> Expr:
    part = torch.triu if p.upper else torch.tril
    shift = 0 if k is None else integer(e, k, "k")
    return from_bits(e, x, part(bits(e, x), *([] if is_number(shift, 0) else [shift])))


@rule("DepthToSpace")
def depth_to_space(e: Emitter, x: Expr, p: spec.Blocks) -> Expr:
    return F.pixel_shuffle(x, p.blocksize) if p.mode == "CRD" else ops.depth_to_space(x, p.blocksize)


@rule("SpaceToDepth")
def space_to_depth(e: Emitter, x: Expr, p: spec.Blocks) -> Expr:
    return F.pixel_unshuffle(x, p.blocksize) if p.mode == "CRD" else ops.space_to_depth(x, p.blocksize)
