"""Conversion between dtypes, by value and by bit pattern."""

from __future__ import annotations

import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.shared.cast import converted_by_helper, small_bits
from onward.backends.torch.dtypes import FLOAT8
from onward.backends.torch.target import DTYPES, dtype, ops, rule, torch
from onward.spec.cast import SMALL_FLOATS, BitCast, Cast

_D = ir.DataType


@rule("Cast", "CastLike")
def cast(e: Emitter, x: Expr, like: Expr | None = None, *, p: Cast) -> Expr:
    found, source = converted_by_helper(e, x, p), e.dtype(x)
    if found is not None:
        return found
    if p.to in SMALL_FLOATS:
        return small_float(x.to(torch.float32) if source in FLOAT8 else x, p.to, bool(p.saturate))
    return x if DTYPES[p.to] == DTYPES.get(source or _D.UNDEFINED) else x.to(dtype(p.to))


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
def bit_cast(e: Emitter, x: Expr, p: BitCast) -> Expr:
    found = small_bits(e, x, p)
    return x.view(dtype(p.to)) if found is None else found
