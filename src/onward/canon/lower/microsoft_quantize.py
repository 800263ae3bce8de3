"""Quantized ops of `com.microsoft` without a product: as if computed on the numbers that the integers stand for."""

from collections.abc import Callable

import onnx_ir as ir

from onward.canon.lower.microsoft_fused import MS, channels_first, channels_last
from onward.canon.lower.registry import lowering
from onward.graph.rewriter import Rewriter, input_of, needed, rank, take

Fn = Callable[[ir.Value], ir.Value]


def real(node: ir.Node, first: int, op: Rewriter) -> ir.Value:
    """The numbers that input `first` stands for; its scale and zero point follow it."""
    return op("DequantizeLinear", needed(node, first), needed(node, first + 1), input_of(node, first + 2))


def quantized(y: ir.Value, node: ir.Node, first: int, op: Rewriter) -> ir.Value:
    """`y` in the scale and with the zero point of inputs `first` and `first + 1`, in the type of input 0 if without."""
    zero = input_of(node, first + 1)
    dtype = needed(node, 0).dtype
    return op("QuantizeLinear", y, needed(node, first), zero, output_dtype=dtype if zero is None else None)


def _unary(node: ir.Node, op: Rewriter, fn: Fn) -> None:
    """Inputs: x with scale and zero point, then scale and zero point of the result."""
    op.replace(quantized(fn(real(node, 0, op)), node, 3, op))


@lowering(f"{MS}::QLinearSigmoid")
def qlinear_sigmoid(node: ir.Node, op: Rewriter) -> None:
    _unary(node, op, lambda x: op("Sigmoid", x))


@lowering(f"{MS}::QLinearLeakyRelu")
def qlinear_leaky_relu(node: ir.Node, op: Rewriter) -> None:
    alpha = take(node, "alpha", 0.01)
    _unary(node, op, lambda x: op("LeakyRelu", x, alpha=alpha))


@lowering(f"{MS}::QLinearSoftmax")
def qlinear_softmax(node: ir.Node, op: Rewriter) -> None:
    """Before opset 13 all axes from `axis` on were one."""
    axis, opset = take(node, "axis", -1), take(node, "opset", 13)

    def softmax(x: ir.Value) -> ir.Value:
        if opset >= 13:
            return op("Softmax", x, axis=axis)
        flat = op("Softmax", op("Flatten", x, axis=axis), axis=-1)
        return op("Reshape", flat, op("Shape", x), allowzero=1)

    _unary(node, op, softmax)


@lowering(f"{MS}::QLinearReduceMean")
def qlinear_reduce_mean(node: ir.Node, op: Rewriter) -> None:
    axes, keepdims = take(node, "axes"), take(node, "keepdims", 1)
    which = None if axes is None else op.ints(axes)
    _unary(node, op, lambda x: op("ReduceMean", x, which, keepdims=keepdims))


POOL = ("auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides")


@lowering(f"{MS}::QLinearAveragePool")
def qlinear_average_pool(node: ir.Node, op: Rewriter) -> None:
    given = {name: take(node, name) for name in POOL}
    _pool(node, op, lambda x: op("AveragePool", x, **given))


@lowering(f"{MS}::QLinearGlobalAveragePool")
def qlinear_global_average_pool(node: ir.Node, op: Rewriter) -> None:
    _pool(node, op, lambda x: op("GlobalAveragePool", x))


def _pool(node: ir.Node, op: Rewriter, pool: Fn) -> None:
    if not take(node, "channels_last", 0):
        _unary(node, op, pool)
        return
    like = needed(node, 0)
    _unary(node, op, lambda x: channels_last(pool(channels_first(x, op)), like, op))


@lowering(f"{MS}::QLinearAdd", f"{MS}::QLinearMul")
def qlinear_binary(node: ir.Node, op: Rewriter) -> None:
    kind = node.op_type.removeprefix("QLinear")
    op.replace(quantized(op(kind, real(node, 0, op), real(node, 3, op)), node, 6, op))


@lowering(f"{MS}::QLinearWhere")
def qlinear_where(node: ir.Node, op: Rewriter) -> None:
    """Inputs: condition, x with scale and zero point, y with scale and zero point, those of the result."""
    yes, no = real(node, 1, op), real(node, 4, op)
    y = op("Where", needed(node, 0), yes, no)
    op.replace(op("QuantizeLinear", y, needed(node, 7), input_of(node, 8)))


@lowering(f"{MS}::QLinearConcat")
def qlinear_concat(node: ir.Node, op: Rewriter) -> None:
    """Inputs: scale and zero point of the result, then three for each part."""
    parts = [real(node, i, op) for i in range(2, len(node.inputs), 3)]
    y = op("Concat", *parts, axis=take(node, "axis"))
    op.replace(op("QuantizeLinear", y, needed(node, 0), needed(node, 1)))


@lowering(f"{MS}::QuantizeLinear", f"{MS}::DequantizeLinear")
def quantize_linear(node: ir.Node, op: Rewriter) -> None:
    """As the standard ops, which know all their types today."""
    x, scale, zero = needed(node, 0), needed(node, 1), input_of(node, 2)
    given = {"axis": take(node, "axis", 1)} if rank(scale) == 1 else {}
    block = take(node, "block_size")
    op.replace(op(node.op_type, x, scale, zero, **given, block_size=block))
