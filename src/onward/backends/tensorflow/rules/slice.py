"""Parts of a tensor and tensors with a border: Slice, Pad, CenterCropPad."""

from __future__ import annotations

from typing import Any

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.shared.slice import center_crop_pad, known_bounds, sliced
from onward.backends.tensorflow.dtypes import is_string
from onward.backends.tensorflow.rules.shape import integers
from onward.backends.tensorflow.target import ops, rule, tf
from onward.spec.slice import Pad, pad_sides

rule("CenterCropPad")(center_crop_pad)


@rule("Slice")
def slice_(e: Emitter, x: Expr, starts: Expr, ends: Expr, axes: Expr | None = None, steps: Expr | None = None) -> Expr:
    known = known_bounds(e, integers(e, starts, "start"), integers(e, ends, "end"), axes, steps)
    found = None if known is None else sliced(e, x, known)
    if found is not None:
        return found
    bounds = [None if v is None else e.numbers(v) for v in (starts, ends, axes, steps)]
    while bounds[-1] is None:
        bounds.pop()
    return ops.slice_tensor(x, *bounds)


@rule("Pad")
def pad(e: Emitter, x: Expr, pads: Expr, value: Expr | None = None, axes: Expr | None = None, *, p: Pad) -> Expr:
    mode = p.mode
    widths, rank = e.numbers(pads), e.rank(x)
    chosen = None if axes is None else e.static_ints(axes)
    if not isinstance(widths, Expr) and (axes is None or chosen is not None) and rank is not None:
        sides = pad_sides(widths, chosen, rank)
        if all(isinstance(n, int) and n == 0 for pair in sides.values() for n in pair):
            return x
        each = [list(sides.get(axis, (0, 0))) for axis in range(rank)]
        if _tf_can(e, x, mode, each):
            fill = {} if value is None or mode != "constant" else _fill(e, x, value)
            return tf.pad(x, each, **({} if mode == "constant" else {"mode": "REFLECT"}), **fill)
    options = {} if axes is None else {"axes": e.numbers(axes)}
    fill = {} if value is None or mode != "constant" else {"value": value}
    return ops.pad(x, widths, **({} if mode == "constant" else {"mode": mode}), **fill, **options)


def _fill(e: Emitter, x: Expr, value: Expr) -> dict[str, Any]:
    number = None if is_string(e, x) else e.scalar(value, 1)
    if number is None or isinstance(number, Expr):
        return {"constant_values": value if e.rank(value) == 0 else tf.reshape(value, [])}
    return {"constant_values": number} if number else {}


def _tf_can(e: Emitter, x: Expr, mode: str, each: list[list[Any]]) -> bool:
    """Whether `tf.pad` takes this: it cuts nothing off, and reflects less than there is of at most five axes."""
    if any(not isinstance(n, int) or n < 0 for pair in each for n in pair):
        return False
    shape = e.shape(x) or ()
    inside = all(not max(pair) or (size or 0) > max(pair) for pair, size in zip(each, shape, strict=True))
    return mode == "constant" or (mode == "reflect" and inside and len(each) <= 5)
