"""Convolutions of images that are channels last."""

from __future__ import annotations

from typing import Any

import numpy as np

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.emit.facts import without_zeros
from onward.backends.emit.weights import Part
from onward.backends.keras.target import applied, made, owning, owns, rule
from onward.backends.keras.window import zero_padded
from onward.backends.tensorflow.rules.conv import depthwise_filters
from onward.backends.tensorflow.window import is_same, short
from onward.spec.conv import Conv, ConvTranspose


def _has_channels(e: Emitter, x: Expr) -> bool:
    """Whether the number of channels is known."""
    return (e.shape(x) or (None,))[-1] is not None


@rule("onward.nhwc::Conv")
def conv(e: Emitter, x: Expr, w: Expr, b: Expr | None = None, *, p: Conv) -> Expr | None:
    b, weight, win = without_zeros(e, b), e.const(w), p.window
    if weight is None or win is None or not owns(e, w, b) or not _has_channels(e, x) or weight.ndim > 5:
        return None
    rank, group, dilated, strided = len(win.kernel), p.group, set(win.dilations) != {1}, set(win.strides) != {1}
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
def conv_transpose(e: Emitter, x: Expr, w: Expr, b: Expr | None = None, *, p: ConvTranspose) -> Expr | None:
    b, weight, win = without_zeros(e, b), e.const(w), p.window
    if weight is None or win is None or not owns(e, w, b) or not _has_channels(e, x) or p.group > 1 or weight.ndim > 5:
        return None
    if p.output_shape or any(p.output_padding or ()) or p.is_same:
        return None
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
