"""Convolutions of images that are channels last."""

from __future__ import annotations

from typing import Any

import numpy as np

from onward.backends.emit.arguments import options
from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.emit.facts import without_zeros
from onward.backends.emit.weights import Array
from onward.backends.shared.conv import lists
from onward.backends.tensorflow.layer_weights import Arrangement, owned
from onward.backends.tensorflow.target import ops, rule, tf
from onward.backends.tensorflow.window import is_same, pad_pairs, padded, short
from onward.spec.conv import Conv, ConvTranspose, DeformConv, Strided
from onward.spec.window import Window


@rule("onward.nhwc::Conv")
def conv(e: Emitter, x: Expr, w: Expr, b: Expr | None = None, *, p: Conv) -> Expr:
    b = without_zeros(e, b)
    win, group = p.window, p.group
    if win is None or not p.kernel_shape:
        given = {"auto_pad": p.auto_pad, "dilations": p.dilations, "group": group, "pads": p.pads, "strides": p.strides}
        y = ops.conv_of_unknown_kernel(x, w, **{k: v for k, v in given.items() if v not in (None, "NOTSET", 1)})
        return y if b is None else y + b
    rank, shape = len(win.kernel), e.shape(w)
    padding: Any = "VALID"
    if is_same(win):
        padding = "SAME"
    elif not win.unpadded:
        explicit = rank == 2 and win.begin is not None and min((*win.begin, *(win.end or ()))) >= 0
        if explicit and win.begin is not None and win.end is not None:
            padding = pad_pairs(win.begin, win.end)
        else:
            x = padded(x, win)
    dilated = {} if set(win.dilations) == {1} else {"dilations": short(win.dilations)}
    depthwise = rank == 2 and group > 1 and shape is not None and shape[1] == 1 and e.const(w) is not None
    if depthwise and len(set(win.strides)) == 1 and (not dilated or set(win.strides) == {1}):
        arranged: dict[str, Arrangement] = {"weight": (lambda a: depthwise_filters(a, group), "depthwise")}
        weight, b = owned(e, "conv", arranged, weight=w, bias=b)
        gaps = {"dilations": list(win.dilations)} if dilated else {}
        if isinstance(padding, list):  # traced, TensorFlow fuses bias and activation into it, and then aborts
            x, padding = padded(x, win), "VALID"
        y = tf.nn.depthwise_conv2d(x, weight, strides=[1, *win.strides, 1], padding=padding, **gaps)
        return y if b is None else y + b
    weight, b = filters(e, w, b, rank)
    y = _call(x, weight, win, group, padding, dilated)
    return y if b is None else y + b


def _call(x: Expr, weight: Expr, win: Window, group: int, padding: Any, dilated: dict[str, Any]) -> Expr:
    rank = len(win.kernel)
    if rank > 3 or (rank == 3 and (group > 1 or dilated)):
        x = x if padding == "VALID" else padded(x, win)
        return ops.conv_nd(x, weight, list(win.strides), list(win.dilations), group)
    function: Expr = getattr(tf.nn, f"conv{rank}d")
    if rank == 3:
        return function(x, weight, strides=[1, *win.strides, 1], padding=padding)
    return function(x, weight, short(win.strides), padding, **dilated)


def filters(e: Emitter, w: Expr, b: Expr | None, rank: int) -> tuple[Expr, Expr | None]:
    """The weights in TensorFlow's order: spatial axes, channels in, channels out; and the bias."""
    order = (*range(2, rank + 2), 1, 0)
    arranged: dict[str, Arrangement] = {"weight": (lambda a: np.transpose(a, order), "channels last")}
    weight, bias = owned(e, "conv", arranged, weight=w, bias=b)
    return tf.transpose(w, order) if weight is None else weight, bias


def depthwise_filters(weight: Array, group: int) -> Array:
    return weight.reshape(group, -1, *weight.shape[2:]).transpose(2, 3, 0, 1)


@rule("onward.nhwc::ConvTranspose")
def conv_transpose(e: Emitter, x: Expr, w: Expr, b: Expr | None = None, *, p: ConvTranspose) -> Expr:
    b = without_zeros(e, b)
    rank = (e.rank(x) or 4) - 2
    weight, b = filters(e, w, b, rank)
    pads = p.pads if p.auto_pad == "NOTSET" else None
    arguments = options(
        **lists(e, strides=p.strides, pads=pads, dilations=p.dilations, output_padding=p.output_padding),
        output_shape=list(p.output_shape) if p.output_shape else None,
        groups=p.group > 1 and p.group,
        auto_pad=p.is_same and p.auto_pad,
    )
    y = ops.conv_transpose(x, weight, **arguments)
    return y if b is None else y + b


@rule("onward.nhwc::DeformConv")
def deform_conv(
    e: Emitter, x: Expr, w: Expr, offset: Expr, b: Expr | None = None, mask: Expr | None = None, *, p: DeformConv
) -> Expr:
    rank = e.rank(w)
    assert rank is not None
    given = options(mask=mask) | lists(e, strides=p.strides, pads=p.pads, dilations=p.dilations)
    given |= {k: n for k, n in {"groups": p.group, "offset_groups": p.offset_group}.items() if n != 1}
    weight, b = filters(e, w, without_zeros(e, b), rank - 2)
    y = ops.deform_conv(x, weight, offset, **given)
    return y if b is None else y + b


@rule("Col2Im")
def col2im(e: Emitter, x: Expr, image_shape: Expr, block_shape: Expr, p: Strided) -> Expr:
    given = lists(e, strides=p.strides, pads=p.pads, dilations=p.dilations)
    return ops.col2im(x, e.numbers(image_shape), e.numbers(block_shape), **given)
