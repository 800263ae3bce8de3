"""Dtypes for which PyTorch has few kernels: uint16, uint32, uint64 and the 8-bit floats.

A rule writes `from_bits(e, x, torch.gather(bits(e, x), 1, i))`, or `ordered` instead of `bits` where the order of
the numbers matters. For every other dtype these are no-ops, so ordinary models never see them.
"""

from __future__ import annotations

import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.torch.target import dtype, ops, torch

_D = ir.DataType

UNSIGNED = frozenset({_D.UINT16, _D.UINT32, _D.UINT64})
"""Unsigned integers that have no arithmetic in PyTorch; uint8 has."""

FLOAT8 = frozenset({_D.FLOAT8E4M3FN, _D.FLOAT8E4M3FNUZ, _D.FLOAT8E5M2, _D.FLOAT8E5M2FNUZ, _D.FLOAT8E8M0})

_SAME_WIDTH = {_D.UINT16: _D.INT16, _D.UINT32: _D.INT32, _D.UINT64: _D.INT64} | dict.fromkeys(FLOAT8, _D.UINT8)


def bits(e: Emitter, x: Expr) -> Expr:
    """`x`, or the same bits in a dtype that has kernels.

    Right for everything that moves elements about (gather, flip, pad, scatter), and for integers also for what
    wraps around: `+ - * << & | ^ ~`, sums and products.
    """
    carrier = _SAME_WIDTH.get(_dtype(e, x))
    return x if carrier is None else x.view(dtype(carrier))


def from_bits(e: Emitter, x: Expr, result: Expr) -> Expr:
    """`result`, computed on `bits(e, x)`, in the dtype of `x`."""
    return result.view(dtype(_dtype(e, x))) if _dtype(e, x) in _SAME_WIDTH else result


def ordered(e: Emitter, x: Expr) -> Expr:
    """`x`, or numbers in the same order in a dtype that has kernels: to compare, sort, take `amax`, `argmin`.

    16 and 32 bits keep their value, so division and right shifts are right on them too; 64 bits do not.
    """
    if _dtype(e, x) == _D.UINT64:
        return ops.uint64_ordered(x)
    return x.to(torch.int64) if _dtype(e, x) in UNSIGNED else x


def from_ordered(e: Emitter, x: Expr, result: Expr) -> Expr:
    """`result`, computed on `ordered(e, x)`, in the dtype of `x`."""
    if _dtype(e, x) == _D.UINT64:
        return ops.uint64_restored(result)
    return result.to(dtype(_dtype(e, x))) if _dtype(e, x) in UNSIGNED else result


def _dtype(e: Emitter, x: Expr) -> ir.DataType:
    return e.dtype(x) or _D.UNDEFINED
