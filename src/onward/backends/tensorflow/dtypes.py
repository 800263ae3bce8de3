"""What kinds of numbers an input holds, and numbers from the file as they print best."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.shared.elementwise import FLOATS as FLOATS
from onward.backends.shared.elementwise import is_float as is_float
from onward.backends.tensorflow.target import dtype, tf

_D = ir.DataType

UNSIGNED = frozenset({_D.UINT8, _D.UINT16, _D.UINT32, _D.UINT64, _D.UINT4, _D.UINT2})


def is_string(e: Emitter, x: Expr) -> bool:
    return e.dtype(x) == _D.STRING


def dtype_of(e: Emitter, x: Expr) -> ir.DataType:
    """The dtype of an input, FLOAT where it is not known."""
    return e.dtype(x) or _D.FLOAT


def cast(e: Emitter, x: Expr, to: ir.DataType) -> Expr:
    """An input in another dtype, in which TensorFlow can compute with it."""
    return x if e.dtype(x) == to else tf.cast(x, dtype(to))


def scalar(e: Emitter, x: Expr, to: ir.DataType = _D.INT64) -> Any:
    """An input that holds one number, as a host number."""
    found = e.scalar(x, 1)
    if found is not None:
        return found
    constant = e.const(x)
    if constant is not None and constant.size == 1:
        return constant.reshape(-1)[0].item()
    alone = x if e.rank(x) == 0 else tf.reshape(x, [])
    return e.let_host(alone if e.dtype(x) == to else tf.cast(alone, dtype(to)), "n")
