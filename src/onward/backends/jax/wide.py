"""Whether a model needs numbers of 64 bits, which JAX cuts to 32 unless it is told not to."""

from __future__ import annotations

import onnx_ir as ir

from onward.graph.walk import all_graphs, all_nodes

_D = ir.DataType
FLOATS = {_D.DOUBLE, _D.COMPLEX128}
INTEGERS = {_D.INT64, _D.UINT64}
GROWING = {"Mul", "Pow", "BitShift", "Sum", "ReduceProd", "ReduceSumSquare", "MatMul", "Gemm", "Einsum", "CumProd"}
"""Ops whose results outgrow indices and counts."""
COUNTING = {"Shape", "Size", "NonZero", "ArgMax", "ArgMin"}
"""Ops that give sizes and places, whatever they are given."""
BOUNDS = {"Slice": (1, 2), "Loop": (0,)}
"""Inputs that are as far as anything is where they mean the end: Python's numbers."""
HANDING_ON = {"Identity", "Cast", "Unsqueeze", "Squeeze", "Reshape", "Concat", "Gather"}
FARTHEST = 2**31
"""Of integers: what 32 bits hold is below."""


def needs_64_bits(graph: ir.Graph) -> bool:
    """Whether it has floats of 64 bits, or integers that may not fit into 32: indices and counts do."""
    nodes = list(all_nodes(graph))
    made = [value for node in nodes for value in node.outputs]
    if any(value.dtype in FLOATS for value in (*graph.inputs, *made)):
        return True
    stored = [value for each in all_graphs(graph) for value in each.initializers.values()]
    if any(value.dtype in INTEGERS and _is_far(value) and not _is_bound(value) for value in (*stored, *made)):
        return True
    fed = {value for value in graph.inputs if value.dtype in INTEGERS}
    sizes: set[ir.Value] = set()
    for node in nodes:
        given = [value for value in node.inputs if value is not None and value.const_value is None]
        if node.op_type in COUNTING or sizes.issuperset(given):
            sizes.update(node.outputs)
            continue
        wide = [value for value in node.outputs if value.dtype in INTEGERS]
        if not fed.isdisjoint(given) or _rounds(node):
            if node.op_type in GROWING and wide:
                return True
            fed.update(wide)
    return False


def _rounds(node: ir.Node) -> bool:
    """Whether it makes integers of floats, which may be of any size."""
    given = node.inputs[0] if node.op_type == "Cast" else None
    return given is not None and given.dtype is not None and given.dtype.is_floating_point()


def _is_far(value: ir.Value) -> bool:
    if value.const_value is None:
        return False
    items = value.const_value.numpy()
    return bool((items >= FARTHEST).any() or (items < -FARTHEST).any())


def _is_bound(value: ir.Value) -> bool:
    """Whether it is nothing but the bounds of slices, or of loops."""
    return not value.is_graph_output() and all(
        place in BOUNDS.get(node.op_type, ()) or (node.op_type in HANDING_ON and all(map(_is_bound, node.outputs)))
        for node, place in value.uses()
    )
