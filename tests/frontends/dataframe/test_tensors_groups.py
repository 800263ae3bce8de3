"""Aggregates of groups are those of pandas and Polars."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tensor_functions import Compiled

from onward.errors import UnsupportedError
from onward.frontends.dataframe.tensors.rows import groups as aggregates
from onward.frontends.dataframe.tensors.rows.keys import group_rows, spread
from onward.frontends.dataframe.tensors.rows.sorting import SortKey

FLOATS = st.one_of(st.floats(-1e6, 1e6), st.sampled_from([float("nan"), float("inf"), 0.0, 1.0, -1.0]))
INTS = st.one_of(st.integers(-5, 5), st.sampled_from([2**62, -(2**63), 2**63 - 1]))


def compiled(function: Any, dtype: str, key: str = "int64") -> Compiled:
    """`function(groups, x, valid)` by a key in which 9 is a null, over values that are not NaN."""

    def built(k: Any, x: Any, valid: Any) -> Any:
        groups = group_rows([SortKey(k, k.op.Equal(k, k.op.like(9, k)))], drop_nulls=True)
        result = function(groups, x, valid)
        return (result, spread(groups, result))

    return Compiled(built, key, dtype, "bool")


PANDAS = {
    "sum": lambda g: g.sum(),
    "prod": lambda g: g.prod(),
    "mean": lambda g: g.mean(),
    "min": lambda g: g.min(),
    "max": lambda g: g.max(),
    "count": lambda g: g.count(),
    "std": lambda g: g.std(),
    "var": lambda g: g.var(),
    "median": lambda g: g.median(),
    "nunique": lambda g: g.nunique(),
    "first": lambda g: g.first(),
    "last": lambda g: g.last(),
    "any": lambda g: g.any(),
    "all": lambda g: g.all(),
}
FLOAT_MODELS = {name: compiled(aggregates.aggregate_named(name), "float64") for name in PANDAS}
ROWS = st.lists(st.tuples(st.sampled_from([0, 1, 2, 9]), FLOATS), max_size=25)


@pytest.mark.parametrize("name", PANDAS)
@settings(max_examples=60, deadline=None)
@given(rows=ROWS)
def test_aggregates_of_floats_are_those_of_pandas(name: str, rows: list[tuple[int, float]]) -> None:
    keys = np.array([row[0] for row in rows], np.int64)
    values = np.array([row[1] for row in rows], np.float64)
    key = pd.Series(keys, dtype="float64").replace(9, np.nan)
    with np.errstate(all="ignore"):
        grouped = pd.Series(values).groupby(key)
        expected = PANDAS[name](grouped)
        everywhere = grouped.transform(name)
    result, rowwise = FLOAT_MODELS[name](keys, values, ~np.isnan(values))
    np.testing.assert_allclose(
        result.astype(np.float64),
        expected.to_numpy(np.float64),
        rtol=1e-12,
        atol=1e-6 if name in ("std", "var") else 1e-9,
    )
    kept = keys != 9
    np.testing.assert_allclose(
        rowwise[kept].astype(np.float64), everywhere.to_numpy(np.float64)[kept], rtol=1e-12, atol=1e-6
    )


INT_MODELS = {
    name: compiled(aggregates.aggregate_named(name), "int64")
    for name in ("sum", "prod", "min", "max", "count", "nunique", "first", "last", "any", "all", "mean", "var")
}


@pytest.mark.parametrize("name", INT_MODELS)
@settings(max_examples=40, deadline=None)
@given(rows=st.lists(st.tuples(st.sampled_from([0, 1, 2, 9]), INTS), max_size=25))
def test_aggregates_of_whole_numbers_are_those_of_pandas(name: str, rows: list[tuple[int, int]]) -> None:
    keys = np.array([row[0] for row in rows], np.int64)
    values = np.array([row[1] for row in rows], np.int64)
    if name in ("mean", "var"):
        values = np.clip(values, -5, 5)
    key = pd.Series(keys, dtype="float64").replace(9, np.nan)
    expected = PANDAS[name](pd.Series(values).groupby(key))
    result, _ = INT_MODELS[name](keys, values, np.ones(len(rows), bool))
    if name in ("mean", "var"):
        np.testing.assert_allclose(result, expected.to_numpy(), rtol=1e-12, atol=1e-12)
    else:
        assert result.dtype == expected.to_numpy().dtype
        np.testing.assert_array_equal(result, expected.to_numpy())


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "int16", "int32", "uint8", "uint16", "uint32", "uint64", "float32", "str"]
)
def test_extremes_first_and_distinct_of_every_dtype(dtype: str) -> None:
    rng = np.random.default_rng(1)
    low = -3 if dtype[0] in "if" else 0
    drawn = rng.integers(low, 2 if dtype == "bool" else 4, 30)
    values = np.array([f"t{v}" for v in drawn], object) if dtype == "str" else drawn.astype(dtype)
    keys = np.r_[rng.integers(0, 4, 29), 7]
    valid = rng.random(30) < 0.7
    valid[-1] = False
    for name in ("min", "max", "first", "last", "nunique", "count"):
        result, _ = compiled(aggregates.aggregate_named(name), dtype)(keys, values, valid)
        for group, value in zip(np.unique(keys), result, strict=True):
            own = list(values[(keys == group) & valid])
            blank = "" if dtype == "str" else np.nan if dtype == "float32" else 0
            expected = (
                {
                    "min": lambda own=own: min(own),
                    "max": lambda own=own: max(own),
                    "first": lambda own=own: own[0],
                    "last": lambda own=own: own[-1],
                    "nunique": lambda own=own: len(set(own)),
                    "count": lambda own=own: len(own),
                }[name]()
                if own
                else (0 if name in ("nunique", "count") else blank)
            )
            np.testing.assert_equal(value, expected)


@pytest.mark.parametrize("how", ["linear", "lower", "higher", "midpoint", "nearest"])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.25, 0.5, 0.9, 1.0])
def test_quantiles_are_those_of_pandas(how: Any, share: float) -> None:
    rng = np.random.default_rng(2)
    model = compiled(lambda g, x, v: aggregates.quantiles(g, x, share, how, v), "float64")
    for n in (0, 1, 2, 30):
        keys, values = rng.integers(0, 3, n), rng.normal(size=n)
        values[rng.random(n) < 0.2] = np.nan
        expected = pd.Series(values).groupby(keys).quantile(share, interpolation=how)
        np.testing.assert_allclose(model(keys, values, ~np.isnan(values))[0], expected, rtol=1e-12)


def test_too_few_rows_give_nan() -> None:
    model = compiled(lambda g, x, v: aggregates.sums(g, x, v, min_count=2), "float64")
    result, _ = model([0, 0, 1, 2], [1.0, 2.0, 3.0, 4.0], [True, True, True, False])
    np.testing.assert_array_equal(result, [3.0, np.nan, np.nan])


def test_the_rows_of_extremes_are_the_first_ones() -> None:
    model = compiled(lambda g, x, v: g.codes.op.unsqueeze(aggregates.extreme_rows(g, x, v), [1]), "float64")
    values = [1.0, 5.0, 5.0, -np.inf, np.nan, -np.inf]
    result, _ = model([0, 0, 0, 1, 1, 1], values, ~np.isnan(values))
    np.testing.assert_array_equal(result, [1, 3])


def test_sums_of_small_whole_numbers_do_not_overflow_and_unsigned_ones_stay_unsigned() -> None:
    for dtype, wide in (("int8", "int64"), ("uint8", "uint64"), ("bool", "int64"), ("uint64", "uint64")):
        values = np.full(300, 1, dtype) * (100 if dtype != "bool" else 1)
        result, _ = compiled(aggregates.sums, dtype)(np.zeros(300), values.astype(dtype), np.ones(300, bool))
        assert result.dtype == wide
        assert int(result[0]) == int(values.astype(dtype).astype(object).sum())


def test_other_aggregates_and_sums_of_text_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match="'sem'"):
        aggregates.aggregate_named("sem")
    with pytest.raises(UnsupportedError, match="text"):
        compiled(aggregates.sums, "str").make()


def test_equal_values_vary_by_nothing() -> None:
    values = np.repeat([0.1, 0.7, 1e16 / 3], [3, 7, 11])
    keys = np.repeat([0, 1, 2], [3, 7, 11])
    result, _ = FLOAT_MODELS["std"](keys, values, np.ones(21, bool))
    np.testing.assert_array_equal(result, [0, 0, 0])
