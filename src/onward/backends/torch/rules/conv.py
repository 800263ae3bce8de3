"""Convolutions."""

from __future__ import annotations

from typing import Any

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.emit.facts import without_zeros
from onward.backends.shared.conv import lists
from onward.backends.torch.target import F, nn, ops, rule
from onward.backends.torch.window import options, padded, padding, short, typed
from onward.spec.conv import Conv, ConvTranspose, DeformConv, Strided
from onward.spec.window import Transposed


@rule("Conv")
def conv(e: Emitter, x: Expr, w: Expr, b: Expr | None = None, *, p: Conv) -> Expr:
    b = without_zeros(e, b)
    win = p.window
    if win is None or len(win.kernel) > 3 or (p.is_same and not p.kernel_shape):
        given = lists(e, stride=p.strides, dilation=p.dilations)
        return ops.conv_nd(x, w, b, **given, **options(padding=padding(p), groups=p.group))
    if not win.symmetric:
        x = padded(x, win)
    arguments = options(
        stride=short(win.strides),
        padding=short(win.begin) if win.begin and win.symmetric else 0,
        dilation=short(win.dilations),
        groups=p.group,
    )
    return _layer(e, "Conv", x, w, b, len(win.kernel), p.group, arguments)


@rule("ConvTranspose")
def conv_transpose(e: Emitter, x: Expr, w: Expr, b: Expr | None = None, *, p: ConvTranspose) -> Expr:
    b = without_zeros(e, b)
    cut = p.cut
    if cut is None or len(cut.begin) > 3 or not _expressible(cut):
        return ops.conv_transpose_nd(
            x,
            w,
            b,
            **options(
                stride=p.strides,
                pads=p.pads,
                dilation=p.dilations,
                groups=p.group,
                output_padding=p.output_padding,
                output_shape=p.output_shape,
                auto_pad=None if p.auto_pad == "NOTSET" else p.auto_pad,
            ),
        )
    arguments = options(
        stride=short(cut.window.strides),
        padding=short(cut.begin),
        output_padding=short([max(n, 0) for n in cut.extra]),
        groups=p.group,
        dilation=short(cut.window.dilations),
    )
    y = _layer(e, "ConvTranspose", x, w, b, len(cut.begin), p.group, arguments)
    if min(cut.extra) < 0:
        return y[(..., *(slice(None, min(n, 0) or None) for n in cut.extra))]
    return y


@rule("DeformConv")
def deform_conv(
    e: Emitter, x: Expr, w: Expr, offset: Expr, b: Expr | None = None, mask: Expr | None = None, *, p: DeformConv
) -> Expr:
    given = lists(e, stride=p.strides, pads=p.pads, dilation=p.dilations)
    more = options(groups=p.group, offset_groups=None if p.offset_group == 1 else p.offset_group)
    return ops.deform_conv(x, w, offset, **options(bias=b, mask=mask), **given, **more)


@rule("Col2Im")
def col2im(e: Emitter, x: Expr, image_shape: Expr, block_shape: Expr, p: Strided) -> Expr:
    image, block = e.numbers(image_shape), e.numbers(block_shape)
    rank = len(block) if isinstance(block, list) else 0
    pads = p.pads or ()
    even = pads[:rank] == pads[rank:]
    if rank != 2 or not isinstance(image, list) or not even:
        return ops.col2im(x, image, block, **lists(e, stride=p.strides, pads=p.pads, dilation=p.dilations))
    given = lists(e, dilation=p.dilations, padding=pads[:2], stride=p.strides)
    return F.fold(x, tuple(image), tuple(block), **{k: short(v) for k, v in given.items()})


def _expressible(cut: Transposed) -> bool:
    """PyTorch takes no negative padding, and an output padding below the stride or the dilation only."""
    limits = map(max, cut.window.strides, cut.window.dilations)
    return min(cut.begin) >= 0 and all(n < limit for n, limit in zip(cut.extra, limits, strict=True))


def _layer(
    e: Emitter, name: str, x: Expr, w: Expr, b: Expr | None, rank: int, group: int, arguments: dict[str, Any]
) -> Expr:
    """A module where it can own the weights, else a call of the function."""
    weight = e.const(w)
    if weight is None or (b is not None and e.const(b) is None) or e.named_otherwise(weight=w, bias=b):
        function: Expr = getattr(F, f"conv{rank}d" if name == "Conv" else f"conv_transpose{rank}d")
        return function(x, w, **options(bias=b), **arguments)
    first, second = weight.shape[:2]
    channels = (second * group, first) if name == "Conv" else (first, second * group)
    if b is None:
        arguments = {**arguments, "bias": False}
    layer = getattr(nn, f"{name}{rank}d")(*channels, short(weight.shape[2:]), **arguments, **typed(e, w))
    return e.module(layer, "conv", weight=w, bias=b)(x)
