"""Resizing images that are channels last, and tensors of other ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.emit.facts import is_dim
from onward.backends.shared.resize import resized, scales_of, sizes_of
from onward.backends.tensorflow.target import rule, tf
from onward.spec.resize import Resize, nearest_index, spread, target_length

_FLOATS = (ir.DataType.FLOAT,)
_PERIODIC = ("half_pixel", "pytorch_half_pixel", "asymmetric")
"""Coordinates that do not depend on where an image ends."""


@rule("Resize", "onward.nhwc::Resize")
def resize(e: Emitter, x: Expr, roi: Any = None, scales: Any = None, sizes: Any = None, *, p: Resize) -> Expr:
    factors, lengths, axes = scales_of(e, scales), sizes_of(e, sizes), p.axes
    if e.node.domain:
        found = _idiom(e, x, factors, lengths, p)
        if found is not None:
            return found
        rank = e.rank(x)
        assert rank is not None
        stored = [0, rank - 1, *range(1, rank - 1)]
        axes = tuple(stored[a % rank] for a in (range(rank) if axes is None else axes))
    return resized(e, x, roi, factors, lengths, axes, p)


def _idiom(e: Emitter, x: Expr, scales: Any, sizes: Any, p: Resize) -> Expr | None:
    """`tf.image.resize` where it means the same, else None."""
    shape = e.shape(x)
    if shape is None or len(shape) != 4 or e.dtype(x) not in _FLOATS or p.antialias or p.policy != "stretch":
        return None
    lengths = shape[1:3]
    if None in lengths and (whole := _whole(scales, p)):
        return tf.image.resize(x, [e.dim(x, axis) * n for axis, n in zip((1, 2), whole, strict=True)], "nearest")
    target = _targets(e, x, lengths, scales, sizes, p.axes)
    if target is None or 0 in (n for n in (*lengths, *target) if isinstance(n, int)):
        return None
    known = [isinstance(n, int) for n in (*lengths, *target)]
    if p.mode == "linear" and not p.exclude_outside:
        long = p.coordinates == "pytorch_half_pixel" and all(isinstance(n, int) and n > 1 for n in target)
        return tf.image.resize(x, target) if p.coordinates == "half_pixel" or long else None
    if p.mode == "nearest" and all(known) and not p.crops:
        pairs = [(n, t) for n, t in zip(lengths, target, strict=True) if n is not None]
        if all(_copies_alike(n, t, p) for n, t in pairs):
            return tf.image.resize(x, target, "nearest")
    return None


def _whole(scales: Any, p: Resize) -> list[int] | None:
    """By how much height and width grow, where TensorFlow copies alike whatever they are: by small whole numbers."""
    if p.mode != "nearest" or not isinstance(scales, list) or p.coordinates not in _PERIODIC:
        return None
    full = spread(4, p.axes, scales, [1.0] * 4)
    found = [int(s) for s in full if s in range(1, 9)]
    alike = len(found) == 4 and found[:2] == [1, 1] and all(_copies_alike(9, 9 * n, p) for n in found)
    return found[2:] if alike else None


def _targets(
    e: Emitter, x: Expr, lengths: Sequence[int | None], scales: Any, sizes: Any, axes: Sequence[int] | None
) -> list[Any] | None:
    """The new height and width, where only they change, and by the scale that the lengths themselves tell."""
    if isinstance(scales, list):
        full = spread(4, axes, scales, [1.0] * 4)
        if full[:2] != [1.0, 1.0] or any(n is None for n in lengths):
            return None
        targets = [int(target_length(n, s)) for n, s in zip(lengths, full[2:], strict=True) if n is not None]
        exactly = all(n is not None and t == n * s for n, t, s in zip(lengths, targets, full[2:], strict=True))
        return targets if exactly else None
    if isinstance(sizes, list):
        full = spread(4, axes, sizes, [None] * 4)
        if not all(n is None or is_dim(e, x, axis, n) for axis, n in ((0, full[0]), (3, full[1]))):
            return None
        return [e.dim(x, axis) if n is None else n for axis, n in zip((1, 2), full[2:], strict=True)]
    return None


def _copies_alike(length: int, target: int, p: Resize) -> bool:
    """Whether TensorFlow's rule, `floor((i + 0.5) * length / target)` in single precision, is that of the node."""
    if not length or not target:
        return False
    one = np.float32
    wanted = nearest_index(length, target, float(one(target) / one(length)), p.coordinates, p.rounding)
    theirs = np.floor((np.arange(target).astype(one) + one(0.5)) * (one(length) / one(target))).astype(np.int64)
    return bool((np.minimum(theirs, length - 1) == wanted).all())
