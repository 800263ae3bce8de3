"""How far apart two faithful runs of one model may be.

Every engine rounds in its own way, and a model may amplify that: a quantised one turns the last bit of a float
into a whole step. So a model is compared with a copy of itself whose intermediate results are all off by one unit
in the last place.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

# fmt: off
EXACT = {
    "Cast", "Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Slice", "Gather", "Concat",
    "Split", "Expand", "Tile", "Pad", "Relu", "Neg", "Abs", "Max", "Min", "Clip", "Where", "MaxPool",
    "Round", "Floor", "Ceil",
}
# fmt: on
"""Ops that do not round; their results are left as they are."""


def jittered(model: onnx.ModelProto, seed: int = 0) -> onnx.ModelProto:
    """The same model, each float result multiplied by 1 plus or minus one unit in the last place.

    Left alone are scalars and vectors, as sizes are computed from them, and what does not depend on the inputs.
    """
    rng = np.random.default_rng(seed)
    dtypes = _float_results(model)
    made = onnx.ModelProto()
    made.CopyFrom(model)
    del made.graph.node[:]
    for node in model.graph.node:
        rounded = [name for name in node.output if name in dtypes and node.op_type not in EXACT]
        made.graph.node.add().CopyFrom(node)
        made.graph.node[-1].output[:] = [f"{name}/exact" if name in rounded else name for name in node.output]
        for name in rounded:
            factor = dtypes[name].type(1 + rng.choice([-1, 1]) * float(np.finfo(dtypes[name]).eps))
            made.graph.initializer.append(numpy_helper.from_array(np.asarray(factor), f"{name}/factor"))
            made.graph.node.append(helper.make_node("Mul", [f"{name}/exact", f"{name}/factor"], [name]))
    return made


def _float_results(model: onnx.ModelProto) -> dict[str, np.dtype[Any]]:
    graph = onnx.shape_inference.infer_shapes(model).graph
    depends = set(_depending_on_inputs(graph))
    found = {}
    for value in [*graph.value_info, *graph.output]:
        tensor = value.type.tensor_type
        dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type) if tensor.elem_type else np.dtype(object)
        if dtype.kind == "f" and len(tensor.shape.dim) >= 2 and value.name in depends:
            found[value.name] = dtype
    return found


def _depending_on_inputs(graph: onnx.GraphProto) -> Iterator[str]:
    """Values that change with the contents of an input, not only with its shape."""
    known = {value.name for value in graph.input} - {tensor.name for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type not in ("Shape", "Size") and not known.isdisjoint(node.input):
            known.update(node.output)
            yield from node.output
