"""Which sequences and optionals only a running function knows, and their types in generated code."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onward.backends.emit.bodies import passed
from onward.backends.emit.emitter import Arg
from onward.backends.emit.expr import Expr
from onward.backends.tensorflow.target import dtype, ops, tf

CARRIED = "onward.tensorflow.carried"
"""On a value in a body: that it is not the same in all trips of a loop."""


def kind_of_type(kind: ir.TypeProtocol | None) -> Expr | None:
    """The type of a sequence or an optional; None for a tensor."""
    if isinstance(kind, ir.SequenceType):
        return ops.sequence_of(dtype(kind.dtype))
    if isinstance(kind, ir.OptionalType):
        inner = kind_of_type(kind.elem_type)
        return ops.OptionalOf(tf.TensorSpec(None, dtype(kind.dtype)) if inner is None else inner)
    return None


def kind_of_branches(yes: ir.Value, no: ir.Value, kind: ir.TypeProtocol | None) -> Expr | None:
    """The type of a result of two branches, unless it is the same number of tensors in both."""
    count = _count(yes)
    return None if count is not None and count == _count(no) else kind_of_type(kind)


def _count(value: ir.Value) -> int | None:
    """How many tensors a sequence or an optional is, if that is known; -1 stands for none at all."""
    value = passed(value)
    node = value.producer()
    if node is None or node.domain:
        return None
    if node.op_type == "Optional":
        return _count(node.inputs[0]) if node.inputs and node.inputs[0] is not None else -1
    if isinstance(value.type, ir.TensorType):
        return 1
    return {"SequenceConstruct": len(node.inputs), "SequenceEmpty": 0}.get(node.op_type)


def is_open(x: Any) -> bool:
    """Whether a sequence or an optional may be another one when a traced function runs."""
    return isinstance(x, Arg) and _is_open(x._value)


def _is_open(value: ir.Value) -> bool:
    value = passed(value)
    node = value.producer()
    if node is None:
        return CARRIED in value.meta
    if node.domain or isinstance(value.type, ir.TensorType):
        return False
    if node.op_type in ("If", "Loop", "SplitToSequence"):
        return True
    return any(_is_open(x) for x in node.inputs if x is not None)
