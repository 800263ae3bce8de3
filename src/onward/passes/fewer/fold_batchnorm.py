"""A BatchNormalization behind a convolution, folded into its weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onward.graph.names import Names
from onward.graph.replace import constant, graphs, is_op, made_by, only_user, take_over

Array = npt.NDArray[Any]
EXACT = {ir.DataType.FLOAT, ir.DataType.DOUBLE}
"""Types whose rounding is small against that of a convolution."""


def fold_batchnorm(model: ir.Model) -> int:
    """In place, where nothing else reads the weights; returns how many nodes went. Weights keep their names."""
    names = Names(model)
    count = 0
    for graph in graphs(model):
        for node in list(graph):
            if is_op(node, "BatchNormalization") and _is_inference(node):
                count += _fold(graph, node, names)
    return count


def _is_inference(node: ir.Node) -> bool:
    used = any(value.uses() or value.is_graph_output() for value in node.outputs[1:])
    get = node.attributes.get_int
    return not used and not get("training_mode", 0) and get("spatial", 1) == 1


def _fold(graph: ir.Graph, node: ir.Node, names: Names) -> bool:
    conv = made_by(node.inputs[0], "Conv", "ConvTranspose")
    if conv is None or conv.graph is not graph or only_user(conv.outputs[0]) is not node:
        return False
    weight = conv.inputs[1]
    bias = conv.inputs[2] if len(conv.inputs) > 2 else None
    held, params = _own(weight, conv), [constant(value) for value in node.inputs[1:5]]
    bound = None if bias is None else _own(bias, conv)
    if held is None or weight is None or weight.dtype not in EXACT or (bias is not None and bound is None):
        return False
    if any(p is None or p.dtype not in EXACT for p in params) or any(v.is_graph_input() for v in node.inputs if v):
        return False
    transposed = conv.op_type == "ConvTranspose"
    if transposed and conv.attributes.get_int("group", 1) != 1:
        return False
    gamma, beta, mean, variance = (p.numpy().astype(np.float64).reshape(-1) for p in params if p is not None)
    scale = gamma / np.sqrt(variance + node.attributes.get_float("epsilon", 1e-5))
    w = held.numpy().astype(np.float64)
    axis = 1 if transposed else 0
    if w.ndim < 3 or w.shape[axis] != scale.size or not np.isfinite(scale).all():
        return False
    before = np.zeros(scale.size) if bound is None else bound.numpy().astype(np.float64)
    dtype = held.numpy().dtype
    made = (w * scale.reshape([-1 if i == axis else 1 for i in range(w.ndim)])).astype(dtype)
    shift = ((before - mean) * scale + beta).astype(dtype)
    if not (np.isfinite(made).all() and np.isfinite(shift).all()):
        return False
    _set(weight, made)
    target = bias if bias is not None else _bias(graph, node, names, shift)
    _set(target, shift)
    conv.resize_inputs(3)
    conv.replace_input_with(2, target)
    take_over(node.outputs[0], conv.outputs[0])
    graph.remove(node, safe=True)
    return True


def _own(value: ir.Value | None, reader: ir.Node) -> ir.TensorProtocol | None:
    """What an initializer holds that this node alone reads, and no caller replaces."""
    if value is None or not value.is_initializer() or value.is_graph_input() or only_user(value) is not reader:
        return None
    return value.const_value


def _bias(graph: ir.Graph, node: ir.Node, names: Names, shift: Array) -> ir.Value:
    """The shift of the normalisation goes on as the bias, under its name, if nothing else reads it."""
    old = node.inputs[2]
    if old is not None and _own(old, node) is not None:
        return old
    value = ir.Value(name=names.value(f"{node.name or 'normalisation'}.bias"))
    value.const_value = ir.Tensor(shift, name=value.name)
    graph.register_initializer(value)
    return value


def _set(value: ir.Value, array: Array) -> None:
    value.const_value = ir.Tensor(array, name=value.name)
    value.type, value.shape = ir.TensorType(value.const_value.dtype), ir.Shape(array.shape)
