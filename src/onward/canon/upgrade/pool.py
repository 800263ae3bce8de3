"""Pooling, and pooling of regions."""

import onnx_ir as ir

from onward.canon.upgrade.registry import upgrade
from onward.errors import InvalidModelError, UnsupportedError
from onward.graph.rewriter import Rewriter, describe, put, take


@upgrade("GlobalLpPool", "LpPool", since=2)
def whole_power(node: ir.Node, op: Rewriter) -> None:
    """`p` was any number, now it is a whole one; the size of the kernel became required."""
    power = take(node, "p", 2.0)
    if power != int(power):
        raise UnsupportedError(f"{describe(node)}: p is {power}, but later versions take whole numbers only")
    put(node, p=int(power))
    if node.op_type == "LpPool" and "kernel_shape" not in node.attributes:
        raise InvalidModelError(f"{describe(node)}: attribute 'kernel_shape' is missing")


@upgrade("RoiAlign", since=16)
def unshifted_regions(node: ir.Node, op: Rewriter) -> None:
    put(node, coordinate_transformation_mode="output_half_pixel")
