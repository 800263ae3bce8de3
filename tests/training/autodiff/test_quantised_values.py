"""Quantised integers carry gradients: those of the same formula on the numbers that they stand for."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from gradient_checks import run_onnxruntime, run_torch
from onnx import TensorProto, helper, numpy_helper

from onward.errors import OnwardError, UnsupportedError
from onward.training.autodiff.derivatives import gradient
from onward.training.runtime.trainer import Trainer
from onward.training.trainable import prepare

SCALE = 0.25
SHAPE = (1, 4, 4, 4)
X = SCALE * np.random.default_rng(3).permutation(np.arange(-32, 32)).reshape(SHAPE).astype(np.float32)
INT8, INT32 = np.int8, np.int32


def ints(*numbers: int) -> np.ndarray[Any, Any]:
    return np.asarray(numbers, np.int64)


NODES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "MaxPool": ("MaxPool", {}, {"kernel_shape": [2, 2], "strides": [2, 2]}),
    "MaxPool that overlaps": ("MaxPool", {}, {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
    "Reshape": ("Reshape", {"shape": ints(2, -1)}, {}),
    "Flatten": ("Flatten", {}, {"axis": 2}),
    "Squeeze": ("Squeeze", {"axes": ints(0)}, {}),
    "Unsqueeze": ("Unsqueeze", {"axes": ints(0)}, {}),
    "Transpose": ("Transpose", {}, {"perm": [0, 2, 3, 1]}),
    "Identity": ("Identity", {}, {}),
    "Slice": ("Slice", {"starts": ints(1), "ends": ints(3), "axes": ints(2)}, {}),
    "Slice with steps": ("Slice", {"starts": ints(3), "ends": ints(0), "axes": ints(3), "steps": ints(-2)}, {}),
    "Gather": ("Gather", {"indices": ints(2, 0, 2)}, {"axis": 1}),
    "GatherElements": ("GatherElements", {"indices": ints(0, 1, 1, 2).reshape(1, 4, 1, 1)}, {"axis": 1}),
    "GatherND": ("GatherND", {"indices": ints(0, 1, 0, 3).reshape(2, 2)}, {}),
    "ScatterND": ("ScatterND", {"indices": ints(0, 1).reshape(1, 2), "real:updates": np.ones((1, 4, 4))}, {}),
    "ScatterElements": (
        "ScatterElements",
        {"indices": ints(0, 1).reshape(1, 2, 1, 1), "real:updates": np.ones((1, 2, 1, 1))},
        {"axis": 1},
    ),
    "Pad": ("Pad", {"pads": ints(0, 0, 1, 1, 0, 0, 1, 1)}, {}),
    "Pad by a number": ("Pad", {"pads": ints(0, 0, 1, 1, 0, 0, 1, 1), "real:value": np.asarray(2.0)}, {}),
    "Pad by reflection": ("Pad", {"pads": ints(0, 0, 1, 1, 0, 0, 1, 1)}, {"mode": "reflect"}),
    "Resize": (
        "Resize",
        {"": None, " ": None, "scales": np.asarray([1, 1, 2, 2], np.float32)},
        {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
    ),
    "Concat": ("Concat", {"real:other": np.ones((1, 2, 4, 4))}, {"axis": 1}),
    "Where": ("Where", {"condition": X > 0, "real:other": np.asarray(1.5)}, {}),
    "Expand": ("Expand", {"shape": ints(3, 4, 4, 4)}, {}),
    "Tile": ("Tile", {"repeats": ints(1, 2, 1, 3)}, {}),
    "DepthToSpace": ("DepthToSpace", {}, {"blocksize": 2}),
    "SpaceToDepth": ("SpaceToDepth", {}, {"blocksize": 2}),
    "Max": ("Max", {"real:other": np.asarray(1.5)}, {}),
    "Min": ("Min", {"real:other": np.asarray(1.5)}, {}),
    "ReduceMax": ("ReduceMax", {"axes": ints(1)}, {}),
    "ReduceMin": ("ReduceMin", {"axes": ints(1)}, {}),
    "Clip": ("Clip", {"real:low": np.asarray(-2.0), "real:high": np.asarray(3.0)}, {}),
    "TopK": ("TopK", {"k": ints(2)}, {"axis": 1}),
    "Compress": ("Compress", {"condition": np.asarray([True, False, True])}, {"axis": 1}),
    "ReverseSequence": ("ReverseSequence", {"lengths": ints(3)}, {"batch_axis": 0, "time_axis": 1}),
    "Relu": ("Relu", {}, {}),
    "Abs": ("Abs", {}, {}),
    "Neg": ("Neg", {}, {}),
}
"""Op, further inputs and attributes; inputs called `real:…` are numbers, which are quantised beside."""
SUMS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "Add": ("Add", {"real:other": np.asarray(1.5)}, {}),
    "Sub": ("Sub", {"real:other": np.asarray(1.5)}, {}),
    "Sum": ("ReduceSum", {"axes": ints(2, 3)}, {}),
    "CumSum": ("CumSum", {"axis": np.asarray(1)}, {}),
    "Gather by integers of the same type": ("Gather", {"indices": np.asarray([2, 0], np.int32)}, {"axis": 1}),
}
"""Ops that are asked about in 32 bits."""


def of_op(node: tuple[str, dict[str, Any], dict[str, Any]], dtype: Any = None) -> onnx.ModelProto:
    """The sum of squares of what an op makes of numbers; with a `dtype`, of integers that stand for them."""
    op, others, attributes = node
    names, constants = [], {"scale": np.asarray(SCALE, np.float32), "zero": np.asarray(0, np.int8)}
    for name, array in others.items():
        short = name.removeprefix("real:").strip()
        names.append(short)
        if array is not None:
            real = np.asarray(array, np.float32) if name != short else array
            constants[short] = np.round(real / SCALE).astype(dtype) if dtype and name != short else real
    source, result = ("q", "r") if dtype else ("x", "y")
    outputs = [result, "positions"] if op == "TopK" else [result]
    first = ["condition", source, "other"] if op == "Where" else [source, *names]
    nodes = [helper.make_node(op, first, outputs, name=op, **attributes)]
    if dtype:
        before = [helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["levels" if dtype is INT32 else "q"])]
        if dtype is INT32:
            before.append(helper.make_node("Cast", ["levels"], ["q"], to=TensorProto.INT32))
        after = [helper.make_node("DequantizeLinear", ["r", "scale"], ["y"])]
        if dtype is INT32:
            after = [
                helper.make_node("Cast", ["r"], ["s"], to=TensorProto.FLOAT),
                helper.make_node("Mul", ["s", "scale"], ["y"]),
            ]
        nodes = [*before, *nodes, *after]
    nodes.append(helper.make_node("ReduceSumSquare", ["y"], ["loss"], keepdims=0))
    return model(nodes, constants)


def model(nodes: list[onnx.NodeProto], constants: dict[str, Any]) -> onnx.ModelProto:
    outputs = [helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPE)]
    initializers = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "levels", inputs, outputs, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def runs(proto: onnx.ModelProto) -> bool:
    """Whether ONNX Runtime has the kernels for a model."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception:
        return False
    return True


def check(integers: onnx.ModelProto, numbers: onnx.ModelProto) -> None:
    made, expected = (gradient(one, "loss", ["x"]).to_proto() for one in (integers, numbers))
    for run in (run_torch, *([run_onnxruntime] if runs(integers) else [])):
        found, right = run(made, {"x": X}), run(expected, {"x": X})
        assert np.any(right["x.grad"])
        np.testing.assert_allclose(found["loss"], right["loss"], rtol=1e-6)
        np.testing.assert_allclose(found["x.grad"], right["x.grad"], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", NODES)
def test_integers_that_are_moved(name: str) -> None:
    check(of_op(NODES[name], INT8), of_op(NODES[name]))


@pytest.mark.parametrize("name", SUMS)
def test_integers_that_are_added(name: str) -> None:
    check(of_op(SUMS[name], INT32), of_op(SUMS[name]))


def test_numbers_of_several_scales_side_by_side() -> None:
    """What was quantised in one scale, and is read in another, has the gradient of what it is read as."""
    constants = {
        "fine": np.asarray(0.25, np.float32),
        "coarse": np.asarray(0.5, np.float32),
        "twice": np.asarray(2, np.float32),
        "zero": np.asarray(0, np.int8),
        "halves": ints(1, 3),
    }
    integers = [
        helper.make_node("Split", ["x", "halves"], ["a", "b"], axis=1),
        helper.make_node("QuantizeLinear", ["a", "fine", "zero"], ["p"]),
        helper.make_node("QuantizeLinear", ["b", "coarse", "zero"], ["q"]),
        helper.make_node("Concat", ["p", "q"], ["r"], axis=1),
        helper.make_node("DequantizeLinear", ["r", "coarse", "zero"], ["y"]),
        helper.make_node("ReduceSumSquare", ["y"], ["loss"], keepdims=0),
    ]
    numbers = [
        integers[0],
        helper.make_node("Mul", ["a", "twice"], ["p"]),
        helper.make_node("Concat", ["p", "b"], ["y"], axis=1),
        integers[-1],
    ]
    made, expected = (gradient(model(nodes, constants), "loss", ["x"]).to_proto() for nodes in (integers, numbers))
    for run in (run_torch, run_onnxruntime):
        even = {"x": 2 * X}
        np.testing.assert_allclose(run(made, even)["x.grad"], run(expected, even)["x.grad"], rtol=1e-6)


MICROSOFT: dict[str, tuple[list[str], float, list[str], dict[str, Any]]] = {
    "Add": (["q", "scale", "zero"] * 2, 0.25, ["x", "x"], {}),
    "Concat": (["q", "scale", "zero"] * 2, 0.25, ["x", "x"], {"axis": 1}),
    "LeakyRelu": (["q", "scale", "zero"], 0.125, ["x"], {"alpha": 0.5}),
    "AveragePool": (["q", "scale", "zero"], 0.0625, ["x"], {"kernel_shape": [2, 2]}),
}
"""Inputs of an op of integers, the scale of its result, in which that is exact, and inputs of the op of numbers."""


@pytest.mark.parametrize("op", MICROSOFT)
def test_integers_of_other_domains(op: str) -> None:
    """Ops that are written out before they are differentiated."""
    names, step, real, attributes = MICROSOFT[op]
    constants = {"scale": np.asarray(SCALE, np.float32), "zero": np.asarray(0, np.int8)}
    constants["after"] = np.asarray(step, np.float32)
    names = ["after", "zero", *names] if op == "Concat" else [*names, "after", "zero"]
    integers = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"]),
        helper.make_node(f"QLinear{op}", names, ["r"], domain="com.microsoft", **attributes),
        helper.make_node("DequantizeLinear", ["r", "after", "zero"], ["y"]),
        helper.make_node("ReduceSumSquare", ["y"], ["loss"], keepdims=0),
    ]
    numbers = [helper.make_node(op, real, ["y"], **attributes), integers[-1]]
    both = model(integers, constants), model(numbers, {})
    both[0].opset_import.append(helper.make_opsetid("com.microsoft", 1))
    check(*both)


QUANTISE = helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"], name="quantise")
READ = [
    helper.make_node("DequantizeLinear", ["r", "scale", "zero"], ["y"], name="dequantise"),
    helper.make_node("ReduceSumSquare", ["y"], ["loss"], keepdims=0),
]
STEP = {"scale": np.asarray(SCALE, np.float32), "zero": np.asarray(0, np.uint8)}


def test_bits_are_refused_by_name() -> None:
    """A shift of integers is a product of numbers, which no rule says: nothing is lost silently."""
    shift = helper.make_node("BitShift", ["q", "one"], ["r"], name="shift", direction="LEFT")
    proto = model([QUANTISE, shift, *READ], {**STEP, "one": np.asarray(1, np.uint8)})
    with pytest.raises(
        UnsupportedError, match=r"BitShift has no gradient rule.*between x and the loss.*quantise.*shift"
    ):
        gradient(proto, "loss", ["x"])


def branch(op: str) -> onnx.GraphProto:
    result = helper.make_tensor_value_info(op, TensorProto.UINT8, SHAPE)
    return helper.make_graph([helper.make_node(op, ["q"], [op])], op, [], [result])


def test_integers_through_a_body_are_refused_by_name() -> None:
    choice = helper.make_node(
        "If", ["yes"], ["r"], name="choice", then_branch=branch("Identity"), else_branch=branch("Transpose")
    )
    proto = model([QUANTISE, choice, *READ], {**STEP, "yes": np.asarray(True)})
    with pytest.raises(UnsupportedError, match=r"choice.*quantised integers q are carried into a body"):
        gradient(proto, "loss", ["x"])


def test_plain_integers_have_no_gradient() -> None:
    """What was cut off is constant between its steps, whatever is computed from it."""
    nodes = [
        helper.make_node("Cast", ["x"], ["whole"], to=TensorProto.INT32),
        helper.make_node("Add", ["whole", "whole"], ["sum"]),
        helper.make_node("Cast", ["sum"], ["y"], to=TensorProto.FLOAT),
        helper.make_node("ReduceSumSquare", ["y"], ["loss"], keepdims=0),
    ]
    with pytest.raises(OnwardError, match="loss does not depend on x through ops that have a derivative"):
        gradient(model(nodes, {}), "loss", ["x"])


def test_a_quantised_network_learns() -> None:
    """A convolution whose results are quantised, pooled and put side by side before they are read again."""
    rng = np.random.default_rng(0)
    constants = {
        "conv.weight": rng.standard_normal((3, 4, 3, 3)).astype(np.float32) * 0.2,
        "head.weight": rng.standard_normal((6 * 4, 5)).astype(np.float32) * 0.2,
        "scale": np.asarray(0.05, np.float32),
        "zero": np.asarray(0, np.int8),
        "flat": ints(0, -1),
    }
    nodes = [
        helper.make_node("Conv", ["x", "conv.weight"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("QuantizeLinear", ["c", "scale", "zero"], ["q"]),
        helper.make_node("MaxPool", ["q"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Concat", ["p", "p"], ["r"], axis=1),
        helper.make_node("DequantizeLinear", ["r", "scale", "zero"], ["d"]),
        helper.make_node("Reshape", ["d", "flat"], ["f"]),
        helper.make_node("MatMul", ["f", "head.weight"], ["logits"]),
    ]
    proto = model(nodes, constants)
    del proto.graph.output[:]
    proto.graph.output.append(helper.make_tensor_value_info("logits", TensorProto.FLOAT, [None, 5]))
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "N"
    for kernels in (False, None):
        trainer = Trainer(prepare(proto, optimizer="adam", trainable=["conv.weight"]), lr=3e-2, kernels=kernels)
        batch = {"x": rng.standard_normal((16, 4, 4, 4)).astype(np.float32), "labels": np.arange(16) % 5}
        losses = [trainer.step(batch) for _ in range(60)]
        assert losses[-1] < 0.6 * losses[0]
