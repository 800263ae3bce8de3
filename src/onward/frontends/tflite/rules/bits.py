"""The bits of numbers as other numbers."""

from __future__ import annotations

from onward.frontends.lax import bits
from onward.frontends.tensorflow.writer import Writer
from onward.frontends.tflite.read import dtype_of
from onward.frontends.tflite.registry import rule
from onward.graph.build import Tensor


@rule("BITCAST")
def bitcast(op: Writer, x: Tensor) -> Tensor:
    """Numbers of another size take or give a last axis."""
    return bits.bitcast(op, x, dtype_of(op.operation.outputs[0]))
