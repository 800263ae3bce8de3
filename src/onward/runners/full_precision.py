"""Products with weights of a few bits, computed in the precision of what they multiply.

`accuracy_level` of MatMulNBits says how far ONNX Runtime may round what it multiplies with the weights, on processors
where that is faster: at 4 to 8 bits, which carries errors of a hundredth. It is a leave, not a part of what the model
means, so the referee does not take it. Mixtures of experts take the same leave without being asked.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import onnx_ir as ir

from onward.graph.walk import all_nodes
from onward.model import Model

LEVEL = "accuracy_level"
FULL = 1
"""The level of float32; 0 leaves it to ONNX Runtime, which takes float32, too."""
UNROUNDED = "session.qdq_matmulnbits_accuracy_level", str(FULL)
"""The option for products that ONNX Runtime makes of MatMul and DequantizeLinear; it would round to 8 bits."""
EXPERTS, VARIABLE = "QMoE", "ORT_QMOE_CPU_QNBIT_GEMM"
"""The op that rounds by itself, and the variable of the environment that keeps it from that, as its session is made."""
REMARK = f"without the rounding to fewer bits that {LEVEL} and {EXPERTS} allow"
_VARIABLES = threading.Lock()


def may_round(model: Model) -> bool:
    """Whether a product of the model may be computed with fewer bits than it is given."""
    return any(node.op_type == EXPERTS or _has_leave(node) for node in _nodes(model))


def _has_leave(node: ir.Node) -> bool:
    return node.attributes.get_int(LEVEL, 0) > FULL


def _nodes(model: Model) -> Iterator[ir.Node]:
    for graph in (model.ir.graph, *(function.graph for function in model.ir.functions.values())):
        yield from all_nodes(graph)


@contextmanager
def unrounded_experts(model: Model) -> Iterator[None]:
    """Inside, a session of the model is made that computes its mixtures of experts in the precision given."""
    if not any(node.op_type == EXPERTS for node in _nodes(model)):
        yield
        return
    with _VARIABLES:
        before = os.environ.get(VARIABLE)
        os.environ[VARIABLE] = "0"
        try:
            yield
        finally:
            if before is None:
                del os.environ[VARIABLE]
            else:
                os.environ[VARIABLE] = before


def unrounded(model: Model) -> Model:
    """The same model without that leave, as far as it stands outside of functions of its own."""
    if not any(map(_has_leave, all_nodes(model.ir.graph))):
        return model
    made = model.ir.clone()
    for node in filter(_has_leave, all_nodes(made.graph)):
        del node.attributes[LEVEL]
    return Model(made, ir_version=model.ir_version)
