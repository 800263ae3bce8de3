"""If, Loop and Scan."""

import onnx_ir as ir

from onward.canon.downgrade.registry import Older, downgrade, refuse
from onward.canon.downgrade.shape import counted
from onward.graph.rewriter import dims, needed, put, take


@downgrade("If", since=11)
def equal_branches(node: ir.Node, op: Older) -> None:
    """Both branches gave tensors of one shape."""
    one, other = (node.attributes[name].as_graph() for name in ("then_branch", "else_branch"))
    for a, b in zip(one.outputs, other.outputs, strict=True):
        known, its = dims(a), dims(b)
        if known is None or its is None or None in known or known != its:
            refuse("its branches are not known to give tensors of one shape")


@downgrade("Scan", since=11)
def axes_from_front(node: ir.Node, op: Older) -> None:
    states = len(node.inputs) - node.attributes.get_int("num_scan_inputs")
    axes = take(node, "scan_input_axes")
    if axes:
        put(node, scan_input_axes=[counted(a, needed(node, states + i), op) for i, a in enumerate(axes)])
    axes = take(node, "scan_output_axes")
    if axes:
        if any(a < 0 for a in axes):
            refuse("an axis of its outputs counts from the back")
        put(node, scan_output_axes=list(axes))


@downgrade("Scan", since=9)
def scan_of_batches(node: ir.Node, op: Older) -> None:
    refuse("version 8 is a scan of batches")
