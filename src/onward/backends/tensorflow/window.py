"""How the arguments of convolutions and pools are written. Images are channels last."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.tensorflow.target import ops, rule, tf
from onward.spec.window import Window


def image_rule(op: str) -> Callable[[Callable[..., Expr]], Callable[..., Expr]]:
    """Register a rule for images that are channels last, and for those whose rank has no layout."""

    def register(last: Callable[..., Expr]) -> Callable[..., Expr]:
        @rule(op)
        def first(e: Emitter, x: Expr, *more: Expr | None, **attributes: Any) -> Expr:
            return ops.channels_first(last(e, ops.channels_last(x), *more, **attributes))

        rule(f"onward.nhwc::{op}")(last)
        return last

    return register


def short(values: Sequence[int]) -> Any:
    """One number where all axes agree, else a list."""
    return values[0] if len(set(values)) == 1 else list(values)


def pad_pairs(begin: Sequence[int], end: Sequence[int]) -> list[list[int]]:
    """What is added before and after each axis of an image."""
    return [[0, 0], *([b, e] for b, e in zip(begin, end, strict=True)), [0, 0]]


def is_same(window: Window) -> bool:
    """Whether the padding is TensorFlow's "SAME", whatever the sizes."""
    if window.begin is None:
        return not window.lower
    centred = all(n % 2 and b == n // 2 for n, b in zip(window.extents, window.begin, strict=True))
    return window.same == "upper" or (window.symmetric and set(window.strides) == {1} and centred)


def padded(x: Expr, window: Window, fill: Any = 0) -> Expr:
    """An image with a window's padding around it."""
    filled = {} if fill == 0 else {"constant_values": fill}
    if window.begin is None or window.end is None:
        return ops.pad_same(x, window.extents, window.strides, **({"lower": True} if window.lower else {}), **filled)
    if min((*window.begin, *window.end)) < 0:
        return ops.pad_or_crop(x, pad_pairs(window.begin, window.end), **filled)
    return tf.pad(x, pad_pairs(window.begin, window.end), **filled)
