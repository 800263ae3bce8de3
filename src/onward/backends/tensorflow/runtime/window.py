"""Padding for sliding windows over images, channels last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from onward.backends.tensorflow.runtime.host import greatest, least, size


def pad_or_crop(x: tf.Tensor, pads: Sequence[Sequence[Any]], constant_values: Any = 0) -> tf.Tensor:
    """Pad each axis; a negative amount cuts off as much."""
    sizes = [size(x, axis) for axis in range(x.shape.rank)]
    begin = [greatest(-before, 0) for before, _ in pads]
    length = [n + least(b, 0) + least(a, 0) for n, (b, a) in zip(sizes, pads, strict=True)]
    fill = tf.cast(constant_values, x.dtype)
    return tf.pad(tf.slice(x, begin, length), [[greatest(b, 0), greatest(a, 0)] for b, a in pads], constant_values=fill)


def same_amounts(n: Any, span: int, stride: int, lower: bool) -> tuple[Any, Any]:
    """The padding with which a window makes ceil(n / stride) steps."""
    total = greatest((-(-n // stride) - 1) * stride + span - n, 0)
    begin = (total + 1) // 2 if lower else total // 2
    return begin, total - begin


def pad_same(
    x: tf.Tensor, spans: Sequence[int], strides: Sequence[int], lower: bool = False, constant_values: Any = 0
) -> tf.Tensor:
    """Pad the spatial axes so that a window of the given spans makes ceil(size / stride) steps along each.

    Of an odd amount, the larger half goes to the end, or to the beginning if `lower`.
    """
    steps = enumerate(zip(spans, strides, strict=True), 1)
    pads = [list(same_amounts(size(x, axis), span, stride, lower)) for axis, (span, stride) in steps]
    return pad_or_crop(x, [[0, 0], *pads, [0, 0]], constant_values)
