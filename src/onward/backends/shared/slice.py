"""Parts of a tensor and tensors with a border, as far as backends say it alike."""

from __future__ import annotations

from typing import Any

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr, ops
from onward.spec.slice import CenterCropPad


def known_bounds(
    e: Emitter, starts: Any, ends: Any, axes: Expr | None, steps: Expr | None
) -> list[tuple[Any, Any, int, int]] | None:
    """Start, end, axis and step of each part of a slice, where axes and steps are known now; else None."""
    if isinstance(starts, Expr) or isinstance(ends, Expr):
        return None
    along = list(range(len(starts))) if axes is None else e.static_ints(axes)
    by = [1] * len(starts) if steps is None else e.static_ints(steps)
    return None if along is None or by is None else list(zip(starts, ends, along, by, strict=True))


def center_crop_pad(e: Emitter, x: Expr, shape: Expr, p: CenterCropPad) -> Expr:
    return ops.center_crop_pad(x, e.numbers(shape), *([] if p.axes is None else [list(p.axes)]))
