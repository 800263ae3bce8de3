"""Ops that rearrange elements: reshaping, transposing, broadcasting, joining; and tensors made of a shape alone."""

from __future__ import annotations

import math as pymath
from typing import Any

import onnx_ir as ir

from onward.backends.emit.emitter import Emitter, Hosted, Unpack
from onward.backends.emit.expr import Expr
from onward.backends.emit.host import is_nonnegative
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
from onward.backends.tensorflow.dtypes import dtype_of, scalar
from onward.backends.tensorflow.target import dtype as typename
from onward.backends.tensorflow.target import ops, rule, tf
from onward.graph.values import array
from onward.spec import shape as spec

_D = ir.DataType
RANGES = {_D.INT32, _D.INT64}
"""Integers that `tf.range` makes."""


def along(axis: int, default: int = 0) -> dict[str, int]:
    """`axis=…`, where it is not the one that TensorFlow takes by itself."""
    return {} if axis == default else {"axis": axis}


def integers(e: Emitter, x: Expr, hint: str = "n") -> Any:
    """The numbers of a one-dimensional input: a list where their count is known, else the tensor."""
    numbers = e.numbers(x)
    shape = e.shape(x)
    if not isinstance(numbers, Expr) or shape is None or len(shape) > 1:
        return numbers
    count = pymath.prod(d for d in shape if d is not None) if None not in shape else None
    wide = numbers if e.dtype(x) == _D.INT64 else tf.cast(numbers, tf.int64)
    if count == 1:
        return [e.let_host(wide[0] if len(shape) else wide, hint)]
    return wide if count is None or not 0 < count <= 8 else e.unpack(tf.unstack(wide, count), count, hint, "host")


def dims(items: Any) -> Any:
    """A list of host numbers, or a tensor of them, for a function that takes a shape."""
    return items if isinstance(items, Expr) else list(items)


rule("Identity")(identity)


@rule("Reshape")
def reshape(e: Emitter, x: Expr, shape: Expr, p: spec.Reshape) -> Expr:
    wanted = e.numbers(shape)
    if isinstance(wanted, Expr):
        return tf.reshape(x, wanted) if p.allowzero else ops.reshape(x, wanted)
    if not p.allowzero:
        if may_copy(e, x, shape, wanted):
            return ops.reshape(x, ops.packed(wanted, tf.int64))
        wanted = [e.dim(x, i) if is_number(n, 0) else n for i, n in enumerate(wanted)]
    note_shape(e, x, wanted)
    return tf.reshape(x, wanted)


@rule("Flatten")
def flatten(e: Emitter, x: Expr, p: spec.Flatten) -> Expr:
    rank, axis = e.rank(x), p.axis
    known = e.shape(x)
    if axis == 0:
        return tf.reshape(x, [1, -1])
    if rank is None or (axis > 1 and (known is None or None in known)):
        return ops.flatten_to_matrix(x, axis)
    rows = e.dim(x, 0) if axis == 1 else pymath.prod(n or 0 for n in (known or ())[:axis])
    if axis == rank:
        return tf.reshape(x, [-1, 1])
    if known is not None and None not in known[axis:]:
        return tf.reshape(x, [rows, pymath.prod(n or 0 for n in known[axis:])])
    if not is_number(rows, 0) and known is not None and known[0]:
        return tf.reshape(x, [rows, -1])
    return ops.flatten_to_matrix(x, axis)


@rule("Squeeze")
def squeeze(e: Emitter, x: Expr, axes: Expr | None = None) -> Expr:
    if axes is None:
        known = e.shape(x)
        if known is None or None in known:
            return tf.squeeze(x)
        return tf.squeeze(x, [i for i, n in enumerate(known) if n == 1]) if 1 in known else x
    wanted = e.static_ints(axes)
    if wanted is None:
        return ops.squeeze(x, axes)
    return tf.squeeze(x, wanted[0] if len(wanted) == 1 else wanted) if wanted else x


@rule("Unsqueeze")
def unsqueeze(e: Emitter, x: Expr, axes: Expr) -> Expr:
    new, rank = e.static_ints(axes), e.rank(x)
    if new is not None:
        if len(new) == 1:
            return tf.expand_dims(x, new[0])
        found = subscript(x, dict.fromkeys(new, tf.newaxis), None if rank is None else rank + len(new))
        if found is not None:
            return found
    return ops.unsqueeze(x, e.numbers(axes))


@rule("Transpose")
def transpose(e: Emitter, x: Expr, p: spec.Transpose) -> Expr:
    if p.perm is None:
        return x if e.rank(x) in (0, 1) else tf.transpose(x)
    return x if list(p.perm) == list(range(len(p.perm))) else tf.transpose(x, list(p.perm))


@rule("Expand")
def expand(e: Emitter, x: Expr, shape: Expr) -> Expr:
    wanted = e.numbers(shape)
    if not isinstance(wanted, Expr) and is_broadcast_anyway(e, wanted):
        return x
    target = None if isinstance(wanted, Expr) else expanded(e, x, list(wanted))
    if target is None:
        return ops.expand(x, wanted if isinstance(wanted, Expr) else ops.packed(wanted, tf.int64))
    return tf.broadcast_to(x, target) if target else x


@rule("Tile")
def tile(e: Emitter, x: Expr, repeats: Expr) -> Expr:
    counts = e.numbers(repeats)
    if e.dtype(x) == _D.UINT16:
        return tf.bitcast(tf.tile(tf.bitcast(x, tf.int16), counts), tf.uint16)
    return tf.tile(x, counts) if isinstance(counts, Expr) or counts else x


@rule("Concat")
def concat(e: Emitter, *parts: Expr, p: spec.Concat) -> Expr:
    if len(parts) == 1:
        return parts[0]
    axis = p.axis
    rows = [unsqueezed(e, part, axis) for part in parts]
    return tf.concat(list(parts), axis) if None in rows else tf.stack(rows, **along(axis))


@rule("Split")
def split(e: Emitter, x: Expr, sizes: Expr | None = None, *, p: spec.Split) -> Any:
    count, axis = len(e.node.outputs), p.axis
    if count == 1:
        return x
    known = e.shape(x)
    size = None if known is None else known[axis]
    lengths = None if sizes is None else e.numbers(sizes)
    if isinstance(lengths, Expr):
        return Unpack(tf.split(x, lengths, axis, count))
    if lengths is None:
        if size is None:
            return Unpack(ops.split_evenly(x, count, axis))
        lengths = [max(min(-(-size // count), size - i * -(-size // count)), 0) for i in range(count)]
    if size and all(is_number(n, lengths[0]) for n in lengths) and not isinstance(lengths[0], Expr):
        return Unpack(tf.split(x, count, **along(axis)))
    return Unpack(tf.split(x, lengths, **along(axis)))


@rule("Shape")
def shape(e: Emitter, x: Expr, p: spec.Shape) -> Expr:
    whole = tf.shape(x, tf.int64)
    return whole if not p.start and p.end is None else whole[p.start or None : p.end]


@rule("Size")
def size(e: Emitter, x: Expr) -> Hosted:
    return Hosted(array([e.let_host(tf.size(x, tf.int64), "n", nonnegative=True)], ()))


@rule("Range")
def range_(e: Emitter, start: Expr, limit: Expr, delta: Expr, p: spec.Range) -> Expr:
    of = dtype_of(e, start)
    if of.is_floating_point():
        wide = _D.DOUBLE if of == _D.DOUBLE else _D.FLOAT
        return ops.float_range(*(scalar(e, v, wide) for v in (start, limit, delta)), typename(of))
    first, last, step = (scalar(e, v) for v in (start, limit, delta))
    if isinstance(step, Expr):
        found = ops.integer_range(first, last, step)
    else:
        if isinstance(first, Expr) or isinstance(last, Expr):
            if not (is_number(first, 0) and step > 0 and is_nonnegative(e, last)):
                last = (ops.greatest if step > 0 else ops.least)(first, last)
        elif (last - first) * step < 0:
            last = first
        if is_number(first, 0) and step == 1:
            e.note_dim(0, last)
        bounds = [last] if is_number(first, 0) and step == 1 else [first, last] if step == 1 else [first, last, step]
        if of in RANGES and not any(isinstance(bound, Expr) for bound in bounds):
            return tf.range(*bounds, dtype=typename(of))
        found = tf.range(*bounds, dtype=tf.int64)
    return found if of == _D.INT64 else tf.cast(found, typename(of))


@rule("ConstantOfShape")
def constant_of_shape(e: Emitter, shape: Expr, p: spec.ConstantOfShape) -> Expr:
    wanted, of = dims(e.numbers(shape)), typename(p.dtype)
    if p.is_zero:
        return tf.zeros(wanted, of)
    return tf.ones(wanted, of) if p.fill == 1 else tf.fill(wanted, tf.constant(p.fill, of))


@rule("EyeLike")
def eye_like(e: Emitter, x: Expr, p: spec.EyeLike) -> Expr:
    of = _D(p.dtype) if p.dtype is not None else dtype_of(e, x)
    rows, columns = e.dim(x, 0), e.dim(x, 1)
    return ops.shifted_eye(rows, columns, p.k, typename(of)) if p.k else tf.eye(rows, columns, dtype=typename(of))


@rule("Trilu")
def trilu(e: Emitter, x: Expr, k: Expr | None = None, *, p: spec.Trilu) -> Expr:
    shift = 0 if k is None else scalar(e, k)
    if is_number(shift, 0):
        return tf.linalg.band_part(x, 0, -1) if p.upper else tf.linalg.band_part(x, -1, 0)
    return ops.triangle(x, shift, **({} if p.upper else {"upper": False}))


@rule("DepthToSpace")
def depth_to_space(e: Emitter, x: Expr, p: spec.Blocks) -> Expr:
    return ops.depth_to_space_first(x, p.blocksize, p.mode)


@rule("SpaceToDepth")
def space_to_depth(e: Emitter, x: Expr, p: spec.Blocks) -> Expr:
    return ops.space_to_depth_first(x, p.blocksize, p.mode)


@rule("onward.nhwc::DepthToSpace")
def depth_to_space_last(e: Emitter, x: Expr, p: spec.Blocks) -> Expr:
    return ops.pixel_shuffle(x, p.blocksize) if p.mode == "CRD" else tf.nn.depth_to_space(x, p.blocksize)


@rule("onward.nhwc::SpaceToDepth")
def space_to_depth_last(e: Emitter, x: Expr, p: spec.Blocks) -> Expr:
    return ops.pixel_unshuffle(x, p.blocksize) if p.mode == "CRD" else tf.nn.space_to_depth(x, p.blocksize)
