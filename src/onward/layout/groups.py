"""Reshapes that split axes before a Transpose or merge them behind one, as in a channel shuffle.

What is between such a Reshape and its Transpose may be stored in any order, since the Transpose can take and give any:
so the Reshape need not see its tensor as the graph has it.
"""

from __future__ import annotations

import onnx_ir as ir

from onward.canon.known import Dim, Known
from onward.layout.change import Case, Change, Fixed, constant
from onward.layout.meanings import has_layout
from onward.layout.orders import Layout, Order
from onward.layout.reshapes import arranged_shape, fills

Grouped = tuple[Change, Order]
"""How a Reshape is written when its tensor with a layout is stored the other way, and the order of the other tensor."""


def only_reader(value: ir.Value, graph: ir.Graph) -> ir.Node | None:
    uses = value.uses()
    if len(uses) != 1 or value.is_graph_output():
        return None
    node = next(iter(uses)).node
    return node if node.graph is graph else None


def split(node: ir.Node, known: Known, meaning: Layout) -> Grouped | None:
    """For a Reshape by which each axis becomes one or several."""
    x = node.inputs[0]
    if x is None or not has_layout(x) or constant(x) is not None:
        return None
    c = Case(node, known, x, meaning)
    try:
        given, result = c.dims(x), c.dims(node.outputs[0])
        parts = _groups(given, result)
        order = tuple(place for axis in c.order for place in parts[axis])
        return Change({0: c.order}, operands={1: arranged_shape(c, given, c.order, order)}), order
    except Fixed:
        return None


def merge(node: ir.Node, known: Known, meaning: Layout) -> Grouped | None:
    """For a Reshape by which several axes become one."""
    if not has_layout(node.outputs[0]):
        return None
    c = Case(node, known, node.outputs[0], meaning)
    try:
        given, result = c.dims(node.inputs[0]), c.dims(c.main)
        parts = _groups(result, given)
        order = tuple(place for axis in c.order for place in parts[axis])
        return Change(outputs={0: c.order}, operands={1: arranged_shape(c, given, order, c.order)}), order
    except Fixed:
        return None


def _groups(few: list[Dim], many: list[Dim]) -> list[list[int]]:
    """For each axis of the shorter shape, those of the longer one that it consists of."""
    groups: list[list[int]] = []
    place = 0
    for axis, dim in enumerate(few):
        if place < len(many) and _is_same(few, many, axis, place):
            groups.append([place])
            place += 1
            continue
        group, product = list[int](), 1
        while isinstance(dim, int) and place < len(many) and (product != dim or not group):
            part = many[place]
            if not isinstance(part, int) or not part or dim % (product * part):
                raise Fixed
            group.append(place)
            product, place = product * part, place + 1
        if product != dim:
            raise Fixed
        groups.append(group)
    if place != len(many):
        raise Fixed
    return groups


def _is_same(few: list[Dim], many: list[Dim], axis: int, place: int) -> bool:
    """Whether two axes are of one size; of a batch that is not known this follows from all others."""
    if few[axis] is not None and few[axis] == many[place]:
        return True
    return axis == place == 0 and not isinstance(few[0], int) and fills(few[1:], many[1:])
