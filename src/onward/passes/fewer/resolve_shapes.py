"""What follows from shapes that are known, as constants: `Shape`, `Gather`, `Concat` in front of a `Reshape` go."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onward.graph.infer import infer
from onward.graph.names import Names
from onward.graph.replace import constant
from onward.spec.random import RANDOM


def resolve_shapes(model: ir.Model) -> int:
    """In place; returns how many values became constants. Also types every value anew."""
    inference = infer(model)
    names = Names(model)
    count = 0
    for node in list(model.graph):
        if node.op_type == "Constant" or node.op_type in RANDOM or node.domain not in ("", "ai.onnx"):
            continue
        for value in node.outputs:
            if not value.uses() or value.is_graph_output() or constant(value) is not None:
                continue
            numbers = inference.numbers(value)
            if numbers is None or value.dtype is None:
                continue
            name = names.value(f"{value.name}_known")
            tensor = ir.Tensor(np.array(numbers.tolist(), value.dtype.numpy()).reshape(numbers.shape), name=name)
            made = ir.Value(name=name, type=value.type, shape=ir.Shape(numbers.shape), const_value=tensor)
            model.graph.register_initializer(made)
            value.replace_all_uses_with(made)
            count += 1
    return count
