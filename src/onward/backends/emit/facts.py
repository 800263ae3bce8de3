"""What rules of several backends ask about their inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr, Ref
from onward.backends.emit.settings import Setting
from onward.spec.quantize import EXACT, largest_distance, largest_sum


def is_dim(e: Emitter, x: Expr, axis: int, n: Any) -> bool:
    """Whether `n` is surely the length of an axis of `x`."""
    shape = e.shape(x)
    if not isinstance(n, Expr):
        return shape is not None and shape[axis] == n
    dim = e.dim(x, axis)
    return isinstance(n, Ref) and isinstance(dim, Ref) and n._var is dim._var


def scaled(x: Expr, factor: float, shift: float) -> Expr:
    """`x * factor + shift`, written with what of it there is to do; both are numbers of 32 bits."""
    factor, shift = float(str(np.float32(factor))), float(str(np.float32(shift)))
    x = x if factor == 1 else x * factor
    return x if shift == 0 else x + shift


def is_made_up(e: Emitter, x: Expr | None, value: float) -> bool:
    """Whether the input is a constant full of `value` that an exporter wrote because the op wants an input."""
    constant = e.const(x)
    return x is not None and constant is not None and not e.is_weight(x) and bool((constant == value).all())


def without_zeros(e: Emitter, bias: Expr | None) -> Expr | None:
    """No bias where an exporter wrote zeros for none."""
    return None if is_made_up(e, bias, 0) else bias


def is_zero(e: Emitter, zero_point: Expr | None) -> bool:
    """Whether there is no zero point, or nothing but zeros."""
    value = e.const(zero_point)
    return zero_point is None or (value is not None and not value.astype(np.float32).any())


def offset(e: Emitter, zero_point: Expr | None, role: str) -> Any:
    """A zero point as a number where it is a known one, None where there is none or several that are all zero."""
    number = None if zero_point is None else e.scalar(zero_point, 1)
    if number is not None and not isinstance(number, Expr):
        return Setting(number, role, e.dtype(zero_point) or ir.DataType.INT32)  # type: ignore[arg-type]
    return None if is_zero(e, zero_point) else zero_point


def is_exact_in_single(
    e: Emitter,
    x: Expr,
    x_zero_point: Expr | None,
    w: Expr,
    w_zero_point: Expr | None,
    axes: tuple[int, ...],
    terms: int | None,
) -> bool:
    """Whether the sums of products of 8-bit integers are certain to be exact in single precision."""
    distance = largest_distance(e.dtype(x), _known(e, x_zero_point))
    weight, zero = e.const(w), _known(e, w_zero_point)
    if weight is not None and zero is not None and weight.ndim >= len(axes):
        if axes != (-2,) and zero.ndim:
            zero = zero.reshape(-1, *[1] * (weight.ndim - 1))
        bound: int | None = largest_sum(distance, weight, zero, axes)
    else:
        bound = None if terms is None else terms * distance * largest_distance(e.dtype(w), zero)
    return bound is not None and bound <= EXACT


def _known(e: Emitter, zero_point: Expr | None) -> Any:
    return np.zeros((), np.int8) if zero_point is None else e.const(zero_point)
