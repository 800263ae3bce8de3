"""RNN, GRU and LSTM: time came first."""

import onnx_ir as ir

from onward.canon.downgrade.registry import Older, downgrade
from onward.graph.rewriter import input_of, is_used, needed, take


@downgrade("RNN", "GRU", "LSTM", since=14)
def time_first(node: ir.Node, op: Older) -> None:
    if not take(node, "layout", 0):
        return
    states = (5, 6) if node.op_type == "LSTM" else (5,)
    inputs = list(node.inputs)
    for index in (0, *states):
        if (value := input_of(node, index)) is not None:
            inputs[index] = op("Transpose", value, perm=[1, 0, 2])
    needed(node, 0)
    outputs = op.again(inputs, 13)
    y = op("Transpose", outputs[0], perm=[2, 0, 1, 3])
    others = [op("Transpose", value, perm=[1, 0, 2]) for value in outputs[1:]]
    op.replace(*(new if is_used(old) else None for new, old in zip((y, *others), node.outputs, strict=True)))
