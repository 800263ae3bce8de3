"""Quantised products that ONNX Runtime computes exactly on every processor.

It makes products of uint8 and int8 of layers between DequantizeLinear and QuantizeLinear, also where both are int8 in
the file. With AVX2 and no VNNI, these saturate: two of them are added in 16 bits. Products of uint8 and uint8 do not.
So what stands for numbers in int8 is written in uint8, with a zero point that is 128 more: the same numbers, exactly.
Convolutions with a filter for each channel have a kernel that does not saturate, and keep their weights.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onward.graph.names import Names
from onward.graph.replace import constant, graphs, is_op

BYTE, UNSIGNED = ir.DataType.INT8, ir.DataType.UINT8
PRODUCTS = ("Conv", "Gemm", "MatMul")
TYPE = "output_dtype"


def unsigned_bytes(model: ir.Model) -> int:
    """Rewrites in place; returns how many tensors of int8 are of uint8 now."""
    nodes = [node for graph in graphs(model) for node in graph]
    made = [node for node in nodes if is_op(node, "QuantizeLinear")]
    read = dict.fromkeys(v for n in nodes if is_op(n, "DequantizeLinear") and (v := n.inputs[0]) is not None)
    points = _ZeroPoints(model)
    count = 0
    for maker in made:
        if _can_be_unsigned(maker.outputs[0]) and _has_constants(maker):
            points.shift(maker)
            if TYPE in maker.attributes:
                maker.attributes[TYPE] = ir.AttrInt64(TYPE, int(UNSIGNED))
            count += points.shift_readers(maker.outputs[0])
    for weight in read:
        fixed = None if weight.is_graph_input() else weight.const_value
        if fixed is not None and weight.is_initializer() and _can_be_unsigned(weight) and _may_saturate(weight):
            weight.const_value = ir.Tensor(unsigned(fixed.numpy()), name=weight.name)
            count += points.shift_readers(weight)
    return count


def has_saturating_weights(model: ir.Model) -> bool:
    """Whether a layer between grids has weights that saturate on some processors."""
    nodes = [node for graph in graphs(model) for node in graph if is_op(node, "DequantizeLinear")]
    weights = [v for node in nodes if (v := node.inputs[0]) is not None and v.const_value is not None]
    return any(_dtype(weight) == BYTE and _may_saturate(weight, (BYTE, UNSIGNED)) for weight in weights)


def unsigned(array: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Numbers of int8 as those of uint8 that are 128 more."""
    return np.asarray(array.view(np.uint8) ^ np.uint8(128))


def _can_be_unsigned(value: ir.Value) -> bool:
    """Whether it is of int8, and read only as numbers that it stands for."""
    readers = [node for node, _ in value.uses()]
    is_byte = _dtype(value) == BYTE and bool(readers) and not value.is_graph_output()
    return is_byte and all(is_op(node, "DequantizeLinear") and _has_constants(node) for node in readers)


def _dtype(value: ir.Value) -> ir.DataType | None:
    """What is known of it: of a result of QuantizeLinear by its zero point."""
    if value.dtype is not None:
        return value.dtype
    if value.const_value is not None:
        return value.const_value.dtype
    node = value.producer()
    point = None if node is None else _zero_point(node)
    return None if point is None else point.dtype


def _has_constants(node: ir.Node) -> bool:
    """Whether scale and zero point, if there is one, are known."""
    given = [value for value in node.inputs[1:3] if value is not None]
    return all(constant(value) is not None for value in given)


def _zero_point(node: ir.Node) -> ir.TensorProtocol | None:
    value = node.inputs[2] if len(node.inputs) > 2 else None
    return None if value is None else constant(value)


def _may_saturate(weight: ir.Value, data: tuple[ir.DataType, ...] = (UNSIGNED,)) -> bool:
    """Whether ONNX Runtime may multiply it with such data, in a kernel that saturates."""
    products = [(node, i) for dq, _ in weight.uses() for node, i in dq.outputs[0].uses() if node.op_type in PRODUCTS]
    return any(_meets(node, 1 - i, data) and not _has_own_filters(node, weight) for node, i in products if i < 2)


def _meets(node: ir.Node, other: int, data: tuple[ir.DataType, ...]) -> bool:
    value = node.inputs[other]
    maker = None if value is None else value.producer()
    if maker is None or not is_op(maker, "DequantizeLinear") or maker.inputs[0] is None:
        return False
    return _dtype(maker.inputs[0]) in data


def _has_own_filters(node: ir.Node, weight: ir.Value) -> bool:
    shape = weight.shape
    if node.op_type != "Conv" or shape is None or len(shape) != 4:
        return False
    return shape[0] == node.attributes.get_int("group", 1) and shape[1] == 1


class _ZeroPoints:
    """Those of uint8, each once."""

    def __init__(self, model: ir.Model) -> None:
        self._model, self._names = model, Names(model)
        self._known: dict[tuple[bytes, tuple[int, ...]], ir.Value] = {}

    def shift_readers(self, value: ir.Value) -> int:
        """Of a value that is of uint8 now; returns how many values that is."""
        value.type = ir.TensorType(UNSIGNED)
        for node, _ in list(value.uses()):
            self.shift(node)
        return 1

    def shift(self, node: ir.Node) -> None:
        """Where there is none, it is zero, for each of the scales."""
        point, scale = _zero_point(node), constant(node.inputs[1])
        assert scale is not None
        array = np.zeros(scale.shape.numpy(), np.int8) if point is None else point.numpy()
        node.resize_inputs(3)
        before = node.inputs[2]
        node.replace_input_with(2, self._value(unsigned(array)))
        if before is not None and before.is_initializer() and not before.uses() and before.graph is not None:
            before.graph.initializers.pop(before.name or "")

    def _value(self, array: npt.NDArray[np.uint8]) -> ir.Value:
        key = array.tobytes(), array.shape
        if key not in self._known:
            tensor = ir.Tensor(array, name=self._names.value("zero_point"))
            kind = ir.TensorType(UNSIGNED)
            made = ir.Value(name=tensor.name, const_value=tensor, type=kind, shape=ir.Shape(array.shape))
            self._model.graph.register_initializer(made)
            self._known[key] = made
        return self._known[key]
