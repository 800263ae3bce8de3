"""Conversion between dtypes, by value and by bit pattern."""

from __future__ import annotations

import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.shared.cast import converted_by_helper, small_bits
from onward.backends.tensorflow.target import DTYPES, dtype, ops, rule, tf
from onward.errors import UnsupportedError
from onward.spec.cast import SMALL_FLOATS, BitCast, Cast

_D = ir.DataType
FLOAT8 = {of for of in SMALL_FLOATS if of != _D.FLOAT4E2M1} | {_D.FLOAT8E8M0}
"""Formats whose values float32 holds, but not as their bits."""
NARROW = {_D.INT8, _D.UINT8, _D.INT16, _D.UINT16}
"""Floats that do not fit these wrap in some elements of what `tf.cast` gives, and are clipped in others: it depends on
their place."""


@rule("Cast", "CastLike")
def cast(e: Emitter, x: Expr, like: Expr | None = None, *, p: Cast) -> Expr:
    found, source = converted_by_helper(e, x, p), e.dtype(x)
    if found is not None:
        return found
    if p.to in SMALL_FLOATS:
        return small_float(x, p.to, bool(p.saturate))
    if DTYPES[p.to] == DTYPES.get(source or _D.UNDEFINED):
        return x
    if p.to in NARROW and source is not None and source.is_floating_point():
        x = tf.cast(x, tf.int32)
    return tf.cast(x, dtype(p.to))


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
def bit_cast(e: Emitter, x: Expr, p: BitCast) -> Expr:
    source, to = e.dtype(x), _D(p.to)
    if source != to and any(kind in FLOAT8 for kind in (source, to)):
        raise UnsupportedError(f"TensorFlow cannot cast the bits of {source} to {to}")
    found = small_bits(e, x, p)
    if found is not None:
        return found
    if _D.BOOL in (source, to):
        return tf.cast(x if source == _D.BOOL else tf.bitcast(x, tf.uint8), dtype(to))
    return tf.bitcast(x, dtype(to))
