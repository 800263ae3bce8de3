"""Dropout and batch normalisation as they are while training."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onward.canon.infer import infer
from onward.canon.walk import all_nodes


def training_mode(model: ir.Model) -> dict[str, str]:
    """Switch nodes to training, in place.

    Gives the running statistics that a step changes, each with the output that holds it after the step.
    """
    changed: dict[str, str] = {}
    for node in list(all_nodes(model.graph)):
        if node.domain in ("", "ai.onnx") and node.graph is model.graph:
            if node.op_type == "BatchNormalization":
                changed |= _batch_normalization(model.graph, node)
            elif node.op_type == "Dropout":
                _dropout(model.graph, node)
    if changed:
        infer(model)
    return changed


def _batch_normalization(graph: ir.Graph, node: ir.Node) -> dict[str, str]:
    """With the statistics of the batch; the running ones come out next to the result."""
    statistics = node.inputs[3:5]
    if any(value is None or not value.is_initializer() or len(value.uses()) > 1 for value in statistics):
        return {}
    node.attributes["training_mode"] = ir.AttrInt64("training_mode", 1)
    node.resize_outputs(3)
    found = {}
    for value, output in zip(statistics, node.outputs[1:], strict=True):
        assert value is not None and value.name
        output.name = f"{value.name}.next"
        output.type, output.shape = value.type, value.shape
        graph.outputs.append(output)
        found[value.name] = output.name
    return found


def _dropout(graph: ir.Graph, node: ir.Node) -> None:
    """`training_mode` is an input: a constant that says yes."""
    name = f"{node.outputs[0].name}.training"
    tensor = ir.Tensor(np.asarray(True), name=name)
    value = ir.Value(name=name, const_value=tensor, type=ir.TensorType(ir.DataType.BOOL), shape=ir.Shape([]))
    graph.register_initializer(value)
    ratio = node.inputs[1] if len(node.inputs) > 1 else None
    node.resize_inputs(3)
    node.replace_input_with(1, ratio)
    node.replace_input_with(2, value)
