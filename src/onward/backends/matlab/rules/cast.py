"""Conversion between dtypes, by value and by bit pattern."""

from __future__ import annotations

import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr, Name
from onward.backends.matlab.target import CLASSES, HALVES, TARGET, class_of, moves, ops
from onward.errors import UnsupportedError
from onward.spec.cast import SMALL_FLOATS, SMALL_INTEGERS, BitCast, Cast

_D = ir.DataType
WIDTHS = {"int8": 8, "uint8": 8, "int16": 16, "uint16": 16, "int32": 32, "uint32": 32, "int64": 64, "uint64": 64}
INFINITE = {_D.FLOAT8E5M2}
"""Small floats that have infinities."""
UNSIGNED_ZERO = {_D.FLOAT8E4M3FNUZ, _D.FLOAT8E5M2FNUZ}


@moves("Cast", "CastLike")
def cast(e: Emitter, x: Expr, like: Expr | None = None, *, p: Cast) -> Expr:
    source = e.dtype(x)
    if source == p.to:
        return x
    if source == _D.STRING:
        return ops.parse_numbers(x, class_of(p.to))
    if p.to == _D.STRING:
        return ops.format_numbers(x)
    return converted(x, source, p)


def converted(x: Expr, source: ir.DataType | None, p: Cast) -> Expr:
    """Numbers in another dtype."""
    kind = class_of(p.to)
    if p.to in HALVES:
        rounded = ops.round_half(x) if p.to == _D.FLOAT16 else ops.round_bfloat16(x)
        return rounded
    if p.to == _D.FLOAT8E8M0:
        return ops.round_power_of_two(x, bool(p.saturate), p.round_mode)
    if p.to in SMALL_FLOATS:
        small = SMALL_FLOATS[p.to]
        over = "largest" if p.saturate or not small.bytes else "inf" if p.to in INFINITE else "nan"
        y = ops.round_small_float(x, small.mantissa, small.lowest_exponent, small.largest, over)
        return y + 0 if p.to in UNSIGNED_ZERO else y
    if p.to in SMALL_INTEGERS:
        return ops.low_bits(x, *SMALL_INTEGERS[p.to])
    if kind == "logical":
        return TARGET.cast(x, p.to)
    if kind in ("single", "double"):
        return x if source is not None and CLASSES[source] == kind else Name(kind)(x)
    own = CLASSES.get(source or _D.UNDEFINED, "")
    if own == "logical" or _holds(kind, own):
        return x if own == kind else Name(kind)(x)
    return ops.to_integer(x, kind)


def _holds(kind: str, own: str) -> bool:
    """Whether a class of integers holds all of another."""
    if own not in WIDTHS:
        return False
    if own.startswith("u") == kind.startswith("u"):
        return WIDTHS[kind] >= WIDTHS[own]
    return own.startswith("u") and WIDTHS[kind] > WIDTHS[own]


@moves("BitCast")
def bit_cast(e: Emitter, x: Expr, p: BitCast) -> Expr:
    source, to = e.dtype(x), _D(p.to)
    if _D.BOOL in (source, to):
        return Name("uint8")(x) if source == _D.BOOL else TARGET.cast(x, to)
    plain = {of for of, kind in CLASSES.items() if of.name.lower() == kind} | {_D.FLOAT, _D.DOUBLE}
    if source == to:
        return x
    if source not in plain or to not in plain:
        raise UnsupportedError(f"MATLAB does not keep the bits of {source.name if source else 'an unknown dtype'}")
    return ops.bit_cast(x, class_of(to))
