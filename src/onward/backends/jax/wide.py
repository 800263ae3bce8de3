"""Whether a model needs numbers of 64 bits, which JAX cuts to 32 unless it is told not to."""

from __future__ import annotations

import onnx_ir as ir

from onward.graph.walk import all_nodes

_D = ir.DataType
FLOATS = {_D.DOUBLE, _D.COMPLEX128}
INTEGERS = {_D.INT64, _D.UINT64}
GROWING = {"Mul", "Pow", "BitShift", "Sum", "ReduceProd", "ReduceSumSquare", "MatMul", "Gemm", "Einsum", "CumProd"}
"""Ops whose results outgrow indices and counts."""
COUNTING = {"Shape", "Size", "NonZero", "ArgMax", "ArgMin"}
"""Ops that give sizes and places, whatever they are given."""
FARTHEST = 2**31
"""Of integers: what 32 bits hold is below."""


def needs_64_bits(graph: ir.Graph) -> bool:
    """Whether it has floats of 64 bits, or integers that may not fit into 32: indices and counts do."""
    nodes = list(all_nodes(graph))
    made = [value for node in nodes for value in node.outputs]
    if any(value.dtype in FLOATS for value in (*graph.inputs, *made)):
        return True
    if any(value.dtype in INTEGERS and _is_far(value) for value in graph.initializers.values() if _is_stored(value)):
        return True
    fed = {value for value in graph.inputs if value.dtype in INTEGERS}
    for node in nodes:
        if node.op_type in COUNTING or fed.isdisjoint(value for value in node.inputs if value is not None):
            continue
        if node.op_type in GROWING and any(value.dtype in INTEGERS for value in node.outputs):
            return True
        fed.update(value for value in node.outputs if value.dtype in INTEGERS)
    return False


def _is_stored(value: ir.Value) -> bool:
    """Whether it is more than the bounds of a slice, or a shape."""
    return value.const_value is not None and value.const_value.size > 8


def _is_far(value: ir.Value) -> bool:
    assert value.const_value is not None
    items = value.const_value.numpy()
    return bool((items >= FARTHEST).any() or (items < -FARTHEST).any())
