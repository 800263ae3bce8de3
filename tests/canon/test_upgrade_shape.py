"""Upgrades of ops that move elements about, of quantization, signals, and the ml domain."""

import numpy as np
import pytest
from old_files import Old, cases, check, floats, ints, upgraded

from onward.errors import InvalidModelError

A = floats(2, 3, 4, 5)
WORDS = np.array(["b", "a", "nothing"], object)
ML = "ai.onnx.ml"


def pad(x: np.ndarray) -> np.ndarray:
    return np.pad(x, [(0, 0), (0, 0), (1, 3), (2, 4)], constant_values=1.5)


SHAPE = [
    Old("Reshape", 1, [A], {"shape": [0, -1, 5], "consumed_inputs": [0]}),
    Old("Squeeze", 1, [floats(1, 2, 1, 3)], {"axes": [0, 2]}),
    Old("Squeeze", 11, [floats(1, 2, 1, 3)], {"axes": [-2]}),
    Old("Squeeze", 11, [floats(1, 2, 1, 3)]),
    Old("Unsqueeze", 1, [A], {"axes": [0, 4]}),
    Old("Unsqueeze", 11, [A], {"axes": [-1]}),
    Old("Split", 1, [A], {"axis": 3, "split": [2, 3]}, outputs=2, expect=lambda x: (x[..., :2], x[..., 2:])),
    Old("Split", 1, [A, ints(1, 3)], {"axis": 2}, 2, expect=lambda x, s: (x[:, :, :1], x[:, :, 1:])),
    Old("Split", 2, [A], {"axis": 2}, outputs=2),
    Old("Split", 2, [A], {}, outputs=2),
    Old("Split", 11, [A], {"axis": -1, "split": [1, 4]}, outputs=2),
    Old("Split", 13, [A], {"axis": 1}, outputs=3),
    Old("Split", 13, [A, ints(1, 4)], {"axis": -1}, outputs=2),
    Old("Slice", 1, [A], {"starts": [1, -3], "ends": [2**31 - 1, -1]}),
    Old("Slice", 1, [A], {"starts": [1], "ends": [3], "axes": [2]}),
    Old("Pad", 1, [A], {"paddings": [0, 0, 1, 2, 0, 0, 3, 4], "value": 1.5}, expect=pad),
    Old("Pad", 2, [A], {"pads": [0, 0, 1, 2, 0, 0, 3, 4], "value": 1.5}),
    Old("Pad", 2, [A], {"pads": [0, 0, 1, 2, 0, 0, -1, -2]}),
    Old("Pad", 2, [A], {"pads": [0, 0, 1, 2, 0, 0, 3, 4], "mode": "reflect"}),
    Old("Pad", 10, [A.astype(np.float64)], {"pads": [0, 0, 1, 2, 0, 0, 3, 4], "value": 1.5}),
    Old("Concat", 1, [A, A], {}, expect=lambda a, b: np.concatenate([a, b], 1)),
    Old("Concat", 1, [A, A], {"axis": 2}, expect=lambda a, b: np.concatenate([a, b], 2)),
    Old("Tile", 1, [A, np.float32(3), np.float32(1)], expect=lambda x, n, a: np.tile(x, (1, 3, 1, 1))),
    Old("Tile", 1, [A, np.float32(2), np.float32(-1)], expect=lambda x, n, a: np.tile(x, (1, 1, 1, 2))),
    Old("TopK", 1, [A], {"k": 2}, outputs=2),
    Old("TopK", 1, [A], {"k": 2, "axis": 1}, outputs=2),
    Old("Scatter", 9, [A[0, 0], ints([1, 0, 2, 3, 1]), floats(1, 5)], {}),
    Old("Scatter", 9, [A[0, 0], ints([1], [0], [2], [4]), floats(4, 1)], {"axis": 1}),
]

SCALE = np.float32(0.1)
BYTES = ints([3, 200], [7, 90], dtype=np.uint8)

QUANTIZE = [
    Old("QuantizeLinear", 10, [floats(2, 3), SCALE, np.uint8(7)]),
    Old("QuantizeLinear", 10, [floats(2, 3), SCALE.reshape(1), ints(7, dtype=np.uint8)], fixed=[1, 2]),
    Old("QuantizeLinear", 10, [floats(2, 3), SCALE.reshape(1)]),
    Old("DequantizeLinear", 10, [BYTES, SCALE, np.uint8(7)]),
    Old("DequantizeLinear", 10, [BYTES, SCALE.reshape(1), ints(7, dtype=np.uint8)]),
]

SIGNAL = [
    Old("DFT", 17, [floats(2, 6, 4, 1)], {}, rtol=1e-5),
    Old("DFT", 17, [floats(2, 6, 4, 1), np.int64(5)], {"axis": 2, "onesided": 1}, rtol=1e-5),
    Old("DFT", 17, [floats(2, 6, 4, 2)], {"axis": -2, "inverse": 1}, rtol=1e-5),
]

LABELS = [
    Old("LabelEncoder", 1, [WORDS], {"classes_strings": ["b", "a", "c", "a"]}, domain=ML),
    Old("LabelEncoder", 1, [WORDS], {"classes_strings": ["b", "a"], "default_int64": 9}, domain=ML),
    Old("LabelEncoder", 1, [ints(1, 0, 7)], {"classes_strings": ["b", "a"], "default_string": "?"}, domain=ML),
    Old("LabelEncoder", 2, [WORDS], {"keys_strings": ["b", "a", "b"], "values_int64s": [1, 2, 3]}, domain=ML),
    Old(
        "LabelEncoder",
        2,
        [ints(1, 2)],
        {"keys_int64s": [1, 2, 1], "values_floats": [1.5, 2.5, 3.5]},
        domain=ML,
    ),
    Old(
        "LabelEncoder",
        2,
        [np.array([np.nan, 1.5, 3], np.float32)],
        {"keys_floats": [float("nan"), 1.5], "values_strings": ["none", "more"], "default_string": "?"},
        domain=ML,
        expect=lambda x: np.array(["none", "more", "?"], object),
        runtime_errs="its version 2 finds no NaN among the keys",
    ),
]


@cases([*SHAPE, *QUANTIZE, *SIGNAL, *LABELS])
def test_upgraded_file_computes_the_same(case: Old, shapes: bool) -> None:
    check(case, shapes)


@pytest.mark.parametrize(
    ("case", "missing"),
    [
        (Old("Split", 1, [A], {}, outputs=2), "axis"),
        (Old("Reshape", 1, [A], {}), "shape"),
        (Old("Slice", 1, [A], {"starts": [0]}), "ends"),
    ],
    ids=str,
)
def test_a_missing_attribute_is_named(case: Old, missing: str) -> None:
    with pytest.raises(InvalidModelError, match=rf"{case.op} 'the node' .*'{missing}' is missing"):
        upgraded(case.model(True))
