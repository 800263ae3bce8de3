"""What kinds of numbers an input holds, and numbers from the file as they print best."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.tensorflow.target import dtype, tf

_D = ir.DataType

UNSIGNED = frozenset({_D.UINT8, _D.UINT16, _D.UINT32, _D.UINT64, _D.UINT4, _D.UINT2})
FLOATS = (_D.FLOAT, _D.DOUBLE, _D.FLOAT16, _D.BFLOAT16)


def is_float(e: Emitter, x: Expr) -> bool:
    of = e.dtype(x)
    return of is None or of.is_floating_point()


def is_string(e: Emitter, x: Expr) -> bool:
    return e.dtype(x) == _D.STRING


def dtype_of(e: Emitter, x: Expr) -> ir.DataType:
    """The dtype of an input, FLOAT where it is not known."""
    return e.dtype(x) or _D.FLOAT


def cast(e: Emitter, x: Expr, to: ir.DataType) -> Expr:
    """An input in another dtype, in which TensorFlow can compute with it."""
    return x if e.dtype(x) == to else tf.cast(x, dtype(to))


def number(e: Emitter, x: Expr, value: float) -> float:
    """A float attribute that is combined with `x`, as it prints best: 0.01 rather than 0.009999999776482582.

    The file holds 32 bits of it. Only doubles can tell the two apart, so they get the longer one.
    """
    return value if e.dtype(x) in (_D.DOUBLE, None) else float(str(np.float32(value)))


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
