"""Recurrent layers without what they do anyway: zeros to start from, and series turned round by hand."""

from __future__ import annotations

import onnx_ir as ir

from onward.graph.replace import graphs, is_op, made_by, only_user
from onward.graph.rewriter import attribute
from onward.passes.fewer.moves import Moves, give_on
from onward.passes.fuse_rnn import drop_zero_states

FAR = -(2**31 - 1)
"""An end before the start of any series."""


def plain_recurrence(model: ir.Model) -> int:
    """In place; returns how many layers became plainer."""
    moves = Moves(model)
    layers = [node for graph in graphs(model) for node in graph if is_op(node, "RNN", "GRU", "LSTM")]
    return sum(drop_zero_states(node) + _turned(moves, node) for node in layers)


def _turned(m: Moves, node: ir.Node) -> bool:
    """Let a layer read the series from its end, where it was turned round before and all results after it."""
    get = node.attributes.get_string
    lengths = node.inputs[4] if len(node.inputs) > 4 else None
    if get("direction", "forward") != "forward" or lengths is not None or node.attributes.get_int("layout", 0) != 0:
        return False
    before, first = _before(m, node), node.outputs[0]
    after = _after(m, first) if first.uses() or first.is_graph_output() else []
    if before is None or after is None or not all(give_on(each, each.inputs[0]) for each in after):
        return False
    turn, reader = before
    reader.replace_input_with(0, turn.inputs[0])
    node.attributes["direction"] = attribute("direction", "reverse")
    return True


def _before(m: Moves, node: ir.Node) -> tuple[ir.Node, ir.Node] | None:
    """What turns the series round on its way to a layer, and the node that reads it."""
    axis, reader = 0, node
    while (value := reader.inputs[0]) is not None:
        if (turn := made_by(value, "Slice")) is not None:
            return (turn, reader) if _turns(m, turn, axis) else None
        made = made_by(value, "Squeeze", "Unsqueeze")
        axes = None if made is None else m.axes(made)
        if made is None or axes is None or only_user(value) is not reader:
            return None
        if made.op_type == "Squeeze":
            axis = [i for i in range(len(axes) + axis + 1) if i not in axes][axis]
        elif axis in axes:
            return None
        else:
            axis -= sum(other < axis for other in axes)
        reader = made
    return None


def _after(m: Moves, value: ir.Value) -> list[ir.Node] | None:
    """The one node that turns the results round again; None where anything reads them as they are."""
    maker = value.producer()
    axis, graph = 0, None if maker is None else maker.graph
    while (user := only_user(value)) is not None and user.graph is graph:
        if is_op(user, "Slice"):
            return [user] if user.inputs[0] is value and _turns(m, user, axis) else None
        axes = m.axes(user) if is_op(user, "Squeeze", "Unsqueeze") else None
        if axes is None or (user.op_type == "Squeeze" and axis in axes):
            return None
        if user.op_type == "Squeeze":
            axis -= sum(other < axis for other in axes)
        else:
            axis = [i for i in range(len(axes) + axis + 1) if i not in axes][axis]
        value = user.outputs[0]
    return None


def _turns(m: Moves, node: ir.Node, axis: int) -> bool:
    """Whether a Slice gives all of an axis from its end, and nothing else."""
    cut = m.cut(node)
    return cut is not None and cut[0] == [-1] and cut[1][0] <= FAR and cut[2] == [axis] and cut[3] == [-1]
