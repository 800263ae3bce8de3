"""Parts of a tensor and tensors with a border: Slice, Pad, CenterCropPad."""

from __future__ import annotations

from typing import Any

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr, Name, lift
from onward.backends.emit.host import is_nonnegative
from onward.backends.matlab.target import ALL, END, axis_dim, moves, ops, rank_of, row
from onward.backends.shared.slice import known_bounds
from onward.spec.slice import FAR, CenterCropPad, Pad, from_the_start, pad_sides, reverses, to_the_end


@moves("Slice")
def slice_(e: Emitter, x: Expr, starts: Expr, ends: Expr, axes: Expr | None = None, steps: Expr | None = None) -> Expr:
    rank, numbers = rank_of(e, x), (e.numbers(starts), e.numbers(ends))
    bounds = known_bounds(e, *numbers, axes, steps)
    if bounds is not None:
        items = {axis % rank: _range(e, x, axis % rank, *rest) for *rest, axis in _ordered(bounds)}
        if all(item is not None for item in items.values()):
            if all(item is ALL for item in items.values()):
                return x
            return x[tuple(items.get(rank - d, ALL) for d in range(1, max(rank, 2) + 1))]
    along = row(range(rank)) if axes is None else _numbers(e, axes)
    by = 1 if steps is None else _numbers(e, steps)
    return ops.slice(x, *(_row(n) for n in numbers), along, by, rank)


def _ordered(bounds: list[tuple[Any, Any, int, int]]) -> list[tuple[Any, Any, int, int]]:
    return [(start, end, step, axis) for start, end, axis, step in bounds]


def _row(numbers: Any) -> Expr:
    return (
        numbers
        if isinstance(numbers, Expr)
        else row(max(min(n, FAR), -FAR) if isinstance(n, int) else n for n in numbers)
    )


def _numbers(e: Emitter, x: Expr) -> Expr:
    found = e.numbers(x)
    return found if isinstance(found, Expr) else row(found)


def _range(e: Emitter, x: Expr, axis: int, start: Any, end: Any, step: int) -> Expr | None:
    """What MATLAB takes of a dimension, from 1; None where that is not certain yet."""
    if step == 1 and from_the_start(start) and to_the_end(end):
        return ALL
    size = (e.shape(x) or ())[axis] if e.shape(x) else None
    if size is None or isinstance(start, Expr) or isinstance(end, Expr):
        return _open_range(e, size, start, end, step)
    taken = range(*_slice(start, end, step, size))
    if not taken:
        return lift(slice(1, 0))
    return lift(slice(taken[0] + 1, taken[-1] + 1, None if step == 1 else step))


def _open_range(e: Emitter, size: int | None, start: Any, end: Any, step: int) -> Expr | None:
    """A range whose ends, or the size of what it is taken of, are known when the model runs."""
    by = None if step == 1 else step
    if reverses(start, end, step):
        return lift(slice(END, 1, step))
    if step < 0:
        return None
    if isinstance(start, int) and start < 0 and to_the_end(end):
        return lift(slice(Name("max")(from_the_end(END, -start - 1), 1), END, by))
    if not is_nonnegative(e, start):
        return None
    if to_the_end(end):
        return lift(slice(start + 1, END, by))
    if isinstance(end, int) and end < 0:
        return lift(slice(start + 1, from_the_end(END, -end), by))
    last = Name("min")(end, END if size is None else size) if is_nonnegative(e, end) else None
    return None if last is None else lift(slice(start + 1, last, by))


def from_the_end(last: Any, count: int) -> Any:
    """The place so many before the last."""
    return last - count if count else last


def _slice(start: int, end: int, step: int, size: int) -> tuple[int, int, int]:
    """Bounds for Python's own range; ONNX begins within the axis."""
    start = start + size if start < 0 else start
    end = end + size if end < 0 else end
    if step > 0:
        return min(max(start, 0), size), min(max(end, 0), size), step
    return min(max(start, 0), size - 1), min(max(end, -1), size - 1), step


@moves("Pad")
def pad(e: Emitter, x: Expr, pads: Expr, value: Expr | None = None, axes: Expr | None = None, *, p: Pad) -> Expr:
    widths, rank = e.numbers(pads), rank_of(e, x)
    chosen = None if axes is None else e.static_ints(axes)
    fill = _fill(e, value) if p.mode == "constant" else 0
    if isinstance(widths, Expr) or (axes is not None and chosen is None):
        along = row(range(rank)) if axes is None else _numbers(e, axes)
        return ops.pad_along(x, _row(widths), along, rank, p.mode, fill)
    sides = pad_sides(widths, chosen, rank)
    if all(isinstance(n, int) and n == 0 for pair in sides.values() for n in pair):
        return x
    each = [sides.get(axis, (0, 0)) for axis in range(rank)][::-1]
    return ops.pad(x, row(a for a, _ in each), row(b for _, b in each), p.mode, fill)


def _fill(e: Emitter, value: Expr | None) -> Any:
    number = 0 if value is None else e.scalar(value, 1)
    return value if number is None else number


@moves("CenterCropPad")
def center_crop_pad(e: Emitter, x: Expr, shape: Expr, p: CenterCropPad) -> Expr:
    rank = rank_of(e, x)
    axes = list(range(rank)) if p.axes is None else list(p.axes)
    dims = row(axis_dim(e, x, axis) for axis in axes)
    wanted = e.numbers(shape)
    return ops.center_crop_pad(x, wanted if isinstance(wanted, Expr) else row(wanted), dims)
