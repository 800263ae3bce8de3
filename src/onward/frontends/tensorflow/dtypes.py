"""TensorFlow's dtypes as those of ONNX."""

from __future__ import annotations

import onnx_ir as ir

from onward.errors import UnsupportedError

DTYPES = {
    1: ir.DataType.FLOAT,
    2: ir.DataType.DOUBLE,
    3: ir.DataType.INT32,
    4: ir.DataType.UINT8,
    5: ir.DataType.INT16,
    6: ir.DataType.INT8,
    7: ir.DataType.STRING,
    8: ir.DataType.COMPLEX64,
    9: ir.DataType.INT64,
    10: ir.DataType.BOOL,
    11: ir.DataType.INT8,
    12: ir.DataType.UINT8,
    13: ir.DataType.INT32,
    14: ir.DataType.BFLOAT16,
    15: ir.DataType.INT16,
    16: ir.DataType.UINT16,
    17: ir.DataType.UINT16,
    18: ir.DataType.COMPLEX128,
    19: ir.DataType.FLOAT16,
    22: ir.DataType.UINT32,
    23: ir.DataType.UINT64,
    24: ir.DataType.FLOAT8E5M2,
    25: ir.DataType.FLOAT8E4M3FN,
    29: ir.DataType.INT4,
    30: ir.DataType.UINT4,
}
"""By the number in TensorFlow's `types.proto`."""

RESOURCE, VARIANT = 20, 21
"""The numbers of what is no tensor: a variable, a table; a list of tensors."""


def onnx_dtype(number: int) -> ir.DataType:
    """The dtype of ONNX; references of TensorFlow 1 (a hundred more) are what they refer to."""
    try:
        return DTYPES[number % 100]
    except KeyError:
        raise UnsupportedError(f"ONNX has no dtype for TensorFlow's number {number}") from None
