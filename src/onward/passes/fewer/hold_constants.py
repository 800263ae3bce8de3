"""Constants are initializers, not nodes."""

from __future__ import annotations

import onnx_ir as ir

from onward.graph.constants import tensor_of
from onward.graph.trained import MARK
from onward.hub.tensors import SparseTensor


def hold_constants(model: ir.Model) -> int:
    """In place, in the main graph; returns how many nodes went. Names stay, also those that the model gives out."""
    count = 0
    graph = model.graph
    for node in list(graph):
        if node.op_type != "Constant" or node.domain not in ("", "ai.onnx"):
            continue
        value = node.outputs[0]
        tensor = tensor_of(node)
        if tensor is None or isinstance(tensor, SparseTensor) or value.is_graph_output() or not value.name:
            continue
        held = ir.Value(
            name=value.name,
            type=ir.TensorType(tensor.dtype),
            shape=ir.Shape(tensor.shape.numpy()),
            const_value=tensor,
        )
        if MARK in value.meta:
            held.meta[MARK] = value.meta[MARK]
        value.replace_all_uses_with(held)
        graph.remove(node, safe=True)
        value.name = None
        graph.register_initializer(held)
        count += 1
    return count
