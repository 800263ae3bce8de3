"""Weights that are only read in another shape or order are stored so, under their names.

Keras keeps the weights of attention by head and those of a 1-D convolution without the axis that its 2-D one has; a
layer can own them once they are as it wants them. PyTorch's state dict has the shapes of the file: its weights stay.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onward.graph.replace import constant, is_op, only_user
from onward.graph.trained import inherit, reads_weight, role
from onward.graph.walk import all_graphs
from onward.passes.fold_constants import EVALUATE, Array, stand_in

REARRANGEMENTS = ("Reshape", "Transpose", "Unsqueeze", "Squeeze")


def arrange_weights(model: ir.Model) -> int:
    """Rewrites in place; returns how many nodes went."""
    if model.producer_name == "pytorch":
        return 0
    return sum(_stored(graph, node) for graph in list(all_graphs(model.graph)) for node in list(graph))


def _stored(graph: ir.Graph, node: ir.Node) -> bool:
    weight = node.inputs[0] if is_op(node, *REARRANGEMENTS) else None
    if weight is None or role(weight) is None or not weight.is_initializer() or weight.is_graph_input():
        return False
    output, tensor, home = node.outputs[0], constant(weight), weight.graph
    if only_user(weight) is not node or output.is_graph_output() or tensor is None or home is None:
        return False
    if not _is_for_layer(node):
        return False
    others = [constant(value) for value in node.inputs[1:] if value is not None]
    if any(other is None for other in others):
        return False
    numbers = [other.numpy() for other in others if other is not None]
    options = {name: attribute.value for name, attribute in node.attributes.items()}

    def arranged(array: Array) -> Array:
        return EVALUATE[node.op_type](array, *numbers, **options)

    try:
        shape = ir.Shape(arranged(stand_in(tensor)).shape)
    except (ValueError, IndexError, TypeError):
        return False
    name = weight.name or ""
    kind = tensor.dtype
    stored = ir.LazyTensor(
        lambda: ir.Tensor(np.ascontiguousarray(arranged(tensor.numpy())), dtype=kind), kind, shape, name=name
    )
    value = ir.Value(name=name, shape=shape, type=ir.TensorType(kind), const_value=stored)
    inherit(value, weight)
    output.replace_all_uses_with(value)
    graph.remove(node, safe=True)
    del home.initializers[name]
    home.register_initializer(value)
    return True


def _is_for_layer(node: ir.Node) -> bool:
    """Whether all that is read of a weight, after this node and others like it, is the weight of a layer."""
    last, first = node, node
    while is_op(last, *REARRANGEMENTS):
        uses = last.outputs[0].uses()
        if len(uses) != 1 or last.outputs[0].is_graph_output():
            return False
        reader, index = next(iter(uses))
        if index != 0 and is_op(reader, *REARRANGEMENTS):
            return False
        if is_op(first, "Transpose") and is_op(reader, "MatMul", "Gemm"):
            return False  # a linear layer, which is recognised as it is
        if not is_op(reader, *REARRANGEMENTS):
            return reads_weight(reader, index)
        last = reader
    return False
