"""One node for several that compute the same from the same values."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onward.graph.replace import constant
from onward.graph.trained import role
from onward.graph.walk import all_graphs, inner_graphs
from onward.spec.random import RANDOM

SMALL = 64
"""Elements up to which tensors are compared: those of attributes, and constants that are no weights."""
APART = {*RANDOM, "Dropout", "QuantizeLinear", "DequantizeLinear"}
"""Ops that give something else each time, or may; and those that ONNX Runtime fuses with their one reader."""


def merge_equal(model: ir.Model) -> int:
    """In place, within each graph; returns how many nodes went. Names that the model gives out stay."""
    return sum(_merge(graph) for graph in all_graphs(model.graph))


def _merge(graph: ir.Graph) -> int:
    known: dict[Any, ir.Node] = {}
    count = 0
    for node in list(graph):
        key = _key(node)
        if key is None:
            continue
        twin = known.setdefault(key, node)
        if twin is not node and not any(value.is_graph_output() for value in node.outputs):
            for value, other in zip(node.outputs, twin.outputs, strict=True):
                value.replace_all_uses_with(other)
            graph.remove(node, safe=True)
            count += 1
    return count


def _key(node: ir.Node) -> Any:
    """Equal for nodes that give the same; None where that is not known."""
    if node.domain not in ("", "ai.onnx", "ai.onnx.ml") or node.op_type in APART or any(inner_graphs(node)):
        return None
    attributes = []
    for name, attribute in sorted(node.attributes.items()):
        value: Any = attribute.value
        if attribute.is_ref():
            return None
        if attribute.type is ir.AttributeType.TENSOR:
            value = _content(value)
            if value is None:
                return None
        elif isinstance(value, list | tuple):
            value = repr(tuple(value))  # as numbers, 0 and -0 would be equal
        elif not isinstance(value, int | float | str):
            return None
        attributes.append((name, attribute.type, repr(value) if isinstance(value, float) else value))
    outputs = tuple(bool(value.name) for value in node.outputs)
    inputs = tuple(_known(value) or value for value in node.inputs)
    return node.domain, node.op_type, node.overload, inputs, outputs, tuple(attributes)


def _known(value: ir.Value | None) -> Any:
    """What a constant holds, which others may hold as well; None of weights, whose names stay."""
    tensor = constant(value)
    if value is None or tensor is None or value.is_graph_input() or role(value) is not None:
        return None
    return _content(tensor)


def _content(tensor: ir.TensorProtocol) -> Any:
    if tensor.size > SMALL or tensor.dtype == ir.DataType.STRING:
        return None
    return tensor.dtype, tuple(tensor.shape.numpy()), tensor.tobytes()
