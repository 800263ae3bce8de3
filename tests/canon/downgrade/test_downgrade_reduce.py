"""Reductions at older opsets."""

import numpy as np
import pytest
from new_files import New, cases, check, floats, ints

X = abs(floats(2, 3, 4)) + 0.1
OPS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")

CONSTANT = [
    New(f"Reduce{op}", 18, target, [X, axes], attributes, fixed=[1], rtol=1e-5)
    for op in OPS
    for target, axes, attributes in (
        (11, ints(1, -1), {}),
        (10, ints(-2), {"keepdims": 0}),
        (11, np.zeros(0, np.int64), {"keepdims": 0}),
    )
] + [New(f"Reduce{op}", 18, 12, [X], {"keepdims": 0}, rtol=1e-5) for op in OPS]

COMPUTED = [
    New(f"Reduce{op}", 18, target, [X, axes], attributes, rtol=1e-5)
    for op in OPS
    for target, axes, attributes in (
        (13, ints(-1, 0), {"keepdims": 0}),
        (12, ints(1), {}),
        (13, np.zeros(0, np.int64), {"keepdims": 0}),
    )
]

NOTHING = [
    New(f"Reduce{op}", 18, 12, [X], {"noop_with_empty_axes": 1}) for op in ("Max", "Mean", "Min", "Prod", "Sum")
] + [
    New("ReduceSum", 18, 12, [X, np.zeros(0, np.int64)], {"noop_with_empty_axes": 1}, fixed=[1]),
    New("ReduceL2", 18, 12, [X], {"noop_with_empty_axes": 1}, refused="noop_with_empty_axes"),
    New("ReduceMax", 20, 13, [X > 1, ints(1)], fixed=[1]),
    New("ReduceMin", 20, 13, [X > 1, ints(1)]),
    New("ReduceMax", 20, 13, [np.zeros((2, 0, 3), bool), ints(1)], fixed=[1]),
    New("ReduceSum", 18, 12, [np.zeros((2, 0, 3), np.float32), ints(0)], {"keepdims": 0}, open=True),
    New("ReduceMin", 20, 13, [np.zeros((2, 0, 3), bool), ints(1)]),
]

PLACES = [
    New(op, 13, target, [ints([1, 3, 3], [2, 2, 1], dtype=np.int32)], attributes)
    for op in ("ArgMax", "ArgMin")
    for target, attributes in (
        (11, {"select_last_index": 1, "axis": 1}),
        (11, {"select_last_index": 1, "keepdims": 0}),
        (10, {"axis": -1}),
    )
] + [New("ArgMax", 13, 11, [X], {"select_last_index": 1, "axis": -1}, open=True)]


@cases(CONSTANT, COMPUTED, NOTHING, PLACES)
def test_the_older_file_computes_the_same(case: New) -> None:
    check(case)


@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMean"])
def test_constant_axes_are_an_attribute_and_leave_nothing_behind(op: str) -> None:
    made = check(New(op, 18, 12, [X, ints(1)], fixed=[1], rtol=1e-5))
    assert made is not None
    assert [node.op_type for node in made.graph.node] == [op] and not made.graph.initializer
