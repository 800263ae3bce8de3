"""Elementwise ops and activations at older opsets."""

import numpy as np
from new_files import New, cases, check, floats, ints

X = floats(2, 3, 4)
TEXTS = np.array(["a", "ü", "", "a"], dtype=object)
ODD = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -2.5, 3.4e38], np.float32)
HALVES = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 0.49, 3.7, -3.2], np.float32)

BOUNDS = [
    New("Clip", 13, 10, [X, np.float32(-0.5), np.float32(0.5)], fixed=[1, 2]),
    New("Clip", 13, 10, [X, None, np.float32(0.5)], fixed=[2]),
    New("Clip", 13, 10, [X, np.float32(-0.5), np.float32(0.5)]),
    New("Clip", 13, 10, [X, np.float32(0.5), np.float32(-0.5)], fixed=[1, 2]),
    New("Clip", 13, 11, [ints(1, 5, 9, dtype=np.int32), np.int32(2), np.int32(8)]),
    New("Max", 13, 11, [ints(1, 2**60 + 1), ints(2**60, 5), ints(3, 3)]),
    New("Min", 13, 11, [ints(1, 2**60 + 1), ints(2**60, 5)]),
    New("Max", 13, 11, [ints(1, 9, dtype=np.int32), ints(4, dtype=np.int32)]),
    New("Max", 13, 7, [X, floats(4)]),
    New("Sum", 13, 7, [X, floats(3, 1)]),
    New("Mean", 13, 7, [X, floats(2, 1, 4)]),
    New("Min", 13, 7, [X, floats(4)], open=True, refused="the shape of an input"),
]

ARITHMETIC = [
    New("Pow", 15, 11, [abs(X), ints(2)], rtol=1e-5),
    New("Pow", 15, 11, [ints(2, 3, dtype=np.int32), np.float32([3.0, 2.0])]),
    New("Pow", 15, 11, [ints(2, 3), ints(2)], refused="integer of 64 bits"),
    New("Add", 14, 13, [ints(100, 7, dtype=np.int8), ints(100, -9, dtype=np.int8)]),
    New("Div", 14, 13, [ints(100, -7, dtype=np.int8), ints(7, 2, dtype=np.int8)]),
    New("Relu", 14, 13, [ints(3, -4, 0, dtype=np.int32)]),
    New("Mod", 13, 9, [ints(7, -7, 7, -7, 6), ints(3, 3, -3, -3, 3)]),
    New("Mod", 13, 9, [ints(7, -7, 7, -7, 6), ints(3, 3, -3, -3, 3)], {"fmod": 1}),
    New("Mod", 13, 9, [X, X], {"fmod": 1}, refused="of floats"),
    New("Round", 11, 10, [HALVES]),
    New(
        "BitShift",
        11,
        10,
        [ints(1, 200, dtype=np.uint64), ints(3, 2, dtype=np.uint64)],
        {"direction": "LEFT"},
        fixed=[1],
    ),
    New(
        "BitShift",
        11,
        10,
        [ints(9, 200, dtype=np.uint64), ints(3, 2, dtype=np.uint64)],
        {"direction": "RIGHT"},
        fixed=[1],
    ),
    New("BitwiseNot", 18, 17, [ints(0, 5, -7, dtype=np.int32)]),
    New("BitwiseNot", 18, 17, [ints(0, 5, 255, dtype=np.uint8)]),
    New("Sign", 13, 8, [np.array([2.0, -3.0, 0.0], np.float32)]),
    New("Gemm", 13, 10, [floats(2, 3), floats(3, 4)], rtol=1e-5),
]

COMPARED = [
    New("Equal", 13, 10, [ODD, ODD]),
    New("Equal", 13, 10, [ODD, ODD[::-1].copy()]),
    New("Equal", 19, 13, [TEXTS, TEXTS[1:2]], fixed=[1]),
    New("Equal", 19, 8, [TEXTS[:2], TEXTS[:, None]], fixed=[0]),
    New("Equal", 19, 13, [TEXTS, TEXTS], refused="none of them are known"),
    New("GreaterOrEqual", 16, 11, [ODD, np.float32([0])]),
    New("LessOrEqual", 16, 8, [X, X]),
    New("GreaterOrEqual", 16, 11, [ints(1, 2, 3), ints(2)]),
    New("Greater", 13, 8, [ints(1, 5, dtype=np.int32), ints(3, dtype=np.int32)]),
    New("Less", 13, 8, [ints(1, 5), ints(3)], refused="64 bits"),
    New("IsInf", 20, 9, [ODD]),
    New("IsInf", 20, 9, [ODD], {"detect_negative": 0}),
    New("IsInf", 20, 9, [ODD], {"detect_positive": 0}),
    New("IsInf", 20, 9, [ODD], {"detect_positive": 0, "detect_negative": 0}),
    New("IsNaN", 20, 8, [ODD]),
    New("Where", 16, 8, [np.array([True, True]), floats(2), floats(2)], fixed=[0]),
    New("Where", 16, 8, [np.array([True, False]), floats(2), floats(2)], fixed=[0], refused="element to element"),
]

EINSUM = [
    New("Einsum", 12, 11, operands, {"equation": equation}, rtol=1e-5)
    for equation, operands in (
        ("bij,bjk->bik", [floats(2, 3, 4), floats(2, 4, 5)]),
        ("bhid,bhjd->bhij", [floats(2, 3, 4, 5), floats(2, 3, 6, 5)]),
        ("bsnh,nhe->bse", [floats(2, 3, 4, 5), floats(4, 5, 6)]),
        ("ij,jk", [floats(2, 3), floats(3, 4)]),
        ("ij,jk", [floats(2, 1), floats(3, 4)]),
        ("abij,jik->abk", [floats(2, 3, 4, 2), floats(1, 4, 5)]),
        ("i,j->ij", [floats(2), floats(3)]),
        ("i,i->", [floats(3), floats(3)]),
        ("ijk->ki", [floats(2, 3, 4)]),
        ("ij,ij->j", [floats(2, 3), floats(2, 3)]),
        ("ab,bc,cd->ad", [floats(2, 3), floats(3, 4), floats(4, 5)]),
    )
] + [New("Einsum", 12, 11, [floats(3, 3)], {"equation": "ii->i"}, refused="diagonal")]

ACTIVATIONS = [
    New("Gelu", 20, 13, [X], rtol=1e-5),
    New("Gelu", 20, 9, [X], {"approximate": "tanh"}, rtol=1e-5),
    New("Swish", 24, 13, [X], rtol=1e-5),
    New("Swish", 24, 7, [X], {"alpha": 1.7}, rtol=1e-5),
    New("HardSwish", 22, 13, [X * 4], rtol=1e-5),
    New("Mish", 22, 13, [X], rtol=1e-5),
    New("Celu", 12, 11, [X], {"alpha": 0.7}, rtol=1e-5),
    New("Celu", 12, 11, [X], {"alpha": -1.5}, refused="alpha is below 0"),
    New("ThresholdedRelu", 22, 9, [X], {"alpha": 0.3}),
    New("Elu", 22, 13, [X], {"alpha": 0.3}),
    New("PRelu", 16, 13, [X, floats(4)]),
    New("Shrink", 9, 7, [X], {"lambd": 0.3, "bias": 0.1}, refused="Where"),
]

SOFTMAX = [
    New(op, 13, target, [x], attributes, rtol=1e-5, open=is_open)
    for op in ("Softmax", "LogSoftmax", "Hardmax")
    for target, x, attributes, is_open in (
        (12, X, {}, False),
        (11, X, {"axis": 1}, False),
        (12, X, {"axis": 0}, True),
        (10, X, {}, False),
        (7, floats(2, 3, 1, 1), {"axis": 1}, False),
    )
]

DROPOUT = [
    New("Dropout", 13, 11, [X, np.float32(0.3)], fixed=[1]),
    New("Dropout", 13, 11, [X], outputs=2),
    New("Dropout", 13, 9, [X], outputs=2),
    New("Dropout", 10, 9, [X], outputs=2, compare=[0]),
    New("Dropout", 13, 11, [X, np.float32(0.3), np.array(True)], fixed=[1, 2], refused="drops elements"),
]


@cases(BOUNDS, ARITHMETIC, COMPARED, EINSUM, ACTIVATIONS, SOFTMAX, DROPOUT)
def test_the_older_file_computes_the_same(case: New) -> None:
    check(case)
