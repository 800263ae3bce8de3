"""Nodes that only move numbers: those that move nothing go, and one does what two in a row did."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from onward.graph.facts import Facts
from onward.graph.names import Names
from onward.graph.replace import constant, graphs, is_op, made_by, only_user
from onward.graph.rewriter import attribute

AXES_AS_INPUT = 13
"""The opset from which on Squeeze and Unsqueeze take their axes as an input."""
ENDS = 10
"""The opset from which on Slice takes numbers as inputs."""


def join_moves(model: ir.Model) -> int:
    """In place; returns how many nodes went or took the place of several."""
    moves = Moves(model)
    count = 0
    for graph in graphs(model):
        for node in list(graph):
            rule = RULES.get(node.op_type) if node.domain in ("", "ai.onnx") else None
            if rule is not None and node.graph is graph:
                count += rule(moves, node)
    return count


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


def _inner(node: ir.Node, *op_types: str) -> ir.Node | None:
    """The node before this one, if no other reads it and it is of the same graph."""
    found = made_by(node.inputs[0], *op_types)
    alone = found is not None and found.graph is node.graph and only_user(found.outputs[0]) is node
    return found if alone else None


def _through(node: ir.Node, inner: ir.Node) -> None:
    """Let a node read what the one before it read, which goes."""
    graph = inner.graph
    assert graph is not None
    node.replace_input_with(0, inner.inputs[0])
    graph.remove(inner, safe=True)


def _reshape(m: Moves, node: ir.Node) -> bool:
    x = node.inputs[0]
    if m.same_shape(x, node.outputs[0]):
        return give_on(node, x)
    target = m.ints(node, 1, "shape")
    inner = _inner(node, "Reshape", "Flatten", "Squeeze", "Unsqueeze")
    if inner is None or target is None or 0 in target or inner.inputs[0] is None:
        return False
    _through(node, inner)
    return True


def _same(m: Moves, node: ir.Node) -> bool:
    return m.same_shape(node.inputs[0], node.outputs[0]) and give_on(node, node.inputs[0])


def _transpose(m: Moves, node: ir.Node) -> bool:
    perm = node.attributes.get_ints("perm", None)
    if perm is None:
        return False
    if list(perm) == sorted(perm):
        return give_on(node, node.inputs[0])
    inner = _inner(node, "Transpose")
    first = None if inner is None else inner.attributes.get_ints("perm", None)
    if inner is None or first is None or len(first) != len(perm):
        return False
    node.attributes["perm"] = attribute("perm", [first[axis] for axis in perm])
    _through(node, inner)
    return True


def _squeeze(m: Moves, node: ir.Node) -> bool:
    axes = m.axes(node)
    before = made_by(node.inputs[0], "Unsqueeze")
    if axes is not None and before is not None and m.axes(before) == axes:
        return give_on(node, before.inputs[0])
    inner = _inner(node, "Squeeze")
    first = None if inner is None else m.axes(inner)
    if axes is None or inner is None or first is None:
        return False
    left = [axis for axis in range(len(first) + axes[-1] + 1) if axis not in first]
    m.set_axes(node, sorted(first + [left[axis] for axis in axes]))
    _through(node, inner)
    return True


def _unsqueeze(m: Moves, node: ir.Node) -> bool:
    axes = m.axes(node)
    before = made_by(node.inputs[0], "Squeeze")
    if axes is not None and before is not None and m.axes(before) == axes:
        return give_on(node, before.inputs[0])
    inner = _inner(node, "Unsqueeze")
    first = None if inner is None else m.axes(inner)
    if axes is not None and inner is not None and first is not None:
        left = [axis for axis in range(len(axes) + first[-1] + 1) if axis not in axes]
        m.set_axes(node, sorted(axes + [left[axis] for axis in first]))
        _through(node, inner)
        return True
    return axes == [0] and _picked(m, node)


def _picked(m: Moves, node: ir.Node) -> bool:
    """A number taken out of a vector and made a vector: taken out as one.

    In a Concat it stays: ONNX Runtime knows a Reshape to such a shape by its nodes, and computes it beforehand.
    """
    if any(is_op(reader, "Concat") for reader, _ in node.outputs[0].uses()):
        return False
    gather = _inner(node, "Gather")
    index = None if gather is None else constant(gather.inputs[1])
    if gather is None or index is None or len(index.shape) or gather.inputs[0] is None:
        return False
    if gather.inputs[0].shape is None or len(gather.inputs[0].shape) != 1:
        return False
    gather.replace_input_with(1, m.vector(node, [int(index.numpy())], "index"))
    gather.outputs[0].name, gather.outputs[0].shape = m.names.value(f"{gather.outputs[0].name}_one"), ir.Shape([1])
    return give_on(node, gather.outputs[0])


def _slice(m: Moves, node: ir.Node) -> bool:
    steps = m.steps(node)
    if steps is not None and min(steps, default=1) > 0 and _same(m, node):
        return True
    inner = _inner(node, "Slice")
    first, second = None if inner is None else m.cut(inner), m.cut(node)
    if inner is None or first is None or second is None or {*first[2]} & {*second[2]}:
        return False
    node.resize_inputs(5)
    for place, hint in enumerate(("starts", "ends", "axes", "steps")):
        node.replace_input_with(place + 1, m.vector(node, first[place] + second[place], hint))
    _through(node, inner)
    return True


def _concat(m: Moves, node: ir.Node) -> bool:
    return len(node.inputs) == 1 and give_on(node, node.inputs[0])


def _pad(m: Moves, node: ir.Node) -> bool:
    pads = m.ints(node, 1, "pads")
    return pads is not None and not any(pads) and give_on(node, node.inputs[0])


RULES: dict[str, Callable[[Moves, ir.Node], bool]] = {
    "Concat": _concat,
    "Expand": _same,
    "Flatten": _same,
    "Pad": _pad,
    "Reshape": _reshape,
    "Slice": _slice,
    "Squeeze": _squeeze,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}
