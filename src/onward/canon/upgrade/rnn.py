"""RNN, GRU and LSTM."""

import onnx_ir as ir

from onward.canon.upgrade.registry import upgrade
from onward.graph.rewriter import Rewriter, put, take


@upgrade("GRU", since=3)
def gru_direction(node: ir.Node, op: Rewriter) -> None:
    """The schema of version 1 misspelt its default."""
    direction = take(node, "direction", "foward")
    put(node, direction="forward" if direction == "foward" else direction)


@upgrade("GRU", "LSTM", "RNN", since=7)
def output_sequence(node: ir.Node, op: Rewriter) -> None:
    """The attribute allowed the first output to be left out, which is always allowed since."""
    take(node, "output_sequence")
