"""Conversions between dtypes that every backend does by the same helpers."""

from __future__ import annotations

import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr, ops
from onward.spec.cast import SMALL_INTEGERS, BitCast, Cast

_D = ir.DataType


def converted_by_helper(e: Emitter, x: Expr, p: Cast) -> Expr | None:
    """The input from or to a dtype that frameworks lack; else None."""
    source = e.dtype(x)
    if source == p.to:
        return x
    if source == _D.STRING:
        return ops.parse_numbers(x, e.target.dtype(p.to), **e.target.placed())
    if p.to == _D.STRING:
        return ops.format_numbers(x)
    if p.to in SMALL_INTEGERS:
        return ops.low_bits(x, *SMALL_INTEGERS[p.to])
    return ops.to_power_of_two(x, bool(p.saturate), p.round_mode) if p.to == _D.FLOAT8E8M0 else None


def small_bits(e: Emitter, x: Expr, p: BitCast) -> Expr | None:
    """The bits of the input read as a dtype of less than a byte, or as the one that it has; else None."""
    source, to = e.dtype(x), _D(p.to)
    if source == to:
        return x
    small = SMALL_INTEGERS.keys() | {_D.FLOAT4E2M1}
    if source not in small and to not in small:
        return None
    code = ops.float4_code(x) if source == _D.FLOAT4E2M1 else x
    return ops.float4_value(code) if to == _D.FLOAT4E2M1 else ops.low_bits(code, *SMALL_INTEGERS[to])
