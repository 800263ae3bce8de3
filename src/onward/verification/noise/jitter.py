"""A copy of a model that rounds differently: each result is off by about one unit in the last place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# fmt: off
EXACT = {
    "Cast", "Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Slice", "Gather", "Concat",
    "Split", "Expand", "Tile", "Pad", "Relu", "Neg", "Abs", "Max", "Min", "Clip", "Where", "MaxPool",
    "Round", "Floor", "Ceil", "Sign", "GatherElements", "GatherND", "ScatterND", "ScatterElements", "TopK",
    "DepthToSpace", "SpaceToDepth", "GlobalMaxPool", "ReduceMax", "ReduceMin", "Dropout", "OneHot", "Trilu",
    "Range", "ConstantOfShape", "CastLike", "Constant",
}
# fmt: on
"""Ops that do not round; their results are left as they are."""


def jittered(model: onnx.ModelProto, seed: int = 0) -> onnx.ModelProto:
    """The same model, each element of each float result multiplied by a number from 1 - eps to 1 + eps.

    The numbers are drawn anew in each run. Left alone are scalars and vectors, as sizes are computed from them, and
    what does not depend on the inputs.
    """
    dtypes = _float_results(model)
    made = onnx.ModelProto()
    made.CopyFrom(model)
    del made.graph.node[:]
    for number, node in enumerate(model.graph.node):
        rounded = [name for name in node.output if name in dtypes and node.op_type not in EXACT]
        made.graph.node.add().CopyFrom(node)
        made.graph.node[-1].output[:] = [f"{name}/exact" if name in rounded else name for name in node.output]
        for name in rounded:
            made.graph.node.extend(_move(name, dtypes[name], 1009 * seed + number))
    return made


def _move(name: str, dtype: np.dtype[Any], seed: int) -> Iterator[onnx.NodeProto]:
    """Draws in single precision, which is what ONNX Runtime does and what attributes hold."""
    exact, drawn, scaled, factor = (f"{name}/{part}" for part in ("exact", "drawn", "scaled", "factor"))
    kind = helper.np_dtype_to_tensor_dtype(dtype)
    for part, value in (("eps", np.finfo(dtype).eps), ("one", 1)):
        yield helper.make_node(
            "Constant", [], [f"{name}/{part}"], value=numpy_helper.from_array(np.asarray(value, dtype))
        )
    draw = helper.make_node("RandomUniformLike", [exact], [drawn], dtype=TensorProto.FLOAT, low=-1.0, high=1.0)
    draw.attribute.append(helper.make_attribute("seed", float(seed)))
    yield draw
    if kind != TensorProto.FLOAT:
        yield helper.make_node("Cast", [drawn], [drawn := f"{name}/cast"], to=kind)
    yield helper.make_node("Mul", [drawn, f"{name}/eps"], [scaled])
    yield helper.make_node("Add", [scaled, f"{name}/one"], [factor])
    yield helper.make_node("Mul", [exact, factor], [name])


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
