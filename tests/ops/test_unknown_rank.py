"""Ops on a tensor of which not even the rank is known, against ONNX Runtime."""

import numpy as np
import pytest
from harness import check, finish, floats
from onnx import helper, numpy_helper
from test_shape import ints

X = floats(2, 3, 4)
INDEX = np.array([[[0, -1, 1, 0]] * 3] * 2)
CASES = [
    ("Reshape", [ints(0, -1)], {}),
    ("Flatten", [], {"axis": 1}),
    ("Flatten", [], {"axis": -1}),
    ("Squeeze", [], {}),
    ("Unsqueeze", [ints(0, -1)], {}),
    ("Unsqueeze", [ints(-1)], {}),
    ("Transpose", [], {}),
    ("Transpose", [], {"perm": [0, 2, 1]}),
    ("Transpose", [], {"perm": [2, 1, 0]}),
    ("Expand", [ints(5, 1, 3, 1)], {}),
    ("Expand", [ints(1)], {}),
    ("Tile", [ints(1, 2, 1)], {}),
    ("Split", [], {"axis": -1, "num_outputs": 2}),
    ("Softmax", [], {"axis": 1}),
    ("LogSoftmax", [], {"axis": -2}),
    ("Slice", [ints(1), ints(3), ints(-1)], {}),
    ("Slice", [ints(1, 0), ints(3, 2), ints(-1, 0)], {}),
    ("Slice", [ints(-1), ints(-9), ints(-2), ints(-1)], {}),
    ("Slice", [ints(1, 1), ints(2, 3)], {}),
    ("Pad", [ints(1, 0, 2, 0, 1, 0)], {}),
    ("Pad", [ints(1, 0, 2, 0, 1, 0)], {"mode": "reflect"}),
    ("Pad", [ints(1, 2), np.array(3, "f4"), ints(-1)], {}),
    ("Shape", [], {}),
    ("Shape", [], {"start": 1}),
    ("Shape", [], {"start": -2, "end": -1}),
    ("Size", [], {}),
    ("Trilu", [np.array(1)], {"upper": 0}),
    ("CenterCropPad", [ints(5, 2)], {"axes": [-1, 0]}),
    ("Gather", [ints(0, -1)], {"axis": -1}),
    ("Gather", [np.array(1)], {"axis": 1}),
    ("GatherElements", [INDEX], {"axis": -1}),
    ("GatherND", [np.array([[0, 1], [1, -1]])], {}),
    ("GatherND", [np.array([[1], [-1]])], {"batch_dims": 1}),
    ("ScatterElements", [INDEX[:, :, :1], floats(2, 3, 1)], {"axis": -1}),
    ("ScatterElements", [INDEX[:, :, :1], floats(2, 3, 1)], {"axis": -2, "reduction": "add"}),
    ("ScatterND", [np.array([[0, 1], [1, -1]]), floats(2, 4)], {}),
    ("ScatterND", [np.array([[0, 1], [1, -1]]), floats(2, 4)], {"reduction": "max"}),
    ("NonZero", [], {}),
    ("Unique", [], {"axis": -1}),
    ("Unique", [], {}),
    ("TopK", [ints(2)], {"axis": -1}),
    ("TopK", [ints(2)], {"axis": 1, "largest": 0}),
    ("Compress", [np.array([True, False, True])], {"axis": -1}),
    ("Compress", [np.array([True, False, True])], {}),
    ("ReverseSequence", [ints(1, 2)], {"time_axis": 1, "batch_axis": 0}),
    ("SplitToSequence", [ints(1, 3)], {"axis": -1}),
    ("SplitToSequence", [], {"axis": 1, "keepdims": 0}),
]


@pytest.mark.parametrize(("op", "inputs", "attributes"), CASES)
def test_op(op, inputs, attributes):
    names = [f"in{i}" for i in range(len(inputs))]
    outputs = ["y", "z"] if op in ("Split", "TopK") else ["y"]
    nodes = [
        helper.make_node("Reshape", ["flat", "shape"], ["x"]),
        helper.make_node(op, ["x", *names], outputs, **attributes),
    ]
    graph = helper.make_graph(
        nodes,
        "unknown_rank",
        [helper.make_tensor_value_info("flat", 1, ["n"]), helper.make_tensor_value_info("shape", 7, ["k"])],
        [helper.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(value, name) for name, value in zip(names, inputs, strict=True)],
    )
    check(finish(graph), [X.reshape(-1), ints(2, 3, 4)], unknown=False)
