"""QuantizeLinear and DequantizeLinear."""

import onnx_ir as ir

from onward.canon.upgrade.registry import upgrade
from onward.graph.rewriter import Rewriter, input_of, rank


@upgrade("QuantizeLinear", "DequantizeLinear", since=13)
def one_scale(node: ir.Node, op: Rewriter) -> None:
    """There was one scale for the tensor; a vector of one element would now be a scale along an axis."""
    for index in (1, 2):
        value = input_of(node, index)
        if value is not None and rank(value) != 0:
            node.replace_input_with(index, op("Reshape", value, op.ints([])))
