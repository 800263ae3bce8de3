"""Softmax and its kin, activations, and Dropout."""

import math

import onnx_ir as ir

from onward.canon.downgrade.registry import Older, downgrade, refuse
from onward.canon.downgrade.shape import counted
from onward.graph.rewriter import dims, input_of, is_used, needed, put, set_inputs, take

T = ir.DataType


@downgrade("Softmax", "LogSoftmax", "Hardmax", since=13)
def along_one_axis(node: ir.Node, op: Older) -> None:
    """Until 13 all dimensions from `axis` on were one."""
    x, axis = needed(node, 0), take(node, "axis", -1)
    known = dims(x)
    if axis == -1 or (
        known is not None and all(d == 1 for d in known[axis + 1 if axis >= 0 else len(known) + axis + 1 :])
    ):
        put(node, axis=axis)
        return
    size = op.ranked(x)
    perm = list(range(size))
    perm[axis], perm[-1] = perm[-1], perm[axis]
    last = op("Transpose", x, perm=perm)
    op.replace(op("Transpose", *op.again([last], 13, axis=-1), perm=perm))


@downgrade("Softmax", "LogSoftmax", "Hardmax", since=11)
def axis_from_front(node: ir.Node, op: Older) -> None:
    put(node, axis=counted(take(node, "axis", 1), needed(node, 0), op))


@downgrade("Gelu", since=20)
def gelu(node: ir.Node, op: Older) -> None:
    x, half = needed(node, 0), op.number(0.5, needed(node, 0))
    one = op.number(1.0, x)
    if take(node, "approximate", "none") == "tanh":
        cube = op("Mul", op("Mul", x, op("Mul", x, x)), op.number(0.044715, x))
        inner = op("Tanh", op("Mul", op("Add", x, cube), op.number(math.sqrt(2 / math.pi), x)))
    else:
        inner = op("Erf", op("Div", x, op.number(math.sqrt(2.0), x)))
    op.replace(op("Mul", op("Mul", x, half), op("Add", inner, one)))


@downgrade("Swish", since=24)
def swish(node: ir.Node, op: Older) -> None:
    x, alpha = needed(node, 0), take(node, "alpha", 1.0)
    inner = x if alpha == 1 else op("Mul", x, op.number(alpha, x))
    op.replace(op("Mul", x, op("Sigmoid", inner)))


@downgrade("HardSwish", since=14)
def hard_swish(node: ir.Node, op: Older) -> None:
    x = needed(node, 0)
    op.replace(op("Mul", x, op("HardSigmoid", x, alpha=1 / 6, beta=0.5)))


@downgrade("Mish", since=18)
def mish(node: ir.Node, op: Older) -> None:
    x = needed(node, 0)
    op.replace(op("Mul", x, op("Tanh", op("Softplus", x))))


@downgrade("Celu", since=12)
def celu(node: ir.Node, op: Older) -> None:
    x, alpha = needed(node, 0), take(node, "alpha", 1.0)
    if alpha < 0:
        refuse("alpha is below 0")
    op.replace(op("Mul", op("Elu", op("Div", x, op.number(alpha, x)), alpha=1.0), op.number(alpha, x)))


@downgrade("ThresholdedRelu", since=10)
def thresholded(node: ir.Node, op: Older) -> None:
    x = needed(node, 0)
    passes = op("Greater", x, op.number(take(node, "alpha", 1.0), x))
    op.replace(op("Where", passes, x, op.number(0.0, x)))


@downgrade("Dropout", since=12)
def dropout_inputs(node: ir.Node, op: Older) -> None:
    """Version 10 is for use alone: it drops nothing."""
    ratio, training = input_of(node, 1), input_of(node, 2)
    take(node, "seed")
    if training is not None and op.fixed(training, "training_mode").any():
        refuse("it drops elements, which older versions do not while a model is used")
    if len(node.outputs) > 1:
        if is_used(node.outputs[1]):  # there are runtimes that fill it with zeros in this version
            shape = op("Shape", needed(node, 0))
            op.redirect(node.outputs[1], op("ConstantOfShape", shape, value=ir.tensor([True])))
        node.resize_outputs(1)
    set_inputs(node, [needed(node, 0)])
    if ratio is not None and (known := op.read(ratio)) is not None:
        put(node, ratio=float(known.reshape(-1)[0]))


@downgrade("Dropout", since=10)
def dropout_mask(node: ir.Node, op: Older) -> None:
    """The mask was of the type of the data."""
    if len(node.outputs) < 2:
        return
    mask = node.outputs[1]
    if is_used(mask):
        dtype = op.typed(needed(node, 0))
        op.follow(mask, "Cast", to=T.BOOL)
        mask.type = ir.TensorType(dtype)
    else:
        node.resize_outputs(1)
