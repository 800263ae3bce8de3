"""Models of one node of `ai.onnx.ml`."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper

DOMAIN = "ai.onnx.ml"


def ml_model(
    op: str, inputs: Sequence[np.ndarray | onnx.TypeProto], outputs: int = 1, *, version: int = 3, **attributes: Any
) -> onnx.ModelProto:
    """`inputs` are examples, or types for what is no tensor."""
    names = [f"in{i}" for i in range(len(inputs))]
    node = helper.make_node(op, names, [f"out{i}" for i in range(outputs)], domain=DOMAIN, **attributes)
    graph = helper.make_graph(
        [node],
        op,
        [_value(n, x) for n, x in zip(names, inputs, strict=True)],
        [onnx.ValueInfoProto(name=f"out{i}") for i in range(outputs)],
    )
    imports = [helper.make_opsetid("", 21), helper.make_opsetid(DOMAIN, version)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def _value(name: str, like: np.ndarray | onnx.TypeProto) -> onnx.ValueInfoProto:
    if isinstance(like, onnx.TypeProto):
        return helper.make_value_info(name, like)
    kind = onnx.TensorProto.STRING if like.dtype.kind in "OU" else helper.np_dtype_to_tensor_dtype(like.dtype)
    return helper.make_tensor_value_info(name, kind, like.shape)
