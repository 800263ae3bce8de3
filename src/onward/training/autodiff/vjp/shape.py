"""Gradients of ops that move elements without changing them."""

from __future__ import annotations

from collections.abc import Sequence

from onward.graph.build import Builder, Tensor
from onward.spec.shape import Blocks, Concat, Range, Split, Transpose, Trilu
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
def transpose(c: Context, g: Tensor, x: Tensor, p: Transpose) -> Gradients:
    back = None if p.perm is None else [list(p.perm).index(axis) for axis in range(len(p.perm))]
    return c.op.Transpose(g, perm=back)


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
def depth_to_space(c: Context, g: Tensor, x: Tensor, p: Blocks) -> Gradients:
    if p.mode == "DCR":
        return c.op.SpaceToDepth(g, blocksize=p.blocksize)
    op = c.op
    n, channels, height, width = (op.Shape(x, start=i, end=i + 1) for i in range(4))
    rows, block = op.Concat(n, channels, height, width, axis=0), op.ints([p.blocksize])
    depth = op.Div(channels, op.ints([p.blocksize * p.blocksize]))
    parts = op.Reshape(g, op.Concat(n, depth, height, block, width, block, axis=0))
    return op.Reshape(op.Transpose(parts, perm=[0, 1, 3, 5, 2, 4]), rows)


@vjp("SpaceToDepth")
def space_to_depth(c: Context, g: Tensor, x: Tensor, p: Blocks) -> Gradients:
    return c.op.DepthToSpace(g, blocksize=p.blocksize, mode="DCR")


@vjp("Trilu")
def trilu(c: Context, g: Tensor, x: Tensor, k: Tensor | None = None, *, p: Trilu) -> Gradients:
    return c.op.Trilu(g, k, upper=p.upper)


@vjp("Concat")
def concat(c: Context, g: Tensor, *xs: Tensor, p: Concat) -> Gradients:
    op = c.op
    if len(xs) == 1:
        return g
    return op.many("Split", len(xs), g, lengths(op, xs, p.axis), axis=p.axis)


def lengths(op: Builder, xs: Sequence[Tensor], axis: int) -> Tensor:
    """The sizes of tensors along an axis, constant where they are known."""
    sizes = [None if x.dims is None else x.dims[axis] for x in xs]
    known = [size for size in sizes if isinstance(size, int)]
    if len(known) == len(xs):
        return op.ints(known)
    end = None if axis == -1 else axis + 1
    return op.Concat(*(op.Shape(x, start=axis, end=end) for x in xs), axis=0)


@vjp("Split")
def split(c: Context, g: Tensor | None, x: Tensor, sizes: Tensor | None = None, *, p: Split) -> Gradients:
    count = len(c.node.outputs)
    return c.op.Concat(*(c.gradient_or_zero(i) for i in range(count)), axis=p.axis)


@vjp("Range")
def range_(c: Context, g: Tensor, start: Tensor, limit: Tensor, delta: Tensor, p: Range) -> Gradients:
    op = c.op
    steps = op.Range(op.index(0), op.Squeeze(op.Shape(g), op.ints([0])), op.index(1)).cast(g.dtype)
    return op.sum(g, keepdims=False), None, op.sum(g * steps, keepdims=False)


no_gradient("its output depends on the shape alone", "Shape", "Size", "ConstantOfShape", "EyeLike")
