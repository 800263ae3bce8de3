"""A Squeeze without axes gives a rank that depends on the data, which some runtimes do not take: it is put off."""

from __future__ import annotations

import onnx_ir as ir

from onward.graph.origin import copy_origin
from onward.graph.rewriter import Rewriter
from onward.verification.locate.profile import POINTWISE

EITHER_SIDE = frozenset({"Add", "Div", "Max", "Min", "Mul", "Pow", "Sub"})
"""Ops whose inputs may be of any shape."""


def squeeze_late(model: ir.Model) -> None:
    """Put each such Squeeze behind the ops on single elements that follow it, in place: the result is the same."""
    op = Rewriter(model)
    for node in list(model.graph):
        while node.op_type == "Squeeze" and not node.domain and (user := _passed(node)) is not None:
            node = _behind(node, user, op.at(user))


def _passed(squeeze: ir.Node) -> ir.Node | None:
    """The one node that reads a squeezed tensor, if it works on single elements; all else that it reads are scalars."""
    made = squeeze.outputs[0]
    uses = list(made.uses())
    if len(squeeze.inputs) != 1 or squeeze.attributes or len(uses) != 1 or made.is_graph_output():
        return None
    user, place = uses[0]
    if user.graph is not squeeze.graph or user.domain or user.op_type not in POINTWISE:
        return None
    if place and user.op_type not in EITHER_SIDE:
        return None
    others = [value for i, value in enumerate(user.inputs) if i != place and value is not None]
    return user if all(_is_scalar(value) for value in others) else None


def _is_scalar(value: ir.Value) -> bool:
    tensor = None if value.is_graph_input() else ir.convenience.get_const_tensor(value)
    return tensor is not None and tensor.shape.rank() == 0


def _behind(squeeze: ir.Node, user: ir.Node, op: Rewriter) -> ir.Node:
    """The Squeeze that comes after `user` instead."""
    inputs = [squeeze.inputs[0] if value is squeeze.outputs[0] else value for value in user.inputs]
    op(user.op_type, *inputs, **user.attributes)
    late = op("Squeeze", op.created[0].outputs[0]).producer()
    assert late is not None
    for new, old in zip(op.created, (user, squeeze), strict=True):
        copy_origin(new, old)
        new.version = old.version
    op.replace(*late.outputs)
    name = squeeze.name
    op.graph.remove(squeeze, safe=True)
    late.name = name
    return late
