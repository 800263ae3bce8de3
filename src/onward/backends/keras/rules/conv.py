"""Convolutions of images that are channels last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.emit.facts import without_zeros
from onward.backends.emit.weights import Part
from onward.backends.keras.target import applied, made, owning, owns, rule
from onward.backends.keras.window import zero_padded
from onward.backends.tensorflow.rules.conv import depthwise_filters
from onward.backends.tensorflow.window import is_same, short, spatial
from onward.spec.window import window

Ints = Sequence[int]


@rule("onward.nhwc::Conv")
def conv(
    e: Emitter,
    x: Expr,
    w: Expr,
    b: Expr | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Ints | None = None,
    group: int = 1,
    kernel_shape: Ints | None = None,
    pads: Ints | None = None,
    strides: Ints | None = None,
) -> Expr | None:
    b, weight, shape = without_zeros(e, b), e.const(w), e.shape(x)
    if weight is None or not owns(e, w, b) or shape is None or shape[-1] is None or weight.ndim > 5:
        return None
    sizes = spatial(e, x)
    win = window(weight.shape[2:], sizes, strides=strides, dilations=dilations, pads=pads, auto_pad=auto_pad)
    rank, dilated, strided = len(win.kernel), set(win.dilations) != {1}, set(win.strides) != {1}
    same = is_same(win)
    if (dilated and strided) or (not same and (win.begin is None or win.end is None or min(win.begin + win.end) < 0)):
        return None
    options: dict[str, Any] = {"strides": short(win.strides)} if strided else {}
    options |= {"padding": "same"} if same and not win.unpadded else {}
    options |= {"dilation_rate": short(win.dilations)} if dilated else {}
    if b is None:
        options["use_bias"] = False
    size = short(win.kernel)
    if rank == 2 and group > 1 and weight.shape[1] == 1 and len(set(win.strides)) == 1:
        many = weight.shape[0] // group
        multiplied = {"depth_multiplier": many} if many > 1 else {}
        layer = made(e, x, "DepthwiseConv2D", size, **options, **multiplied)
        part = Part(w, lambda a: depthwise_filters(a, group), "depthwise")
    else:
        if group > 1:
            return None
        layer = made(e, x, f"Conv{rank}D", weight.shape[0], size, **options)
        part = Part(w, lambda a: np.transpose(a, (*range(2, rank + 2), 1, 0)), "channels last")
    owner = owning(e, layer, "conv", weight=part, bias=b)
    image = x if same or win.begin is None or win.end is None else zero_padded(e, x, x, win.begin, win.end)
    return applied(e, owner, image)


@rule("onward.nhwc::ConvTranspose")
def conv_transpose(
    e: Emitter,
    x: Expr,
    w: Expr,
    b: Expr | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Ints | None = None,
    group: int = 1,
    kernel_shape: Ints | None = None,
    output_padding: Ints | None = None,
    output_shape: Ints | None = None,
    pads: Ints | None = None,
    strides: Ints | None = None,
) -> Expr | None:
    b, weight, shape = without_zeros(e, b), e.const(w), e.shape(x)
    if weight is None or not owns(e, w, b) or shape is None or shape[-1] is None or group > 1 or weight.ndim > 5:
        return None
    if output_shape or any(output_padding or ()) or auto_pad not in ("NOTSET", "VALID"):
        return None
    win = window(weight.shape[2:], None, strides=strides, dilations=dilations, pads=pads, auto_pad=auto_pad)
    rank, begin = len(win.kernel), win.begin
    surplus = [k - s for k, s in zip(win.kernel, win.strides, strict=True)]
    same = win.symmetric and begin is not None and surplus == [2 * n for n in begin]
    if set(win.dilations) != {1} or min(surplus) < 0 or not (same or win.unpadded):
        return None
    options: dict[str, Any] = {"strides": short(win.strides)} if set(win.strides) != {1} else {}
    options |= {"padding": "same"} if same and not win.unpadded else {}
    if b is None:
        options["use_bias"] = False
    layer = made(e, x, f"Conv{rank}DTranspose", weight.shape[1], short(win.kernel), **options)
    part = Part(w, lambda a: np.transpose(a, (*range(2, rank + 2), 1, 0)), "channels last")
    return applied(e, owning(e, layer, "conv", weight=part, bias=b), x)
