"""Special functions, as every frontend writes them."""

from __future__ import annotations

import math

import onnx_ir as ir

from onward.canon.build import Tensor
from onward.frontends.decompose import special
from onward.frontends.tensorflow.registry import rule
from onward.frontends.tensorflow.writer import Writer

for _name, _function in {
    "Lgamma": special.lgamma,
    "Digamma": special.digamma,
    "Erfinv": special.erfinv,
    "Ndtri": special.ndtri,
}.items():
    rule(_name)(_function)


@rule("Erfc")
def erfc(op: Writer, x: Tensor) -> Tensor:
    mirrored = _of_gelu(op, x)
    return special.erfc(op, x) if mirrored is None else 1.0 + op.Erf(mirrored)


def _of_gelu(op: Writer, x: Tensor) -> Tensor | None:
    """`y / sqrt(2)` where the argument is `-y / sqrt(2)`, as in Gelu, whose sum of one and erf every runtime knows."""
    made = x.value.producer()
    if made is None or made.op_type not in ("Div", "Mul") or made.inputs[0] is None or made.inputs[1] is None:
        return None
    negative = made.inputs[0].producer()
    scale = op.known(op.tensor(made.inputs[1]))
    wanted = math.sqrt(2) if made.op_type == "Div" else math.sqrt(0.5)
    if scale is None or scale.size != 1 or abs(float(scale.reshape(())) - wanted) > 1e-6:
        return None
    if negative is None or negative.op_type != "Neg" or negative.inputs[0] is None:
        return None
    return op.many(made.op_type, 1, op.tensor(negative.inputs[0]), made.inputs[1])[0]


@rule("NextAfter")
def next_after(op: Writer, a: Tensor, b: Tensor) -> Tensor:
    op.need(26, "NextAfter")
    whole = ir.DataType.INT64 if a.dtype == ir.DataType.DOUBLE else ir.DataType.INT32
    bits = op.BitCast(a, to=int(whole))
    up = op.Xor(a < b, a < op.like(0, a))
    moved = op.BitCast(op.where(up, bits + op.like(1, bits), bits - op.like(1, bits)), to=int(a.dtype))
    return op.where(op.Equal(a, b), b, moved)
