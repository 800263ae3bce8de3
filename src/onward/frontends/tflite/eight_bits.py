"""Weights of 8 bits beside floats, as the interpreter's kernels read them, whatever the file says they are."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.tensorflow.writer import Writer
from onward.frontends.tflite.read import Scale
from onward.graph.build import Tensor

SIGNED = {
    "BIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_RNN", "CONV_2D", "EMBEDDING_LOOKUP", "FULLY_CONNECTED",
    "LSTM", "RNN", "SVDF", "UNIDIRECTIONAL_SEQUENCE_LSTM", "UNIDIRECTIONAL_SEQUENCE_RNN",
}  # fmt: skip
"""Ops whose kernels take the bits of uint8 for int8: files of old converters have signed weights typed so."""
NO_KERNEL = {"BATCH_MATMUL", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV"}
"""Ops that take int8 beside floats, but for uint8 have no kernel, or read what is no weight."""


def as_read(op: Writer, op_type: str, value: Tensor, scale: Scale) -> tuple[Tensor, Scale]:
    """A weight of an op whose other inputs are floats: signed, and around zero, as no kernel looks at zero points."""
    if op_type not in SIGNED | NO_KERNEL or value.dtype not in (ir.DataType.INT8, ir.DataType.UINT8):
        return value, scale
    centred = Scale(scale.scales, np.zeros_like(scale.zeros), scale.axis)
    if value.dtype == ir.DataType.INT8:
        return value, centred
    if op_type in NO_KERNEL:
        raise UnsupportedError("it has weights of uint8 beside floats, which TensorFlow Lite has no kernel for")
    if op_type == "CONV_2D":
        centred = Scale(scale.scales[:1], np.zeros_like(scale.zeros[:1]), 0)
    return _signed(op, value), centred


def _signed(op: Writer, value: Tensor) -> Tensor:
    """The bits of uint8 as int8."""
    array = op.known(value)
    if array is not None:
        return op.constant(array.view(np.int8))
    wide = value.cast(ir.DataType.INT32)
    return op.where(wide > 127, wide - 256, wide).cast(ir.DataType.INT8)
