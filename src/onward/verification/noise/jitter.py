"""A copy of a model that rounds otherwise: results are off by about a unit in the last place, sums go in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
SUMS = {"ReduceSum", "ReduceMean", "GlobalAveragePool"}
IN_ORDER = 15
"""The first opset that has all that takes sums in order."""


def jittered(model: onnx.ModelProto, seed: int = 0) -> onnx.ModelProto:
    """The same model, each element of each float result multiplied by a number from 1 - eps to 1 + eps.

    The numbers are drawn anew in each run. Left alone are scalars and vectors, as sizes are computed from them, and
    what does not depend on the inputs. Sums and means add one number after the other, as some runtimes do: where all
    are alike, roundings do not cancel.
    """
    dtypes, ranks = _float_results(model)
    made = onnx.ModelProto()
    made.CopyFrom(model)
    del made.graph.node[:]
    modern = any(used.domain in ("", "ai.onnx") and used.version >= IN_ORDER for used in model.opset_import)
    known = {tensor.name: tensor for tensor in model.graph.initializer}
    for number, node in enumerate(model.graph.node):
        rounded = [name for name in node.output if name in dtypes and node.op_type not in EXACT]
        outputs = [f"{name}/exact" if name in rounded else name for name in node.output]
        rank = ranks.get(node.input[0], 0) if node.op_type in SUMS and modern else 0
        if ordered := _in_order(node, rank, known, outputs[0]) if rank else []:
            made.graph.node.extend(ordered)
        else:
            made.graph.node.add().CopyFrom(node)
            made.graph.node[-1].output[:] = outputs
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


def _in_order(node: onnx.NodeProto, rank: int, known: Mapping[str, TensorProto], result: str) -> list[onnx.NodeProto]:
    """A sum or mean of floats of that rank, added up one after the other; empty where the axes are not known."""
    given = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    if len(node.input) > 1 and node.input[1] and node.input[1] not in known:
        return []
    listed = numpy_helper.to_array(known[node.input[1]]) if node.input[1:] and node.input[1] else given.get("axes", ())
    if not len(listed) and given.get("noop_with_empty_axes"):
        return []
    whole = range(rank) if node.op_type != "GlobalAveragePool" else range(2, rank)
    axes = sorted({int(axis) % rank for axis in listed}) or list(whole)
    kept = [axis for axis in range(rank) if axis not in axes]
    x, keeps = node.input[0], given.get("keepdims", 1)

    def name(part: str) -> str:
        return f"{result}/{part}"

    def constant(part: str, value: Any) -> onnx.NodeProto:
        tensor = numpy_helper.from_array(np.asarray(value, np.int64))
        return helper.make_node("Constant", [], [name(part)], value=tensor)

    total = name("total") if node.op_type != "ReduceSum" else name("sum")
    nodes = [
        constant("flat_sizes", [0] * len(kept) + [-1]),
        constant("axis", len(kept)),
        constant("last", -1),
        constant("axes", axes),
        helper.make_node("Transpose", [x], [name("moved")], perm=[*kept, *axes]),
        helper.make_node("Reshape", [name("moved"), name("flat_sizes")], [name("flat")]),
        helper.make_node("CumSum", [name("flat"), name("axis")], [name("sums")]),
        helper.make_node("Gather", [name("sums"), name("last")], [total], axis=len(kept)),
    ]
    if node.op_type != "ReduceSum":
        nodes += [
            helper.make_node("Shape", [name("flat")], [name("sizes")]),
            helper.make_node("Gather", [name("sizes"), name("last")], [name("count")], axis=0),
            helper.make_node("CastLike", [name("count"), x], [name("divisor")]),
            helper.make_node("Div", [total, name("divisor")], [name("sum")]),
        ]
    end = helper.make_node("Unsqueeze", [name("sum"), name("axes")], [result])
    return [*nodes, end if keeps else helper.make_node("Identity", [name("sum")], [result])]


def _float_results(model: onnx.ModelProto) -> tuple[dict[str, np.dtype[Any]], dict[str, int]]:
    """The dtypes of what is moved, and the ranks of all floats of single and double precision."""
    graph = onnx.shape_inference.infer_shapes(model).graph
    depends = set(_depending_on_inputs(graph))
    found, ranks = {}, {}
    for value in [*graph.input, *graph.value_info, *graph.output]:
        tensor = value.type.tensor_type
        dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type) if tensor.elem_type else np.dtype(object)
        if dtype.kind == "f" and len(tensor.shape.dim) >= 2 and value.name in depends:
            found[value.name] = dtype
        if dtype in (np.float32, np.float64):
            ranks[value.name] = len(tensor.shape.dim)
    return found, ranks


def _depending_on_inputs(graph: onnx.GraphProto) -> Iterator[str]:
    """Values that change with the contents of an input, not only with its shape."""
    known = {value.name for value in graph.input} - {tensor.name for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type not in ("Shape", "Size") and not known.isdisjoint(node.input):
            known.update(node.output)
            yield from node.output
