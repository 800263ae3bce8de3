"""Conversion between dtypes, by value and by bit pattern."""

from __future__ import annotations

import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.jax.target import DTYPES, dtype, jnp, ops, rule
from onward.backends.shared.cast import converted_by_helper, small_bits
from onward.graph.origin import origin
from onward.spec.cast import SMALL_FLOATS, BitCast, Cast

_D = ir.DataType
NARROW = {_D.INT8, _D.UINT8, _D.INT16, _D.UINT16}
"""Integers to whose range XLA clips floats, of which other frameworks take the low bits."""
UNSIGNED = {_D.UINT32, _D.UINT64}
"""The same of those for which a wider dtype may not be there."""


@rule("Cast", "CastLike")
def cast(e: Emitter, x: Expr, like: Expr | None = None, *, p: Cast) -> Expr:
    source = e.dtype(x)
    if p.to == _D.STRING != source:
        return ops.format_numbers(x, str(origin(e.node)))
    found = converted_by_helper(e, x, p)
    if found is not None:
        return found
    if p.to in SMALL_FLOATS:
        return small_float(x.astype(dtype(_D.FLOAT)) if source in SMALL_FLOATS else x, p.to, bool(p.saturate))
    if DTYPES[p.to] == DTYPES.get(source or _D.UNDEFINED):
        return x
    if source is not None and source.is_floating_point():
        if p.to in UNSIGNED:
            return ops.unsigned(x, dtype(p.to))
        if p.to in NARROW:
            x = x.astype(dtype(_D.INT32))
    return x.astype(dtype(p.to))


def small_float(x: Expr, target: ir.DataType, saturate: bool) -> Expr:
    """The expression `x` as a float of 8 bits or less."""
    small = SMALL_FLOATS[target]
    if not small.bytes:
        return ops.round_to_small_float(x, small.mantissa, small.lowest_exponent, small.largest)
    return (jnp.clip(x, -small.largest, small.largest) if saturate else x).astype(dtype(target))


@rule("BitCast")
def bit_cast(e: Emitter, x: Expr, p: BitCast) -> Expr:
    found = small_bits(e, x, p)
    return x.view(dtype(p.to)) if found is None else found
