"""Conversion between dtypes, by value and by bit pattern."""

from __future__ import annotations

import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.shared.cast import converted_by_helper, dtype_like
from onward.backends.tensorflow.target import DTYPES, dtype, ops, rule, tf
from onward.errors import UnsupportedError
from onward.spec.cast import SMALL_FLOATS, SMALL_INTEGERS

_D = ir.DataType
FLOAT8 = {of for of in SMALL_FLOATS if of != _D.FLOAT4E2M1} | {_D.FLOAT8E8M0}
"""Formats whose values float32 holds, but not as their bits."""
NARROW = {_D.INT8, _D.UINT8, _D.INT16, _D.UINT16}
"""Floats that do not fit these wrap in some elements of what `tf.cast` gives, and are clipped in others: it depends on
their place."""


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
        return ops.parse_numbers(x, dtype(target))
    if target in SMALL_FLOATS:
        return small_float(x, target, saturate)
    if DTYPES[target] == DTYPES.get(source or _D.UNDEFINED):
        return x
    if target in NARROW and source is not None and source.is_floating_point():
        x = tf.cast(x, tf.int32)
    return tf.cast(x, dtype(target))


def small_float(x: Expr, target: ir.DataType, saturate: bool) -> Expr:
    """The expression `x` as a float of 8 bits or less, held in float32."""
    small = SMALL_FLOATS[target]
    shape = small.mantissa, small.lowest_exponent, small.largest
    if not small.bytes:
        return ops.round_to_small_float(x, *shape, nan=-0.0)
    options = {} if saturate else {"beyond": float("inf" if target == _D.FLOAT8E5M2 else "nan")}
    unsigned = {"minus_zero": False} if target in (_D.FLOAT8E4M3FNUZ, _D.FLOAT8E5M2FNUZ) else {}
    return ops.round_to_small_float(x, *shape, **options, **unsigned)


@rule("BitCast")
def bit_cast(e: Emitter, x: Expr, *, to: int) -> Expr:
    source, target = e.dtype(x), _D(to)
    if source == target:
        return x
    if any(kind in FLOAT8 for kind in (source, target)):
        raise UnsupportedError(f"TensorFlow keeps no bits of {source} and {target}: BitCast is not possible")
    small = SMALL_INTEGERS.keys() | {_D.FLOAT4E2M1}
    if source not in small and target not in small:
        if _D.BOOL in (source, target):
            return tf.cast(x if source == _D.BOOL else tf.bitcast(x, tf.uint8), dtype(target))
        return tf.bitcast(x, dtype(target))
    code = ops.float4_code(x) if source == _D.FLOAT4E2M1 else x
    if target == _D.FLOAT4E2M1:
        return ops.float4_value(code)
    return ops.low_bits(code, *SMALL_INTEGERS[target])
