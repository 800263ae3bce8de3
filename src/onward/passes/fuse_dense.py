"""A product of matrices over flattened leading axes is a product over all of them."""

from __future__ import annotations

import onnx_ir as ir

from onward.graph.facts import Facts
from onward.graph.known import dims_of
from onward.graph.replace import constant, graphs, made_by, new_node, only_user, shape_of, take_over


def fuse_dense(model: ir.Model) -> int:
    """Rewrite `reshape(reshape(x, (-1, k)) @ w + b)` in place where the leading axes come back; returns how many."""
    facts, count = Facts(), 0
    for graph in graphs(model):
        for node in list(graph):
            if node.op_type == "Reshape" and not node.domain and _fused(node, facts):
                count += 1
    return count


def _fused(last: ir.Node, facts: Facts) -> bool:
    product = made_by(last.inputs[0], "MatMul", "Gemm")
    first = made_by(product.inputs[0], "Reshape") if product is not None else None
    if product is None or first is None or only_user(product.outputs[0]) is not last:
        return False
    x, weight, bias = first.inputs[0], product.inputs[1], (*product.inputs, None)[2]
    before, after = dims_of(x) if x is not None else None, dims_of(last.outputs[0])
    flat, sizes = dims_of(first.outputs[0]), dims_of(weight) if weight is not None else None
    if not before or not after or not flat or not sizes or x is None or weight is None:
        return False
    if len(flat) != 2 or len(sizes) != 2 or len(before) < 3 or len(before) != len(after):
        return False
    if not isinstance(sizes[0], int) or sizes != [before[-1], after[-1]]:
        return False  # what is multiplied has as many columns as the weight has rows, whatever else is known of it
    if product.op_type == "Gemm" and not _is_plain(product, bias, after[-1]):
        return False
    pairs = list(enumerate(zip(before[:-1], after[:-1], strict=True)))
    unsure = [(a, b) for i, (a, b) in pairs if not _is_same(a, b, x, last.outputs[0], i, facts)]
    if len(unsure) > 1 or any(isinstance(a, int) and isinstance(b, int) for a, b in unsure):
        return False  # one size that is not known follows from the others
    whole = new_node("MatMul", [x, weight], {}, product, last)
    if bias is not None:
        matrix = whole.outputs[0]
        matrix.type, matrix.shape = last.outputs[0].type, last.outputs[0].shape
        whole = new_node("Add", [matrix, bias], {}, product, last)
    take_over(last.outputs[0], whole.outputs[0])
    return True


def _is_same(a: object, b: object, x: ir.Value, y: ir.Value, axis: int, facts: Facts) -> bool:
    """Whether an axis has one size in both values, by what is declared or by how they are made."""
    return (a is not None and a == b) or facts.dim(x, axis) == facts.dim(y, axis)


def _is_plain(gemm: ir.Node, bias: ir.Value | None, size: object) -> bool:
    """Whether a product is of matrices as they are, and a row is added."""
    flags = [gemm.attributes.get_int(name, 0) for name in ("transA", "transB")]
    factors = [gemm.attributes.get_float(name, 1.0) for name in ("alpha", "beta")]
    is_row = bias is None or (constant(bias) is not None and shape_of(bias) == (size,))
    return flags == [0, 0] and factors == [1.0, 1.0] and is_row
