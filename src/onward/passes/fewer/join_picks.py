"""Numbers picked out of a vector, such as sizes out of a shape: several by one node."""

from __future__ import annotations

from itertools import groupby

import onnx_ir as ir

from onward.graph.replace import constant, is_op, made_by, new_node, only_user
from onward.graph.rewriter import set_inputs
from onward.passes.fewer.moves import Moves, alone_before, give_on


def pick(m: Moves, node: ir.Node) -> bool:
    """A number that is taken out of a vector and made a vector by an Unsqueeze: taken out as one."""
    if any(is_op(reader, "Concat") and is_known_by_its_nodes(reader) for reader, _ in node.outputs[0].uses()):
        return False
    gather = alone_before(node, "Gather")
    place = None if gather is None else _place(gather)
    if gather is None or place is None:
        return False
    gather.replace_input_with(1, m.vector(node, [place], "index"))
    gather.outputs[0].name, gather.outputs[0].shape = m.names.value(f"{gather.outputs[0].name}_one"), ir.Shape([1])
    return give_on(node, gather.outputs[0])


def join_picks(m: Moves, node: ir.Node) -> bool:
    """Numbers of one vector that a Concat puts side by side: taken out together."""
    found = [_picked(value, node) for value in node.inputs]
    parts: list[ir.Value | None] = []
    for vector, group in groupby(range(len(found)), lambda place: (found[place] or (None,))[0]):
        run = list(group)
        places = [number for one in run for number in (found[one] or (None, []))[1]]
        if vector is None or len(run) == 1:
            parts += [node.inputs[one] for one in run]
            continue
        first = node.inputs[run[0]]
        main = None if first is None else first.producer()
        assert first is not None and main is not None
        new = new_node("Gather", [vector, m.vector(node, places, "index")], {"axis": 0}, main, node)
        new.outputs[0].name, new.outputs[0].type = m.names.value(f"{first.name}_and"), first.type
        new.outputs[0].shape = ir.Shape([len(places)])
        parts.append(new.outputs[0])
    if len(parts) == len(node.inputs):
        return False
    set_inputs(node, parts)
    return True


def is_known_by_its_nodes(concat: ir.Node) -> bool:
    """Whether ONNX Runtime may compute the shape of a Reshape beforehand, which it finds by these nodes."""
    return any(is_op(reader, "Reshape") for reader, _ in concat.outputs[0].uses())


def _picked(value: ir.Value | None, reader: ir.Node) -> tuple[ir.Value, list[int]] | None:
    """The vector that a part of a Concat is taken from, and the places of its numbers."""
    if value is None or only_user(value) is not reader:
        return None
    gather = made_by(value, "Gather")
    index = None if gather is None else constant(gather.inputs[1])
    if gather is not None and index is not None and len(index.shape) == 1 and _is_of_vector(gather):
        return (gather.inputs[0], index.numpy().tolist()) if gather.inputs[0] is not None else None
    unsqueeze = made_by(value, "Unsqueeze")
    gather = None if unsqueeze is None else alone_before(unsqueeze, "Gather")
    place = None if gather is None else _place(gather)
    return (
        (gather.inputs[0], [place])
        if gather is not None and gather.inputs[0] is not None and place is not None
        else None
    )


def _place(gather: ir.Node) -> int | None:
    """Of the one number that is taken out of a vector."""
    index = constant(gather.inputs[1])
    return int(index.numpy()) if index is not None and not len(index.shape) and _is_of_vector(gather) else None


def _is_of_vector(gather: ir.Node) -> bool:
    x = gather.inputs[0]
    return x is not None and x.shape is not None and len(x.shape) == 1
