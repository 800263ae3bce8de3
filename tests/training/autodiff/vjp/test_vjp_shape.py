"""Gradients of ops that move, cut and join."""

from typing import Any

import numpy as np
import pytest
from gradient_checks import check_model, check_op
from onnx import TensorProto, helper, numpy_helper

from onward.training import gradient

Arrays = dict[str, np.ndarray]


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape) + sum(shape)).normal(size=shape)


def ints(*numbers: int) -> np.ndarray:
    return np.asarray(numbers, np.int64)


CASES: list[tuple[str, Arrays, dict[str, Any]]] = [
    ("Identity", {"x": normal(2, 3)}, {}),
    ("Reshape", {"x": normal(2, 6), "s": ints(3, -1)}, {}),
    ("Flatten", {"x": normal(2, 3, 2)}, {"axis": 2}),
    ("Squeeze", {"x": normal(2, 1, 3), "a": ints(1)}, {}),
    ("Unsqueeze", {"x": normal(2, 3), "a": ints(0, -1)}, {}),
    ("Transpose", {"x": normal(2, 3, 2)}, {"perm": [2, 0, 1]}),
    ("Transpose", {"x": normal(2, 3)}, {}),
    ("Expand", {"x": normal(2, 1), "s": ints(2, 2, 3)}, {}),
    ("Tile", {"x": normal(2, 3), "r": ints(2, 3)}, {}),
    ("DepthToSpace", {"x": normal(1, 8, 2, 2)}, {"blocksize": 2}),
    ("DepthToSpace", {"x": normal(1, 8, 2, 2)}, {"blocksize": 2, "mode": "CRD"}),
    ("SpaceToDepth", {"x": normal(1, 2, 4, 2)}, {"blocksize": 2}),
    ("Trilu", {"x": normal(3, 3)}, {"upper": 0}),
    ("Trilu", {"x": normal(3, 4), "k": np.asarray(1)}, {}),
    ("ReverseSequence", {"x": normal(4, 2), "l": ints(3, 2)}, {"time_axis": 0, "batch_axis": 1}),
    ("Concat", {"a": normal(2, 3), "b": normal(2, 1), "c": normal(2, 2)}, {"axis": -1}),
    ("Concat", {"a": normal(2, 3)}, {"axis": 0}),
    ("Slice", {"x": normal(4, 5), "s": ints(1), "e": ints(3)}, {}),
    ("Slice", {"x": normal(4, 5), "s": ints(-1, 0), "e": ints(-9, 9), "a": ints(1, 0), "t": ints(-2, 3)}, {}),
    ("Slice", {"x": normal(4, 5), "s": ints(3), "e": ints(1), "a": ints(1)}, {}),
    ("Pad", {"x": normal(2, 3), "p": ints(1, 0, 0, 2)}, {}),
    ("Pad", {"x": normal(2, 3), "p": ints(1, -1, 0, 2), "v": np.asarray(0.5)}, {}),
    ("Pad", {"x": normal(3, 3), "p": ints(1, 0, 0, 2)}, {"mode": "reflect"}),
    ("Pad", {"x": normal(3, 3), "p": ints(1, 0, 2, 2)}, {"mode": "edge"}),
    ("Pad", {"x": normal(3, 3), "p": ints(1, 2), "_v": ints(0), "a": ints(1)}, {"mode": "wrap"}),
]


@pytest.mark.parametrize(("op", "inputs", "attributes"), CASES, ids=[f"{op}{i}" for i, (op, _, _) in enumerate(CASES)])
def test_gradient(op: str, inputs: Arrays, attributes: dict[str, Any]) -> None:
    check_op(op, inputs, **attributes)


def test_split() -> None:
    check_op("Split", {"x": normal(2, 5), "s": ints(2, 3)}, outputs=2, axis=1)
    check_op("Split", {"x": normal(4, 2)}, outputs=2, num_outputs=2)


def test_range() -> None:
    inputs = {"start": np.asarray(1.0), "limit": np.asarray(4.2), "delta": np.asarray(0.5)}
    check_op("Range", inputs, wrt=["start", "delta"])


def test_bounds_that_follow_from_sizes() -> None:
    """As exporters cut the gates of recurrent layers: the slice is known, and its gradient is a padding."""
    x, h = normal(6, 2), normal(3, 2)
    nodes = [
        helper.make_node("Shape", ["h"], ["size"], start=1),
        helper.make_node("Mul", ["size", "two"], ["end"]),
        helper.make_node("Slice", ["x", "size", "end", "axis"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "bounds",
        [helper.make_tensor_value_info(name, TensorProto.DOUBLE, array.shape) for name, array in (("x", x), ("h", h))],
        [helper.make_empty_tensor_value_info("y")],
        [numpy_helper.from_array(np.asarray(2), "two"), numpy_helper.from_array(np.asarray([0]), "axis")],
    )
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])
    check_model(model, {"x": x, "h": h}, wrt=["x"])
    kinds = {node.op_type for node in gradient(model, of="y", wrt=["x"]).ir.graph}
    assert "Pad" in kinds and "ScatterElements" not in kinds
