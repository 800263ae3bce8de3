"""MatMul with a constant matrix, and the addition of a constant row after it, as one linear layer.

`onward::Linear(x, weight[, bias]; transposed)` is x · weightᵀ + bias with a weight of shape (out, in); where
`transposed` is 1, the weight is stored as (in, out), and a backend rearranges it as it writes the weights.
"""

from __future__ import annotations

import onnx_ir as ir

from onward.graph.replace import (
    DOMAIN,
    constant,
    graphs,
    is_op,
    made_by,
    new_node,
    only_user,
    permutation,
    remove_unread,
    shape_of,
    take_over,
)

QUANTIZED_INPUTS = 5
"""Of a `onward::QuantizedLinear`: the input, codes, scales, zero points, and the bias."""


def fuse_linear(model: ir.Model) -> int:
    """Rewrites in place; returns how many layers were found."""
    shared: dict[ir.Value, bool] = {}
    for graph in graphs(model):
        for node in list(graph):
            if node.domain == DOMAIN and node.op_type == "QuantizedLinear":
                _give_bias(node)
    return sum(_fuse(node, shared) for graph in graphs(model) for node in list(graph) if is_op(node, "MatMul"))


def _fuse(matmul: ir.Node, shared: dict[ir.Value, bool]) -> bool:
    """`shared` remembers of each weight whether something else reads it."""
    x, matrix = matmul.inputs
    if x is None or matrix is None or constant(x) is not None:
        return False
    transpose = made_by(matrix, "Transpose")
    weight = matrix
    if transpose is not None and transpose.inputs[0] is not None:
        weight = transpose.inputs[0]
    tensor = constant(weight)
    if tensor is None or len(tensor.shape) != 2 or not tensor.dtype.is_floating_point():
        return False
    if transpose is not None:
        if permutation(transpose) not in (None, [1, 0]):
            return False
    else:
        if weight not in shared:
            shared[weight] = _read_by_others(weight)
        if shared[weight]:
            return False
    rows, columns = tensor.shape.numpy()
    size = rows if transpose is not None else columns
    add = bias_addition(matmul, size)
    inputs = [x, weight]
    if add is not None:
        inputs += [v for v in add.inputs if v is not None and v is not matmul.outputs[0]]
    attributes = {"transposed": 0 if transpose is not None else 1}
    linear = new_node("Linear", inputs, attributes, matmul, add or matmul, domain=DOMAIN)
    take_over((add or matmul).outputs[0], linear.outputs[0])
    remove_unread([n for n in (transpose, matmul, add) if n is not None])
    return True


def _give_bias(layer: ir.Node) -> None:
    """A layer of a few bits gets the constant row that is added to what it gives."""
    size = layer.attributes.get_int("out_features")
    add = bias_addition(layer, size) if len(layer.inputs) < QUANTIZED_INPUTS else None
    if add is None:
        return
    bias = next(v for v in add.inputs if v is not layer.outputs[0])
    if bias is None or shape_of(bias) != (size,):
        return
    inputs = [*layer.inputs, *[None] * (QUANTIZED_INPUTS - 1 - len(layer.inputs)), bias]
    made = new_node("QuantizedLinear", inputs, dict(layer.attributes), layer, add, domain=DOMAIN)
    take_over(add.outputs[0], made.outputs[0])
    remove_unread([layer, add])


def bias_addition(matmul: ir.Node, size: int) -> ir.Node | None:
    """The addition that is all that happens to the product, if it adds a constant row."""
    product = matmul.outputs[0]
    add = only_user(product)
    if add is None or not is_op(add, "Add") or add.graph is not matmul.graph:
        return None
    bias = constant(add.inputs[1] if add.inputs[0] is product else add.inputs[0])
    return add if bias is not None and _is_row(tuple(bias.shape.numpy()), size, shape_of(product)) else None


def _is_row(shape: tuple[int, ...], size: int, product: tuple[int | None, ...] | None) -> bool:
    """Whether what is added is one number for each feature, and gives the product no further axes."""
    return shape == (size,) or (
        product is not None and 0 < len(shape) <= len(product) and shape == (*[1] * (len(shape) - 1), size)
    )


def _read_by_others(weight: ir.Value) -> bool:
    """Whether something needs the matrix as it is stored: a transposed copy would no longer be shared with it."""
    return not all(use.idx == 1 and _takes_columns(use.node) for use in weight.uses())


def _takes_columns(node: ir.Node) -> bool:
    """Whether a node multiplies by its second input as it is stored."""
    if is_op(node, "Gemm"):
        return node.attributes.get_int("transB", 0) == 0
    return is_op(node, "MatMul") or (node.domain == DOMAIN and node.attributes.get_int("transposed", 0) == 1)
