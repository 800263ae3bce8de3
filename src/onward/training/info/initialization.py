"""The initialization of a training info: what training starts from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from onnx import helper, numpy_helper

Array = np.ndarray[Any, np.dtype[Any]]
NORMS = {
    "BatchNormalization",
    "InstanceNormalization",
    "LayerNormalization",
    "GroupNormalization",
    "RMSNormalization",
    "SimplifiedLayerNormalization",
}


def initialization(
    state: Mapping[str, tuple[Array, float]], weights: Mapping[str, ir.Value], scratch: bool
) -> tuple[onnx.GraphProto, dict[str, str]]:
    """A graph that gives states numbers and, from scratch, weights random ones; and what its outputs are bound to.

    `state` are arrays by name, each with the number that all of it starts from; `weights` the values of the inference
    graph.
    """
    nodes: list[onnx.NodeProto] = []
    outputs: list[onnx.ValueInfoProto] = []
    initializers: list[onnx.TensorProto] = []
    bound: dict[str, str] = {}

    def give(name: str, dtype: int, shape: tuple[int, ...], op: str, **attributes: Any) -> None:
        output = f"{name}.start"
        inputs = []
        if op == "ConstantOfShape":
            inputs = [f"{output}.shape"]
            initializers.append(numpy_helper.from_array(np.asarray(shape, np.int64), inputs[0]))
        else:
            attributes |= {"shape": list(shape), "dtype": dtype}
        nodes.append(helper.make_node(op, inputs, [output], name=output, **attributes))
        outputs.append(helper.make_tensor_value_info(output, dtype, shape))
        bound[name] = output

    def fill(name: str, dtype: int, shape: tuple[int, ...], number: float) -> None:
        give(name, dtype, shape, "ConstantOfShape", value=helper.make_tensor("value", dtype, [1], [number]))

    for name, (array, number) in state.items():
        fill(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape, number)
    for name, value in weights.items() if scratch else ():
        assert value.const_value is not None
        shape, dtype = tuple(value.const_value.shape.numpy()), int(value.const_value.dtype)
        if len(shape) >= 2:
            bound_by = 1 / math.sqrt(max(fan_in(value, shape), 1))
            if _use(value) == ("Gather", 0):
                give(name, dtype, shape, "RandomNormal", mean=0.0, scale=1.0)
            else:
                give(name, dtype, shape, "RandomUniform", low=-bound_by, high=bound_by)
        else:
            fill(name, dtype, shape, float(_use(value) in _ones()))
    graph = helper.make_graph(nodes, "initialization", [], outputs, initializers)
    return graph, bound


def _use(value: ir.Value) -> tuple[str, int]:
    """The first node that reads a value, and as which input."""
    for node, index in value.uses():
        return node.op_type, index
    return "", 0


def _ones() -> set[tuple[str, int]]:
    """Where scales and running variances go: what starts from one, unlike biases and means."""
    return {(op, 1) for op in NORMS} | {("BatchNormalization", 4), ("Mul", 0), ("Mul", 1)}


def fan_in(value: ir.Value, shape: tuple[int, ...]) -> int:
    """How many inputs each output of a layer sums over, by the way its weight is used."""
    for node, index in value.uses():
        if node.op_type == "MatMul" or (node.op_type == "Gemm" and not node.attributes.get_int("transB", 0)):
            return shape[-2] if index else shape[-1]
        if node.op_type == "Gemm":
            return shape[1]
        if node.op_type == "ConvTranspose":
            return shape[0] * int(np.prod(shape[2:]))
        if node.op_type in ("LSTM", "GRU", "RNN"):
            gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[node.op_type]
            return shape[1] // gates
    return int(np.prod(shape[1:]))
