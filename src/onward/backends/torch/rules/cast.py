"""Conversion between dtypes, by value and by bit pattern."""

from __future__ import annotations

import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.shared.cast import converted_by_helper, dtype_like
from onward.backends.torch.dtypes import FLOAT8
from onward.backends.torch.target import DTYPES, dtype, ops, rule, torch
from onward.spec.cast import SMALL_FLOATS, SMALL_INTEGERS

_D = ir.DataType


@rule("Cast")
def cast(e: Emitter, x: Expr, *, to: int, saturate: int = 1, round_mode: str = "up") -> Expr:
    return converted(e, x, e.dtype(x), _D(to), bool(saturate), round_mode)


@rule("CastLike")
def cast_like(e: Emitter, x: Expr, like: Expr, *, saturate: int = 1, round_mode: str = "up") -> Expr:
    return converted(e, x, e.dtype(x), dtype_like(e, like), bool(saturate), round_mode)


def converted(
    e: Emitter,
    x: Expr,
    source: ir.DataType | None,
    target: ir.DataType,
    saturate: bool = True,
    round_mode: str = "up",
) -> Expr:
    """The expression `x`, of dtype `source`, as `target`."""
    found = converted_by_helper(x, source, target, saturate, round_mode)
    if found is not None:
        return found
    if source == _D.STRING:
        return ops.parse_numbers(x, dtype(target), device=e.device)
    if target in SMALL_FLOATS:
        return small_float(x.to(torch.float32) if source in FLOAT8 else x, target, saturate)
    if DTYPES[target] == DTYPES.get(source or _D.UNDEFINED):
        return x
    return x.to(dtype(target))


def small_float(x: Expr, target: ir.DataType, saturate: bool) -> Expr:
    """The expression `x` as a float of 8 bits or less."""
    small = SMALL_FLOATS[target]
    if not small.bytes:
        return ops.round_to_small_float(x, small.mantissa, small.lowest_exponent, small.largest)
    if saturate:
        return torch.clamp(x, -small.largest, small.largest).to(dtype(target))
    if target == _D.FLOAT8E4M3FN:
        return ops.to_float8_e4m3fn(x)
    return x.to(dtype(target))


@rule("BitCast")
def bit_cast(e: Emitter, x: Expr, *, to: int) -> Expr:
    source, target = e.dtype(x), _D(to)
    if source == target:
        return x
    small = SMALL_INTEGERS.keys() | {_D.FLOAT4E2M1}
    if source not in small and target not in small:
        return x.view(dtype(target))
    code = ops.float4_code(x) if source == _D.FLOAT4E2M1 else x
    if target == _D.FLOAT4E2M1:
        return ops.float4_value(code)
    return ops.low_bits(code, *SMALL_INTEGERS[target])
