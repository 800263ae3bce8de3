"""Convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.emit.facts import without_zeros
from onward.backends.matlab.target import ops, rank_of, row, rule
from onward.backends.shared.layer_weights import owned
from onward.spec.conv import Conv, ConvTranspose, DeformConv, Strided
from onward.spec.window import Window


def reverse(numbers: Sequence[int] | None, count: int, usual: int = 1) -> Expr:
    """A number for each spatial axis, the last axis first."""
    return row(reversed(numbers)) if numbers is not None else row([usual] * count)


def padding(win: Window) -> Any:
    """How many elements are added before each dimension, and after it, or a word where that depends on sizes."""
    if win.begin is None or win.end is None:
        return "same_lower" if win.lower else "same_upper"
    return row([*reversed(win.begin), *reversed(win.end)])


@rule("Conv")
def conv(e: Emitter, x: Expr, w: Expr, b: Expr | None = None, *, p: Conv) -> Expr:
    rank_of(e, x)
    w, b = layer(e, w, b)
    return ops.conv(x, w, b, *window_of(p))


def window_of(p: Conv) -> list[Any]:
    """Strides, padding, dilations and groups, up to the last one that is not what it usually is."""
    win = p.window
    assert win is not None
    window: list[Any] = [row(reversed(win.strides)), padding(win), row(reversed(win.dilations)), p.group]
    plain = [set(win.strides) == {1}, win.unpadded, set(win.dilations) == {1}, p.group == 1]
    while len(window) > 1 and plain[len(window) - 1]:
        window.pop()
    return window


def layer(e: Emitter, w: Expr, b: Expr | None) -> tuple[Expr, Expr | None]:
    """The weight and bias of a layer."""
    weight, bias = owned(e, "conv", None, weight=w, bias=without_zeros(e, b))
    assert weight is not None
    return weight, bias


@rule("ConvTranspose")
def conv_transpose(e: Emitter, x: Expr, w: Expr, b: Expr | None = None, *, p: ConvTranspose) -> Expr:
    rank_of(e, x)
    w, b = layer(e, w, b)
    count = rank_of(e, x) - 2
    pads = p.pads if p.auto_pad == "NOTSET" else None
    given = row([*reversed(pads[:count]), *reversed(pads[count:])]) if pads else row([0] * 2 * count)
    wanted = None if p.output_shape is None else row(reversed(p.output_shape[-count:]))
    return ops.conv_transpose(
        x,
        w,
        b,
        reverse(p.strides, count),
        given,
        reverse(p.dilations, count),
        p.group,
        reverse(p.output_padding, count, 0),
        wanted,
        p.auto_pad if p.is_same else "",
    )


@rule("DeformConv")
def deform_conv(
    e: Emitter, x: Expr, w: Expr, offset: Expr, b: Expr | None = None, mask: Expr | None = None, *, p: DeformConv
) -> Expr:
    w, b = layer(e, w, b)
    pads = p.pads or (0, 0, 0, 0)
    return ops.deform_conv(
        x,
        w,
        offset,
        b,
        mask,
        reverse(p.strides, 2),
        row([pads[1], pads[0], pads[3], pads[2]]),
        reverse(p.dilations, 2),
        p.group,
        p.offset_group,
    )


@rule("Col2Im")
def col2im(e: Emitter, x: Expr, image_shape: Expr, block_shape: Expr, p: Strided) -> Expr:
    image, block = e.numbers(image_shape), e.numbers(block_shape)
    shapes = [n if isinstance(n, Expr) else row(n) for n in (image, block)]
    known = e.shape(block_shape)
    count = len(block) if not isinstance(block, Expr) else (known[0] if known else None) or 2
    pads = p.pads or (0,) * 2 * count
    ends = row([*reversed(pads[:count]), *reversed(pads[count:])])
    return ops.col2im(x, *shapes, reverse(p.strides, count), ends, reverse(p.dilations, count))
