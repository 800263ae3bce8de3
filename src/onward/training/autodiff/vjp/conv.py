"""Gradients of convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from onward.graph.build import Tensor
from onward.spec.window import window
from onward.training.autodiff.convolution import Convolution
from onward.training.autodiff.reverse import Context
from onward.training.autodiff.vjp import Gradients, vjp
from onward.training.autodiff.windows import Ints, beginning, covered, spatial

List = Sequence[int] | None


@vjp("Conv")
def conv(
    c: Context,
    g: Tensor,
    x: Tensor,
    w: Tensor,
    bias: Tensor | None = None,
    *,
    auto_pad: str,
    group: int,
    dilations: List = None,
    kernel_shape: List = None,
    pads: List = None,
    strides: List = None,
) -> Gradients:
    rank, kernel = _kernel(c, x, w, kernel_shape)
    x, w = x.ranked(rank + 2), w.ranked(rank + 2)
    sizes = spatial(x, rank)
    win = window(
        kernel.known or [0] * rank, sizes.known, strides=strides, dilations=dilations, pads=pads, auto_pad=auto_pad
    )
    if kernel.known is None and auto_pad.startswith("SAME"):
        win = replace(win, begin=None, end=None, same="lower" if auto_pad == "SAME_LOWER" else "upper")
    begin = beginning(win, kernel, sizes, spatial(g, rank))
    form = Convolution(win, kernel, begin, group, rank)
    return form.to_big(g, w, sizes), form.to_weights(x, g, w), _of_bias(c, g, bias)


@vjp("ConvTranspose")
def conv_transpose(
    c: Context,
    g: Tensor,
    x: Tensor,
    w: Tensor,
    bias: Tensor | None = None,
    *,
    auto_pad: str,
    group: int,
    dilations: List = None,
    kernel_shape: List = None,
    output_padding: List = None,
    output_shape: List = None,
    pads: List = None,
    strides: List = None,
) -> Gradients:
    rank, kernel = _kernel(c, x, w, kernel_shape)
    x, w = x.ranked(rank + 2), w.ranked(rank + 2)
    win = window([0] * rank, None, strides=strides, dilations=dilations, pads=pads, auto_pad="NOTSET")
    steps = spatial(x, rank)
    begin = Ints(c.op, win.begin or [0] * rank)
    if output_shape or auto_pad.startswith("SAME"):
        full = covered(steps, kernel, win) + Ints(c.op, output_padding or [0] * rank)
        wanted = Ints(c.op, output_shape[-rank:]) if output_shape else steps * Ints(c.op, win.strides)
        cut = (full - wanted).at_least(0)
        begin = cut // 2 if auto_pad == "SAME_UPPER" else cut - cut // 2
    elif auto_pad == "VALID":
        begin = Ints(c.op, [0] * rank)
    form = Convolution(win, kernel, begin, group, rank)
    return form.to_small(g, w, x), form.to_weights(g, x, w), _of_bias(c, g, bias)


def _kernel(c: Context, x: Tensor, w: Tensor, given: List) -> tuple[int, Ints]:
    """The number of spatial axes, and the kernel's sizes."""
    rank = len(given) if given else (w.rank or x.rank or 0) - 2
    if rank < 1:
        raise c.refuse("the rank of the inputs is not known")
    return rank, Ints(c.op, given) if given else spatial(w, rank)


def _of_bias(c: Context, g: Tensor, bias: Tensor | None) -> Tensor | None:
    return None if bias is None else channel_sum(g)


def channel_sum(x: Tensor) -> Tensor:
    """The sums of all axes but the second: over the places first, which is where most of the numbers are."""
    assert x.rank is not None
    op = x.op
    places = op.sum(x, range(2, x.rank), keepdims=False) if x.rank > 2 else x
    return op.sum(places, [0], keepdims=False)


@vjp("Col2Im")
def col2im(
    c: Context,
    g: Tensor,
    x: Tensor,
    image_shape: Tensor,
    block_shape: Tensor,
    *,
    dilations: List = None,
    pads: List = None,
    strides: List = None,
) -> Gradients:
    """The columns of the gradient: a convolution each of whose kernels picks one element of a block."""
    op = c.op
    count = op.ReduceProd(block_shape, keepdims=1)
    picks = op.EyeLike(op.ConstantOfShape(op.Concat(count, count, axis=0)), dtype=int(g.dtype))
    kernels = op.Reshape(picks, op.Concat(count, op.ints([1]), block_shape, axis=0))
    planes = op.Reshape(g, op.Concat(op.ints([-1, 1]), image_shape, axis=0))
    given = {"dilations": dilations, "pads": pads, "strides": strides}
    return op.reshape_like(op.Conv(planes, kernels, **{k: list(v) for k, v in given.items() if v}), x)
