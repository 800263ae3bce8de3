"""Reductions, ArgMax and running sums: dtypes, axes given and computed, nothing to reduce."""

from typing import Any

import numpy as np
import pytest
from harness import check, floats, literal, merged, node_model, source

from onward.errors import UnsupportedError

REDUCTIONS = {
    "ReduceSum": np.sum,
    "ReduceMean": np.mean,
    "ReduceMax": np.max,
    "ReduceMin": np.min,
    "ReduceProd": np.prod,
    "ReduceL1": lambda x, **over: np.sum(np.abs(x), **over),
    "ReduceL2": lambda x, **over: np.sqrt(np.sum(np.square(x), **over)),
    "ReduceSumSquare": lambda x, **over: np.sum(np.square(x), **over),
    "ReduceLogSum": lambda x, **over: np.log(np.sum(x, **over)),
    "ReduceLogSumExp": lambda x, **over: np.log(np.sum(np.exp(x), **over)),
}
AXES = [None, [], [1], [-1], [0, 2], [2, 0], [-1, 0, 1]]


@pytest.mark.parametrize("fixed", [(1,), ()], ids=["axes known", "axes computed"])
@pytest.mark.parametrize("op", REDUCTIONS)
def test_axes(op: str, fixed: tuple[int, ...]) -> None:
    x = np.abs(floats(2, 3, 4))
    parts, expected = [], []
    for axes in AXES:
        for keepdims in (0, 1):
            for noop in (0, 1):
                inputs = [x] if axes is None else [x, np.array(axes, np.int64)]
                used = fixed if axes is not None else ()
                options = {"keepdims": keepdims, "noop_with_empty_axes": noop}
                parts.append(node_model(op, inputs, fixed=used, opset=18, **options))
                over = () if not axes and noop else None if not axes else tuple(axes)
                expected.append(REDUCTIONS[op](x, axis=over, keepdims=bool(keepdims)))
    model, feeds = merged(parts)
    check(literal(model), feeds, expected=expected)


WRAPPING = ["ReduceSum", "ReduceProd", "ReduceSumSquare", "ReduceL1"]


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32, np.uint64], ids=lambda t: t.__name__)
def test_integers_wrap(dtype: Any) -> None:
    info = np.iinfo(dtype)
    x = np.random.default_rng(0).integers(info.min // 2, info.max, (3, 4, 2), dtype=dtype)
    parts, expected = [], []
    for op in WRAPPING:
        for axes in ([1], [0, 2]):
            parts.append(node_model(op, [x, np.array(axes)], fixed=[1], opset=18))
            expected.append(REDUCTIONS[op](x, axis=tuple(axes), keepdims=True, dtype=dtype))
    model, feeds = merged(parts)
    check(model, feeds, expected=expected)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64, bool])
def test_extremes_of_every_dtype(dtype: Any) -> None:
    x = np.array([[0, 1, 1], [1, 0, 1]], bool)
    if dtype is not bool:
        info = np.iinfo(dtype)
        x = np.array([[info.min, info.max, 5], [3, 0, info.max - 1]], dtype)
    parts, expected = [], []
    for op in ("ReduceMax", "ReduceMin"):
        parts.append(node_model(op, [x, np.array([1])], fixed=[1], opset=20))
        expected.append(REDUCTIONS[op](x, axis=1, keepdims=True))
    model, feeds = merged(parts)
    check(model, feeds, expected=expected)


def test_mean_of_integers_rounds_towards_zero() -> None:
    x = np.array([[1, 2, 2], [-1, -2, -2]])
    for dtype in (np.int32, np.int64):
        model, feeds = node_model("ReduceMean", [x.astype(dtype), np.array([1])], fixed=[1], keepdims=0)
        check(model, feeds, expected=[np.array([1, -1], dtype)])
    model, feeds = node_model("ReduceMean", [np.array([2**32 - 1, 2**32 - 2], np.uint32)], keepdims=0)
    check(model, feeds, expected=[np.array(2**32 - 2, np.uint32)])
    with pytest.raises(UnsupportedError, match="uint64"):
        source(node_model("ReduceMean", [np.array([1, 2], np.uint64)])[0])


def test_roots_and_logarithms_of_integers() -> None:
    x = np.array([[3, 4], [5, 12]], np.int32)
    for op, expected in {"ReduceL2": [5, 13], "ReduceLogSum": [1, 2], "ReduceLogSumExp": [4, 12]}.items():
        model, feeds = node_model(op, [x, np.array([1])], fixed=[1], keepdims=0, opset=18)
        check(model, feeds, expected=[np.array(expected, np.int32)])


EMPTY = {
    "ReduceSum": 0,
    "ReduceProd": 1,
    "ReduceMax": -np.inf,
    "ReduceMin": np.inf,
    "ReduceL1": 0,
    "ReduceL2": 0,
    "ReduceSumSquare": 0,
    "ReduceLogSum": -np.inf,
    "ReduceLogSumExp": -np.inf,
}


def test_nothing_to_reduce() -> None:
    parts = [node_model(op, [np.zeros((2, 0, 3), np.float32), np.array([1])], fixed=[1], opset=20) for op in EMPTY]
    model, feeds = merged(parts)
    check(model, feeds, expected=[np.full((2, 1, 3), v, np.float32) for v in EMPTY.values()])
    integers = [node_model(op, [np.zeros((0,), np.int32)], keepdims=0, opset=20) for op in ("ReduceMax", "ReduceMin")]
    info = np.iinfo(np.int32)
    model, feeds = merged(integers)
    check(model, feeds, expected=[np.array(info.min, np.int32), np.array(info.max, np.int32)])


def test_log_sum_exp_of_large_numbers() -> None:
    x = np.array([[1000.0, 1000.0], [-1000.0, -np.inf], [-np.inf, -np.inf], [np.inf, 0.0]], np.float32)
    model, feeds = node_model("ReduceLogSumExp", [x, np.array([1])], fixed=[1], keepdims=0)
    check(model, feeds, expected=[np.array([1000 + np.log(2), -1000, -np.inf, np.inf], np.float32)])


def test_scalars_reduce_to_themselves() -> None:
    parts = [node_model(op, [np.array(2.0, np.float32)], opset=18) for op in REDUCTIONS]
    model, feeds = merged(parts)
    check(model, feeds)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8, np.uint8, np.uint16, np.int32, np.uint64])
def test_first_and_last_index_of_the_extreme(dtype: Any) -> None:
    x = np.random.default_rng(0).integers(0, 3, (3, 5, 4)).astype(dtype)
    if dtype is np.uint64:
        x += np.uint64(2**63 - 1)
    parts, expected = [], []
    for op, function in {"ArgMax": np.argmax, "ArgMin": np.argmin}.items():
        for axis in (0, 1, -1):
            for last in (0, 1):
                for keepdims in (0, 1):
                    options = {"axis": axis, "select_last_index": last, "keepdims": keepdims}
                    parts.append(node_model(op, [x], **options))
                    found = function(np.flip(x, axis) if last else x, axis=axis, keepdims=bool(keepdims))
                    expected.append(x.shape[axis] - 1 - found if last else found)
    model, feeds = merged(parts)
    check(model, feeds, expected=expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64, np.uint32, np.uint64])
def test_running_sums_and_products(dtype: Any) -> None:
    x = np.random.default_rng(0).integers(1, 2**30, (3, 4)).astype(dtype)
    if np.dtype(dtype).kind == "f":
        x[1, 2] = np.inf
    parts, expected = [], []
    for op, function, start in [("CumSum", np.cumsum, 0), ("CumProd", np.cumprod, 1)]:
        for axis in (0, 1, -1):
            for exclusive in (0, 1):
                for reverse in (0, 1):
                    fixed = [1] if axis else []
                    options = {"exclusive": exclusive, "reverse": reverse, "opset": 26}
                    parts.append(node_model(op, [x, np.array(axis)], fixed=fixed, **options))
                    y = np.flip(x, axis) if reverse else x
                    if exclusive:
                        y = np.concatenate([np.full_like(np.take(y, [0], axis), start), y], axis)
                        y = np.take(y, range(x.shape[axis]), axis)
                    total = function(y, axis=axis, dtype=dtype)
                    expected.append(np.flip(total, axis) if reverse else total)
    model, feeds = merged(parts)
    check(model, feeds, expected=expected)


def test_code_reads_as_written_by_hand() -> None:
    model, _ = node_model("ReduceMean", [floats(2, 3, 4), np.array([-1])], fixed=[1])
    assert "torch.mean(in0, dim=-1, keepdim=True)" in source(literal(model))
    model, _ = node_model("ReduceSum", [floats(2, 3, 4)], keepdims=0)
    assert "torch.sum(in0)" in source(model)
