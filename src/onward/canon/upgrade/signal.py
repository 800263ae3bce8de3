"""The discrete Fourier transform."""

import onnx_ir as ir

from onward.canon.upgrade.registry import upgrade
from onward.graph.rewriter import Rewriter, input_of, set_inputs, take


@upgrade("DFT", since=20)
def dft_axis(node: ir.Node, op: Rewriter) -> None:
    """The axis became an input, and its default changed from the second axis to the last but one."""
    set_inputs(node, [input_of(node, 0), input_of(node, 1), op.ints(take(node, "axis", 1))])
