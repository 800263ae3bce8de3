"""Values that run down a column are those of pandas."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tensor_functions import Compiled

from onward.errors import UnsupportedError
from onward.frontends.dataframe.tensors.rows import running
from onward.frontends.dataframe.tensors.rows.keys import Groups, group_rows
from onward.frontends.dataframe.tensors.rows.sorting import SortKey

NAN = float("nan")
FLOATS = st.one_of(st.sampled_from([NAN, np.inf, -np.inf, 0.0, 1.0, -2.5, 1e16]), st.floats(-100, 100))
ROWS = st.lists(st.tuples(st.sampled_from([0, 1, 9]), FLOATS), max_size=25)


def groups(key: Any) -> Groups:
    """Groups by a key in which 9 is a null."""
    return group_rows([SortKey(key, key.op.Equal(key, key.op.like(9, key)))], drop_nulls=True)


def arrays(rows: list[tuple[int, float]]) -> tuple[np.ndarray, np.ndarray, Any]:
    keys, values = np.array([row[0] for row in rows], np.int64), np.array([row[1] for row in rows], np.float64)
    return keys, values, pd.Series(values).groupby(pd.Series(keys, dtype="float64").replace(9, NAN))


def nan_for(value: np.ndarray, found: np.ndarray) -> np.ndarray:
    return np.where(found, value, NAN)


RUNS = {
    name: Compiled(
        lambda k, x, valid, f=f: (f(x, valid), f(x, valid, within=groups(k))),
        "int64",
        "float64",
        "bool",
    )
    for name, f in {
        "cumsum": lambda x, valid, within=None: running.running_sum(x, valid, within, within is not None),
        "cummax": lambda x, valid, within=None: running.running_extreme(x, True, valid, within),
        "cummin": lambda x, valid, within=None: running.running_extreme(x, False, valid, within),
    }.items()
}


@pytest.mark.parametrize("name", RUNS)
@settings(max_examples=80, deadline=None)
@given(rows=ROWS)
def test_running_sums_and_extremes_are_those_of_pandas(name: str, rows: list[tuple[int, float]]) -> None:
    keys, values, grouped = arrays(rows)
    valid = ~np.isnan(values)
    result, within = RUNS[name](keys, values, valid)
    with np.errstate(all="ignore"):
        expected = getattr(pd.Series(values), name)()
        expected_within = getattr(grouped, name)()
    np.testing.assert_allclose(nan_for(result, valid), expected, rtol=1e-12, atol=1e-9)
    counts = valid & (keys != 9)
    np.testing.assert_allclose(within[counts], expected_within[counts], rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("n", [511, 512, 513, 1000, 300_000])
def test_running_extremes_of_many_rows(n: int) -> None:
    rng = np.random.default_rng(n)
    values = rng.normal(size=n) + np.linspace(0, 3, n)
    keys = rng.integers(0, 5, n)
    for name in ("cummax", "cummin"):
        result, within = RUNS[name](keys, values, np.ones(n, bool))
        np.testing.assert_array_equal(result, getattr(pd.Series(values), name)())
        np.testing.assert_array_equal(within, getattr(pd.Series(values).groupby(keys), name)())


def test_a_group_keeps_its_digits_beside_a_large_one() -> None:
    keys = np.tile([0, 1], 500)
    values = np.where(keys == 0, 1e15, 1e-3) * np.random.default_rng(0).normal(size=1000)
    _, within = RUNS["cumsum"](keys, values, np.ones(1000, bool))
    np.testing.assert_allclose(within, pd.Series(values).groupby(keys).cumsum(), rtol=1e-11)


def test_infinity_stays_in_its_group() -> None:
    model = Compiled(lambda k, x: running.running_sum(x, None, groups(k)), "int64", "float64")
    result = model([0, 1, 0, 1, 0, 1], [np.inf, 1.0, 2.0, -np.inf, -np.inf, 5.0])
    np.testing.assert_array_equal(result, [np.inf, 1.0, np.inf, -np.inf, NAN, -np.inf])


@pytest.mark.parametrize("dtype", ["int8", "int16", "int64", "uint16", "uint64", "float32", "bool"])
def test_running_values_of_every_dtype(dtype: str) -> None:
    values = np.array([3, 1, 1, 5, 0, 7, 2]).astype(dtype)
    if dtype in ("int64", "uint64"):
        values = np.concatenate([values, np.array([np.iinfo(dtype).max, np.iinfo(dtype).min + 1], dtype)])
    high = Compiled(lambda x: running.running_extreme(x, True), dtype)(values)
    low = Compiled(lambda x: running.running_extreme(x, False), dtype)(values)
    total = Compiled(running.running_sum, dtype)(values)
    np.testing.assert_array_equal(high, np.maximum.accumulate(values))
    np.testing.assert_array_equal(low, np.minimum.accumulate(values))
    assert high.dtype == values.dtype
    np.testing.assert_array_equal(total, pd.Series(values).cumsum())


COUNT = Compiled(lambda k: running.running_count(groups(k)), "int64")


@settings(max_examples=30, deadline=None)
@given(keys=st.lists(st.sampled_from([0, 1, 9]), max_size=20))
def test_running_counts_are_those_of_pandas(keys: list[int]) -> None:
    result = COUNT(keys)
    kept = np.array(keys, int) != 9
    expected = pd.Series(keys, dtype="int64").groupby(np.array(keys, int)).cumcount()
    np.testing.assert_array_equal(result[kept], expected[kept])


FILLS = {
    (backward, limit): Compiled(
        lambda k, x, valid, b=backward, n=limit: (
            *running.fill_forward(x, valid, n, b),
            *running.fill_forward(x, valid, n, b, groups(k)),
        ),
        "int64",
        "float64",
        "bool",
    )
    for backward in (False, True)
    for limit in (None, 1)
}


@pytest.mark.parametrize("choice", FILLS)
@settings(max_examples=50, deadline=None)
@given(rows=ROWS)
def test_filling_is_that_of_pandas(choice: tuple[bool, int | None], rows: list[tuple[int, float]]) -> None:
    keys, values, grouped = arrays(rows)
    name = "bfill" if choice[0] else "ffill"
    result, found, within, found_within = FILLS[choice](keys, values, ~np.isnan(values))
    np.testing.assert_array_equal(nan_for(result, found), getattr(pd.Series(values), name)(limit=choice[1]))
    expected = getattr(grouped, name)(limit=choice[1])
    np.testing.assert_array_equal(nan_for(within, found_within)[keys != 9], expected[keys != 9])


SHIFTS = {
    by: Compiled(
        lambda k, x, by=by: (
            *running.shift(x, by),
            *running.shift(x, by, groups(k)),
            *running.difference(x, by),
            *running.difference(x, by, groups(k)),
            *running.relative_change(x, by),
        ),
        "int64",
        "float64",
    )
    for by in (0, 1, -1, 3, -30)
}


@pytest.mark.parametrize("by", SHIFTS)
@settings(max_examples=50, deadline=None)
@given(rows=ROWS)
def test_shifts_and_differences_are_those_of_pandas(by: int, rows: list[tuple[int, float]]) -> None:
    keys, values, grouped = arrays(rows)
    made = SHIFTS[by](keys, values)
    pairs = [nan_for(value, found) for value, found in zip(made[::2], made[1::2], strict=True)]
    series = pd.Series(values)
    kept = keys != 9
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(pairs[0], series.shift(by))
        np.testing.assert_array_equal(pairs[1][kept], grouped.shift(by)[kept])
        np.testing.assert_array_equal(pairs[2], series.diff(by))
        np.testing.assert_array_equal(pairs[3][kept], grouped.diff(by)[kept])
        np.testing.assert_allclose(pairs[4], series.pct_change(by, fill_method=None), rtol=1e-12)


def test_texts_and_bools_are_shifted_too() -> None:
    value, found = Compiled(lambda x: running.shift(x, 1), "str")(["a", "b", "c"])
    assert list(value[found]) == ["a", "b"]
    value, found = Compiled(lambda x: running.shift(x, -1), "bool")([True, False])
    assert value[found].tolist() == [False]


INTERPOLATED = {both: Compiled(lambda x, v, b=both: running.interpolate(x, v, b), "float64", "bool") for both in (0, 1)}


@pytest.mark.parametrize("both", INTERPOLATED)
@settings(max_examples=50, deadline=None)
@given(values=st.lists(st.one_of(st.just(NAN), st.floats(-1e3, 1e3)), max_size=20))
def test_interpolation_is_that_of_pandas(both: int, values: list[float]) -> None:
    series = pd.Series(values, dtype="float64")
    result, found = INTERPOLATED[both](values, series.notna())
    expected = series.interpolate(limit_direction="both" if both else "forward")
    np.testing.assert_allclose(nan_for(result, found), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("values", [[], [3.0], [1.5, -2.0, 0.5, np.inf, 0.0, np.nan, 2.0], [1e200, 1e200, 1e-300]])
def test_running_products(values: list[float]) -> None:
    found = Compiled(running.running_product, "float64")(values)
    np.testing.assert_allclose(found, np.cumprod(values), rtol=1e-12)


def test_running_products_and_extremes_of_text_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="product of text"):
        Compiled(running.running_product, "str").make()
    with pytest.raises(UnsupportedError, match="text"):
        Compiled(lambda x: running.running_extreme(x, True), "str").make()
