"""A product or convolution of 8-bit weights with an input that is rounded to 8 bits as it comes, as one layer.

ONNX Runtime's dynamic quantization writes DynamicQuantizeLinear, MatMulInteger or ConvInteger, Cast, two Mul, and Add.
`onward::DynamicLinear(x, weight, scale[, zero_point, bias]; in_single)` and `onward::DynamicConv`, with the attributes
of Conv, do the same. `scale` and `zero_point` are one number or one for each output; with `in_single`, all sums are
exact in single precision; with `whole_bias`, a convolution adds its bias in whole steps of what its sums are worth.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

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
from onward.spec.quantize import EXACT, largest_distance, largest_sum

_D = ir.DataType
LAYERS = {"MatMulInteger": "DynamicLinear", "ConvInteger": "DynamicConv"}


@dataclass
class _Layer:
    product: ir.Node
    last: ir.Node
    """The node whose result is that of the layer."""
    quantize: ir.Node
    """What rounds the input, which may be the result of another layer that is replaced first."""
    weight: ir.Value
    scale: ir.Value
    zero_point: ir.Value | None
    bias: ir.Value | None = None
    whole_bias: bool = False
    """Whether the bias is added to the sums, in whole steps of what these are worth."""

    @property
    def shape(self) -> tuple[str, tuple[int | None, ...] | None]:
        return self.product.op_type, shape_of(self.weight)

    @property
    def has_offset(self) -> bool:
        tensor = constant(self.zero_point)
        return tensor is not None and bool(tensor.numpy().any())

    @property
    def in_single(self) -> bool:
        """Whether all sums are exact in single precision, whatever the input is."""
        weight, zero = constant(self.weight), constant(self.zero_point)
        assert weight is not None
        points = np.zeros((), np.int8) if zero is None else zero.numpy()
        is_linear = self.product.op_type == "MatMulInteger"
        axes = (0,) if is_linear else tuple(range(1, len(weight.shape)))
        if points.size > 1 and not is_linear:
            points = points.reshape(-1, *[1] * len(axes))
        return largest_sum(largest_distance(_D.UINT8, None), weight.numpy(), points, axes) <= EXACT


def fuse_dynamic(model: ir.Model) -> int:
    """Rewrites in place; returns how many layers were found.

    Layers of one shape have sums of one type, and all have zero points if one has: they can be of one class then.
    """
    nodes = [node for graph in graphs(model) for node in graph if is_op(node, *LAYERS)]
    layers = [layer for node in nodes if (layer := _layer(node)) is not None]
    alike: dict[tuple[str, tuple[int | None, ...] | None], list[_Layer]] = defaultdict(list)
    for layer in layers:
        alike[layer.shape].append(layer)
    has_offsets = any(layer.has_offset for layer in layers)
    for group in alike.values():
        in_single = all(layer.in_single for layer in group)
        for layer in group:
            _replace(layer, in_single, has_offsets)
    return len(layers)


def _layer(product: ir.Node) -> _Layer | None:
    """The layer around a product of integers, if what is done to its input and result is that and nothing else."""
    codes, weight, x_zero, zero_point = (*product.inputs, None, None)[:4]
    quantize = made_by(codes, "DynamicQuantizeLinear")
    matrix = constant(weight)
    if quantize is None or matrix is None or codes is not quantize.outputs[0] or x_zero is not quantize.outputs[2]:
        return None
    is_linear = product.op_type == "MatMulInteger"
    rank = len(matrix.shape)
    if (rank != 2 if is_linear else not 3 <= rank <= 5) or quantize.inputs[0] is None or weight is None:
        return None
    out = int(matrix.shape.numpy()[1 if is_linear else 0])
    if zero_point is not None and not _is_per_output(zero_point, out):
        return None
    rounded = _whole_bias(product, quantize.outputs[1]) if not is_linear else None
    cast = only_user((rounded[0] if rounded is not None else product).outputs[0])
    scaled = only_user(cast.outputs[0]) if cast is not None and is_op(cast, "Cast") else None
    if cast is None or scaled is None or not is_op(scaled, "Mul") or cast.attributes.get_int("to") != _D.FLOAT:
        return None
    scale = _weight_scale(_other(scaled, cast.outputs[0]), quantize.outputs[1])
    if scale is None or not _is_per_output(scale, out) or (not is_linear and shape_of(scale) not in ((), (1,))):
        return None
    layer = _Layer(product, scaled, quantize, weight, scale, zero_point)
    if rounded is None:
        _give_bias(layer, out, 0 if is_linear else rank - 2)
        return layer
    add, layer.bias, worth = rounded
    layer.whole_bias = True
    spread = shape_of(_other(add, product.outputs[0]))
    fits = shape_of(layer.bias) == (out,) and spread == (1, out, *[1] * (rank - 2)) and worth is scale
    return layer if fits else None


def _whole_bias(product: ir.Node, x_scale: ir.Value) -> tuple[ir.Node, ir.Value, ir.Value] | None:
    """Of a bias that is added to the sums, in whole steps of what they are worth, as older versions wrote it:

    the addition, the bias, and the scale of the weight.
    """
    add = only_user(product.outputs[0])
    if add is None or not is_op(add, "Add"):
        return None
    value, steps = _other(add, product.outputs[0]), None
    for op in ("Reshape", "Cast", "Floor", "Div"):
        steps = made_by(value, op)
        if steps is None or (op == "Cast" and steps.attributes.get_int("to") != _D.INT32):
            return None
        value = steps.inputs[0]
    bias, scale = value, _weight_scale(steps.inputs[1] if steps is not None else None, x_scale)
    return (add, bias, scale) if bias is not None and scale is not None and constant(bias) is not None else None


def _weight_scale(value: ir.Value | None, x_scale: ir.Value) -> ir.Value | None:
    """What the scale of the input is multiplied by, if it is a constant."""
    product = made_by(value, "Mul")
    scale = _other(product, x_scale) if product is not None and x_scale in product.inputs else None
    return scale if constant(scale) is not None else None


def _give_bias(layer: _Layer, out: int, axes: int) -> None:
    """Let a layer have the constant that is added to each of its outputs; `axes` is how many an image has."""
    result = layer.last.outputs[0]
    add = only_user(result)
    if add is None or not is_op(add, "Add") or add.graph is not layer.last.graph:
        return
    value = _other(add, result)
    if axes:
        reshape = made_by(value, "Reshape")
        row = reshape.inputs[0] if reshape is not None else None
        if shape_of(value) == (1, out, *[1] * axes) and shape_of(row) == (out,) and constant(row) is not None:
            layer.bias, layer.last = row, add
    elif constant(value) is not None and shape_of(value) == (out,):
        layer.bias, layer.last = value, add


def _other(node: ir.Node, value: ir.Value) -> ir.Value | None:
    """The operand beside `value`."""
    return node.inputs[1] if node.inputs[0] is value else node.inputs[0]


def _is_per_output(value: ir.Value, out: int) -> bool:
    """Whether a constant is one number, or one for each output."""
    return constant(value) is not None and shape_of(value) in ((), (1,), (out,))


def _replace(layer: _Layer, in_single: bool, has_offsets: bool) -> None:
    zero_point = layer.zero_point if has_offsets or layer.weight.dtype == _D.UINT8 else None
    inputs = [layer.quantize.inputs[0], layer.weight, layer.scale, zero_point, layer.bias]
    attributes = {name: attribute.value for name, attribute in layer.product.attributes.items()}
    made = new_node(
        LAYERS[layer.product.op_type],
        inputs,
        {**attributes, "in_single": int(in_single), "whole_bias": 1 if layer.whole_bias else None},
        layer.product,
        layer.last,
        domain=DOMAIN,
    )
    take_over(layer.last.outputs[0], made.outputs[0])
