"""Convolutions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from onward.backends.emit.arguments import given
from onward.backends.emit.emitter import Arg, Emitter
from onward.backends.emit.expr import Expr
from onward.backends.emit.facts import without_zeros
from onward.backends.jax.filled import is_filled
from onward.backends.jax.images import dimension_numbers, flag, is_last
from onward.backends.jax.target import lax, ops, rule
from onward.backends.shared.conv import lists
from onward.backends.shared.layer_weights import Arrangement, owned
from onward.spec.conv import Conv, ConvTranspose, DeformConv, Strided
from onward.spec.meaning import CHANNELS_LAST
from onward.spec.window import Window


@rule("Conv", "onward.nhwc::Conv")
def conv(e: Emitter, x: Expr, w: Expr, b: Expr | None = None, *, p: Conv) -> Expr:
    win, arranged = p.window, _is_arranged(e, w)
    w, b = layer(e, w, b, arranged=arranged)
    if win is None:
        window = lists(e, strides=p.strides) | conv_padding(p) | _more(e, p)
        numbers = dimension_numbers(e, (e.rank(x) or 2) - 2, arranged=arranged)
        return _biased(e, ops.conv_nd(x, w, **window, **numbers), b, lambda bias: ops.by_channel(bias, x))
    rank = len(win.kernel)
    gaps = {} if set(win.dilations) == {1} else {"rhs_dilation": win.dilations}
    groups = {} if p.group == 1 else {"feature_group_count": p.group}
    numbers = dimension_numbers(e, rank, arranged=arranged)
    y = lax.conv_general_dilated(x, w, win.strides, window_padding(win), **gaps, **groups, **numbers)
    return _biased(e, y, b, lambda bias: by_channel(bias, rank))


def _is_arranged(e: Emitter, w: Expr) -> bool:
    """Whether filters are written with their channels at the end: those that only such convolutions read."""
    if not is_last(e) or not isinstance(w, Arg) or e.const(w) is None or w._value.is_graph_output():
        return False
    readers = [(node.domain, node.op_type, place) for node, place in w._value.uses()]
    return set(readers) == {(CHANNELS_LAST, "Conv", 1)}


def _biased(e: Emitter, y: Expr, b: Expr | None, arrange: Callable[[Expr], Expr]) -> Expr:
    if b is None:
        return y
    return y + (b if is_last(e) else arrange(b))


def layer(e: Emitter, w: Expr, b: Expr | None, *, arranged: bool = False) -> tuple[Expr, Expr | None]:
    """The weight and bias of a layer; filters in ONNX's arrangement, or with their channels at the end."""
    order = (*range(2, e.rank(w) or 2), 1, 0)
    changed: dict[str, Arrangement] = {"weight": (lambda a: np.transpose(a, order), "channels last")}
    weight, bias = owned(e, "conv", changed if arranged else None, weight=w, bias=without_zeros(e, b))
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


@rule("ConvTranspose", "onward.nhwc::ConvTranspose")
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
        **flag(e),
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
