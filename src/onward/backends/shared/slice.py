"""Parts of a tensor and tensors with a border, as far as backends say it alike."""

from __future__ import annotations

from typing import Any

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr, ops
from onward.backends.shared.shape import subscript
from onward.spec.slice import FAR, CenterCropPad, from_the_start, to_the_end


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


def sliced(e: Emitter, x: Expr, bounds: list[tuple[Any, Any, int, int]]) -> Expr | None:
    """As Python writes it; None where ONNX, which begins a slice backwards within the axis, means another."""
    items: dict[int, Any] = {}
    for start, end, axis, step in bounds:
        if step > 0:
            if from_the_start(start) and to_the_end(end) and step == 1:
                continue
            stop = None if to_the_end(end) else end
            items[axis] = slice(None if from_the_start(start) else start, stop, None if step == 1 else step)
            continue
        if not isinstance(start, int) or start < -1:
            return None
        first = None if start == -1 or start >= FAR else start
        items[axis] = slice(first, None if isinstance(end, int) and end <= -FAR else end, step)
    return subscript(x, items, e.rank(x)) if items else x
