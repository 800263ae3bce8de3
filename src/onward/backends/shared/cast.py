"""Conversions between dtypes that every backend does by the same helpers."""

from __future__ import annotations

import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr, ops
from onward.errors import UnsupportedError
from onward.spec.cast import SMALL_INTEGERS

_D = ir.DataType


def dtype_like(e: Emitter, like: Expr) -> ir.DataType:
    """The dtype that CastLike casts to."""
    found = e.dtype(like)
    if found is None:
        raise UnsupportedError("the dtype that CastLike casts to is not known")
    return found


def converted_by_helper(
    x: Expr, source: ir.DataType | None, target: ir.DataType, saturate: bool, round_mode: str
) -> Expr | None:
    """The expression `x`, of dtype `source`, as a dtype that frameworks lack; else None."""
    if source == target:
        return x
    if source == _D.STRING:
        return None
    if target == _D.STRING:
        return ops.format_numbers(x)
    if target in SMALL_INTEGERS:
        return ops.low_bits(x, *SMALL_INTEGERS[target])
    return ops.to_power_of_two(x, saturate, round_mode) if target == _D.FLOAT8E8M0 else None
