"""Gather, Scatter, casts, constants, quantisation and `ai.onnx.ml` at older opsets."""

import numpy as np
import onnx
from new_files import ML, New, cases, check, floats, ints
from onnx import helper

X = floats(3, 4)
ROWS = ints([0, 1, 0, -1], [2, 1, 0, 1])

SCATTERED = (
    [
        New("ScatterElements", 18, target, [X, ROWS, floats(2, 4)], {"reduction": reduction, "axis": axis}, rtol=1e-5)
        for target, reduction in ((17, "max"), (15, "add"), (13, "mul"), (13, "min"))
        for axis in (0, -2)
    ]
    + [
        New("ScatterND", 18, target, [X, index, updates], {"reduction": reduction}, rtol=1e-5)
        for target, reduction in ((17, "min"), (15, "add"), (13, "mul"), (13, "max"))
        for index, updates in ((ints([0], [2], [0], [-1]), floats(4, 4)), (ints([0, 1], [2, 3], [0, 1]), floats(3)))
    ]
    + [
        New("ScatterElements", 18, 13, [X, ROWS[:1], floats(1, 4)]),
        New("ScatterElements", 18, 10, [X, ROWS[:1], floats(1, 4)]),
        New("ScatterElements", 18, 10, [X, ROWS[1:], floats(1, 4)], fixed=[1]),
        New("ScatterElements", 18, 13, [X, ROWS[1:].astype(np.int32), floats(1, 4)], {"reduction": "none"}),
    ]
)

GATHERED = [
    New("GatherND", 13, 11, [floats(2, 3, 4), ints([1], [2])], {"batch_dims": 1}),
    New("GatherND", 13, 11, [floats(2, 3, 4), ints([[0], [1]], [[2], [2]]).reshape(2, 2, 1)], {"batch_dims": 1}),
    New("Gather", 13, 10, [X, ints(0, -1, 2)], {"axis": -1}),
    New("Gather", 13, 10, [X, ints(0, -1, 2, dtype=np.int32)], {"axis": 0}, open=True),
    New("Gather", 13, 10, [X, ints(0, 1)], fixed=[1]),
    New("OneHot", 11, 10, [ints(0, -1, 2), ints(3), np.float32([0, 5])], fixed=[0, 1]),
    New("OneHot", 11, 10, [ints(0, 2), ints(3), np.float32([0, 5])], refused="its indices cannot be known"),
    New("OneHot", 9, 8, [ints(0, 1, 2), ints(3), np.float32([0, 5])], fixed=[1, 2]),
]

CASTS = [
    New("CastLike", 21, 13, [X, ints(1)]),
    New("CastLike", 21, 9, [ints(1, 2), np.float16([1])]),
    New("Constant", 13, 11, [], {"value_floats": [1.0, 2.0]}),
    New("Constant", 13, 11, [], {"value_int": 3}),
    New("Constant", 13, 11, [], {"value_strings": ["a", "b"]}),
    New("Constant", 13, 10, [], {"value_float": 2.5}),
    New("Identity", 21, 7, [X]),
]

BYTES = RANGE = floats(2, 6, 3) * 20
CODES = np.arange(36, dtype=np.uint8).reshape(2, 6, 3)
QUANTIZED = [
    New("DequantizeLinear", 13, 12, [CODES, abs(floats(6)), np.arange(6, dtype=np.uint8)], {"axis": -2}, rtol=1e-5),
    New("DequantizeLinear", 13, 10, [CODES, np.float32(0.3)], rtol=1e-5),
    New("DequantizeLinear", 21, 20, [CODES, abs(floats(2, 2, 3))], {"axis": 1, "block_size": 3}, rtol=1e-5),
    New("DequantizeLinear", 21, 20, [CODES, abs(floats(2, 2, 3))], {"axis": 1, "block_size": 4}, rtol=1e-5),
    New(
        *("DequantizeLinear", 21, 13, [CODES, abs(floats(2, 3, 3)), np.full((2, 3, 3), 7, np.uint8)]),
        {"axis": 1, "block_size": 2},
        rtol=1e-5,
    ),
    New("DequantizeLinear", 19, 17, [CODES, np.float16(0.25)]),
    New("QuantizeLinear", 13, 12, [BYTES, abs(floats(6)) + 0.5, np.arange(6, dtype=np.uint8)], {"axis": 1}),
    New("QuantizeLinear", 13, 11, [BYTES, abs(floats(6)) + 0.5], {"axis": 1}),
    New("QuantizeLinear", 13, 10, [BYTES, np.float32(0.3), np.int8(3)]),
    New("QuantizeLinear", 21, 19, [BYTES, np.float32(0.3)], {"output_dtype": onnx.TensorProto.INT8}),
    New("QuantizeLinear", 21, 13, [BYTES, abs(floats(2, 2, 3))], {"axis": 1, "block_size": 3}, refused="it has blocks"),
    New("QuantizeLinear", 19, 17, [BYTES.astype(np.float16), np.float16(0.3)], refused="float16"),
]

STRINGS = np.array(["b", "a", "z"], object)
TREE = {
    "n_targets": 1,
    "nodes_treeids": [0, 0, 0],
    "nodes_nodeids": [0, 1, 2],
    "nodes_featureids": [1, 0, 0],
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
    "nodes_truenodeids": [1, 0, 0],
    "nodes_falsenodeids": [2, 0, 0],
    "target_treeids": [0, 0],
    "target_nodeids": [1, 2],
    "target_ids": [0, 0],
    "target_weights": [1.5, -2.5],
}


def tensor(values: list, dtype: type) -> onnx.TensorProto:
    if dtype is str:
        return helper.make_tensor("t", onnx.TensorProto.STRING, [len(values)], [v.encode() for v in values])
    return onnx.numpy_helper.from_array(np.array(values, dtype), "t")


FOREST = {
    "n_targets": 2,
    "tree_roots": [0, 2],
    "nodes_featureids": [0, 1, 1],
    "nodes_splits": tensor([0.5, -0.25, 0.0], np.float32),
    "nodes_modes": tensor([0, 1, 3], np.uint8),
    "nodes_truenodeids": [1, 0, 2],
    "nodes_trueleafs": [0, 1, 1],
    "nodes_falsenodeids": [3, 1, 4],
    "nodes_falseleafs": [1, 1, 1],
    "leaf_targetids": [0, 1, 0, 1, 1],
    "leaf_weights": tensor([1, 2, 3, 4, 5], np.float32),
}
STUMP = {
    "n_targets": 1,
    "aggregate_function": 1,
    "post_transform": 0,
    "nodes_missing_value_tracks_true": [0],
    "tree_roots": [0],
    "nodes_featureids": [0],
    "nodes_splits": tensor([0.5], np.float32),
    "nodes_modes": tensor([0], np.uint8),
    "nodes_truenodeids": [0],
    "nodes_trueleafs": [1],
    "nodes_falsenodeids": [0],
    "nodes_falseleafs": [1],
    "leaf_targetids": [0],
    "leaf_weights": tensor([7], np.float32),
}

LEARNED = [
    New("LabelEncoder", 4, 13, [STRINGS], {"keys_strings": ["a", "b"], "values_int64s": [5, 6]}, domain=ML),
    New(
        *("LabelEncoder", 4, 13, [STRINGS]),
        {
            "keys_tensor": tensor(["a", "b"], str),
            "values_tensor": tensor([5, 6], np.int64),
            "default_tensor": tensor([9], np.int64),
        },
        domain=ML,
    ),
    New(
        *("LabelEncoder", 4, 13, [ints(1, 2, 3)]),
        {
            "keys_tensor": tensor([1, 2], np.int64),
            "values_tensor": tensor([5, 6], np.int16),
            "default_tensor": tensor([9], np.int16),
        },
        domain=ML,
        ml=4,
    ),
    New("LabelEncoder", 2, 8, [STRINGS], {"keys_strings": ["a", "b"], "values_int64s": [0, 1]}, domain=ML),
    New("LabelEncoder", 2, 8, [ints(1, 0, 1)], {"keys_int64s": [0, 1], "values_strings": ["x", "y"]}, domain=ML),
    New(
        "LabelEncoder",
        2,
        8,
        [ints(1, 0)],
        {"keys_int64s": [0, 2], "values_strings": ["x", "y"]},
        domain=ML,
        ml=2,
    ),
    New(
        *("TreeEnsembleRegressor", 3, 11, [floats(5, 2)]),
        {**TREE, "nodes_values_as_tensor": tensor([0.25, 0, 0], np.float32)},
        domain=ML,
        ml=2,
    ),
    New(
        *("TreeEnsembleRegressor", 3, 11, [floats(5, 2).astype(np.float64)]),
        {**TREE, "nodes_values_as_tensor": tensor([0.1, 0, 0], np.float64)},
        domain=ML,
        ml=3,
    ),
    New(
        *("TreeEnsembleClassifier", 3, 11, [floats(5, 2)]),
        {
            **{name.replace("target", "class"): value for name, value in TREE.items() if name != "n_targets"},
            "nodes_values_as_tensor": tensor([0.25, 0, 0], np.float32),
            "class_weights": [0.25, 0.75],
            "classlabels_int64s": [0, 1],
        },
        outputs=2,
        domain=ML,
    ),
    New("TreeEnsemble", 5, 20, [floats(9, 2)], FOREST, domain=ML),
    New("TreeEnsemble", 5, 13, [floats(9, 2)], FOREST, domain=ML),
    New("TreeEnsemble", 5, 13, [floats(3, 2)], STUMP, domain=ML),
]


@cases(SCATTERED, GATHERED, CASTS, QUANTIZED, LEARNED)
def test_the_older_file_computes_the_same(case: New) -> None:
    check(case)
