"""Where gradients stop: an Identity that frameworks call `stop_gradient` or `detach`, and that ONNX has no op for."""

from __future__ import annotations

import onnx_ir as ir

KEY = "onward.stops_gradient"
"""Of the metadata of a node."""


def stop(node: ir.Node) -> None:
    """Let no gradient through an Identity."""
    node.metadata_props[KEY] = "1"


def stops(node: ir.Node) -> bool:
    return KEY in node.metadata_props
