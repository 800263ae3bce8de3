"""Products with weights of a few bits, computed in the precision of what they multiply.

`accuracy_level` of MatMulNBits says how far ONNX Runtime may round what it multiplies with the weights, on processors
where that is faster: at 4 to 8 bits, which carries errors of a hundredth. It is a leave, not a part of what the model
means, so the referee does not take it.
"""

from __future__ import annotations

from onward.graph.walk import all_nodes
from onward.model import Model

LEVEL = "accuracy_level"
FULL = 1
"""The level of float32; 0 leaves it to ONNX Runtime, which takes float32, too."""
UNROUNDED = "session.qdq_matmulnbits_accuracy_level", str(FULL)
"""The option for products that ONNX Runtime makes of MatMul and DequantizeLinear; it would round to 8 bits."""
REMARK = f"without the rounding to fewer bits that {LEVEL} allows"


def may_round(model: Model) -> bool:
    """Whether a product of the model may be computed with fewer bits than it is given."""
    graphs = [model.ir.graph, *(function.graph for function in model.ir.functions.values())]
    return any(node.attributes.get_int(LEVEL, 0) > FULL for graph in graphs for node in all_nodes(graph))


def unrounded(model: Model) -> Model:
    """The same model without that leave, as far as it stands outside of functions of its own."""
    made = model.ir.clone()
    for node in all_nodes(made.graph):
        if node.attributes.get_int(LEVEL, 0) > FULL:
            del node.attributes[LEVEL]
    return Model(made, ir_version=model.ir_version)
