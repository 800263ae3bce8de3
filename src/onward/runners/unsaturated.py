"""Right products of bytes on processors where those of ONNX Runtime saturate.

With AVX2 alone (no VNNI), ONNX Runtime adds products of uint8 and int8 in pairs, in 16 bits, which clips them. Products
of uint8 and uint8 it adds right. The same numbers in uint8 are 128 more, and so is their zero point.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import onnx_ir as ir
from onnx import TensorProto, helper

from onward.canon.inline import inline
from onward.graph.infer import infer
from onward.graph.names import Names
from onward.graph.walk import all_nodes
from onward.model import Model
from onward.passes.unsigned_bytes import has_saturating_weights, unsigned


class Product(NamedTuple):
    """Where the inputs of an op stand."""

    weights: int
    zero_point: int
    """Of the weights."""
    data: int | None = 0
    """What the weights are multiplied with; None where the op itself quantises that, to uint8."""


PRODUCTS = {
    "MatMulInteger": [Product(1, 3)],
    "QLinearMatMul": [Product(3, 5)],
    "QLinearConv": [Product(3, 5)],
    "MatMulIntegerToFloat": [Product(1, 5)],
    "QGemm": [Product(3, 5)],
    "QAttention": [Product(1, 7)],
    "DynamicQuantizeMatMul": [Product(1, 3, None)],
    "DynamicQuantizeLSTM": [Product(1, 9, None), Product(2, 11, None)],
}
"""The ops that multiply bytes, of ONNX and of ONNX Runtime; ConvInteger has them the other way round, and right."""

REMARK = (
    "with uint8 in place of int8, because ONNX Runtime saturates here: on this processor another program that runs the "
    "file gets other numbers"
)

UNFUSED = "session.disable_quant_qdq"
"""The option that leaves ops between DequantizeLinear and QuantizeLinear in floats.

ONNX Runtime would make products of bytes of them; its own option for such processors, `session.x64quantprecision`,
makes only some of these right, and fails on products of int8 and int8.
"""


def multiplies_bytes(model: Model) -> bool:
    graphs = [model.ir.graph, *(function.graph for function in model.ir.functions.values())]
    return any(n.op_type in PRODUCTS or n.op_type == "DequantizeLinear" for g in graphs for n in all_nodes(g))


def saturates(model: Model) -> bool:
    """Whether ONNX Runtime, left to itself, may make products of the model wrong on this processor."""
    graphs = [model.ir.graph, *(function.graph for function in model.ir.functions.values())]
    found = ((node, product) for g in graphs for node in all_nodes(g) for product in PRODUCTS.get(node.op_type, []))
    weights = (dict(enumerate(node.inputs)).get(product.weights) for node, product in found)
    at_risk = any(_dtype(value) == ir.DataType.INT8 for value in weights) or has_saturating_weights(model.ir)
    return at_risk and products_saturate()


@cache
def products_saturate() -> bool:
    """Whether they do on this processor: 128 products of 255 and 127 are added and looked at."""
    import onnxruntime

    slots = [helper.make_tensor_value_info("a", TensorProto.UINT8, [1, 128])]
    slots.append(helper.make_tensor_value_info("b", TensorProto.INT8, [128, 1]))
    result = helper.make_tensor_value_info("y", TensorProto.INT32, [1, 1])
    graph = helper.make_graph([helper.make_node("MatMulInteger", ["a", "b"], ["y"])], "products", slots, [result])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    a, b = np.full((1, 128), 255, np.uint8), np.full((128, 1), 127, np.int8)
    return bool(session.run(None, {"a": a, "b": b})[0] != 128 * 255 * 127)


def saturates_at(model: Model, op_type: str) -> bool:
    """Whether this processor may make an op of the model wrong; '' stands for any op of it."""
    graphs = [model.ir.graph, *(function.graph for function in model.ir.functions.values())]
    ops = {node.op_type for graph in graphs for node in all_nodes(graph)} & PRODUCTS.keys()
    return bool(ops) and (not op_type or not ops.isdisjoint(op_type.split(" + "))) and products_saturate()


def unsaturated(model: Model) -> Model:
    """The same model with uint8 wherever it multiplies uint8 and int8."""
    made = model.ir.clone()
    inline(made)
    infer(made)
    shifted = _Shifted(made)
    for node in list(all_nodes(made.graph)):
        for product in PRODUCTS.get(node.op_type, []):
            given = dict(enumerate(node.inputs))
            weights, point = given.get(product.weights), given.get(product.zero_point)
            data = None if product.data is None else given.get(product.data)
            if _dtype(weights) != ir.DataType.INT8 or (product.data is not None and _dtype(data) != ir.DataType.UINT8):
                continue
            assert weights is not None
            node.resize_inputs(max(len(node.inputs), product.zero_point + 1))
            node.replace_input_with(product.weights, shifted.before(node, weights))
            node.replace_input_with(product.zero_point, shifted.before(node, point))
    return Model(made, ir_version=model.ir_version)


def _dtype(value: ir.Value | None) -> ir.DataType | None:
    if value is None:
        return None
    return value.dtype or (None if value.const_value is None else value.const_value.dtype)


class _Shifted:
    """Values of int8 as those of uint8 that are 128 more; constants once."""

    def __init__(self, model: ir.Model) -> None:
        self._model = model
        self._names = Names(model)
        self._constants: dict[ir.Value | None, ir.Value] = {}

    def before(self, node: ir.Node, value: ir.Value | None) -> ir.Value:
        """For `node`; zero where there is no value."""
        if value in self._constants:
            return self._constants[value]
        if value is None:
            return self._constant(None, np.zeros((), np.int8))
        if not value.is_graph_input() and (tensor := ir.convenience.get_const_tensor(value)) is not None:
            return self._constant(value, tensor.numpy())
        wide = self._insert(node, "Cast", [value], to=ir.DataType.INT32)
        offset = self._register(np.array(128, np.int32))
        return self._insert(node, "Cast", [self._insert(node, "Add", [wide, offset])], to=ir.DataType.UINT8)

    def _constant(self, value: ir.Value | None, array: np.ndarray) -> ir.Value:
        self._constants[value] = self._register(unsigned(array))
        return self._constants[value]

    def _register(self, array: np.ndarray) -> ir.Value:
        tensor = ir.Tensor(array, name=self._names.value("unsaturated"))
        made = ir.Value(
            name=tensor.name, const_value=tensor, type=ir.TensorType(tensor.dtype), shape=ir.Shape(array.shape)
        )
        self._model.graph.register_initializer(made)
        return made

    def _insert(self, node: ir.Node, op_type: str, inputs: list[ir.Value], **attributes: int) -> ir.Value:
        made = ir.Node("", op_type, inputs, [ir.AttrInt64(k, int(v)) for k, v in attributes.items()])
        made.outputs[0].name = self._names.value("unsaturated")
        assert node.graph is not None
        node.graph.insert_before(node, made)
        return made.outputs[0]
