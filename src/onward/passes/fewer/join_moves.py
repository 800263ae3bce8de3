"""Nodes that only move numbers: those that move nothing go, and one does what two in a row did."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx_ir as ir

from onward.graph.replace import graphs, made_by, new_node, only_user, take_over
from onward.graph.rewriter import attribute, set_inputs
from onward.passes.fewer.join_picks import is_known_by_its_nodes, join_picks, pick
from onward.passes.fewer.moves import AXES_AS_INPUT, FAR, Moves, alone_before, give_on, read_through


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


def _reshape(m: Moves, node: ir.Node) -> bool:
    x = node.inputs[0]
    if m.same_shape(x, node.outputs[0]):
        return give_on(node, x)
    target = m.ints(node, 1, "shape")
    inner = alone_before(node, "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose")
    if inner is None or target is None or 0 in target or inner.inputs[0] is None:
        return False
    if inner.op_type == "Transpose":
        return _unsqueezed_before(m, inner)
    read_through(node, inner)
    return True


def _unsqueezed_before(m: Moves, node: ir.Node) -> bool:
    """Axes of one element go before a Transpose, in front of a Reshape that does not care for them."""
    before, perm = alone_before(node, "Unsqueeze"), node.attributes.get_ints("perm", None)
    axes = None if before is None else m.axes(before)
    if before is None or axes is None or perm is None:
        return False
    left = [axis for axis in range(len(perm)) if axis not in axes]
    node.attributes["perm"] = attribute("perm", [left.index(axis) for axis in perm if axis in left])
    result, x = node.outputs[0], before.inputs[0]
    dims = None if result.shape is None else [n for n, axis in zip(result.shape, perm, strict=True) if axis in left]
    result.name, result.shape = m.names.value(f"{result.name}_moved"), None if dims is None else ir.Shape(dims)
    node.replace_input_with(0, x)
    before.graph.remove(before, safe=True)  # type: ignore[union-attr]
    return True


def _reshaped(m: Moves, node: ir.Node, axes: Sequence[int] | None) -> bool:
    """Axes of one element that come or go behind a Reshape, as a part of its shape."""
    inner = alone_before(node, "Reshape")
    target = None if inner is None else m.ints(inner, 1, "shape")
    if inner is None or target is None or axes is None or 0 in target:
        return False
    if node.op_type == "Unsqueeze":
        for axis in axes:
            target.insert(axis, 1)
    elif axes[-1] < len(target) and all(target[axis] == 1 for axis in axes):
        target = [size for axis, size in enumerate(target) if axis not in axes]
    else:
        return False
    new = new_node("Reshape", [inner.inputs[0], m.vector(node, target, "shape")], {}, node, node)
    take_over(node.outputs[0], new.outputs[0])
    for one in (node, inner):
        one.graph.remove(one, safe=True)  # type: ignore[union-attr]
    return True


def _same(m: Moves, node: ir.Node) -> bool:
    return m.same_shape(node.inputs[0], node.outputs[0]) and give_on(node, node.inputs[0])


def _transpose(m: Moves, node: ir.Node) -> bool:
    perm = node.attributes.get_ints("perm", None)
    if perm is None:
        return False
    if list(perm) == sorted(perm):
        return give_on(node, node.inputs[0])
    inner = alone_before(node, "Transpose")
    first = None if inner is None else inner.attributes.get_ints("perm", None)
    if inner is None or first is None or len(first) != len(perm):
        return False
    node.attributes["perm"] = attribute("perm", [first[axis] for axis in perm])
    read_through(node, inner)
    return True


def _squeeze(m: Moves, node: ir.Node) -> bool:
    axes = m.axes(node)
    before = made_by(node.inputs[0], "Unsqueeze")
    if axes is not None and before is not None and m.axes(before) == axes:
        return give_on(node, before.inputs[0])
    inner = alone_before(node, "Squeeze")
    first = None if inner is None else m.axes(inner)
    if axes is None or inner is None or first is None:
        return _reshaped(m, node, axes)
    left = [axis for axis in range(len(first) + axes[-1] + 1) if axis not in first]
    m.set_axes(node, sorted(first + [left[axis] for axis in axes]))
    read_through(node, inner)
    return True


def _unsqueeze(m: Moves, node: ir.Node) -> bool:
    axes = m.axes(node)
    before = made_by(node.inputs[0], "Squeeze")
    if axes is not None and before is not None and m.axes(before) == axes:
        return give_on(node, before.inputs[0])
    inner = alone_before(node, "Unsqueeze")
    first = None if inner is None else m.axes(inner)
    if axes is not None and inner is not None and first is not None:
        left = [axis for axis in range(len(axes) + first[-1] + 1) if axis not in axes]
        m.set_axes(node, sorted(axes + [left[axis] for axis in first]))
        read_through(node, inner)
        return True
    return _reshaped(m, node, axes) or (axes == [0] and pick(m, node))


def _slice(m: Moves, node: ir.Node) -> bool:
    steps = m.steps(node)
    if steps is not None and min(steps, default=1) > 0 and _same(m, node):
        return True
    whole = m.cut(node)
    if whole is not None and not any(whole[0]) and min(whole[1]) >= FAR and {*whole[3]} == {1}:
        return give_on(node, node.inputs[0])
    inner = alone_before(node, "Slice")
    first, second = None if inner is None else m.cut(inner), m.cut(node)
    if inner is None or first is None or second is None or {*first[2]} & {*second[2]}:
        return False
    node.resize_inputs(5)
    for place, hint in enumerate(("starts", "ends", "axes", "steps")):
        node.replace_input_with(place + 1, m.vector(node, first[place] + second[place], hint))
    read_through(node, inner)
    return True


def _concat(m: Moves, node: ir.Node) -> bool:
    if len(node.inputs) == 1:
        return give_on(node, node.inputs[0])
    return not is_known_by_its_nodes(node) and (_concat_of_concats(node) or join_picks(m, node))


def _concat_of_concats(node: ir.Node) -> bool:
    axis = _axis(node)
    found = [made_by(value, "Concat") for value in node.inputs]
    inner = {
        one
        for one in found
        if one is not None and one.graph is node.graph and only_user(one.outputs[0]) is node and _axis(one) == axis
    }
    if axis is None or not inner:
        return False
    parts: list[ir.Value | None] = []
    for value, one in zip(node.inputs, found, strict=True):
        parts += one.inputs if one is not None and one in inner else [value]
    set_inputs(node, parts)
    for one in inner:
        one.graph.remove(one, safe=True)  # type: ignore[union-attr]
    return True


def _axis(node: ir.Node) -> int | None:
    """Of a Concat, counted from the front."""
    axis, shapes = (
        node.attributes.get_int("axis", 0),
        [v.shape for v in node.inputs if v is not None and v.shape is not None],
    )
    return axis if axis >= 0 else axis + len(shapes[0]) if shapes else None


def _pad(m: Moves, node: ir.Node) -> bool:
    pads = m.ints(node, 1, "pads")
    return pads is not None and not any(pads) and give_on(node, node.inputs[0])


def _reduce(m: Moves, node: ir.Node) -> bool:
    """The mean, sum or extreme of one number is that number."""
    x, axes = node.inputs[0], m.ints(node, 1, "axes")
    if x is None or x.shape is None or not axes:
        return False
    rank = len(x.shape)
    if any(not -rank <= axis < rank or x.shape[axis] != 1 for axis in axes):
        return False
    if node.attributes.get_int("keepdims", 1):
        return give_on(node, x)
    axes = sorted(axis % rank for axis in axes)
    is_input = m.opset >= AXES_AS_INPUT
    inputs = [x, m.vector(node, axes, "axes")] if is_input else [x]
    new = new_node("Squeeze", inputs, {} if is_input else {"axes": axes}, node, node)
    take_over(node.outputs[0], new.outputs[0])
    node.graph.remove(node, safe=True)  # type: ignore[union-attr]
    return True


RULES: dict[str, Callable[[Moves, ir.Node], bool]] = {
    "Concat": _concat,
    "Expand": _same,
    "Flatten": _same,
    "Pad": _pad,
    **dict.fromkeys(("ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum"), _reduce),
    "Reshape": _reshape,
    "Slice": _slice,
    "Squeeze": _squeeze,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}
