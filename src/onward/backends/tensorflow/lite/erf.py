"""Erf in ops that TensorFlow Lite has: within 2.5 steps of float32 everywhere, by `benchmarks/fit_erf.py`.

Below 1 it is x · p(x²), so that zeros keep their signs. Above, it is 1 - exp(-q(|x|)), with the sign of x.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from onward.graph.replace import graphs, is_op
from onward.graph.rewriter import Rewriter, needed

SPLIT, LAST = 1.0, 3.9193
"""Where the second formula begins, and where Erf has become 1."""
# fmt: off
NEAR = (1.1283791065216064, -0.3761262595653534, 0.1128358542919159, -0.026853810995817184, 0.005188327748328447,
        -0.0008010192541405559, 7.853857823647559e-05)
FAR = (-0.00018804021237883717, 1.1295784711837769, 0.6332198977470398, 0.10841857641935349, -0.025208255276083946,
       0.004204561468213797, -0.0004413363349158317, 2.1686844775103964e-05)
# fmt: on
"""The coefficients of p and q, that of the lowest power first."""


def write_erf(model: ir.Model) -> None:
    """Write each Erf in single precision so, in place."""
    op = Rewriter(model)
    for graph in graphs(model):
        for node in list(graph):
            if is_op(node, "Erf") and node.outputs[0].dtype == ir.DataType.FLOAT:
                _write(node, op.at(node))


def _write(node: ir.Node, op: Rewriter) -> None:
    x = needed(node, 0)
    near = op("Mul", x, _polynomial(NEAR, op("Mul", x, x), op))
    size = op("Abs", x)
    exponent = op("Neg", _polynomial(FAR, op("Min", size, op.floats(LAST)), op))
    far = op("Mul", op("Sign", x), op("Sub", op.floats(1.0), op("Exp", exponent)))
    # What is no number is not greater either, and stays what it is.
    found = op("Where", op("Greater", size, op.floats(SPLIT)), far, near)
    for made in op.created:
        for value in made.outputs:
            if value.const_value is None:
                value.shape = x.shape
    op.replace(found)


def _polynomial(coefficients: Sequence[float], x: ir.Value, op: Rewriter) -> ir.Value:
    total = op.floats(coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total = op("Add", op("Mul", total, x), op.floats(coefficient))
    return total
