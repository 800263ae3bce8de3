"""Ops that move elements about, at older opsets."""

import numpy as np
from new_files import New, cases, check, floats, ints

X = floats(2, 3, 4, 5)
LONG = np.arange(7, dtype=np.float32)

AXES = [
    New("Squeeze", 21, 11, [floats(1, 3, 1), ints(0, -1)], fixed=[1]),
    New("Squeeze", 21, 10, [floats(1, 3, 1), ints(0, -1)], fixed=[1]),
    New("Squeeze", 21, 11, [floats(1, 3, 1)]),
    New("Squeeze", 21, 11, [floats(1, 3, 1), ints(-1)]),
    New("Unsqueeze", 21, 11, [floats(2, 3), np.int64(1)], fixed=[1]),
    New("Squeeze", 23, 13, [floats(1, 3, 1), ints(-1)]),
    New("Unsqueeze", 21, 11, [floats(2, 3), ints(0, -1)], fixed=[1]),
    New("Unsqueeze", 21, 7, [floats(2, 3), ints(-1, 0)], fixed=[1]),
    New("Unsqueeze", 21, 11, [floats(2, 3), ints(0)], refused="axes cannot be known"),
    New("Concat", 13, 8, [X, X], {"axis": -2}),
    New("Flatten", 21, 9, [X], {"axis": -2}),
    New("Compress", 11, 9, [X, np.array([True, False, True])], {"axis": -3}),
]

SPLIT = [
    New("Split", 21, 17, [X], {"num_outputs": 2, "axis": 2}, outputs=2),
    New("Split", 21, 17, [LONG], {"num_outputs": 3}, outputs=3),
    New("Split", 21, 11, [LONG], {"num_outputs": 3}, outputs=3),
    New("Split", 21, 13, [LONG], {"num_outputs": 3}, outputs=3, open=True),
    New("Split", 21, 11, [LONG], {"num_outputs": 3}, outputs=3, open=True),
    New("Split", 21, 11, [X, ints(1, 4)], {"axis": -1}, outputs=2, fixed=[1]),
    New("Split", 13, 11, [X, ints(1, 4)], {"axis": -1}, outputs=2),
    New("Split", 13, 8, [X, ints(1, 4)], {"axis": -1}, outputs=2, fixed=[1]),
]

SLICE = [
    New("Slice", 13, 10, [X, ints(0, 1), ints(2, 3), ints(-1, 1), ints(1, 2)], fixed=[1, 2, 3, 4]),
    New("Slice", 13, 9, [X, ints(0, 1), ints(-1, 3), ints(-1, 1)], fixed=[1, 2, 3]),
    New("Slice", 13, 9, [X, ints(1, 1), ints(2, 3)], fixed=[1, 2]),
    New("Slice", 13, 9, [X, ints(0), ints(3), ints(1), ints(2)], fixed=[1, 2, 3, 4], refused="its steps are not 1"),
    New("Slice", 13, 9, [X, ints(0), ints(1)], refused="starts cannot be known"),
]

PAD = [
    New("Pad", 18, 13, [X, ints(1, 2, 0, 1), np.float32(3), ints(-1, 1)], fixed=[1, 2, 3]),
    New("Pad", 18, 13, [X, ints(1, 2, 0, 1), np.float32(3), ints(-1, 1)], fixed=[3]),
    New("Pad", 21, 10, [X, ints(0, 0, 1, 2, 0, 0, 0, 1), np.float32(3)], fixed=[1, 2]),
    New("Pad", 21, 10, [X, ints(0, 0, 1, 2, 0, 0, 0, 1)], {"mode": "reflect"}, fixed=[1]),
    New("Pad", 19, 18, [X, ints(0, 0, 1, 2, 0, 0, 3, 1)], {"mode": "wrap"}, fixed=[1]),
    New("Pad", 19, 11, [X, ints(2, 1), None, ints(2)], {"mode": "wrap"}, fixed=[1, 3]),
    New("Pad", 19, 13, [LONG, ints(8, 0)], {"mode": "wrap"}, fixed=[1], refused="wraps by more"),
    New("Pad", 21, 10, [X, ints(0, 0, 1, 2, 0, 0, 0, 1)], refused="pads cannot be known"),
]

RESHAPE = [
    New("Reshape", 21, 13, [X, ints(6, -1)], {"allowzero": 1}, fixed=[1]),
    New("Reshape", 21, 13, [X, ints(6, 20)], {"allowzero": 1}),
    New("Reshape", 21, 7, [X, ints(6, 20)], {"allowzero": 1}, open=True),
    New("Reshape", 21, 13, [floats(2, 0, 3), ints(0, 7)], {"allowzero": 1}, open=True),
    New("Reshape", 21, 13, [floats(2, 0, 3), ints(7, 0)], {"allowzero": 1}, fixed=[1]),
    New("Reshape", 21, 13, [floats(2, 0), ints(0, 0)], {"allowzero": 1}, fixed=[1], refused="several dimensions"),
    New("Shape", 21, 13, [X], {"start": 1, "end": 3}),
    New("Shape", 21, 10, [X], {"start": -2}),
    New("Shape", 21, 13, [X], {"start": -9, "end": -1}),
    New("Expand", 13, 7, [floats(3, 1), ints(2, 1, 4)], fixed=[1]),
    New("ConstantOfShape", 21, 8, [ints(2, 3)], fixed=[0]),
    New("ConstantOfShape", 21, 8, [ints(2, 3)]),
]

ORDER = [
    New("TopK", 24, 10, [X, ints(2)], {"largest": 0, "axis": 1}, outputs=2),
    New("TopK", 11, 10, [X, ints(2)], {"sorted": 1}, outputs=2),
    New("TopK", 11, 9, [X, ints(2)], outputs=2, fixed=[1]),
    New("TopK", 11, 10, [ints(3, 1, 2), ints(2)], {"largest": 0}, outputs=2, refused="smallest of integers"),
    New("TopK", 11, 9, [X, ints(0)], outputs=2, fixed=[1], refused="takes none of the elements"),
    New("DepthToSpace", 13, 10, [floats(1, 8, 2, 3)], {"mode": "CRD", "blocksize": 2}),
    New("DepthToSpace", 13, 10, [floats(1, 8, 2, 3)], {"blocksize": 2}),
]

TRIANGLES = [
    New("Trilu", 14, 13, [x, *shift], {"upper": upper}, fixed=fixed)
    for upper in (0, 1)
    for x in (floats(3, 4), ints([1, 2], [3, 4]), floats(2, 4, 3), floats(2, 2) > 0)
    for shift, fixed in (([], []), ([np.int64(1)], []), ([np.int64(-2)], [1]))
] + [
    New("Trilu", 14, 11, [floats(3, 4)], open=True),
    New("CumSum", 14, 10, [X, np.int64(-2)], {"exclusive": 1, "reverse": 1}, fixed=[1], rtol=1e-5),
    New("CumSum", 14, 10, [X, np.int64(1)], {"exclusive": 1}, fixed=[1], rtol=1e-5),
    New("CumSum", 14, 10, [X, np.int64(1)], {"reverse": 1}, fixed=[1], rtol=1e-5),
    New("CumSum", 14, 10, [X, np.int64(0)], refused="the axis cannot be known"),
    New("EyeLike", 9, 8, [floats(3, 4)], {"k": 1}),
]


@cases(AXES, SPLIT, SLICE, PAD, RESHAPE, ORDER, TRIANGLES)
def test_the_older_file_computes_the_same(case: New) -> None:
    check(case)
