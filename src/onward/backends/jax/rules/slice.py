"""Parts of a tensor and tensors with a border: Slice, Pad, CenterCropPad."""

from __future__ import annotations

from typing import Any

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.jax.numbers import integers, is_string
from onward.backends.jax.target import jnp, ops, rule
from onward.backends.shared.slice import center_crop_pad, known_bounds, sliced
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
    widths, rank = e.numbers(pads), e.rank(x)
    chosen = None if axes is None else e.static_ints(axes)
    fill = None if value is None or p.mode != "constant" else _fill(e, x, value)
    if not isinstance(widths, Expr) and (axes is None or chosen is not None) and rank is not None:
        sides = pad_sides(widths, chosen, rank)
        if all(isinstance(n, int) and n == 0 for pair in sides.values() for n in pair):
            return x
        each = tuple(tuple(sides.get(axis, (0, 0))) for axis in range(rank))
        if _jax_can(e, x, p.mode, each):
            filled = {} if fill is None else {"constant_values": fill}
            if p.mode != "constant":
                return jnp.pad(x, each, mode=p.mode)
            return ops.pad_last(x, each, **filled) if rank > 2 and any(each[-1]) else jnp.pad(x, each, **filled)
    given: dict[str, Any] = {} if p.mode == "constant" else {"mode": p.mode}
    given |= {} if fill is None else {"value": fill}
    return ops.pad(x, widths, **given, **({} if axes is None else {"axes": e.numbers(axes)}))


def _fill(e: Emitter, x: Expr, value: Expr) -> Any:
    """What constants are added, None where that is zero."""
    number = None if is_string(e, x) else e.scalar(value, 1)
    if number is None or not e.target.is_literal(number):
        return value if e.rank(value) == 0 else value.reshape(())
    return number if isinstance(number, Expr) or number else None


def _jax_can(e: Emitter, x: Expr, mode: str, each: tuple[tuple[Any, ...], ...]) -> bool:
    """Whether `jnp.pad` means this: it cuts nothing off, and repeats what is there."""
    if is_string(e, x) or any(not isinstance(n, int) or n < 0 for pair in each for n in pair):
        return False
    shape = e.shape(x) or ()
    return mode == "constant" or all(size or not max(pair) for size, pair in zip(shape, each, strict=True))
