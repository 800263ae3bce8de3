"""Normalisations, pooling, recurrent layers, resizing and attention at older opsets."""

import numpy as np
import onnx
from new_files import New, cases, check, floats, ints

X = floats(2, 4, 5, 6)
IMAGE = floats(1, 2, 5, 7)

NORMS = [
    New("LayerNormalization", 17, 16, [X, floats(6), floats(6)], rtol=1e-5),
    New("LayerNormalization", 17, 12, [X, floats(5, 6)], {"axis": 2, "epsilon": 1e-3}, outputs=3, rtol=1e-5),
    New("LayerNormalization", 17, 9, [X, floats(6)], {"axis": -1}, open=True, rtol=1e-5),
    New("LayerNormalization", 17, 13, [X.astype(np.float16), floats(6).astype(np.float16)], rtol=2e-3),
    New("RMSNormalization", 23, 17, [X, floats(6)], rtol=1e-5),
    New("RMSNormalization", 23, 13, [X, floats(5, 6)], {"axis": 2}, rtol=1e-5),
    New("GroupNormalization", 21, 20, [X, floats(4), floats(4)], {"num_groups": 2}, rtol=1e-5),
    New("GroupNormalization", 21, 11, [X, floats(4), floats(4)], {"num_groups": 4}, open=True, rtol=1e-5),
    New("GroupNormalization", 18, 13, [X, floats(2), floats(2)], {"num_groups": 2}, rtol=1e-5),
    New("BatchNormalization", 15, 13, [X, *(abs(floats(4)) for _ in range(4))], rtol=1e-5),
    New("BatchNormalization", 15, 7, [X, *(abs(floats(4)) for _ in range(4))], rtol=1e-5),
    New("BatchNormalization", 15, 13, [X, *(abs(floats(4)) for _ in range(4))], {"training_mode": 1}, 3, rtol=1e-4),
    New("MeanVarianceNormalization", 13, 8, [X], rtol=1e-5),
]

POOLS = [
    New(op, 22, target, [IMAGE], {"kernel_shape": [3, 2], "ceil_mode": 1, **attributes})
    for op in ("MaxPool", "AveragePool")
    for target in (13, 9)
    for attributes in ({"strides": [2, 2]}, {"strides": [3, 3], "pads": [1, 1, 1, 1]}, {"strides": [2, 3]})
] + [
    New("AveragePool", 22, 18, [IMAGE], {"kernel_shape": [2, 2], "dilations": [2, 3]}, rtol=1e-5),
    New(
        "AveragePool",
        22,
        18,
        [IMAGE],
        {"kernel_shape": [2, 2], "dilations": [2, 2], "pads": [1] * 4},
        refused="not counted",
    ),
    New("MaxPool", 22, 9, [IMAGE], {"kernel_shape": [2, 2], "dilations": [2, 2]}, refused="dilations"),
    New("LpPool", 18, 17, [IMAGE], {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1}, rtol=1e-5),
    New("Col2Im", 18, 17, [floats(2, 3 * 6, 20), ints(6, 6), ints(2, 3)], fixed=[1, 2], rtol=1e-5),
    New(
        *("Col2Im", 18, 13, [floats(1, 8, 6), ints(5, 6), ints(2, 2)]),
        {"pads": [1, 0, 1, 0], "strides": [2, 2], "dilations": [1, 2]},
        fixed=[1, 2],
        rtol=1e-5,
    ),
    New("RoiAlign", 16, 15, [IMAGE, floats(1, 4), ints(0)], {"coordinate_transformation_mode": "output_half_pixel"}),
    New("RoiAlign", 16, 15, [IMAGE, floats(1, 4), ints(0)], refused="half_pixel"),
]

RESIZED = [
    New("Resize", 19, 18, [IMAGE, None, np.float32([1, 1, 2, 2])], {"mode": "linear"}, fixed=[2], rtol=1e-5),
    New(
        *("Resize", 19, 11, [IMAGE, None, np.float32([1, 1, 2, 2])]),
        {"mode": "linear", "coordinate_transformation_mode": "half_pixel_symmetric"},
        fixed=[2],
        rtol=1e-5,
    ),
    New(
        *("Resize", 19, 18, [IMAGE, None, np.float32([1, 1, 0.7, 0.7])]),
        {"mode": "linear", "coordinate_transformation_mode": "half_pixel_symmetric"},
        fixed=[2],
        refused="half_pixel_symmetric",
    ),
    New("Resize", 18, 13, [IMAGE, None, np.float32([2, 3])], {"axes": [2, 3]}, fixed=[2]),
    New("Resize", 18, 11, [IMAGE, None, np.float32([2, 3])], {"axes": [3, 2]}),
    New("Resize", 18, 13, [IMAGE, None, None, ints(10, 9)], {"axes": [2, 3]}, fixed=[3]),
    New("Resize", 18, 13, [IMAGE, None, None, ints(10, 9)], {"axes": [2, 3]}, open=True),
    New(
        *("Resize", 18, 13, [floats(1, 2, 4, 8), None, None, ints(8, 8)]),
        {"axes": [2, 3], "keep_aspect_ratio_policy": "not_larger"},
        fixed=[3],
    ),
    New(
        "Resize",
        18,
        13,
        [IMAGE, None, np.float32([1, 1, 0.5, 0.5])],
        {"antialias": 1, "mode": "linear"},
        refused="antialias",
    ),
    New("Resize", 13, 11, [IMAGE, None, None, ints(1, 2, 8, 9)], {"mode": "cubic"}, rtol=1e-5),
    New("Resize", 13, 10, [IMAGE, None, np.float32([1, 1, 2, 3])], fixed=[2]),
    New("Resize", 13, 9, [IMAGE, None, None, ints(1, 2, 10, 21)], fixed=[3]),
    New(
        *("Resize", 13, 8, [IMAGE, None, np.float32([1, 1, 2, 2])]),
        {"mode": "linear", "coordinate_transformation_mode": "asymmetric"},
        fixed=[2],
    ),
    New("Resize", 13, 10, [IMAGE, None, np.float32([1, 1, 2, 2])], {"mode": "linear"}, fixed=[2], refused="half_pixel"),
    New("GridSample", 22, 16, [IMAGE, floats(1, 3, 4, 2)], {"mode": "linear"}, rtol=1e-5),
    New("GridSample", 22, 16, [IMAGE, floats(1, 3, 4, 2)], {"mode": "cubic", "padding_mode": "border"}, rtol=1e-4),
    New("GridSample", 22, 16, [floats(1, 2, 3, 4, 5), floats(1, 2, 2, 2, 3)], refused="5 dimensions"),
]


def recurrent(op: str, gates: int, direction: str, states: int, target: int) -> New:
    both = 2 if direction == "bidirectional" else 1
    weights = [floats(both, gates * 3, 5), floats(both, gates * 3, 3), floats(both, gates * 6)]
    initial = [floats(2, both, 3) for _ in range(states)]
    attributes = {"hidden_size": 3, "layout": 1, "direction": direction}
    return New(op, 22, target, [floats(2, 4, 5), *weights, None, *initial], attributes, 1 + states, rtol=1e-5)


RECURRENT = [
    recurrent(op, gates, direction, states, target)
    for op, gates, states in (("RNN", 1, 1), ("GRU", 3, 1), ("LSTM", 4, 2))
    for direction, target in (("forward", 13), ("bidirectional", 11))
]

HEADS = [floats(1, 2, 3, 4), floats(1, 2, 5, 4), floats(1, 2, 5, 4)]
ATTENTION = [
    New("Attention", 23, 17, HEADS, {"is_causal": 1}, rtol=1e-5),
    New("Attention", 23, 13, [*HEADS, floats(3, 5)], {"scale": 0.3}, rtol=1e-5),
    New(
        "Attention", 23, 13, [floats(1, 3, 8), *[floats(1, 5, 8)] * 2], {"q_num_heads": 2, "kv_num_heads": 2}, rtol=1e-5
    ),
    New("RotaryEmbedding", 23, 13, [floats(1, 2, 3, 4), floats(1, 3, 2), floats(1, 3, 2)], rtol=1e-5),
]

SIGNALS = [
    New("DFT", 20, 17, [floats(1, 8, 1), None, np.int64(1)], fixed=[2], rtol=1e-4),
    New("DFT", 20, 16, [floats(2, 8, 3, 2), None, np.int64(-3)], fixed=[2], rtol=1e-4),
    New("DFT", 20, 13, [floats(1, 9, 1), None, np.int64(1)], {"onesided": 1}, fixed=[2], rtol=1e-4),
    New("DFT", 20, 13, [floats(1, 8, 2), None, np.int64(1)], {"inverse": 1}, fixed=[2], rtol=1e-4),
    New("HannWindow", 17, 13, [np.int64(9)], fixed=[0], rtol=1e-5),
    New("HammingWindow", 17, 13, [np.int64(9)], rtol=1e-5),
    New("BlackmanWindow", 17, 13, [np.int64(9)], {"periodic": 0}, rtol=1e-5),
    New(
        "MelWeightMatrix",
        17,
        13,
        [np.int64(8), np.int64(16), np.int64(8192), np.float32(0), np.float32(4096)],
        fixed=range(5),
    ),
]


@cases(NORMS, POOLS, RESIZED, RECURRENT, ATTENTION, SIGNALS)
def test_the_older_file_computes_the_same(case: New) -> None:
    check(case)


def test_layer_normalization_is_named_after_its_node() -> None:
    made = check(New("LayerNormalization", 17, 13, [X, floats(6), floats(6)], rtol=1e-5))
    assert made is not None and made.graph.output[0].name == "y0"
    assert {node.domain for node in made.graph.node} == {""}
    assert onnx.helper.find_min_ir_version_for(made.opset_import) == made.ir_version == 7
