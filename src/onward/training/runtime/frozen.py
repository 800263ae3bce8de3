"""Large weights that are not trained are inputs of a session, bound where they lie.

As constants of the model they would be copied several times while a session opens, and then be held a second time in
another order.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.canon.lower import key_of
from onward.training.trainable import Trainable

Array = np.ndarray[Any, np.dtype[Any]]
LEAST, SMALLEST = 1 << 25, 1 << 16
"""Bytes of all of them, and of each, that are worth it."""
DTYPES = (ir.DataType.FLOAT, ir.DataType.UINT8, ir.DataType.INT8)
READERS = frozenset(
    [
        *("MatMul", "Gemm", "Gather", "com.microsoft::MatMulNBits", "DequantizeLinear"),
        *("BitShift", "BitwiseAnd", "Reshape", "Transpose"),
    ]
)
"""Ops that are no slower, or not much, if they do not know the weight beforehand."""


def with_frozen_inputs(trainable: Trainable) -> tuple[Trainable, dict[str, Array]]:
    """The same with such inputs in its graph, and what they are."""
    chosen = [value for value in trainable.gradients.graph.initializers.values() if _is_worth_it(value)]
    if sum(value.const_value.nbytes for value in chosen if value.const_value is not None) < LEAST:
        return trainable, {}
    model = trainable.gradients.clone()
    arrays = {}
    for name in [value.name or "" for value in chosen]:
        value = model.graph.initializers.pop(name)
        assert value.const_value is not None
        arrays[name] = np.ascontiguousarray(value.const_value.numpy())
        value.const_value = None
        model.graph.inputs.append(value)
    return replace(trainable, gradients=model), arrays


def _is_worth_it(value: ir.Value) -> bool:
    tensor = value.const_value
    if tensor is None or tensor.dtype not in DTYPES or tensor.nbytes < SMALLEST or value.is_graph_input():
        return False
    if value.is_graph_output():
        return False
    return all(key_of(node) in READERS and node.graph is value.graph for node, _ in value.uses())
