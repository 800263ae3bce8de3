"""Dropout and batch normalisation as they are while training."""

from __future__ import annotations

from collections.abc import Container

import numpy as np
import onnx_ir as ir

from onward.graph.build import Builder
from onward.graph.infer import infer
from onward.graph.walk import all_nodes


def training_mode(
    model: ir.Model, only: Container[str] | None = None, biased: bool = False, by_op: bool = False
) -> dict[str, str]:
    """Switch nodes to training, in place; of batch normalisation `only` those with the running means of these names.

    Gives the running statistics that a step changes, each with the output that holds it after the step. They follow
    the unbiased variance, as PyTorch has it, or the biased one of Keras. `by_op`: batch normalisation itself gives them
    out, by its attribute `unbiased`, which only a backend understands.
    """
    op = Builder(model)
    changed: dict[str, str] = {}
    for node in list(all_nodes(model.graph)):
        if node.domain in ("", "ai.onnx") and node.graph is model.graph:
            if node.op_type == "BatchNormalization":
                mean = node.inputs[3]
                if only is None or (mean is not None and mean.name in only):
                    changed |= _batch_normalization(op, node, biased, by_op)
            elif node.op_type == "Dropout":
                _dropout(model.graph, node)
    if changed:
        infer(model)
    return changed


def inference_mode(model: ir.Model) -> None:
    """Switch the nodes of a graph that `training_mode` changed back, in place; nothing may read what they gave out."""
    for node in all_nodes(model.graph):
        if node.domain not in ("", "ai.onnx"):
            continue
        if node.op_type == "BatchNormalization" and node.attributes.get_int("training_mode", 0) == 1:
            node.attributes["training_mode"] = ir.AttrInt64("training_mode", 0)
            node.resize_outputs(1)
            for index in (3, 4):
                node.replace_input_with(index, _origin(node.inputs[index]))
        elif node.op_type == "Dropout" and len(node.inputs) > 2:
            node.resize_inputs(2)


def _origin(value: ir.Value | None) -> ir.Value | None:
    """What a chain of nodes starts from."""
    while value is not None and (node := value.producer()) is not None:
        value = node.inputs[0]
    return value


def _batch_normalization(op: Builder, node: ir.Node, biased: bool, by_op: bool) -> dict[str, str]:
    """With the statistics of the batch, which the op gives out if its momentum is 0; the running ones are kept beside.

    What the op reads in their place does not matter, but it is a tensor of its own: ONNX Runtime writes the outputs
    over it. Where a channel has a single number, which such statistics would turn into 0, the running ones stay in use.
    """
    x, _, _, *statistics = node.inputs
    if x is not None and x.shape is not None and all(d == 1 for d in [*x.shape][:1] + [*x.shape][2:]):
        return {}
    for value in (x, *statistics):
        if value is None or (value is not x and (not value.is_initializer() or len(value.uses()) > 1)):
            return {}
    if any(output.uses() or output.is_graph_output() for output in node.outputs[1:]):
        return {}
    node.attributes["training_mode"] = ir.AttrInt64("training_mode", 1)
    node.resize_outputs(3)
    if by_op:
        node.attributes["unbiased"] = ir.AttrInt64("unbiased", int(not biased))
        return {
            old.name or "": _given_out(op, old, now)
            for old, now in zip(statistics, node.outputs[1:], strict=True)
            if old is not None
        }
    momentum = node.attributes["momentum"].as_float()
    node.attributes["momentum"] = ir.AttrFloat32("momentum", 0.0)
    images, mean, var = (op.tensor(value) for value in (x, *statistics) if value is not None)
    for index, old in enumerate((mean, var), 1):
        zero = op.IsNaN(old).cast(old.dtype).value
        _move(zero, before=node)
        node.replace_input_with(2 + index, zero)
        output = node.outputs[index]
        output.name = op.names.value(f"{old.value.name}.batch")
        output.type, output.shape = old.value.type, old.value.shape
    own_mean, own_var = (op.tensor(output) for output in node.outputs[1:])
    if not biased:
        count = op.Div(op.Size(images), op.Size(mean))
        own_var = own_var * (count.cast(var.dtype) / op.Max(count - 1, op.index(1)).cast(var.dtype))
    after = {
        mean: mean * momentum + own_mean * (1 - momentum),
        var: var * momentum + own_var * (1 - momentum),
    }
    return {old.value.name or "": _given_out(op, old.value, new.value) for old, new in after.items()}


def _given_out(op: Builder, old: ir.Value, new: ir.Value) -> str:
    """Let the graph give out what a running statistic is after the step."""
    new.name = op.names.value(f"{old.name}.next")
    new.type, new.shape = old.type, old.shape
    op.graph.outputs.append(new)
    return new.name


def _move(value: ir.Value, before: ir.Node) -> None:
    """Compute a value earlier than it was written, with what it is computed from."""
    producer = value.producer()
    if producer is not None and before.graph is not None:
        before.graph.remove(producer)
        before.graph.insert_before(before, producer)
        for read in producer.inputs:
            if read is not None:
                _move(read, producer)


def _dropout(graph: ir.Graph, node: ir.Node) -> None:
    """`training_mode` is an input: a constant that says yes. Seeds are for whoever runs the steps."""
    node.attributes.pop("seed", None)
    name = f"{node.outputs[0].name}.training"
    tensor = ir.Tensor(np.asarray(True), name=name)
    value = ir.Value(name=name, const_value=tensor, type=ir.TensorType(ir.DataType.BOOL), shape=ir.Shape([]))
    graph.register_initializer(value)
    ratio = node.inputs[1] if len(node.inputs) > 1 else None
    node.resize_inputs(3)
    node.replace_input_with(1, ratio)
    node.replace_input_with(2, value)
