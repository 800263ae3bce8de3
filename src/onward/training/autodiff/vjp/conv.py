"""Gradients of convolutions."""

from __future__ import annotations

import math

import numpy as np

from onward.graph.build import Tensor
from onward.spec.conv import Conv, ConvTranspose, DeformConv, Strided
from onward.spec.window import Window
from onward.training.autodiff.convolution import Convolution
from onward.training.autodiff.reverse import Context
from onward.training.autodiff.vjp import Gradients, vjp
from onward.training.autodiff.vjp.norm import channel_sum, rank_of
from onward.training.autodiff.vjp.sample import (
    by_definition,
    numbers_to,
    picked,
    read_between,
    shape_list,
    size_of,
    total_of,
)
from onward.training.autodiff.windows import Ints, beginning, covered, spatial


@vjp("Conv")
def conv(c: Context, g: Tensor, x: Tensor, w: Tensor, bias: Tensor | None = None, *, p: Conv) -> Gradients:
    rank, kernel, win = _kernel(c, w, p)
    x, w = x.ranked(rank + 2), w.ranked(rank + 2)
    sizes = spatial(x, rank)
    form = Convolution(win, kernel, beginning(win, kernel, sizes, spatial(g, rank)), p.group, rank)
    return form.to_big(g, w, sizes), form.to_weights(x, g, w), _of_bias(c, g, bias)


@vjp("ConvTranspose")
def conv_transpose(
    c: Context, g: Tensor, x: Tensor, w: Tensor, bias: Tensor | None = None, *, p: ConvTranspose
) -> Gradients:
    rank, kernel, win = _kernel(c, w, p)
    x, w = x.ranked(rank + 2), w.ranked(rank + 2)
    steps = spatial(x, rank)
    if p.output_shape or p.is_same:
        full = covered(steps, kernel, win) + Ints(c.op, p.output_padding or [0] * rank)
        wanted = Ints(c.op, p.output_shape[-rank:]) if p.output_shape else steps * Ints(c.op, win.strides)
        cut = (full - wanted).at_least(0)
        begin = cut // 2 if p.auto_pad == "SAME_UPPER" else cut - cut // 2
    else:
        begin = Ints(c.op, win.begin or [0] * rank)
    form = Convolution(win, kernel, begin, p.group, rank)
    return form.to_small(g, w, x), form.to_weights(g, x, w), _of_bias(c, g, bias)


def _kernel(c: Context, w: Tensor, p: Conv) -> tuple[int, Ints, Window]:
    """The number of spatial axes, the kernel's sizes, and its window."""
    win = p.window
    if win is None:
        raise c.refuse("the rank of the inputs is not known")
    rank = len(win.kernel)
    return rank, Ints(c.op, p.kernel_shape) if p.kernel_shape else spatial(w, rank), win


def _of_bias(c: Context, g: Tensor, bias: Tensor | None) -> Tensor | None:
    return None if bias is None else channel_sum(g)


@vjp("DeformConv")
def deform_conv(
    c: Context,
    g: Tensor,
    x: Tensor,
    w: Tensor,
    offset: Tensor,
    bias: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    p: DeformConv,
) -> Gradients:
    op, axes = c.op, rank_of(x) - 2
    given = p.kernel_shape or [d for d in (w.dims or [])[2:] if isinstance(d, int)]
    if len(given) != axes:
        raise c.refuse("the sizes of the kernel are not known")
    kernel, taps = list(given), math.prod(given)
    steps, jumps, begin = p.strides or [1] * axes, p.dilations or [1] * axes, p.pads or [0] * axes

    def definition(image: Tensor, weights: Tensor, moves: Tensor, *masks: Tensor) -> Tensor:
        sizes, counts = op.Shape(image, start=2), op.Shape(moves, start=2)
        every = op.Reshape(moves, op.ints([0, p.offset_group, taps, axes, -1]))
        coordinates = []
        for axis in range(axes):
            tail = [1] * (axes - 1 - axis)
            tap = np.broadcast_to(np.arange(kernel[axis]).reshape(-1, *tail) * jumps[axis], kernel) - begin[axis]
            start = op.Reshape(numbers_to(picked(counts, axis)) * steps[axis], op.ints([-1, *tail]))
            start = op.Reshape(op.Expand(start, counts), op.ints([1, -1])) + op.constant(tap.reshape(-1, 1))
            at = op.Gather(every, op.index(axis), axis=3) + start.cast(moves.dtype)
            coordinates.append(op.Reshape(at, shape_list(-1, total_of(taps, counts))))
        channels = op.Div(op.Shape(image, start=1, end=2), op.ints([p.offset_group]))
        planes = op.Reshape(image, shape_list(-1, channels, sizes))
        values = read_between(planes, coordinates, [size_of(image, 2 + axis) for axis in range(axes)])
        if masks:
            spread = op.Reshape(masks[0], op.ints([0, p.offset_group, 1, taps, -1]))
            values = op.Reshape(values, shape_list(op.Shape(image, end=1), p.offset_group, channels, taps, -1)) * spread
        columns = op.Reshape(values, shape_list(op.Shape(image, end=1), p.group, -1, total_of(1, counts)))
        matrix = op.Reshape(weights, shape_list(p.group, -1, total_of(1, op.Shape(weights, start=1))))
        return op.reshape_like(matrix @ columns, c.y)

    present = [x, w, offset] if mask is None else [x, w, offset, mask]
    dx, dw, dmoves, *dmask = by_definition(g, present, definition)
    return dx, dw, dmoves, None if bias is None else channel_sum(g), *dmask


@vjp("Col2Im")
def col2im(c: Context, g: Tensor, x: Tensor, image_shape: Tensor, block_shape: Tensor, p: Strided) -> Gradients:
    """The columns of the gradient: a convolution each of whose kernels picks one element of a block."""
    op = c.op
    count = op.ReduceProd(block_shape, keepdims=1)
    picks = op.EyeLike(op.ConstantOfShape(op.Concat(count, count, axis=0)), dtype=int(g.dtype))
    kernels = op.Reshape(picks, op.Concat(count, op.ints([1]), block_shape, axis=0))
    planes = op.Reshape(g, op.Concat(op.ints([-1, 1]), image_shape, axis=0))
    return op.reshape_like(op.Conv(planes, kernels, **c.node.attributes), x)
