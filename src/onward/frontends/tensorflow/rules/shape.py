"""Shapes: asking for them, changing them, putting tensors together and taking them apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from onward.frontends.tensorflow.registry import rule
from onward.frontends.tensorflow.values import Reserved, TensorList
from onward.frontends.tensorflow.writer import FAR, Writer
from onward.graph.build import Tensor


@rule("Shape")
def shape(op: Writer, x: Tensor, *, out_type: ir.DataType = ir.DataType.INT32) -> Tensor:
    if x.sizes is not None:
        return op.constant(np.asarray(x.sizes, out_type.numpy()))
    return op.Shape(x).cast(out_type)


@rule("ShapeN")
def shape_n(op: Writer, *tensors: Tensor, out_type: ir.DataType = ir.DataType.INT32) -> list[Tensor]:
    return [shape(op, x, out_type=out_type) for x in tensors]


@rule("Size")
def size(op: Writer, x: Tensor, *, out_type: ir.DataType = ir.DataType.INT32) -> Tensor:
    return op.Size(x).cast(out_type)


@rule("Rank")
def rank(op: Writer, x: Tensor) -> Tensor:
    if x.rank is not None:
        return op.constant(np.asarray(x.rank, np.int32))
    return op.Size(op.Shape(x)).cast(ir.DataType.INT32)


@rule("Reshape")
def reshape(op: Writer, x: Tensor, to: Tensor) -> Tensor:
    known = op.known(to)
    if op.is_weight(x) and known is not None and x.sizes is not None:
        return op.viewed(x, np.empty(x.sizes, bool).reshape(known).shape)
    return op.Reshape(x, op.int64(to), allowzero=None if _has_one_unknown(op, to) else 1)


def _has_one_unknown(op: Writer, to: Tensor) -> bool:
    sizes = op.known(to)
    return sizes is not None and bool((sizes < 0).any()) and not bool((sizes == 0).any())


@rule("Squeeze")
def squeeze(op: Writer, x: Tensor, *, squeeze_dims: Sequence[int] = ()) -> Tensor:
    if op.is_weight(x) and x.sizes is not None:
        return op.viewed(x, np.empty(x.sizes, bool).squeeze(tuple(squeeze_dims) or None).shape)
    return op.Squeeze(x, op.ints(squeeze_dims)) if squeeze_dims else op.Squeeze(x)


@rule("ExpandDims")
def expand_dims(op: Writer, x: Tensor, axis: Tensor) -> Tensor:
    known = op.known(axis)
    if op.is_weight(x) and known is not None and x.sizes is not None:
        return op.viewed(x, np.expand_dims(np.empty(x.sizes, bool), int(known.reshape(()))).shape)
    return op.Unsqueeze(x, op.flat(op.int64(axis)))


@rule("Transpose")
def transpose(op: Writer, x: Tensor, perm: Tensor) -> Tensor:
    return op.transpose(x, op.numbers(perm, "the order of axes"))


@rule("ConcatV2")
def concat(op: Writer, *tensors: Tensor) -> Tensor:
    return op.Concat(*tensors[:-1], axis=op.numbers(tensors[-1], "the axis")[0])


@rule("Pack")
def pack(op: Writer, *tensors: Tensor, axis: int = 0) -> Tensor:
    return op.Concat(*(op.unsqueeze(x, [axis]) for x in tensors), axis=axis)


@rule("Unpack")
def unpack(op: Writer, x: Tensor, *, num: int, axis: int = 0) -> list[Tensor]:
    return [op.squeeze(part, [axis]) for part in _parts(op, x, [1] * num, axis)]


@rule("Split")
def split(op: Writer, axis: Tensor, x: Tensor, *, num_split: int) -> list[Tensor]:
    where = op.numbers(axis, "the axis")[0]
    length = x.dims[where] if x.dims is not None else None
    if isinstance(length, int):
        return _parts(op, x, [length // num_split] * num_split, where)
    return op.many("Split", num_split, x, axis=where, num_outputs=num_split)


@rule("SplitV")
def split_v(op: Writer, x: Tensor, sizes: Tensor, axis: Tensor) -> list[Tensor]:
    where = op.numbers(axis, "the axis")[0]
    return _parts(op, x, op.numbers(sizes, "the sizes"), where)


def _parts(op: Writer, x: Tensor, sizes: Sequence[int], axis: int) -> list[Tensor]:
    if len(sizes) == 1:
        return [x]
    if -1 in sizes:
        length = x.dims[axis] if x.dims is not None else None
        known = sum(s for s in sizes if s >= 0)
        if not isinstance(length, int):
            whole = op.Gather(op.Shape(x), op.ints([op.axis(axis, op.rank(x, "what is split"))]))
            exact = [whole - op.ints([known]) if s < 0 else op.ints([s]) for s in sizes]
            return op.many("Split", len(sizes), x, op.Concat(*exact, axis=0), axis=axis)
        rest = length - known
        sizes = [rest if s < 0 else s for s in sizes]
    return op.many("Split", len(sizes), x, op.ints(sizes), axis=axis)


@rule("Tile")
def tile(op: Writer, x: Tensor, times: Tensor) -> Tensor:
    return op.Tile(x, op.int64(times))


@rule("BroadcastTo")
def broadcast_to(op: Writer, x: Tensor, to: Tensor) -> Tensor:
    return op.Expand(x, op.int64(to))


@rule("BroadcastArgs")
def broadcast_args(op: Writer, a: Tensor, b: Tensor) -> Tensor:
    one = op.like(1, a)
    return op.Shape(op.Add(op.Expand(one, op.int64(a)), op.Expand(one, op.int64(b)))).cast(a.dtype)


@rule("Fill")
def fill(op: Writer, to: Tensor, value: Tensor) -> Tensor:
    return op.Expand(value, op.int64(to))


@rule("Empty")
def empty(op: Writer, to: Tensor, *, dtype: ir.DataType) -> Tensor:
    """Zeros, where anything would do."""
    return op.Expand(op.constant(np.zeros((), dtype.numpy())), op.int64(to))


@rule("ZerosLike")
def zeros_like(op: Writer, x: Tensor | TensorList | Reserved) -> Tensor | TensorList | Reserved:
    """Of a tensor, or of each in a list."""
    if isinstance(x, Reserved):
        return x
    return TensorList(op.zeros_like(x.stacked)) if isinstance(x, TensorList) else op.zeros_like(x)


@rule("OnesLike")
def ones_like(op: Writer, x: Tensor) -> Tensor:
    return op.filled(x, 1)


@rule("Range")
def range_of(op: Writer, start: Tensor, limit: Tensor, delta: Tensor) -> Tensor:
    return op.Range(start, limit, delta)


@rule("Pad", "PadV2")
def pad(op: Writer, x: Tensor, pads: Tensor, value: Tensor | None = None) -> Tensor:
    if x.dtype == ir.DataType.STRING:
        return _padded_strings(op, x, pads, op.text("") if value is None else value)
    return op.Pad(x, _pads(op, pads), value)


def _padded_strings(op: Writer, x: Tensor, pads: Tensor, value: Tensor) -> Tensor:
    """Placed inside a tensor of the padding, as ONNX Runtime pads no strings."""
    first, last = (
        op.squeeze(op.Slice(op.int64(pads), op.ints([i]), op.ints([i + 1]), op.ints([1])), [1]) for i in (0, 1)
    )
    shape = op.Shape(x)
    places = op.Transpose(op.NonZero(op.Expand(op.index(1), shape)), perm=[1, 0]) + first
    return op.ScatterND(op.Expand(value, shape + first + last), places, op.flat(x))


@rule("MirrorPad")
def mirror_pad(op: Writer, x: Tensor, pads: Tensor, *, mode: str) -> Tensor:
    if mode == "REFLECT":
        return op.Pad(x, _pads(op, pads), mode="reflect")
    for axis, (before, after) in enumerate(op.fixed(pads, "the pads").tolist()):
        x = _mirrored(op, x, axis, before, after)
    return x


def _mirrored(op: Writer, x: Tensor, axis: int, before: int, after: int) -> Tensor:
    """With its ends mirrored, the outermost row among them."""
    axes, backwards = op.ints([axis]), op.ints([-1])
    parts = [x]
    if before:
        parts.insert(0, op.Slice(x, op.ints([before - 1]), op.ints([-FAR - 1]), axes, backwards))
    if after:
        parts.append(op.Slice(x, backwards, op.ints([-after - 1]), axes, backwards))
    return op.Concat(*parts, axis=axis) if len(parts) > 1 else x


def _pads(op: Writer, pads: Tensor) -> Tensor:
    """One pair an axis in TensorFlow; all that come before and then all that come after in ONNX."""
    known = op.known(pads)
    if known is not None:
        return op.ints(known.T.reshape(-1).tolist())
    return op.flat(op.Transpose(op.int64(pads), perm=[1, 0]))
