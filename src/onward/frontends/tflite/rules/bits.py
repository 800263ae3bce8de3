"""The bits of numbers as other numbers, by arithmetic: ONNX has no op for it before opset 26."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.tensorflow.writer import Writer
from onward.frontends.tflite.read import dtype_of
from onward.frontends.tflite.registry import rule
from onward.graph.build import Tensor

FLOAT, DOUBLE, INT64, INT32, UINT32 = (
    ir.DataType.FLOAT,
    ir.DataType.DOUBLE,
    ir.DataType.INT64,
    ir.DataType.INT32,
    ir.DataType.UINT32,
)
POWERS = np.ldexp(1.0, np.arange(-149, 129))
"""All that a float can be a multiple of, and one more; the first is the least float there is."""
FRACTION = 2**23
WHOLE = {ir.DataType.INT8, ir.DataType.UINT8, ir.DataType.INT16, ir.DataType.UINT16, INT32, UINT32}


@rule("BITCAST")
def bitcast(op: Writer, x: Tensor) -> Tensor:
    """Numbers of another size take or give a last axis."""
    to = dtype_of(op.operation.outputs[0])
    before, after = (int(dtype.itemsize) for dtype in (x.dtype, to))
    if x.dtype == to:
        return x
    if not {x.dtype, to} <= WHOLE | {FLOAT}:
        raise UnsupportedError(f"the bits of {x.dtype.name.lower()} cannot be read as {to.name.lower()}")
    bits = _of_float(op, x) if x.dtype == FLOAT else _unsigned(op, x, before)
    if before > after:
        steps = op.constant(np.asarray([256 ** (after * i) for i in range(before // after)], np.int64))
        limit = op.index(256**after)
        bits = op.Mod(op.Div(op.unsqueeze(bits, [-1]), steps), limit)
    elif before < after:
        steps = op.constant(np.asarray([256 ** (before * i) for i in range(after // before)], np.int64))
        bits = op.sum(bits * steps, [-1], keepdims=False)
    return _to_float(op, bits) if to == FLOAT else bits.cast(to)


def _unsigned(op: Writer, x: Tensor, size: int) -> Tensor:
    """The bits as a number that is not negative."""
    wide = x.cast(INT64)
    return op.where(wide < op.index(0), wide + op.index(256**size), wide)


def _of_float(op: Writer, x: Tensor) -> Tensor:
    """Sign, exponent and fraction. That a number is no number is kept, but not which of these it is."""
    size = op.Abs(x).cast(DOUBLE)
    powers = op.constant(POWERS)
    last = op.index(len(POWERS) - 1)
    number = op.Not(op.Or(op.IsNaN(x), op.IsInf(x)))
    safe = op.where(op.And(number, size > 0.0), size, op.like(1, size))
    place = op.Floor(op.Log(safe) * (1 / np.log(2))).cast(INT64) + op.index(149)
    place = op.Max(op.Min(place, last), op.index(0))
    place = op.where(op.Gather(powers, place) > safe, place - op.index(1), place)
    place = op.where(op.Gather(powers, op.Min(place + op.index(1), last)) <= safe, place + op.index(1), place)
    normal = op.Max(place - op.index(22), op.index(0))  # the exponent as it is stored
    unit = op.Gather(powers, op.Max(place - op.index(23), op.index(0)))
    fraction = (safe / unit).cast(INT64)
    stored = op.where(normal > op.index(0), fraction - op.index(FRACTION) + normal * op.index(FRACTION), fraction)
    none = op.where(op.IsNaN(x), op.index(0x7FC00000), op.where(op.IsInf(x), op.index(0x7F800000), op.index(0)))
    bits = op.where(op.And(number, size > 0.0), stored, none)
    negative = op.where(op.Equal(x, op.like(0, x)), op.Reciprocal(x), x) < 0.0
    return op.where(negative, bits + op.index(2**31), bits)


def _to_float(op: Writer, bits: Tensor) -> Tensor:
    negative = bits >= op.index(2**31)
    bits = op.where(negative, bits - op.index(2**31), bits)
    exponent = op.Div(bits, op.index(FRACTION))
    fraction = bits - exponent * op.index(FRACTION)
    whole = op.where(exponent > op.index(0), fraction + op.index(FRACTION), fraction).cast(DOUBLE)
    unit = op.Gather(op.constant(POWERS), op.Max(exponent - op.index(1), op.index(0)))
    size = (whole * unit).cast(FLOAT)
    endless = op.where(op.Equal(fraction, op.index(0)), op.like(np.inf, size), op.like(np.nan, size))
    size = op.where(op.Equal(exponent, op.index(255)), endless, size)
    return op.where(negative, -size, size)
