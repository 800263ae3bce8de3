"""Ops that rearrange elements: reshaping, transposing, broadcasting, joining; and tensors made of a shape alone.

String tensors are numpy arrays, which share the methods used here; where a function is called, `_np` chooses whose.
"""

from __future__ import annotations

import math
from typing import Any

import onnx_ir as ir

from onward.backends.emit.emitter import Emitter, Hosted, Unpack
from onward.backends.emit.expr import Expr, Name
from onward.backends.emit.host import is_nonnegative
from onward.backends.jax.filled import is_filled
from onward.backends.jax.images import flag
from onward.backends.jax.numbers import integers, is_string, scalar
from onward.backends.jax.target import dtype as typename
from onward.backends.jax.target import jnp, np_, ops, rule
from onward.backends.shared.shape import (
    expanded,
    identity,
    is_broadcast_anyway,
    is_number,
    may_copy,
    note_shape,
    subscript,
    unsqueezed,
)
from onward.graph.values import array
from onward.spec import shape as spec

_D = ir.DataType


def _np(e: Emitter, x: Expr) -> Expr:
    """The library that computes with an input."""
    return np_ if is_string(e, x) else jnp


def _along(axis: int) -> dict[str, int]:
    """`axis=…`, where it is not the first."""
    return {"axis": axis} if axis else {}


rule("Identity")(identity)


@rule("Reshape")
def reshape(e: Emitter, x: Expr, shape: Expr, p: spec.Reshape) -> Expr:
    dims = e.numbers(shape)
    if isinstance(dims, Expr):
        return ops.reshape(x, dims, **({"allow_zero": True} if p.allowzero else {}))
    if not p.allowzero:
        if may_copy(e, x, shape, dims):
            return ops.reshape(x, dims)
        dims = [e.dim(x, i) if is_number(n, 0) else n for i, n in enumerate(dims)]
    if len(dims) == 1 and is_number(dims[0], -1) and e.rank(x) == 1:
        return x
    note_shape(e, x, dims)
    return x.reshape(*dims) if dims else x.reshape(())


@rule("Flatten")
def flatten(e: Emitter, x: Expr, p: spec.Flatten) -> Expr:
    rank, known = e.rank(x), e.shape(x)
    if p.axis == 0:
        return x.reshape(1, -1)
    if p.axis == 1 and rank == 2:
        return x
    sizes = [n for n in (known or ())[1:] if n]
    if p.axis == 1 and rank is not None and len(sizes) == rank - 1:
        return x.reshape(-1, math.prod(sizes))
    return ops.flatten_to_matrix(x, p.axis)


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
        found = subscript(x, dict.fromkeys(dims), None if rank is None else rank + len(dims))
        if found is not None:
            return found
    listed = e.numbers(axes)
    return _np(e, x).expand_dims(x, Name("tuple")(listed) if isinstance(listed, Expr) else tuple(listed))


@rule("Transpose")
def transpose(e: Emitter, x: Expr, p: spec.Transpose) -> Expr:
    rank = e.rank(x)
    perm = list(range(rank))[::-1] if p.perm is None and rank is not None else p.perm
    if perm is None:
        return x.T
    order = list(range(len(perm)))
    if list(perm) == order:
        return x
    if list(perm) == order[::-1]:
        return x.T
    return x.mT if list(perm) == [*order[:-2], order[-1], order[-2]] else x.transpose(*perm)


@rule("Expand")
def expand(e: Emitter, x: Expr, shape: Expr) -> Expr:
    dims = e.numbers(shape)
    if not isinstance(dims, Expr) and is_broadcast_anyway(e, dims) and not is_string(e, x):
        return x
    target = None if isinstance(dims, Expr) else expanded(e, x, list(dims))
    if target is None:
        wanted = Name("tuple")(dims) if isinstance(dims, Expr) else tuple(dims)
        return _np(e, x).broadcast_to(x, np_.broadcast_shapes(x.shape, wanted))
    return _np(e, x).broadcast_to(x, tuple(target)) if target else x


@rule("Tile")
def tile(e: Emitter, x: Expr, repeats: Expr) -> Expr:
    counts = e.numbers(repeats)
    return _np(e, x).tile(x, counts if isinstance(counts, Expr) else tuple(counts))


@rule("Concat")
def concat(e: Emitter, *parts: Expr, p: spec.Concat) -> Expr:
    if len(parts) == 1:
        return parts[0]
    own = _np(e, parts[0])
    rows = [unsqueezed(e, part, p.axis) for part in parts]
    if None not in rows:
        return own.stack(tuple(rows), **_along(p.axis))
    if (e.rank(parts[0]) or 3) > 2:  # see `pad_last`, which XLA makes of a concatenation with one number
        parts = tuple(ops.apart(part) if is_filled(e, part) else part for part in parts)
    return own.concatenate(tuple(parts), **_along(p.axis))


@rule("Split")
def split(e: Emitter, x: Expr, sizes: Expr | None = None, *, p: spec.Split) -> Any:
    count, known = len(e.node.outputs), e.shape(x)
    if count == 1:
        return x
    size = None if known is None else known[p.axis]
    lengths = count if sizes is None else e.numbers(sizes)
    if size and not is_string(e, x):
        if sizes is None and size % count == 0:
            return Unpack(jnp.split(x, count, **_along(p.axis)))
        if isinstance(lengths, list) and all(is_number(n, lengths[0]) for n in lengths):
            return Unpack(jnp.split(x, count, **_along(p.axis)))
    return Unpack(ops.split_parts(x, lengths, p.axis))


@rule("Shape")
def shape(e: Emitter, x: Expr, p: spec.Shape) -> Expr:
    whole = not p.start and p.end is None
    return jnp.array(x.shape if whole else x.shape[p.start or None : p.end], typename(_D.INT64))


@rule("Size")
def size(e: Emitter, x: Expr) -> Hosted:
    return Hosted(array([e.let_host(x.size, "n", nonnegative=True)], ()))


@rule("Range")
def range_(e: Emitter, start: Expr, limit: Expr, delta: Expr, p: spec.Range) -> Expr:
    of = e.dtype(start) or _D.INT64
    first, last, step = (scalar(e, v) for v in (start, limit, delta))
    if of.is_floating_point():
        return ops.float_range(first, last, step, typename(of))
    typed = {} if of == _D.INT64 else {"dtype": typename(of)}
    if is_number(step, 1):
        if is_number(first, 0):
            if is_nonnegative(e, last):
                e.note_dim(0, last)
            return jnp.arange(last, **typed)
        return jnp.arange(first, last, **typed)
    return jnp.arange(first, last, step, **typed)


@rule("ConstantOfShape")
def constant_of_shape(e: Emitter, shape: Expr, p: spec.ConstantOfShape) -> Expr:
    dims = e.numbers(shape)
    dims, of = dims if isinstance(dims, Expr) else tuple(dims), typename(p.dtype)
    if p.is_zero:
        return jnp.zeros(dims, of)
    return jnp.ones(dims, of) if p.fill == 1 else jnp.full(dims, p.fill, of)


@rule("EyeLike")
def eye_like(e: Emitter, x: Expr, p: spec.EyeLike) -> Expr:
    of = _D(p.dtype) if p.dtype is not None else e.dtype(x) or _D.FLOAT
    return jnp.eye(e.dim(x, 0), e.dim(x, 1), **({"k": p.k} if p.k else {}), dtype=typename(of))


@rule("Trilu")
def trilu(e: Emitter, x: Expr, k: Expr | None = None, *, p: spec.Trilu) -> Expr:
    shift = 0 if k is None else e.scalar(k, 1)
    if shift is None:
        return ops.triangle(x, k, **({} if p.upper else {"upper": False}))
    return (jnp.triu if p.upper else jnp.tril)(x, *([] if is_number(shift, 0) else [shift]))


@rule("DepthToSpace", "onward.nhwc::DepthToSpace")
def depth_to_space(e: Emitter, x: Expr, p: spec.Blocks) -> Expr:
    return ops.depth_to_space(x, p.blocksize, **({} if p.mode == "DCR" else {"mode": p.mode}), **flag(e))


@rule("SpaceToDepth", "onward.nhwc::SpaceToDepth")
def space_to_depth(e: Emitter, x: Expr, p: spec.Blocks) -> Expr:
    return ops.space_to_depth(x, p.blocksize, **({} if p.mode == "DCR" else {"mode": p.mode}), **flag(e))
