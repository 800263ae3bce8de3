"""Layers whose weights are kept in 8 bits, and values that are rounded to so many, each as one node.

`onward::Int8Linear(x, weight, scale[, zero_point, bias]; transposed)` and `onward::Int8Conv`, with the attributes of
Conv, multiply by a weight of codes: (code - zero point) · scale, with one scale or one for each output.
`onward::Rounded(x, scale, zero_point; low, high)` is QuantizeLinear and DequantizeLinear of the same steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.graph.replace import (
    DOMAIN,
    constant,
    graphs,
    is_op,
    made_by,
    new_node,
    only_user,
    shape_of,
    take_over,
)
from onward.graph.trained import MARK, Role
from onward.graph.weight_names import is_automatic
from onward.passes.fold_constants import LIMIT
from onward.passes.fuse_linear import bias_addition
from onward.spec.cast import INTEGER_RANGES

_D = ir.DataType
_CODES = (_D.INT8, _D.UINT8)
_ROUNDED = (_D.INT8, _D.UINT8, _D.INT16, _D.UINT16)


def fuse_codes(model: ir.Model) -> int:
    """Rewrites in place; returns how many layers and roundings were found."""
    found, is_small = 0, _is_small(model)
    for graph in graphs(model):
        for node in list(graph):
            if is_op(node, "DequantizeLinear"):
                found += _round(node) or _decode_bias(node)
        for node in list(graph):
            if is_small and made_by((*node.inputs, None, None)[1], "Mul") is not None:
                continue  # it will be multiplied once and for all
            if is_op(node, "MatMul", "Gemm"):
                found += _linear(node)
            elif is_op(node, "Conv"):
                found += _conv(node)
    return found


def _is_small(model: ir.Model) -> bool:
    """Whether no code that is cast is too large to be stored as what it stands for."""
    casts = [node for graph in graphs(model) for node in graph if is_op(node, "Cast")]
    tensors = [constant(node.inputs[0]) for node in casts]
    return not any(t is not None and t.dtype in _CODES and t.size > LIMIT for t in tensors)


@dataclass
class _Codes:
    """A constant weight as the file keeps it."""

    codes: ir.Value
    scale: ir.Value
    zero_point: ir.Value | None
    axis: int | None
    """Along which scales differ; None where there is one."""

    @property
    def inputs(self) -> list[ir.Value | None]:
        points = constant(self.zero_point)
        is_offset = points is not None and (points.dtype == _D.UINT8 or bool(points.numpy().any()))
        return [self.codes, self.scale, self.zero_point if is_offset else None]


def _codes(weight: ir.Value | None) -> _Codes | None:
    """What a weight is decoded from, if layers are all that reads it."""
    node = made_by(weight, "DequantizeLinear", "Mul")
    if node is None or weight is None or weight.dtype != _D.FLOAT or weight.is_graph_output():
        return None
    if not all(is_op(use.node, "MatMul", "Gemm", "Conv") and use.idx == 1 for use in weight.uses()):
        return None
    found = _dequantized(node) if node.op_type == "DequantizeLinear" else _multiplied(node)
    tensor = None if found is None else constant(found.codes)
    if found is None or tensor is None or tensor.dtype not in _CODES or len(found.codes.uses()) != 1:
        return None
    return found if found.scale.dtype == _D.FLOAT else None


def _dequantized(node: ir.Node) -> _Codes | None:
    codes, scale, zero_point = (*node.inputs, None)[:3]
    shape, sizes = shape_of(codes), shape_of(scale)
    if constant(scale) is None or node.attributes.get_int("block_size", 0) != 0 or codes is None or scale is None:
        return None
    if zero_point is not None and (constant(zero_point) is None or shape_of(zero_point) != sizes):
        return None
    if not shape or sizes is None or len(sizes) > 1:
        return None
    axis = node.attributes.get_int("axis", 1) % len(shape)
    return _Codes(codes, scale, zero_point, None if sizes in ((), (1,)) else axis)


def _multiplied(node: ir.Node) -> _Codes | None:
    """Codes that are cast and multiplied by constants."""
    cast = made_by(node.inputs[0], "Cast")
    scale = node.inputs[1]
    codes = None if cast is None else cast.inputs[0]
    shape, sizes = shape_of(codes), shape_of(scale)
    if constant(scale) is None or codes is None or scale is None or shape is None or sizes is None:
        return None
    if len(sizes) > len(shape) or cast is None or only_user(cast.outputs[0]) is not node:
        return None
    long = [len(shape) - len(sizes) + i for i, n in enumerate(sizes) if n != 1]
    return _Codes(codes, scale, None, long[0] if long else None) if len(long) <= 1 else None


def _linear(node: ir.Node) -> bool:
    x, matrix, *rest = node.inputs
    found = _codes(matrix)
    if found is None or x is None or constant(x) is not None or len(shape_of(found.codes) or ()) != 2:
        return False
    is_stored_out_first = node.op_type == "Gemm" and node.attributes.get_int("transB", 0) == 1
    out = 0 if is_stored_out_first else 1
    size = (shape_of(found.codes) or ())[out]
    if found.axis not in (None, out) or size is None:
        return False
    bias, last = (rest[0] if rest else None), node
    if node.op_type == "Gemm":
        plain = node.attributes.get_float("alpha", 1.0) == 1 and not node.attributes.get_int("transA", 0)
        if not plain or (bias is not None and not _is_row(bias, size, node)):
            return False
    elif (add := bias_addition(node, size)) is not None:
        last, bias = add, next(v for v in add.inputs if v is not node.outputs[0])
    _replace(node, last, "Int8Linear", [x, *found.inputs, bias], {"transposed": int(not is_stored_out_first)})
    return True


def _is_row(bias: ir.Value, size: int, gemm: ir.Node) -> bool:
    is_constant = constant(bias) is not None and gemm.attributes.get_float("beta", 1.0) == 1
    return is_constant and shape_of(bias) in ((size,), (1, size))


def _conv(node: ir.Node) -> bool:
    x, weight, bias = (*node.inputs, None)[:3]
    found = _codes(weight)
    if found is None or found.axis not in (None, 0) or (bias is not None and constant(bias) is None):
        return False
    if not 3 <= len(shape_of(found.codes) or ()) <= 5:
        return False
    attributes = {name: attribute.value for name, attribute in node.attributes.items()}
    _replace(node, node, "Int8Conv", [x, *found.inputs, bias], attributes)
    return True


def _replace(main: ir.Node, last: ir.Node, op: str, inputs: list[ir.Value | None], attributes: dict[str, Any]) -> None:
    made = new_node(op, inputs, attributes, main, last, domain=DOMAIN)
    take_over(last.outputs[0], made.outputs[0])


def _decode_bias(node: ir.Node) -> bool:
    """A constant vector, which a bias is, as the floats that it stands for: they take little more room, if any."""
    codes, scale, zero = (constant(value) for value in (*node.inputs, None, None)[:3])
    if codes is None or scale is None or scale.dtype != _D.FLOAT or node.attributes.get_int("block_size", 0) != 0:
        return False
    is_short = codes.dtype in _CODES and codes.size <= LIMIT
    if len(codes.shape) != 1 or not (codes.dtype == _D.INT32 or is_short):
        return False
    points = np.zeros((), np.float32) if zero is None else zero.numpy().astype(np.float32)
    numbers = (codes.numpy().astype(np.float32) - points.reshape(-1)) * scale.numpy().reshape(-1)
    old, graph = node.outputs[0], node.graph
    if numbers.shape != codes.numpy().shape or not isinstance(graph, ir.Graph) or old.is_graph_output():
        return False
    name = old.name or "bias"
    tensor = ir.tensor(numbers, name=name)
    bias = ir.Value(type=ir.TensorType(_D.FLOAT), shape=ir.Shape(numbers.shape), const_value=tensor)
    take_over(old, bias)
    bias.name = name
    bias.meta[MARK] = Role(True, "" if is_automatic(name) else name)
    graph.register_initializer(bias)
    return True


def _round(node: ir.Node) -> bool:
    """Let what is divided into steps and multiplied again be rounded, if the steps are the same."""
    quantize = made_by(node.inputs[0], "QuantizeLinear")
    codes = node.inputs[0]
    if quantize is None or codes is None or codes.dtype not in _ROUNDED:
        return False
    x, *steps = (*quantize.inputs, None)[:3]
    again = (*node.inputs, None)[1:3]
    if x is None or x.dtype != _D.FLOAT or node.outputs[0].dtype != _D.FLOAT:
        return False
    if quantize.attributes.get_int("precision", 0) or not all(map(_is_same, steps, again)):
        return False
    scale = steps[0]
    if scale is None or scale.dtype != _D.FLOAT or not (shape_of(scale) == () or (shape_of(scale) == (1,) and x.shape)):
        return False
    low, high = INTEGER_RANGES[codes.dtype]
    _replace(quantize, node, "Rounded", [x, *steps], {"low": low, "high": high})
    return True


def _is_same(a: ir.Value | None, b: ir.Value | None) -> bool:
    """Whether two inputs are the same constant, or both are left out."""
    left, right = constant(a), constant(b)
    if left is None or right is None:
        return a is None and b is None
    return a is b or (left.dtype == right.dtype and np.array_equal(left.numpy(), right.numpy()))
