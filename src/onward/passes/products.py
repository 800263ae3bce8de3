"""Products, whatever order and brackets they were written in."""

from __future__ import annotations

import onnx_ir as ir

from onward.graph.facts import Facts, Number, multiply
from onward.graph.replace import made_by, only_user, shape_of

DEPTH = 4


def scalar(value: ir.Value | None, beside: ir.Value | None, facts: Facts) -> Number | None:
    """The one number in a value, if it leaves the rank of the tensor it is combined with as it is."""
    number = facts.number(value)
    if number is None or value is None or beside is None:
        return None
    rank = len(shape_of(value) or ()) if shape_of(value) is not None else None
    if rank is None or (rank and (beside.shape is None or rank > len(beside.shape))):
        return None
    return number  # type: ignore[no-any-return]


def without_factors(value: ir.Value, facts: Facts) -> tuple[ir.Value, Number]:
    """A value before it was multiplied by or divided by numbers, and their product."""
    scale: Number = 1.0
    while (node := made_by(value, "Mul", "Div")) is not None:
        found = _factor(node, facts)
        if found is None:
            break
        value, factor = found
        scale = multiply(scale, factor)
    return value, scale


def _factor(node: ir.Node, facts: Facts) -> tuple[ir.Value, Number] | None:
    """The tensor that a node multiplies by or divides by a number, and the factor that makes."""
    for index, other in ((0, 1), (1, 0))[: 1 if node.op_type == "Div" else 2]:
        tensor, number = node.inputs[index], scalar(node.inputs[other], node.inputs[index], facts)
        if tensor is None or number is None or (node.op_type == "Div" and number == 0):
            continue
        return tensor, multiply(1.0, number, -1 if node.op_type == "Div" else 1)
    return None


def factors(value: ir.Value, facts: Facts, depth: int = 0) -> tuple[list[ir.Value], Number]:
    """The tensors whose product a value is, and the number they are multiplied by.

    Looks through products and quotients that are read once only.
    """
    node = made_by(value, "Mul", "Div")
    if node is None or depth > DEPTH or (depth and only_user(value) is None):
        return [value], 1.0
    found = _factor(node, facts)
    if found is not None:
        inner, number = found
        tensors, scale = factors(inner, facts, depth + 1)
        return tensors, multiply(scale, number)
    left, right = node.inputs
    if node.op_type == "Div" or left is None or right is None:
        return [value], 1.0
    (a, first), (b, second) = factors(left, facts, depth + 1), factors(right, facts, depth + 1)
    return a + b, multiply(first, second)


def is_close(number: Number | None, wanted: float) -> bool:
    """Whether a constant is a given number, as exactly as files write it."""
    return isinstance(number, int | float) and abs(number - wanted) <= 2e-6 * abs(wanted)
