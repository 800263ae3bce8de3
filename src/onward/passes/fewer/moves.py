"""What passes over nodes that only move numbers have in common."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from onward.graph.facts import Facts
from onward.graph.names import Names
from onward.graph.replace import constant, made_by, only_user
from onward.graph.rewriter import attribute

AXES_AS_INPUT = 13
"""The opset from which on Squeeze and Unsqueeze take their axes as an input."""
ENDS = 10
"""The opset from which on Slice takes numbers as inputs."""
FAR = 2**31 - 1
"""An end behind that of any axis, as exporters write it."""


def give_on(node: ir.Node, value: ir.Value | None) -> bool:
    """Let `value` stand for the result of a node, which goes. A name that the model gives out stays."""
    result, graph = node.outputs[0], node.graph
    if value is None or graph is None:
        return False
    if result.is_graph_output():
        maker = value.producer()
        if maker is None or maker.graph is not graph or value.is_graph_output() or graph.outputs.count(result) > 1:
            return False
        value.type, value.shape = result.type, result.shape
        result.replace_all_uses_with(value, replace_graph_outputs=True)
        result.name, value.name = None, result.name
    else:
        result.replace_all_uses_with(value)
    graph.remove(node, safe=True)
    return True


class Moves:
    """What is known of the nodes of a model that move numbers."""

    def __init__(self, model: ir.Model) -> None:
        self.opset = model.opset_imports.get("", model.opset_imports.get("ai.onnx", 0))
        self.names = Names(model)
        self.facts = Facts()

    def ints(self, node: ir.Node, place: int, name: str) -> list[int] | None:
        """What an attribute of old opsets holds, or an input of newer ones."""
        if name in node.attributes:
            return list(node.attributes[name].as_ints())
        tensor = constant(node.inputs[place]) if place < len(node.inputs) else None
        if tensor is None or tensor.dtype not in (ir.DataType.INT64, ir.DataType.INT32) or tensor.size > 64:
            return None
        return [int(n) for n in tensor.numpy().reshape(-1)]

    def vector(self, node: ir.Node, numbers: Sequence[int], hint: str) -> ir.Value:
        name = self.names.value(f"{node.outputs[0].name}_{hint}")
        tensor = ir.tensor(np.array(numbers, np.int64), name=name)
        value = ir.Value(
            name=name, shape=ir.Shape([len(numbers)]), type=ir.TensorType(tensor.dtype), const_value=tensor
        )
        graph = node.graph
        assert isinstance(graph, ir.Graph)
        graph.register_initializer(value)
        return value

    def same_shape(self, a: ir.Value | None, b: ir.Value) -> bool:
        if a is None or a.shape is None or b.shape is None or len(a.shape) != len(b.shape):
            return False
        return all(self.facts.dim(a, i) == self.facts.dim(b, i) for i in range(len(a.shape)))

    def axes(self, node: ir.Node) -> list[int] | None:
        """Of a Squeeze or Unsqueeze, ascending, counted from the front."""
        found, full = self.ints(node, 1, "axes"), node.inputs[0] if node.op_type == "Squeeze" else node.outputs[0]
        if not found or (min(found) < 0 and (full is None or full.shape is None)):
            return None
        rank = len(full.shape) if full is not None and full.shape is not None else 0
        axes = sorted(axis + rank if axis < 0 else axis for axis in found)
        return axes if len({*axes}) == len(axes) and axes[0] >= 0 else None

    def set_axes(self, node: ir.Node, axes: Sequence[int]) -> None:
        if self.opset < AXES_AS_INPUT:
            node.attributes["axes"] = attribute("axes", list(axes))
        else:
            node.replace_input_with(1, self.vector(node, axes, "axes"))

    def steps(self, node: ir.Node) -> list[int] | None:
        """Of a Slice."""
        return self.ints(node, 4, "") if len(node.inputs) > 4 and node.inputs[4] is not None else [1]

    def cut(self, node: ir.Node) -> tuple[list[int], list[int], list[int], list[int]] | None:
        """Starts, ends, axes from the front, and steps of a Slice, where all are known."""
        if self.opset < ENDS or len(node.inputs) < 4:
            return None
        starts, ends, axes = (self.ints(node, place, "") for place in (1, 2, 3))
        steps = self.steps(node)
        if starts is None or ends is None or not axes or steps is None or min(axes) < 0:
            return None
        return starts, ends, axes, steps if len(steps) == len(axes) else steps * len(axes)


def alone_before(node: ir.Node, *op_types: str) -> ir.Node | None:
    """The node before this one, if no other reads it and it is of the same graph."""
    found = made_by(node.inputs[0], *op_types)
    alone = found is not None and found.graph is node.graph and only_user(found.outputs[0]) is node
    return found if alone else None


def read_through(node: ir.Node, inner: ir.Node) -> None:
    """Let a node read what the one before it read, which goes."""
    graph = inner.graph
    assert graph is not None
    node.replace_input_with(0, inner.inputs[0])
    graph.remove(inner, safe=True)
