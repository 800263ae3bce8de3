"""A copy of a model that computes in double precision where the original computes in single precision."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper

from onward.errors import UnsupportedError
from onward.spec.random import RANDOM

LARGEST = 1 << 26
"""Bytes of the weights, in single precision, above which a copy is not worth its cost."""
DTYPES = {"Cast": "to", "EyeLike": "dtype", "SequenceEmpty": "dtype"} | dict.fromkeys(
    ("HannWindow", "HammingWindow", "BlackmanWindow", "MelWeightMatrix"), "output_datatype"
)
"""Attributes that name the dtype of a result."""
DEFAULTS_TO_FLOAT = DTYPES.keys() - {"Cast", "EyeLike"}
NEED_FLOAT = {("Resize", 2), ("Upsample", 1)}
"""Inputs that have to be in single precision whatever the others are."""


def in_double(model: onnx.ModelProto) -> onnx.ModelProto:
    """The copy; raises `UnsupportedError` for a model that has none. Whether a runtime takes it is another matter."""
    if model.functions or model.graph.sparse_initializer:
        raise UnsupportedError("functions and sparse weights are not turned into double precision")
    weights = sum(len(tensor.raw_data) or 4 * len(tensor.float_data) for tensor in model.graph.initializer)
    if weights > LARGEST:
        raise UnsupportedError("the model is too large to be worth a copy in double precision")
    made = onnx.ModelProto()
    made.CopyFrom(model)
    _graph(made.graph)
    return made


def widened(value: Any) -> Any:
    """Inputs for such a model."""
    if isinstance(value, list | tuple):
        return [widened(item) for item in value]
    if isinstance(value, dict):
        return {key: widened(item) for key, item in value.items()}
    return value.astype(np.float64) if isinstance(value, np.ndarray) and value.dtype == np.float32 else value


def narrowed(value: Any) -> Any:
    """Outputs of such a model, in single precision."""
    if isinstance(value, list | tuple):
        return [narrowed(item) for item in value]
    if isinstance(value, dict):
        return {key: narrowed(item) for key, item in value.items()}
    return value.astype(np.float32) if isinstance(value, np.ndarray) and value.dtype == np.float64 else value


def _graph(graph: onnx.GraphProto) -> None:
    for tensor in graph.initializer:
        _tensor(tensor)
    for value in [*graph.input, *graph.output, *graph.value_info]:
        _type(value.type)
    nodes = list(graph.node)
    del graph.node[:]
    for node in nodes:
        graph.node.extend(_node(node))


def _node(node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
    if node.op_type in RANDOM:
        raise UnsupportedError("a model that draws random numbers has no copy in double precision")
    for place, name in enumerate(node.input):
        if name and (node.op_type, place) in NEED_FLOAT:
            node.input[place] = f"{name}/float32/{node.output[0]}"
            yield helper.make_node("Cast", [name], [node.input[place]], to=TensorProto.FLOAT)
    for attribute in node.attribute:
        _attribute(node.op_type, attribute)
    given = {attribute.name for attribute in node.attribute}
    if node.op_type == "ConstantOfShape" and "value" not in given:
        node.attribute.append(helper.make_attribute("value", numpy_helper.from_array(np.zeros(1))))
    if node.op_type in DEFAULTS_TO_FLOAT and DTYPES[node.op_type] not in given:
        node.attribute.append(helper.make_attribute(DTYPES[node.op_type], TensorProto.DOUBLE))
    yield node


def _attribute(op: str, attribute: AttributeProto) -> None:
    if attribute.type == AttributeProto.GRAPH:
        _graph(attribute.g)
    elif attribute.type == AttributeProto.GRAPHS:
        for graph in attribute.graphs:
            _graph(graph)
    elif attribute.type == AttributeProto.TENSOR:
        _tensor(attribute.t)
    elif op == "Constant" and attribute.name in ("value_float", "value_floats"):
        value = np.asarray(attribute.f if attribute.name == "value_float" else attribute.floats, np.float64)
        attribute.CopyFrom(helper.make_attribute("value", numpy_helper.from_array(value)))
    elif attribute.name == DTYPES.get(op) and attribute.i == TensorProto.FLOAT:
        attribute.i = TensorProto.DOUBLE


def _tensor(tensor: TensorProto) -> None:
    if tensor.data_type == TensorProto.FLOAT:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name))


def _type(found: onnx.TypeProto) -> None:
    match found.WhichOneof("value"):
        case "tensor_type":
            if found.tensor_type.elem_type == TensorProto.FLOAT:
                found.tensor_type.elem_type = TensorProto.DOUBLE
        case "sequence_type":
            _type(found.sequence_type.elem_type)
        case "optional_type":
            _type(found.optional_type.elem_type)
        case "map_type":
            _type(found.map_type.value_type)
