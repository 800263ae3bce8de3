"""Div of int64 in ops that TensorFlow Lite has: exact, by quotients in single precision that are put right.

What is left over is taken away first, so that the quotient is a whole number q. Each round adds to the sum what single
precision says of the rest of q, and leaves a rest of at most one part in 2²²: after three rounds of 2⁶³ nothing is.
"""

from __future__ import annotations

import onnx_ir as ir

from onward.graph.replace import graphs, is_op
from onward.graph.rewriter import Rewriter, needed

ROUNDS = 3


def write_divisions(model: ir.Model) -> None:
    """Write each Div of int64 so, in place; those of shapes are no ops of the result."""
    op = Rewriter(model)
    for graph in graphs(model):
        for node in list(graph):
            if is_op(node, "Div") and node.outputs[0].dtype == ir.DataType.INT64 and not _is_of_shapes(node, set()):
                _write(node, op.at(node))


def _is_of_shapes(node: ir.Node, seen: set[ir.Node]) -> bool:
    """Whether only constants and shapes decide its result."""
    if node in seen or node.op_type in ("Shape", "Size"):
        return True
    seen.add(node)
    values = [value for value in node.inputs if value is not None and value.const_value is None]
    made = [value.producer() for value in values]
    return all(before is not None and _is_of_shapes(before, seen) for before in made)


def _write(node: ir.Node, op: Rewriter) -> None:
    a, b, zero = needed(node, 0), needed(node, 1), op.ints(0)
    rest = op("Mod", a, b)  # with the sign of b, but that of a is wanted
    turns = op("And", op("Not", op("Equal", rest, zero)), op("Xor", op("Less", a, zero), op("Less", b, zero)))
    rest = op("Sub", rest, op("Where", turns, b, zero))
    left, divisor = op("Sub", a, rest), op("Cast", b, to=ir.DataType.FLOAT)
    total: ir.Value | None = None
    for _ in range(ROUNDS):
        part = op("Round", op("Div", op("Cast", left, to=ir.DataType.FLOAT), divisor))
        whole = op("Cast", part, to=ir.DataType.INT64)
        left = op("Sub", left, op("Mul", whole, b))
        total = whole if total is None else op("Add", total, whole)
    assert total is not None
    for made in op.created:
        alone = made.inputs[0] if made.op_type in ("Less", "Cast") else node.outputs[0]
        if made.op_type != "Constant" and alone is not None:
            made.outputs[0].shape = alone.shape
    op.replace(total)
