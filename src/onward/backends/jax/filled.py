"""Products with tensors full of one number, which XLA gets wrong where it sees what they are."""

from __future__ import annotations

import math

import onnx_ir as ir

from onward.backends.emit.emitter import Arg, Emitter
from onward.backends.emit.expr import Expr

MOVING = {"Identity", "Reshape", "Flatten", "Transpose", "Unsqueeze", "Squeeze", "Cast", "Expand", "Tile", "Slice"}
MOVING |= {"Abs", "Neg", "Sqrt", "Exp", "Log", "Reciprocal", "Relu", "Sigmoid", "Tanh"}
"""Ops of the first input's numbers, each by itself."""
COMBINING = {"Add", "Sub", "Mul", "Div", "Pow", "Min", "Max"}


def is_filled(e: Emitter, x: Expr) -> bool:
    """Whether an input is surely computed to be one number everywhere."""
    return isinstance(x, Arg) and _is_filled(e, x._value)


def _is_filled(e: Emitter, value: ir.Value) -> bool:
    node = value.producer()
    if node is None or node.domain not in ("", "ai.onnx"):
        return False
    given = [v for v in node.inputs if v is not None]
    if node.op_type == "Expand" and _is_one_number(e, given[0]):
        return True
    if node.op_type in MOVING:
        return _is_filled(e, given[0])
    if node.op_type in COMBINING:
        computed = [v for v in given if not _is_one_number(e, v)]
        return bool(computed) and all(_is_filled(e, v) for v in computed)
    return node.op_type == "ConstantOfShape"


def _is_one_number(e: Emitter, value: ir.Value) -> bool:
    shape = e.shape(value)
    return shape is not None and None not in shape and math.prod(n or 0 for n in shape) == 1
