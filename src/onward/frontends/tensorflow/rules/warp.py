"""Images read at places that are computed."""

from __future__ import annotations

import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.tensorflow.registry import rule
from onward.frontends.tensorflow.writer import Writer
from onward.graph.build import Tensor


def read(op: Writer, images: Tensor, down: Tensor, right: Tensor, fill: Tensor) -> Tensor:
    """The pixels at whole places, of which there are as many as rows of images; `fill` where none is."""
    shape = op.Shape(images)
    height, width = (op.Gather(shape, op.index(axis)).cast(down.dtype) for axis in (1, 2))
    inside = op.And(op.And(down >= 0.0, down < height), op.And(right >= 0.0, right < width))
    places = [op.where(inside, at, op.like(0, at)).cast(ir.DataType.INT64) for at in (down, right)]
    index = op.Concat(*(op.unsqueeze(place, [3]) for place in places), axis=3)
    return op.where(op.unsqueeze(inside, [3]), op.GatherND(images, index, batch_dims=1), fill)


def nearest(op: Writer, at: Tensor) -> Tensor:
    """To whole numbers, halves away from zero."""
    return op.Sign(at) * op.Floor(op.Abs(at) + 0.5)


def _mapped(op: Writer, at: Tensor, length: Tensor, mode: str) -> Tensor:
    """A place outside as one inside."""
    if mode == "CONSTANT":
        return at
    last = length - 1.0
    if mode == "REFLECT":
        twice = length * 2.0
        around = at - op.Floor(at / twice) * twice
        at = op.where(around >= length, twice - around - 1.0, around)
    elif mode == "WRAP":
        span = op.Max(last, op.like(1, last))
        above = at - length * op.Floor(at / span)
        below = at + length * (op.Floor(-at / span) + 1.0)
        at = op.where(at < 0.0, below, op.where(at > last, above, at))
    elif mode != "NEAREST":
        raise UnsupportedError(f"fill_mode {mode} is not supported for pixels beyond the edge")
    return op.Min(op.Max(at, op.like(0, at)), last)


@rule("ImageProjectiveTransformV2", "ImageProjectiveTransformV3")
def projective_transform(
    op: Writer,
    images: Tensor,
    transforms: Tensor,
    size: Tensor,
    fill_value: Tensor | None = None,
    *,
    interpolation: str,
    fill_mode: str = "CONSTANT",
) -> Tensor:
    """Each new pixel comes from where eight numbers for each image send its place."""
    whole, shape = op.int64(size), op.Shape(images)
    rows, columns = (op.Range(op.index(0), op.Gather(whole, op.index(i)), op.index(1)) for i in (0, 1))
    y, x = op.unsqueeze(rows, [0, 2]).cast(ir.DataType.FLOAT), op.unsqueeze(columns, [0, 1]).cast(ir.DataType.FLOAT)
    c = [op.unsqueeze(op.Gather(transforms, op.ints([i]), axis=1), [2]) for i in range(8)]
    below = c[6] * x + c[7] * y + 1.0
    nothing = op.Equal(below, op.like(0, below))
    safe = op.where(nothing, op.like(1, below), below)
    targets = []
    for first, axis in ((3, 1), (0, 2)):
        length = op.Gather(shape, op.index(axis)).cast(ir.DataType.FLOAT)
        at = (c[first] * x + c[first + 1] * y + c[first + 2]) / safe
        targets.append(_mapped(op, at, length, fill_mode))
    batch = op.Slice(shape, op.ints([0]), op.ints([1]))
    down, right = (op.Expand(at, op.Concat(batch, whole, axis=0)) for at in targets)
    fill = op.like(0, images) if fill_value is None else fill_value.cast(images.dtype)
    if interpolation == "NEAREST":
        found = read(op, images, nearest(op, down), nearest(op, right), fill)
    else:
        found = bilinear(op, images.cast(ir.DataType.FLOAT), down, right, fill.cast(ir.DataType.FLOAT))
    return op.where(op.unsqueeze(nothing, [3]), fill, found.cast(images.dtype))


def bilinear(op: Writer, images: Tensor, down: Tensor, right: Tensor, fill: Tensor) -> Tensor:
    """Between the four pixels around each place."""
    top, left = op.Floor(down), op.Floor(right)
    lower, righter = op.unsqueeze(down - top, [3]), op.unsqueeze(right - left, [3])
    rows = [
        (1.0 - righter) * read(op, images, at, left, fill) + righter * read(op, images, at, left + 1.0, fill)
        for at in (top, top + 1.0)
    ]
    return (1.0 - lower) * rows[0] + lower * rows[1]
