"""Parts of a tensor and tensors with a border: Slice, Pad, CenterCropPad."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.shared.shape import axis_of, subscript
from onward.backends.shared.slice import center_crop_pad, known_bounds
from onward.backends.torch.dtypes import bits, from_bits
from onward.backends.torch.rules.shape import integers, is_string, number
from onward.backends.torch.target import F, ops, rule
from onward.spec.slice import Pad, from_the_start, pad_sides, reverses, to_the_end

rule("CenterCropPad")(center_crop_pad)


@rule("Slice")
def slice_(e: Emitter, x: Expr, starts: Expr, ends: Expr, axes: Expr | None = None, steps: Expr | None = None) -> Expr:
    known = known_bounds(e, integers(e, starts, "start"), integers(e, ends, "end"), axes, steps)
    found = None if known is None else _sliced(e, x, known)
    if found is not None:
        return found
    bounds = [None if v is None else e.numbers(v) for v in (starts, ends, axes, steps)]
    return from_bits(e, x, ops.slice_tensor(bits(e, x), *bounds))


def _sliced(e: Emitter, x: Expr, bounds: list[tuple[Any, Any, int, int]]) -> Expr | None:
    forward: dict[int, Any] = {}
    backward: list[tuple[int, Any, Any, int]] = []
    for start, end, axis, step in bounds:
        if step < 0 and not is_string(e, x):
            backward.append((axis_of(e, x, axis), start, end, step))
        elif not (from_the_start(start) and to_the_end(end) and step == 1):
            stop = None if to_the_end(end) and step > 0 else end
            first = None if from_the_start(start) and step > 0 else start
            forward[axis] = slice(first, stop, None if step == 1 else step)
    base = bits(e, x) if backward else x
    part = subscript(base, forward, e.rank(x)) if forward else base
    if part is None:
        return None
    for axis, start, end, step in backward:
        whole = reverses(start, end, step)
        part = part.flip(axis) if whole else ops.slice_backward(part, axis, start, end, step)
    return from_bits(e, x, part) if backward else part


@rule("Pad")
def pad(e: Emitter, x: Expr, pads: Expr, value: Expr | None = None, axes: Expr | None = None, *, p: Pad) -> Expr:
    mode = p.mode
    widths = e.numbers(pads)
    along = None if axes is None else e.static_ints(axes)
    flat = None
    if not isinstance(widths, Expr) and (axes is None or along is not None) and not is_string(e, x):
        flat = _widths(e, x, widths, along)
    if flat == []:
        return x
    if mode == "constant":
        fill = _fill(e, x, value)
        small = isinstance(fill, float | bool) or _is_small(fill)
        if flat is not None and small and not _overshoots(e, x, flat):
            return F.pad(x, tuple(flat), **({"value": fill} if fill else {}))
        return ops.pad(x, widths, mode, fill, *([] if axes is None else [e.numbers(axes)]))
    if flat is not None and _torch_can(e, x, mode, flat):
        return F.pad(x, tuple(flat), mode={"edge": "replicate", "wrap": "circular"}.get(mode, mode))
    options = {} if axes is None else {"axes": e.numbers(axes)}
    return from_bits(e, x, ops.pad(bits(e, x), widths, mode, **options))


def _fill(e: Emitter, x: Expr, value: Expr | None) -> Any:
    if value is None:
        return "" if is_string(e, x) else 0
    return value.item() if is_string(e, x) else number(e, value)


def _is_small(fill: Any) -> bool:
    """Whether `F.pad`, which takes a double, keeps the number."""
    return isinstance(fill, int) and abs(fill) <= 2**53


def _widths(e: Emitter, x: Expr, pads: list[Any], axes: list[int] | None) -> list[Any] | None:
    """The pads as `F.pad` takes them, last axis first and only as many axes as are needed."""
    rank = e.rank(x)
    if rank is None:
        return None
    each = pad_sides(pads, axes, rank)
    needed = [a for a, widths in each.items() if any(isinstance(n, Expr) or n != 0 for n in widths)]
    return [n for a in range(rank - 1, min(needed, default=rank) - 1, -1) for n in each.get(a, (0, 0))]


def _overshoots(e: Emitter, x: Expr, flat: list[Any]) -> bool:
    """Whether one end of an axis loses more than there may be (at least one element) while the other end gains."""
    sizes = reversed(e.shape(x) or ())
    return any(
        not any(isinstance(n, Expr) for n in sides) and min(sides) < -(1 if size is None else size) and max(sides) > 0
        for size, *sides in zip(sizes, flat[::2], flat[1::2], strict=False)
    )


def _torch_can(e: Emitter, x: Expr, mode: str, flat: list[Any]) -> bool:
    """Whether `F.pad` takes this, for which `flat` may have to grow: it knows the last axes of batches of floats."""
    rank, of, shape = e.rank(x), e.dtype(x), e.shape(x)
    if rank is None or shape is None or not 2 <= rank <= 5 or len(flat) // 2 > min(rank - 1, 3):
        return False
    if of not in (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16, ir.DataType.BFLOAT16):
        return False
    flat += [0] * (2 * (rank - 2) - len(flat))
    for i, n in enumerate(flat):
        size = shape[rank - 1 - i // 2]
        if isinstance(n, Expr) or n < 0 or (n > 0 and mode == "wrap" and (size is None or n >= size)):
            return False
        if mode == "reflect" and size is not None and n >= max(size, 1):
            return False
    return True
