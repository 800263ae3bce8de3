"""Convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onward.backends.emit.arguments import given, options
from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.emit.facts import without_zeros
from onward.backends.jax.filled import is_filled
from onward.backends.jax.target import lax, ops, rule
from onward.backends.shared.conv import lists
from onward.backends.shared.layer_weights import owned
from onward.spec.conv import Conv, ConvTranspose, DeformConv, Strided
from onward.spec.window import Window


@rule("Conv")
def conv(e: Emitter, x: Expr, w: Expr, b: Expr | None = None, *, p: Conv) -> Expr:
    win = p.window
    w, b = layer(e, w, b)
    if win is None:
        return ops.conv_nd(x, w, **options(bias=b), **lists(e, strides=p.strides), **conv_padding(p), **_more(e, p))
    gaps = {} if set(win.dilations) == {1} else {"rhs_dilation": win.dilations}
    groups = {} if p.group == 1 else {"feature_group_count": p.group}
    y = lax.conv_general_dilated(x, w, win.strides, window_padding(win), **gaps, **groups)
    return y if b is None else y + by_channel(b, len(win.kernel))


def layer(e: Emitter, w: Expr, b: Expr | None) -> tuple[Expr, Expr | None]:
    """The weight and bias of a layer, in ONNX's arrangement."""
    weight, bias = owned(e, "conv", weight=w, bias=without_zeros(e, b))
    assert weight is not None
    return _hidden(e, w, weight), bias


def _hidden(e: Emitter, given: Expr, weight: Expr) -> Expr:
    """The weight made of the input `given`; XLA does not see it where it is full of one number."""
    return ops.apart(weight) if is_filled(e, given) else weight


def window_padding(win: Window) -> Any:
    """What JAX's convolutions take: the amounts at both ends of each axis, or its words."""
    if win.same:
        return "SAME_LOWER" if win.lower else "SAME"
    return "VALID" if win.unpadded or win.begin is None or win.end is None else pairs(win.begin, win.end)


def conv_padding(p: Conv) -> dict[str, Any]:
    """The padding of a convolution for helpers, where there is any."""
    if p.auto_pad != "NOTSET":
        words = {"SAME_UPPER": "SAME", "SAME_LOWER": "SAME_LOWER"}
        return {"padding": words[p.auto_pad]} if p.is_same else {}
    if not p.pads or not any(p.pads):
        return {}
    half = len(p.pads) // 2
    return {"padding": pairs(p.pads[:half], p.pads[half:])}


def pairs(begin: Sequence[int], end: Sequence[int]) -> tuple[tuple[int, int], ...]:
    return tuple(zip(begin, end, strict=True))


def by_channel(bias: Expr, rank: int) -> Expr:
    """A number for each channel, so that it broadcasts with images of so many axes."""
    return bias[(slice(None), *[None] * rank)]


def _more(e: Emitter, p: Conv) -> dict[str, Any]:
    return lists(e, dilations=p.dilations) | ({} if p.group == 1 else {"groups": p.group})


@rule("ConvTranspose")
def conv_transpose(e: Emitter, x: Expr, w: Expr, b: Expr | None = None, *, p: ConvTranspose) -> Expr:
    w, b = layer(e, w, b)
    pads = p.pads if p.auto_pad == "NOTSET" else None
    return ops.conv_transpose(
        x,
        w,
        **given(bias=b),
        **lists(e, strides=p.strides, pads=pads, output_padding=p.output_padding),
        **_more(e, p),
        **given(output_shape=p.output_shape, auto_pad=p.auto_pad if p.is_same else None),
    )


@rule("DeformConv")
def deform_conv(
    e: Emitter, x: Expr, w: Expr, offset: Expr, b: Expr | None = None, mask: Expr | None = None, *, p: DeformConv
) -> Expr:
    window = lists(e, strides=p.strides, pads=p.pads, dilations=p.dilations)
    window |= {k: n for k, n in {"groups": p.group, "offset_groups": p.offset_group}.items() if n != 1}
    w, b = layer(e, w, b)
    return ops.deform_conv(x, w, offset, **given(bias=b, mask=mask), **window)


@rule("Col2Im")
def col2im(e: Emitter, x: Expr, image_shape: Expr, block_shape: Expr, p: Strided) -> Expr:
    window = lists(e, strides=p.strides, pads=p.pads, dilations=p.dilations)
    return ops.col2im(x, e.numbers(image_shape), e.numbers(block_shape), **window)
