"""A copy of a model that rounds otherwise: results are off by about a unit in the last place, sums go in order."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
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
PRODUCTS = {"Conv", "ConvTranspose", "MatMul", "Gemm", "Einsum", "DFT", "STFT", "LSTM", "GRU", "RNN"}
"""Ops that add up products, each of which is rounded: where they cancel, a sum is off by far more than its last bit."""
SUMS = {"ReduceSum", "ReduceMean", "GlobalAveragePool"}
OTHER_NUMBERS = 1_000_003
"""By which the seeds for what is multiplied are apart from those for results."""
IN_ORDER = 15
"""The first opset that has all that takes sums in order."""
UNDRAWN = 22
"""The first opset at which ONNX Runtime has no kernels that draw random numbers, but for Dropout."""
SIZES = (0.5, 0.3)
"""Of what is added there in place of numbers from -1 to 1, which are as large overall."""
IMAGES = 4
"""The rank from which on values have channels along their second axis."""
TURNS, MOST_TURNED = 1e12, 1e25
"""By what a value is multiplied, so that its sine has nothing to do with that of its neighbour; the largest value."""
AS_UNIFORM = math.sqrt(2 / 3)
"""Sines times this are as large overall as numbers from -1 to 1."""
Draws = Callable[[str, str, int], Iterator[onnx.NodeProto]]
"""What draws a number for each element of a value, given the names of the value and of the result, and a seed."""


def jittered(model: onnx.ModelProto, seed: int = 0, unit: float | None = None) -> onnx.ModelProto:
    """The same model, each element of each float result multiplied by a number from 1 - eps to 1 + eps.

    `unit` takes the place of the eps of single precision: that of 16 bits says what these would do.

    The numbers are drawn anew in each run. Those of a channel of an image follow from its values: in a plain image the
    pixels are alike, a kernel rounds them alike, and such roundings do not cancel. Left alone are scalars and vectors,
    as sizes are computed from them, and what does not depend on the inputs. What is multiplied and added up is moved as
    well, as products are rounded, too: inputs of the model that no op has rounded before. Sums and means add one number
    after the other, as some runtimes do: where all are alike, roundings do not cancel.
    """
    dtypes, ranks = _float_results(model)
    moved: set[str] = set()
    made = onnx.ModelProto()
    made.CopyFrom(model)
    del made.graph.node[:]
    opset = max((used.version for used in model.opset_import if used.domain in ("", "ai.onnx")), default=0)
    draws = _signs if opset >= UNDRAWN else _uniform
    known = {tensor.name: tensor for tensor in model.graph.initializer}
    for number, node in enumerate(model.graph.node):
        inputs = list(node.input)
        for place, name in enumerate(inputs if node.op_type in PRODUCTS else ()):
            if name in dtypes and name not in moved:
                inputs[place] = f"{name}/term/{number}/{place}"
                drawn = 1009 * seed + number + OTHER_NUMBERS * (1 + place)
                numbers = _drawing(name, ranks, draws)
                made.graph.node.extend(_move(name, inputs[place], dtypes[name], numbers, drawn, unit))
        rounded = [name for name in node.output if name in dtypes and node.op_type not in EXACT]
        outputs = [f"{name}/exact" if name in rounded else name for name in node.output]
        rank = ranks.get(node.input[0], 0) if node.op_type in SUMS and opset >= IN_ORDER else 0
        if ordered := _in_order(node, rank, known, outputs[0]) if rank else []:
            made.graph.node.extend(ordered)
        else:
            made.graph.node.add().CopyFrom(node)
            made.graph.node[-1].input[:] = inputs
            made.graph.node[-1].output[:] = outputs
        for name in rounded:
            numbers = _drawing(name, ranks, draws)
            made.graph.node.extend(_move(f"{name}/exact", name, dtypes[name], numbers, 1009 * seed + number, unit))
        moved.update(node.output if node.op_type in EXACT and not moved.isdisjoint(node.input) else rounded)
    return made


def _move(
    exact: str, name: str, dtype: np.dtype[Any], draws: Draws, seed: int, unit: float | None
) -> Iterator[onnx.NodeProto]:
    """Draws in single precision, which is what ONNX Runtime does and what attributes hold."""
    drawn, scaled, factor = (f"{name}/{part}" for part in ("drawn", "scaled", "factor"))
    kind = helper.np_dtype_to_tensor_dtype(dtype)
    yield _constant(f"{name}/eps", np.asarray(unit if unit and dtype == np.float32 else np.finfo(dtype).eps, dtype))
    yield _constant(f"{name}/one", np.asarray(1, dtype))
    yield from draws(exact, drawn, seed)
    if kind != TensorProto.FLOAT:
        yield helper.make_node("Cast", [drawn], [drawn := f"{name}/cast"], to=kind)
    yield helper.make_node("Mul", [drawn, f"{name}/eps"], [scaled])
    yield helper.make_node("Add", [scaled, f"{name}/one"], [factor])
    yield helper.make_node("Mul", [exact, factor], [name])


def _uniform(like: str, drawn: str, seed: int) -> Iterator[onnx.NodeProto]:
    """Numbers from -1 to 1."""
    node = helper.make_node("RandomUniformLike", [like], [drawn], dtype=TensorProto.FLOAT, low=-1.0, high=1.0)
    node.attribute.append(helper.make_attribute("seed", float(seed)))
    yield node


def _signs(like: str, drawn: str, seed: int) -> Iterator[onnx.NodeProto]:
    """Sums of a few sizes, each of either sign, spread much as such numbers: Dropout leaves nothing or doubles."""
    yield _constant(f"{drawn}/share", np.asarray(0.5, np.float32))
    yield _constant(f"{drawn}/trains", np.asarray(True))
    yield helper.make_node("Shape", [like], [f"{drawn}/shape"])
    for place, size in enumerate(SIZES):
        alike, kept = f"{drawn}/alike/{place}", f"{drawn}/kept/{place}"
        value = numpy_helper.from_array(np.asarray([size], np.float32))
        yield helper.make_node("ConstantOfShape", [f"{drawn}/shape"], [alike], value=value)
        again = seed + OTHER_NUMBERS * len(SIZES) * (1 + place)
        yield helper.make_node("Dropout", [alike, f"{drawn}/share", f"{drawn}/trains"], [kept], seed=again)
    yield _constant(f"{drawn}/middle", np.asarray(sum(SIZES), np.float32))
    yield helper.make_node("Sum", [f"{drawn}/kept/{place}" for place in range(len(SIZES))], [f"{drawn}/sum"])
    yield helper.make_node("Sub", [f"{drawn}/sum", f"{drawn}/middle"], [drawn])


def _drawing(name: str, ranks: Mapping[str, int], draws: Draws) -> Draws:
    """For images, draws by which pixels of one value get one number."""
    rank = ranks.get(name, 0)
    return partial(_alike, rank, draws) if rank >= IMAGES else draws


def _alike(rank: int, draws: Draws, like: str, drawn: str, seed: int) -> Iterator[onnx.NodeProto]:
    """The sine of a large multiple of each value, by a factor that is drawn for each channel."""
    is_channel = np.asarray([axis == 1 for axis in range(rank)], np.int64)
    yield _constant(f"{drawn}/kept", is_channel)
    yield _constant(f"{drawn}/dropped", 1 - is_channel)
    yield helper.make_node("Shape", [like], [f"{drawn}/whole"])
    yield helper.make_node("Mul", [f"{drawn}/whole", f"{drawn}/kept"], [f"{drawn}/channels"])
    yield helper.make_node("Add", [f"{drawn}/channels", f"{drawn}/dropped"], [f"{drawn}/few"])
    yield helper.make_node("ConstantOfShape", [f"{drawn}/few"], [f"{drawn}/each"])
    yield from draws(f"{drawn}/each", f"{drawn}/factor", seed)
    numbers = {"turns": TURNS, "most_turns": 2 * TURNS, "least": -MOST_TURNED, "most": MOST_TURNED, "size": AS_UNIFORM}
    for part, value in numbers.items():
        yield _constant(f"{drawn}/{part}", np.asarray(value, np.float32))
    yield helper.make_node("Mul", [f"{drawn}/factor", f"{drawn}/turns"], [f"{drawn}/some"])
    yield helper.make_node("Add", [f"{drawn}/some", f"{drawn}/most_turns"], [f"{drawn}/times"])
    yield helper.make_node("Cast", [like], [f"{drawn}/value"], to=TensorProto.FLOAT)
    yield helper.make_node("Max", [f"{drawn}/value", f"{drawn}/least"], [f"{drawn}/bounded"])
    yield helper.make_node("Min", [f"{drawn}/bounded", f"{drawn}/most"], [f"{drawn}/finite"])
    yield helper.make_node("Mul", [f"{drawn}/finite", f"{drawn}/times"], [f"{drawn}/angle"])
    yield helper.make_node("Sin", [f"{drawn}/angle"], [f"{drawn}/sine"])
    yield helper.make_node("Mul", [f"{drawn}/sine", f"{drawn}/size"], [drawn])


def _constant(name: str, value: np.ndarray[Any, Any]) -> onnx.NodeProto:
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(value))


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
        return _constant(name(part), np.asarray(value, np.int64))

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
    given = {value.name for value in graph.input} - {tensor.name for tensor in graph.initializer}
    depends = given | set(_depending_on_inputs(graph, given))
    found, ranks = {}, {}
    for value in [*graph.input, *graph.value_info, *graph.output]:
        tensor = value.type.tensor_type
        dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type) if tensor.elem_type else np.dtype(object)
        if dtype.kind == "f" and len(tensor.shape.dim) >= 2 and value.name in depends:
            found[value.name] = dtype
        if dtype in (np.float32, np.float64):
            ranks[value.name] = len(tensor.shape.dim)
    return found, ranks


def _depending_on_inputs(graph: onnx.GraphProto, given: Collection[str]) -> Iterator[str]:
    """Values that change with the contents of an input, not only with its shape."""
    known = set(given)
    for node in graph.node:
        if node.op_type not in ("Shape", "Size") and not known.isdisjoint(node.input):
            known.update(node.output)
            yield from node.output
