"""What scales and shifts the channels of a layer, folded into its weights: factors, offsets, BatchNormalization."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onward.graph.names import Names
from onward.graph.replace import constant, graphs, is_op, made_by, only_user, shape_of, take_over

Array = npt.NDArray[Any]
LAYERS = ("Conv", "ConvTranspose", "Gemm", "MatMul")
EXACT = {ir.DataType.FLOAT, ir.DataType.DOUBLE}
"""Types whose rounding is small against that of a layer."""
AT_ONCE = 2**22
"""Numbers that are scaled at once: in doubles, a weight may be larger than the memory there is."""
BYTES = 64
"""What a new bias may take: about as much as the node that goes."""


@dataclass(frozen=True)
class _Change:
    """y · scale + shift, for each channel; None where it is not scaled."""

    scale: Array | None
    shift: Array
    offset: ir.Value | None
    """The constant that is added."""


def fold_scalings(model: ir.Model) -> int:
    """In place, where nothing else reads the weights; returns how many nodes went. Weights keep their names."""
    names = Names(model)
    count = 0
    for graph in graphs(model):
        for node in list(graph):
            if is_op(node, "BatchNormalization", "Mul", "Div", "Add", "Sub"):
                count += any(_fold(graph, node, place, names) for place in range(len(node.inputs[:2])))
    return count


def _fold(graph: ir.Graph, node: ir.Node, place: int, names: Names) -> bool:
    layer = made_by(node.inputs[place], *LAYERS)
    if layer is None or layer.graph is not graph or only_user(layer.outputs[0]) is not node:
        return False
    weight = layer.inputs[1]
    shape = _sizes(weight)
    if weight is None or weight.dtype not in EXACT or weight.is_graph_input() or shape is None:
        return False
    channels, rank = _channels(layer, shape), _rank(layer, shape)
    change = _change(node, place, channels, rank, -1 if layer.op_type in ("Gemm", "MatMul") else 1)
    if change is None:
        return False
    held = None if change.scale is None else _own(weight, layer)
    if change.scale is not None and held is None:
        return False
    bias = [*layer.inputs, None][2] if layer.op_type != "MatMul" else None
    before = _bias_numbers(layer, bias, channels)
    if before is None:
        return False
    with np.errstate(all="ignore"):
        shift = (before * (1.0 if change.scale is None else change.scale) + change.shift).astype(weight.dtype.numpy())
    made = None if held is None or change.scale is None else _scaled(layer, held.numpy(), change.scale)
    if not np.isfinite(shift).all() or (held is not None and made is None):
        return False
    if bias is not None or shift.any():
        target = bias if bias is not None else _new_bias(node, change.offset, shift, names)
        if target is None or not _biased(graph, layer, target, shift):
            return False
    if made is not None:
        _set(weight, made)
    take_over(node.outputs[0], layer.outputs[0])
    graph.remove(node, safe=True)
    return True


def _sizes(weight: ir.Value | None) -> tuple[int, ...] | None:
    """The shape of weights, be they computed."""
    sizes = shape_of(weight) or (None,)
    return None if any(size is None or size == 0 for size in sizes) else tuple(n for n in sizes if n is not None)


def _channels(layer: ir.Node, weight: tuple[int, ...]) -> int:
    match layer.op_type:
        case "Conv":
            return weight[0]
        case "ConvTranspose":
            return weight[1] * layer.attributes.get_int("group", 1)
        case "Gemm" if layer.attributes.get_int("transB", 0):
            return weight[0]
    return weight[-1]


def _rank(layer: ir.Node, weight: tuple[int, ...]) -> int:
    """Of the result; 0 where a layer is none of those that have one row of weights for each channel."""
    if layer.op_type in ("Conv", "ConvTranspose"):
        return len(weight) if len(weight) > 2 else 0
    x = layer.inputs[0]
    if len(weight) != 2 or (layer.op_type == "MatMul" and (x is None or x.shape is None)):
        return 0
    return 2 if layer.op_type == "Gemm" or x is None or x.shape is None else len(x.shape)


def _change(node: ir.Node, place: int, channels: int, rank: int, axis: int) -> _Change | None:
    if rank < 2:
        return None
    if node.op_type == "BatchNormalization":
        return _normalisation(node, channels) if place == 0 and (axis == 1 or rank == 2) else None
    other = node.inputs[1 - place]
    numbers = _per_channel(other, channels, rank, axis % rank)
    if numbers is None:
        return None
    nothing = np.zeros(channels)
    match node.op_type:
        case "Mul":
            return _Change(numbers, nothing, None)
        case "Div":
            return _Change(1 / numbers, nothing, None) if place == 0 and numbers.all() else None
        case "Sub":
            return _Change(None, -numbers, other) if place == 0 else _Change(np.full(channels, -1.0), numbers, other)
    return _Change(None, numbers, other)


def _normalisation(node: ir.Node, channels: int) -> _Change | None:
    if any(value.uses() or value.is_graph_output() for value in node.outputs[1:]):
        return None
    get, found = node.attributes.get_int, [_per_channel(value, channels, 1, 0) for value in node.inputs[1:5]]
    if get("training_mode", 0) or get("spatial", 1) != 1 or any(p is None for p in found):
        return None
    gamma, beta, mean, variance = (p for p in found if p is not None)
    with np.errstate(all="ignore"):
        scale = gamma / np.sqrt(variance + node.attributes.get_float("epsilon", 1e-5))
    return _Change(scale, beta - mean * scale, node.inputs[2])


def _per_channel(value: ir.Value | None, channels: int, rank: int, axis: int) -> Array | None:
    """A constant as one number for each channel, if it has no more of them."""
    tensor = constant(value)
    if value is None or tensor is None or value.is_graph_input() or tensor.dtype not in EXACT:
        return None
    shape = tuple(tensor.shape.numpy())
    padded = (1,) * (rank - len(shape)) + shape
    if len(padded) != rank or any(n != 1 and (i != axis or n != channels) for i, n in enumerate(padded)):
        return None
    return np.broadcast_to(tensor.numpy().astype(np.float64).reshape(-1), channels).copy()


def _own(value: ir.Value, reader: ir.Node) -> ir.TensorProtocol | None:
    """What an initializer holds that this node alone reads, and no caller replaces."""
    if not value.is_initializer() or value.is_graph_input() or only_user(value) is not reader:
        return None
    return value.const_value


def _bias_numbers(layer: ir.Node, bias: ir.Value | None, channels: int) -> Array | None:
    if bias is None:
        return np.zeros(channels)
    if layer.op_type == "Gemm" and layer.attributes.get_float("beta", 1.0) != 1.0:
        return None
    if _own(bias, layer) is None:
        return None
    return _per_channel(bias, channels, 2, 1) if layer.op_type == "Gemm" else _per_channel(bias, channels, 1, 0)


def _scaled(layer: ir.Node, weight: Array, scale: Array) -> Array | None:
    """None where numbers become too large, or those of a channel too small, for all their bits."""
    match layer.op_type:
        case "Conv":
            factor = scale
        case "ConvTranspose":
            group = layer.attributes.get_int("group", 1)
            factor = np.repeat(scale.reshape(group, -1), weight.shape[0] // group, axis=0)
        case _:
            factor = scale.reshape((-1, 1) if _transposed(layer) else (1, -1))
    factor = factor.reshape(*factor.shape, *[1] * (weight.ndim - factor.ndim))
    made = np.empty(weight.shape, weight.dtype)
    before, after = np.zeros(factor.shape), np.zeros(factor.shape)
    axes = tuple(axis for axis, size in enumerate(factor.shape) if size == 1)
    rows = max(1, AT_ONCE * len(weight) // weight.size)
    with np.errstate(all="ignore"):
        for first in range(0, len(weight), rows):
            part = slice(first, first + rows)
            its = part if len(factor) > 1 else slice(None)
            made[part] = weight[part].astype(np.float64) * factor[its]
            for largest, numbers in ((before, weight[part]), (after, made[part])):
                largest[its] = np.maximum(largest[its], np.abs(numbers).max(axis=axes, keepdims=True))
    kind = np.finfo(weight.dtype)
    least = kind.tiny / kind.eps
    is_lost = (after < least) & (before >= least) & (np.abs(factor) > 0)
    return None if is_lost.any() or not np.isfinite(after).all() else made


def _transposed(layer: ir.Node) -> bool:
    return layer.op_type == "Gemm" and bool(layer.attributes.get_int("transB", 0))


def _new_bias(node: ir.Node, offset: ir.Value | None, shift: Array, names: Names) -> ir.Value | None:
    """The shift goes on as the bias, under its name, if nothing else reads it."""
    tensor = None if offset is None or not offset.is_initializer() else _own(offset, node)
    if tensor is not None and tensor.size == shift.size:
        return offset
    if shift.nbytes > BYTES and node.op_type != "BatchNormalization":  # whose parameters go
        return None
    return ir.Value(name=names.value(f"{node.outputs[0].name}.bias"))


def _biased(graph: ir.Graph, layer: ir.Node, bias: ir.Value, shift: Array) -> bool:
    x = layer.inputs[0]
    if layer.op_type == "MatMul":
        if x is None or x.shape is None or len(x.shape) != 2:
            return False
        layer.op_type = "Gemm"
    layer.attributes.pop("beta", None)
    _set(bias, shift)
    if bias.graph is None:
        graph.register_initializer(bias)
    layer.resize_inputs(3)
    layer.replace_input_with(2, bias)
    return True


def _set(value: ir.Value, array: Array) -> None:
    value.const_value = ir.Tensor(array, name=value.name)
    value.type, value.shape = ir.TensorType(value.const_value.dtype), ir.Shape(array.shape)
