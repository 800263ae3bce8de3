"""What kinds of numbers an input holds."""

from __future__ import annotations

import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.jax.target import dtype

_D = ir.DataType

UNSIGNED = frozenset({_D.UINT8, _D.UINT16, _D.UINT32, _D.UINT64, _D.UINT4, _D.UINT2})
HALVES = frozenset({_D.FLOAT16, _D.BFLOAT16})


def cast(e: Emitter, x: Expr, to: ir.DataType) -> Expr:
    """An input in another dtype."""
    return x if e.dtype(x) == to else x.astype(dtype(to))
