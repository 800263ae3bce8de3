"""Softmax and its kin, and Dropout."""

import numpy as np
import onnx_ir as ir

from onward.canon.upgrade.registry import upgrade
from onward.errors import InvalidModelError
from onward.graph.rewriter import Rewriter, describe, dims, is_used, needed, put, set_inputs, take


@upgrade("Softmax", "LogSoftmax", "Hardmax", since=13)
def flattened_softmax(node: ir.Node, op: Rewriter) -> None:
    """Until 13 all dimensions from `axis` on were one: the input was flattened to a matrix there."""
    x, axis = needed(node, 0), take(node, "axis", 1)
    known = dims(x)
    if known is not None:
        first = axis + len(known) if axis < 0 else axis
        if not 0 <= first < len(known):
            raise InvalidModelError(f"{describe(node)}: axis {axis} is outside an input of rank {len(known)}")
        wide = [d for d in range(first, len(known)) if known[d] != 1]
        if len(wide) <= 1:
            put(node, axis=wide[0] if wide else len(known) - 1)
            return
    rows = op("Flatten", x, axis=axis)
    op.replace(op.reshape(op(node.op_type, rows, axis=-1), op.shape(x)))


@upgrade("Dropout", since=7)
def dropout_mode(node: ir.Node, op: Rewriter) -> None:
    """Where `is_test` was not set the op was random; version 12 says so by an input, see `dropout_inputs`."""
    if not take(node, "is_test", 0):
        put(node, training_mode=1)


@upgrade("Dropout", since=10)
def dropout_mask_type(node: ir.Node, op: Rewriter) -> None:
    """The mask was of the type of the data, now it is boolean."""
    if len(node.outputs) < 2:
        return
    mask = node.outputs[1]
    if is_used(mask):
        op.follow(mask, "CastLike", needed(node, 0))
        mask.type = ir.TensorType(ir.DataType.BOOL)
    else:
        node.resize_outputs(1)


@upgrade("Dropout", since=12)
def dropout_inputs(node: ir.Node, op: Rewriter) -> None:
    ratio = op.floats(take(node, "ratio", 0.5))
    training = op.constant(np.array(True)) if take(node, "training_mode") else None
    set_inputs(node, [needed(node, 0), ratio, training])
