"""Mixtures of experts of `com.microsoft`: every expert computes, and each row takes the results of those it chose."""

import numpy as np
import onnx_ir as ir

from onward.canon.lower.microsoft_attention import refuse
from onward.canon.lower.microsoft_fused import MS
from onward.canon.lower.microsoft_matmul import CODES, repacked
from onward.canon.lower.registry import lowering
from onward.errors import UnsupportedError
from onward.graph.narrow import unpacked
from onward.graph.rewriter import Rewriter, describe, dims, input_of, needed, take

_D = ir.DataType


@lowering(f"{MS}::MoE")
def mixture_of_experts(node: ir.Node, op: Rewriter) -> None:
    """Inputs: rows, scores of the experts, then weight and bias of up to three layers."""
    normalised = take(node, "normalize_routing_weights", 0)
    scores, count = needed(node, 1), take(node, "k", 1)
    refuse(node, "a sparse mixer", take(node, "use_sparse_mixer", 0))
    chosen = scores if normalised else op("Softmax", scores, axis=-1)
    shares, which = op.many(2, "TopK", chosen, op.ints([count]), axis=-1)
    layers = [_Layer(input_of(node, i), input_of(node, i + 1)) for i in (2, 4, 6)]
    _check_layout(node, layers)
    _mix(node, op, which, op("Softmax", shares, axis=-1) if normalised else shares, layers)


@lowering(f"{MS}::QMoE")
def quantized_mixture_of_experts(node: ir.Node, op: Rewriter) -> None:
    """Inputs: rows, scores, then weight, scales and bias of up to three layers, their zero points, shares of experts.

    Without these, the shares are those of the scores among the experts that were chosen.
    """
    scores, given, count = needed(node, 1), input_of(node, 14), take(node, "k", 1)
    normalised = take(node, "normalize_routing_weights", 0)
    refuse(node, "a sparse mixer", take(node, "use_sparse_mixer", 0))
    refuse(node, "weights of 8-bit or 4-bit floats", take(node, "quant_type", "int") != "int")
    refuse(node, "weights that are laid out for one kind of processor", take(node, "weights_prepacked", -1) == 1)
    best, which = op.many(2, "TopK", scores, op.ints([count]), axis=-1)
    if given is None:
        shares = op("Softmax", best, axis=-1)
    else:
        shares = op("GatherElements", given, which, axis=1)
        if normalised:
            shares = op("Div", shares, op("ReduceSum", shares, op.ints([1]), keepdims=1))
    bits, size = take(node, "expert_weight_bits", 4), take(node, "block_size", 0)
    layers = []
    for number, first in ((1, 2), (2, 5), (3, 8)):
        width = take(node, f"fc{number}_expert_weight_bits", bits)
        weight = _real(node, op, first, 10 + number, width, size)
        layers.append(_Layer(weight, input_of(node, first + 2)))
    _mix(node, op, which, shares, layers)


class _Layer:
    """A linear layer of every expert: a weight (experts, out, in) and a bias (experts, out)."""

    def __init__(self, weight: ir.Value | None, bias: ir.Value | None) -> None:
        self.weight = weight
        self.bias = bias

    def __call__(self, x: ir.Value, op: Rewriter) -> ir.Value:
        assert self.weight is not None
        y = op("MatMul", x, op("Transpose", self.weight, perm=[0, 2, 1]))
        return y if self.bias is None else op("Add", y, op("Unsqueeze", self.bias, op.ints([1])))


def _mix(node: ir.Node, op: Rewriter, which: ir.Value, shares: ir.Value, layers: list[_Layer]) -> None:
    """Rows through two layers with an activation between them, and the weighted sum over the experts chosen."""
    x = needed(node, 0)
    first, second, gate = layers
    hidden = (dims(x) or [None])[-1] or (dims(_weight(node, second)) or [None] * 3)[1]
    if hidden is None:
        raise UnsupportedError(f"{describe(node)}: the size of its rows is not known")
    rows = op("Reshape", x, op.ints([1, -1, hidden]))
    active = _activated(node, op, first(rows, op), gate(rows, op) if gate.weight is not None else None)
    results = op("Transpose", second(active, op), perm=[1, 0, 2])
    column = op("Unsqueeze", which, op.ints([2]))
    places = op("Expand", column, op("Concat", op("Shape", column, end=2), op.ints([hidden]), axis=0))
    taken = op("GatherElements", results, places, axis=1)
    total = op("ReduceSum", op("Mul", taken, op("Unsqueeze", shares, op.ints([2]))), op.ints([1]), keepdims=0)
    op.replace(op("Reshape", total, op("Shape", x), allowzero=1))


def _weight(node: ir.Node, layer: _Layer) -> ir.Value:
    if layer.weight is None:
        raise UnsupportedError(f"{describe(node)}: the weight of a layer is missing")
    return layer.weight


def _activated(node: ir.Node, op: Rewriter, x: ir.Value, linear: ir.Value | None) -> ir.Value:
    kind, fusion = take(node, "activation_type", "relu"), take(node, "swiglu_fusion", 0)
    alpha, beta, limit = (
        take(node, "activation_alpha", 1.0),
        take(node, "activation_beta", 0.0),
        take(node, "swiglu_limit"),
    )
    if kind == "swiglu":
        gate = x
        if linear is None:
            gate, linear = _halves(op, x, interleaved=fusion == 1)
        if limit is not None:
            low, high = op.number(-limit, x), op.number(limit, x)
            gate, linear = op("Min", gate, high), op("Clip", linear, low, high)
        scaled = gate if alpha == 1 else op("Mul", gate, op.number(alpha, x))
        linear = linear if beta == 0 else op("Add", linear, op.number(beta, x))
        return op("Mul", op("Mul", gate, op("Sigmoid", scaled)), linear)
    simple = {
        "relu": lambda: op("Relu", x),
        "gelu": lambda: op("Gelu", x, approximate="tanh"),
        "silu": lambda: op("Mul", x, op("Sigmoid", x)),
        "identity": lambda: x,
    }
    if kind not in simple:
        raise UnsupportedError(f"{describe(node)}: the activation {kind!r} is not known")
    active = simple[kind]()
    return active if linear is None else op("Mul", active, linear)


def _halves(op: Rewriter, x: ir.Value, interleaved: bool) -> list[ir.Value]:
    """Gate and linear part of a layer that computes both: in turns, or one after the other."""
    if not interleaved:
        return list(op.many(2, "Split", x, axis=-1, num_outputs=2))
    end, axis, step = op.ints([2**31 - 1]), op.ints([-1]), op.ints([2])
    return [op("Slice", x, op.ints([begin]), end, axis, step) for begin in (0, 1)]


def _check_layout(node: ir.Node, layers: list[_Layer]) -> None:
    """Older files have weights (experts, in, out), which ONNX Runtime itself computes wrong things with."""
    hidden, last = (dims(needed(node, 0)) or [None])[-1], dims(_weight(node, layers[1]))
    if hidden is not None and last is not None and last[1] is not None and last[1] != hidden:
        raise UnsupportedError(
            f"{describe(node)}: its weights are (experts, in, out); transpose them to (experts, out, in)"
        )


def _real(node: ir.Node, op: Rewriter, first: int, zero: int, bits: int, size: int) -> ir.Value | None:
    """The numbers that the quantized weights of a layer stand for; blocks of them, or rows, have a scale each."""
    weight, scales, points = input_of(node, first), input_of(node, first + 1), input_of(node, zero)
    if weight is None or scales is None:
        return None
    known = dims(weight)
    if bits not in CODES or known is None or None in known:
        raise UnsupportedError(f"{describe(node)}: weights of {bits} bits, or of unknown shape, have no rule")
    experts, count, width = (n or 0 for n in known)
    columns = width * 8 // bits
    blocks = -(-columns // size) if size else 1
    codes = repacked(weight, bits, (experts, count, columns), op)
    scales = op("Reshape", scales, op.ints([experts, count, blocks]))
    shape = (experts, count, blocks)
    if points is None:
        zeros = np.full(shape, 2 ** (bits - 1), np.uint8)
    else:
        tensor = ir.convenience.get_const_tensor(points)
        if tensor is None:
            raise UnsupportedError(f"{describe(node)}: its zero points are computed by the model")
        flat = unpacked(np.asarray(tensor.numpy()).view(np.uint8), bits)
        zeros = flat[..., :blocks] if size else flat[..., :count, None]
    offsets = op.constant(zeros.reshape(shape).astype(CODES[bits]))
    return op("DequantizeLinear", codes, scales, offsets, axis=2, block_size=size or columns)
