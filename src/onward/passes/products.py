"""Products, whatever order and brackets they were written in."""

from __future__ import annotations

import onnx_ir as ir

from onward.passes.facts import Facts, Number, multiply
from onward.passes.rewrite import constant, made_by, only_user

DEPTH = 4


def without_factors(value: ir.Value, facts: Facts) -> tuple[ir.Value, Number]:
    """A value before it was multiplied by or divided by numbers, and their product."""
    scale: Number = 1.0
    while (node := made_by(value, "Mul", "Div")) is not None:
        for index, other in ((0, 1), (1, 0)):
            inner, factor = node.inputs[index], facts.number(node.inputs[other])
            if inner is None or factor is None or (node.op_type == "Div" and index == 1):
                continue
            if not _keeps_rank(inner, node.inputs[other]):
                continue
            scale = multiply(scale, factor, -1 if node.op_type == "Div" else 1)
            value = inner
            break
        else:
            break
    return value, scale


def _keeps_rank(value: ir.Value, factor: ir.Value | None) -> bool:
    tensor = constant(factor)
    rank = len(tensor.shape) if tensor is not None else None
    if rank is None:
        rank = None if factor is None or factor.shape is None else len(factor.shape)
    return rank is not None and value.shape is not None and rank <= len(value.shape)


def factors(value: ir.Value, facts: Facts, depth: int = 0) -> tuple[list[ir.Value], Number]:
    """The tensors whose product a value is, and the number they are multiplied by.

    Looks through products and quotients that are read once only.
    """
    node = made_by(value, "Mul", "Div")
    if node is None or depth > DEPTH or (depth and only_user(value) is None):
        return [value], 1.0
    left, right = node.inputs
    assert left is not None and right is not None
    number = facts.number(right)
    if number is not None and _keeps_rank(left, right):
        found, scale = factors(left, facts, depth + 1)
        return found, multiply(scale, number, -1 if node.op_type == "Div" else 1)
    if node.op_type == "Div":
        return [value], 1.0
    number = facts.number(left)
    if number is not None and _keeps_rank(right, left):
        found, scale = factors(right, facts, depth + 1)
        return found, multiply(scale, number)
    (a, first), (b, second) = factors(left, facts, depth + 1), factors(right, facts, depth + 1)
    return a + b, multiply(first, second)


def is_close(number: Number | None, wanted: float) -> bool:
    """Whether a constant is a given number, as exactly as files write it."""
    return isinstance(number, int | float) and abs(number - wanted) <= 2e-6 * abs(wanted)
