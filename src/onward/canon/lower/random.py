"""Random draws in terms of uniform numbers."""

import onnx_ir as ir

from onward.canon.lower.registry import lowering
from onward.graph.rewriter import Rewriter, needed, take


@lowering("Bernoulli")
def bernoulli(node: ir.Node, op: Rewriter) -> None:
    """One with the probability that the input gives. The body in the op's schema compares the other way round."""
    x = needed(node, 0)
    dtype = take(node, "dtype", x.dtype)
    uniform = op("RandomUniformLike", x, seed=take(node, "seed"))
    drawn = op("Less", uniform, x)
    op.replace(op("CastLike", drawn, x) if dtype is None else op("Cast", drawn, to=dtype))
