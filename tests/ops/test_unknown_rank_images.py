"""Ops on images of which not even the rank is known, against ONNX Runtime."""

import numpy as np
import pytest
from harness import OPSET, check, finish, floats
from onnx import helper, numpy_helper

IMAGE = (2, 4, 6, 5)
W, B = floats(4, 4, 3, 3), floats(4)
POSITIVE = np.abs(floats(4)) + np.float32(0.1)
ROIS = np.array([[0, 1, 3, 4], [1, 0, 4.5, 2]], np.float32)
KERNEL = {"kernel_shape": [3, 2]}
CASES = [
    ("Conv", [W, B], {"pads": [1, 0, 1, 1]}),
    ("Conv", [W], {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    ("ConvTranspose", [W, B], {"strides": [2, 2], "output_shape": [13, 11]}),
    ("MaxPool", [], {**KERNEL, "pads": [1, 0, 0, 1]}),
    ("MaxPool", [], {**KERNEL, "auto_pad": "SAME_LOWER", "strides": [2, 2]}),
    ("AveragePool", [], {**KERNEL, "pads": [1, 0, 0, 1]}),
    ("LpPool", [], KERNEL),
    ("GlobalAveragePool", [], {}),
    ("GlobalMaxPool", [], {}),
    ("GlobalLpPool", [], {}),
    ("BatchNormalization", [B, B, B, POSITIVE], {}),
    ("InstanceNormalization", [B, B], {}),
    ("LayerNormalization", [floats(5)], {}),
    ("LayerNormalization", [floats(6, 5), floats(6, 5)], {"axis": 2}),
    ("GroupNormalization", [B, B], {"num_groups": 2}),
    ("LRN", [], {"size": 3}),
    ("LpNormalization", [], {}),
    ("MeanVarianceNormalization", [], {}),
    ("Resize", [None, np.array([1, 1, 2, 2], np.float32)], {}),
    ("Resize", [None, None, np.array([2, 4, 9, 3])], {"mode": "linear"}),
    ("Resize", [None, None, np.array([9, 3])], {"mode": "cubic", "axes": [2, 3]}),
    ("GridSample", [floats(2, 3, 4, 2)], {}),
    ("GridSample", [floats(2, 3, 4, 2)], {"mode": "cubic", "padding_mode": "border"}),
    ("RoiAlign", [ROIS, np.array([0, 1])], {"output_height": 2, "output_width": 2}),
]


@pytest.mark.parametrize(("op", "inputs", "attributes"), CASES)
def test_op(op, inputs, attributes):
    names = ["" if value is None else f"in{i}" for i, value in enumerate(inputs)]
    nodes = [
        helper.make_node("Reshape", ["flat", "shape"], ["x"]),
        helper.make_node(op, ["x", *names], ["y"], **attributes),
    ]
    graph = helper.make_graph(
        nodes,
        "unknown_rank",
        [helper.make_tensor_value_info("flat", 1, ["n"]), helper.make_tensor_value_info("shape", 7, ["k"])],
        [helper.ValueInfoProto(name="y")],
        [numpy_helper.from_array(v, n) for n, v in zip(names, inputs, strict=True) if v is not None],
    )
    model = finish(graph, OPSET)
    check(model, [floats(*IMAGE).reshape(-1), np.array(IMAGE)], unknown=False, atol=2e-5)
