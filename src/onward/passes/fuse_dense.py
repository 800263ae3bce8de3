"""A product of matrices over flattened leading axes is a product over all of them."""

from __future__ import annotations

import onnx_ir as ir

from onward.graph.known import dims_of
from onward.graph.replace import graphs, made_by, new_node, only_user, take_over


def fuse_dense(model: ir.Model) -> int:
    """Rewrite `reshape(reshape(x, (-1, k)) @ w)` in place where the leading axes come back; returns how many."""
    count = 0
    for graph in graphs(model):
        for node in list(graph):
            if node.op_type == "Reshape" and not node.domain and _fused(node):
                count += 1
    return count


def _fused(last: ir.Node) -> bool:
    product = made_by(last.inputs[0], "MatMul")
    first = made_by(product.inputs[0], "Reshape") if product is not None else None
    if product is None or first is None or only_user(product.outputs[0]) is not last:
        return False
    x, weight = first.inputs[0], product.inputs[1]
    before, after = dims_of(x) if x is not None else None, dims_of(last.outputs[0])
    flat, sizes = dims_of(first.outputs[0]), dims_of(weight) if weight is not None else None
    if not before or not after or not flat or not sizes or x is None or weight is None:
        return False
    if len(flat) != 2 or len(sizes) != 2 or len(before) < 3 or len(before) != len(after):
        return False
    if not isinstance(sizes[0], int) or sizes != [before[-1], after[-1]]:
        return False  # what is multiplied has as many columns as the weight has rows, whatever else is known of it
    pairs = list(zip(before[:-1], after[:-1], strict=True))
    unsure = [(a, b) for a, b in pairs if a != b or a is None]
    if len(unsure) > 1 or any(isinstance(a, int) and isinstance(b, int) for a, b in unsure):
        return False  # one size that is not known follows from the others
    whole = new_node("MatMul", [x, weight], {}, product, last)
    take_over(last.outputs[0], whole.outputs[0])
    return True
