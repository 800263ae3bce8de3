"""Resizing images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.jax.images import is_last
from onward.backends.jax.target import jax, rule
from onward.backends.shared.resize import resized, scales_of, sizes_of
from onward.layout.orders import to_first
from onward.spec.resize import Resize, nearest_index, spread, target_length

Axes = Sequence[int] | None
_PERIODIC = ("half_pixel", "pytorch_half_pixel", "asymmetric")
"""Coordinates that do not depend on where an image ends."""


@rule("Resize", "onward.nhwc::Resize")
def resize(
    e: Emitter,
    x: Expr,
    roi: Expr | None = None,
    scales: Expr | None = None,
    sizes: Expr | None = None,
    *,
    p: Resize,
) -> Expr:
    factors, lengths, axes = scales_of(e, scales), sizes_of(e, sizes), _stored_axes(e, x, p)
    found = _repeated(e, x, factors, axes, p)
    if found is None:
        found = _linear(e, x, factors, lengths, axes, p)
    return resized(e, x, roi, factors, lengths, axes, p) if found is None else found


def _stored_axes(e: Emitter, x: Expr, p: Resize) -> Axes:
    """The axes that scales and sizes are for, where the image has them; None for all of them in turn."""
    rank = e.rank(x)
    if rank is None or not is_last(e):
        return p.axes
    stored = to_first(rank)
    return tuple(stored[axis] for axis in (range(rank) if p.axes is None else p.axes))


def _repeated(e: Emitter, x: Expr, scales: Any, axes: Axes, p: Resize) -> Expr | None:
    """Each element several times, where that is what the node means, whatever the sizes are; else None."""
    rank = e.rank(x)
    if rank is None or p.mode != "nearest" or p.coordinates not in _PERIODIC or not isinstance(scales, list):
        return None
    full = spread(rank, axes, scales, [1.0] * rank)
    if any(s not in range(1, 9) for s in full) or not all(_copies(int(s), p) for s in full):
        return None
    for axis, times in enumerate(full):
        if times != 1:
            x = x.repeat(int(times), axis=axis)
    return x


def _copies(times: int, p: Resize) -> bool:
    """Whether the elements of an axis that grows so many times are copies of each element in turn."""
    found = nearest_index(None, None, float(times), p.coordinates, p.rounding)
    return bool((found == np.arange(len(found)) // times).all())


def _linear(e: Emitter, x: Expr, scales: Any, sizes: Any, axes: Axes, p: Resize) -> Expr | None:
    """`jax.image.resize` where it means the same, else None."""
    shape = e.shape(x)
    if shape is None or None in shape or e.dtype(x) != ir.DataType.FLOAT or p.policy != "stretch":
        return None
    known = [n for n in shape if n is not None]
    if p.mode != "linear" or p.antialias or p.exclude_outside or 0 in known:
        return None
    targets = _targets(known, scales, sizes, axes)
    if targets is None or 0 in targets:
        return None
    if p.coordinates == "half_pixel" or (p.coordinates == "pytorch_half_pixel" and _is_long(known, targets)):
        return jax.image.resize(x, tuple(targets), "linear", antialias=False)
    return None


def _is_long(lengths: list[int], targets: list[int]) -> bool:
    return all(t > 1 or t == n for n, t in zip(lengths, targets, strict=True))


def _targets(lengths: list[int], scales: Any, sizes: Any, axes: Axes) -> list[int] | None:
    """The new sizes, where it is them that tell the scales."""
    rank = len(lengths)
    if isinstance(scales, list):
        full = spread(rank, axes, scales, [1.0] * rank)
        targets = [int(target_length(n, s)) for n, s in zip(lengths, full, strict=True)]
        exactly = all(t == n * s for n, t, s in zip(lengths, targets, full, strict=True))
        return targets if exactly else None
    if isinstance(sizes, list) and not any(isinstance(n, Expr) for n in sizes):
        return [int(n) for n in spread(rank, axes, sizes, lengths)]
    return None
