"""Matrices that an exporter stored twice, once turned round, are one weight again.

A language model reads its table of words a second time, transposed, to tell the next one. PyTorch's exporters transpose
it beforehand, so that what was one parameter would be trained as two.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onward.graph.replace import constant, graphs, is_op, new_node
from onward.graph.trained import is_trained

ROWS = 4096
"""Rows that are compared at a time."""


def tie_weights(model: ir.Model) -> int:
    """Rewrites in place; returns how many products read another weight's transpose now."""
    nodes = [node for graph in graphs(model) for node in graph]
    tables = {v: None for n in nodes if is_op(n, "Gather") and (v := n.inputs[0]) is not None and is_trained(v)}
    count = 0
    for node in nodes if tables else ():
        matrix = node.inputs[1] if is_op(node, "MatMul") else None
        if matrix is None or matrix in tables or not is_trained(matrix) or not matrix.is_initializer():
            continue
        table = next((table for table in tables if _is_transpose(matrix, table)), None)
        if table is not None:
            turned = new_node("Transpose", [table], {"perm": [1, 0]}, node, node)
            turned.outputs[0].name = f"{matrix.name}_tied_{count}"
            turned.outputs[0].type, turned.outputs[0].shape = matrix.type, matrix.shape
            node.replace_input_with(1, turned.outputs[0])
            count += 1
    return count


def _is_transpose(matrix: ir.Value, table: ir.Value) -> bool:
    one, other = constant(matrix), constant(table)
    if one is None or other is None or one.dtype != other.dtype or len(one.shape) != 2:
        return False
    if tuple(one.shape.numpy()) != tuple(reversed(other.shape.numpy())) or one.size <= 1:
        return False
    turned, rows = one.numpy().T, other.numpy()
    pieces = (slice(start, start + ROWS) for start in range(0, len(rows), ROWS))
    return np.array_equal(turned[:1], rows[:1]) and all(np.array_equal(turned[p], rows[p]) for p in pieces)
