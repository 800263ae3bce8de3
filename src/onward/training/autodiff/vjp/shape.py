"""Gradients of ops that move elements without changing them."""

from __future__ import annotations

from onward.graph.build import Tensor
from onward.training.autodiff.broadcast import unbroadcast
from onward.training.autodiff.reverse import Context
from onward.training.autodiff.vjp import Gradients, no_gradient, vjp


@vjp("Identity")
def identity(c: Context, g: Tensor, x: Tensor) -> Gradients:
    return g


@vjp("Reshape", "Flatten", "Squeeze", "Unsqueeze")
def reshape(c: Context, g: Tensor, x: Tensor, *_: object, **__: object) -> Gradients:
    return c.op.reshape_like(g, x)


@vjp("Transpose")
def transpose(c: Context, g: Tensor, x: Tensor, *, perm: list[int] | None = None) -> Gradients:
    return c.op.Transpose(g, perm=None if perm is None else [perm.index(axis) for axis in range(len(perm))])


@vjp("Expand")
def expand(c: Context, g: Tensor, x: Tensor, shape: Tensor) -> Gradients:
    return unbroadcast(g, x)


@vjp("Tile")
def tile(c: Context, g: Tensor, x: Tensor, repeats: Tensor) -> Gradients:
    """Each axis as two, the copies and what was copied; the sum over the copies."""
    op = c.op
    if x.rank is None:
        raise c.refuse("the rank of the input is not known")
    columns = op.Concat(op.Unsqueeze(repeats, op.ints([1])), op.Unsqueeze(x.shape, op.ints([1])), axis=1)
    copies = op.Reshape(g, op.Reshape(columns, op.ints([2 * x.rank])), allowzero=1)
    return op.sum(copies, range(0, 2 * x.rank, 2), keepdims=False)


@vjp("DepthToSpace")
def depth_to_space(c: Context, g: Tensor, x: Tensor, *, blocksize: int, mode: str) -> Gradients:
    if mode == "DCR":
        return c.op.SpaceToDepth(g, blocksize=blocksize)
    op = c.op
    n, channels, height, width = (op.Shape(x, start=i, end=i + 1) for i in range(4))
    rows, block = op.Concat(n, channels, height, width, axis=0), op.ints([blocksize])
    depth = op.Div(channels, op.ints([blocksize * blocksize]))
    parts = op.Reshape(g, op.Concat(n, depth, height, block, width, block, axis=0))
    return op.Reshape(op.Transpose(parts, perm=[0, 1, 3, 5, 2, 4]), rows)


@vjp("SpaceToDepth")
def space_to_depth(c: Context, g: Tensor, x: Tensor, *, blocksize: int, **_: object) -> Gradients:
    return c.op.DepthToSpace(g, blocksize=blocksize, mode="DCR")


@vjp("Trilu")
def trilu(c: Context, g: Tensor, x: Tensor, k: Tensor | None = None, *, upper: int) -> Gradients:
    return c.op.Trilu(g, k, upper=upper)


@vjp("ReverseSequence")
def reverse_sequence(
    c: Context, g: Tensor, x: Tensor, lengths: Tensor, *, batch_axis: int, time_axis: int
) -> Gradients:
    return c.op.ReverseSequence(g, lengths, batch_axis=batch_axis, time_axis=time_axis)


@vjp("Range")
def range_(c: Context, g: Tensor, start: Tensor, limit: Tensor, delta: Tensor) -> Gradients:
    op = c.op
    steps = op.Range(op.index(0), op.Squeeze(op.Shape(g), op.ints([0])), op.index(1)).cast(g.dtype)
    return op.sum(g, keepdims=False), None, op.sum(g * steps, keepdims=False)


no_gradient("its output depends on the shape alone", "Shape", "Size", "ConstantOfShape", "EyeLike")
