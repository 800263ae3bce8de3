"""Reductions: their axes became an input."""

import onnx_ir as ir

from onward.canon.upgrade.registry import upgrade
from onward.graph.rewriter import Rewriter, needed, set_inputs, take


@upgrade("ReduceSum", since=13)
@upgrade(
    *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin"),
    *("ReduceProd", "ReduceSumSquare"),
    since=18,
)
def reduction_axes(node: ir.Node, op: Rewriter) -> None:
    """No axes, or an empty list of them, meant all axes, as `noop_with_empty_axes=0` does."""
    axes = take(node, "axes")
    set_inputs(node, [needed(node, 0), op.ints(axes) if axes else None])
