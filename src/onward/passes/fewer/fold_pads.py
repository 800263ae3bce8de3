"""Zeros that are put around a tensor before a convolution, as its own padding."""

from __future__ import annotations

import onnx_ir as ir

from onward.graph.replace import constant, graphs, is_op, made_by, only_user
from onward.graph.rewriter import attribute
from onward.passes.fewer.moves import Moves, give_on


def fold_pads(model: ir.Model) -> int:
    """In place; returns how many nodes went."""
    moves = Moves(model)
    return sum(_fold(moves, node) for graph in graphs(model) for node in list(graph) if is_op(node, "Conv"))


def _fold(m: Moves, conv: ir.Node) -> bool:
    pad = made_by(conv.inputs[0], "Pad")
    if pad is None or pad.graph is not conv.graph or only_user(pad.outputs[0]) is not conv:
        return False
    pads = m.ints(pad, 1, "pads")
    if pads is None or len(pads) < 6 or min(pads) < 0 or not _is_of_zeros(pad):
        return False
    rank = len(pads) // 2
    starts, ends = pads[:rank], pads[rank:]
    padding = conv.attributes.get_string("auto_pad", "NOTSET")
    if any(starts[:2] + ends[:2]) or padding not in ("NOTSET", "VALID"):
        return False
    own = list(conv.attributes.get_ints("pads", ()) or [0] * (2 * rank - 4)) if padding == "NOTSET" else []
    own = own or [0] * (2 * rank - 4)
    if len(own) != 2 * rank - 4:
        return False
    conv.attributes.pop("auto_pad", None)
    both = [a + b for a, b in zip(own, starts[2:] + ends[2:], strict=True)]
    conv.attributes["pads"] = attribute("pads", both)
    return give_on(pad, pad.inputs[0])


def _is_of_zeros(pad: ir.Node) -> bool:
    axes = pad.inputs[3] if len(pad.inputs) > 3 else None
    if axes is not None or pad.attributes.get_string("mode", "constant") != "constant":
        return False
    filling = pad.inputs[2] if len(pad.inputs) > 2 else None
    if filling is None:
        return pad.attributes.get_float("value", 0.0) == 0
    held = constant(filling)
    return held is not None and not held.numpy().any()
