"""Ops of `com.microsoft` that join two or three standard ones: activations, products, convolutions."""

from typing import Any

import onnx_ir as ir

from onward.canon.lower.registry import lowering
from onward.errors import UnsupportedError
from onward.graph.rewriter import Rewriter, describe, input_of, needed, rank, take

MS = "com.microsoft"


def added(x: ir.Value, bias: ir.Value | None, op: Rewriter) -> ir.Value:
    return x if bias is None else op("Add", x, bias)


@lowering(f"{MS}::Gelu", f"{MS}::BiasGelu")
def gelu(node: ir.Node, op: Rewriter) -> None:
    op.replace(op("Gelu", added(needed(node, 0), input_of(node, 1), op)))


@lowering(f"{MS}::FastGelu")
def fast_gelu(node: ir.Node, op: Rewriter) -> None:
    op.replace(op("Gelu", added(needed(node, 0), input_of(node, 1), op), approximate="tanh"))


@lowering(f"{MS}::QuickGelu")
def quick_gelu(node: ir.Node, op: Rewriter) -> None:
    x = needed(node, 0)
    gate = op("Sigmoid", op("Mul", x, op.number(take(node, "alpha", 1.702), x)))
    op.replace(op("Mul", x, gate))


@lowering(f"{MS}::BiasSplitGelu")
def bias_split_gelu(node: ir.Node, op: Rewriter) -> None:
    x = op("Add", needed(node, 0), needed(node, 1))
    value, gate = op.many(2, "Split", x, axis=-1, num_outputs=2)
    op.replace(op("Mul", value, op("Gelu", gate)))


@lowering(f"{MS}::BiasAdd")
def bias_add(node: ir.Node, op: Rewriter) -> None:
    op.replace(op("Add", op("Add", needed(node, 0), needed(node, 1)), needed(node, 2)))


@lowering(f"{MS}::FusedMatMul", f"{MS}::TransposeMatMul", f"{MS}::FusedMatMulActivation")
def fused_matmul(node: ir.Node, op: Rewriter) -> None:
    a = _operand(needed(node, 0), take(node, "transBatchA", 0), take(node, "transA", 0), op)
    b = _operand(needed(node, 1), take(node, "transBatchB", 0), take(node, "transB", 0), op)
    product = op("MatMul", a, b)
    alpha = take(node, "alpha", 1.0)
    scaled = product if alpha == 1 else op("Mul", product, op.number(alpha, product))
    op.replace(_activated(scaled, node, op))


def _operand(x: ir.Value, batch: int, last: int, op: Rewriter) -> ir.Value:
    """`batch`: the first axis is moved behind the batch axes; `last`: the last two axes are exchanged."""
    if not batch and not last:
        return x
    known = rank(x)
    if known is None:
        raise UnsupportedError(f"{describe(op.node)}: the rank of an operand that is to be transposed is not known")
    order = list(range(known))
    if batch and known > 2:
        order = [*order[1:-1], 0, order[-1]]
    if last and known > 1:
        order[-2:] = order[:-3:-1]
    return op("Transpose", x, perm=order)


@lowering(f"{MS}::FusedGemm")
def fused_gemm(node: ir.Node, op: Rewriter) -> None:
    given = {name: take(node, name) for name in ("alpha", "beta", "transA", "transB")}
    op.replace(_activated(op("Gemm", needed(node, 0), needed(node, 1), input_of(node, 2), **given), node, op))


def _activated(x: ir.Value, node: ir.Node, op: Rewriter) -> ir.Value:
    """The activation in the attributes of a fused node, with its parameters in whichever way they are given."""
    kind = take(node, "activation", "")
    params = list(take(node, "activation_params", []))
    params = params or [p for name in ("alpha", "beta", "gamma") if (p := take(node, f"activation_{name}")) is not None]
    if not kind:
        return x
    if kind == "Clip":
        low, high = (op.number(p, x) for p in params)
        return op("Clip", x, low, high)
    names = {"LeakyRelu": ["alpha"], "HardSigmoid": ["alpha", "beta"], "Elu": ["alpha"], "Relu": [], "Tanh": []}
    if kind not in (*names, "Sigmoid"):
        raise UnsupportedError(f"{describe(node)}: the activation {kind!r} is not known")
    given: dict[str, Any] = dict(zip(names.get(kind, []), params, strict=False))
    return op(kind, x, **given)


CONV = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")


@lowering(f"{MS}::FusedConv")
def fused_conv(node: ir.Node, op: Rewriter) -> None:
    """The convolution, plus the fourth input where there is one, then the activation."""
    given = {name: take(node, name) for name in CONV}
    y = op("Conv", needed(node, 0), needed(node, 1), input_of(node, 2), **given)
    op.replace(_activated(added(y, input_of(node, 3), op), node, op))


def channels_first(x: ir.Value, op: Rewriter) -> ir.Value:
    known = rank(x)
    if known is None:
        raise UnsupportedError(f"{describe(op.node)}: the rank of an input with channels last is not known")
    return op("Transpose", x, perm=[0, known - 1, *range(1, known - 1)])


def channels_last(x: ir.Value, like: ir.Value, op: Rewriter) -> ir.Value:
    known = rank(like) or 0
    return op("Transpose", x, perm=[0, *range(2, known), 1])


@lowering(f"{MS}::NhwcConv", f"{MS}::NhwcFusedConv")
def nhwc_conv(node: ir.Node, op: Rewriter) -> None:
    x, z = needed(node, 0), input_of(node, 3)
    given = {name: take(node, name) for name in CONV}
    y = op("Conv", channels_first(x, op), needed(node, 1), input_of(node, 2), **given)
    y = channels_last(y, x, op)
    op.replace(_activated(added(y, z, op), node, op))


@lowering(f"{MS}::NhwcMaxPool")
def nhwc_max_pool(node: ir.Node, op: Rewriter) -> None:
    x = needed(node, 0)
    given = {
        name: take(node, name) for name in ("auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "strides")
    }
    op.replace(channels_last(op("MaxPool", channels_first(x, op), **given), x, op))
