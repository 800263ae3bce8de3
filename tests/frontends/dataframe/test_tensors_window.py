"""Rolling, expanding and exponentially weighted values are those of pandas and Polars."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tensor_functions import Compiled

from onward.errors import UnsupportedError
from onward.frontends.dataframe.tensors.rows.keys import Groups, group_rows
from onward.frontends.dataframe.tensors.rows.sorting import SortKey
from onward.frontends.dataframe.tensors.rows.window import expanding, exponential_mean, rolling

NAN = float("nan")
VALUES = st.lists(st.one_of(st.just(NAN), st.integers(-1000, 1000).map(lambda i: i / 4)), max_size=40)
HOW = ("sum", "mean", "min", "max", "var", "std", "median", "count")


def nan_for(pair: Any) -> np.ndarray:
    return np.where(pair[1], pair[0], NAN)


def groups(key: Any) -> Groups:
    return group_rows([SortKey(key, key.op.Equal(key, key.op.like(9, key)))], drop_nulls=True)


CASES = [
    (how, size, least, center)
    for how in HOW
    for size, least in ((1, 1), (2, 2), (3, 1), (4, 0), (7, 3), (21, 5), (64, 2))
    for center in (False, True)
    if how != "median" or size <= 32
]


@pytest.mark.parametrize("case", CASES)
@settings(max_examples=12, deadline=None)
@given(values=VALUES)
def test_rolling_is_that_of_pandas(case: tuple[Any, ...], values: list[float]) -> None:
    how, size, least, center = case
    model = rolling_model(case)
    series = pd.Series(values, dtype="float64")
    if how == "count":
        moved = series.notna().astype(float).rolling(size, min_periods=least, center=center)
        expected = series.rolling(size, min_periods=0, center=center).count().where(moved.sum() >= least)
    else:
        expected = getattr(series.rolling(size, min_periods=least, center=center), how)()
    np.testing.assert_allclose(nan_for(model(values, series.notna())), expected, rtol=1e-9, atol=1e-6)


MODELS: dict[tuple[Any, ...], Compiled] = {}


def rolling_model(case: tuple[Any, ...]) -> Compiled:
    how, size, least, center = case
    if case not in MODELS:
        MODELS[case] = Compiled(lambda x, valid: rolling(x, how, size, least, valid, center), "float64", "bool")
    return MODELS[case]


@pytest.mark.parametrize("how", ["sum", "mean", "min", "max", "var", "std"])
@pytest.mark.parametrize("size", [1, 3, 20])
def test_rolling_over_infinite_values_is_that_of_polars(how: str, size: int) -> None:
    values = [1.0, np.inf, 2.0, 3.5, -np.inf, *np.arange(40.0), NAN, *np.arange(30.0)]
    expected = getattr(pl.Series(values), f"rolling_{how}")(size).fill_null(NAN).to_numpy()
    model = Compiled(lambda x: rolling(x, how, size, size), "float64")
    result = nan_for(model(values))
    same = ~np.isnan(expected)
    np.testing.assert_allclose(result[same], expected[same], rtol=1e-9, atol=1e-9)
    assert np.isnan(result[-1]) == np.isnan(expected[-1])


def test_windows_lose_no_digits_to_what_has_left_them() -> None:
    values = np.r_[1e16, 1e16, np.linspace(0, 1, 50)]
    for size in (5, 20):
        for how in ("sum", "var"):
            result = nan_for(Compiled(lambda x, how=how, n=size: rolling(x, how, n, n), "float64")(values))
            exact = [
                getattr(np, how)(values[i - size + 1 : i + 1], **({"ddof": 1} if how == "var" else {}))
                for i in range(size + 1, len(values))
            ]
            np.testing.assert_allclose(result[size + 1 :], exact, rtol=1e-13)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("size", [1, 2, 5, 20])
def test_rolling_within_groups_is_that_of_pandas(how: Any, size: int) -> None:
    model = Compiled(lambda k, x, valid: rolling(x, how, size, 1, valid, within=groups(k)), "int64", "float64", "bool")
    rng = np.random.default_rng(0)
    for n in (0, 1, 2, 60):
        keys = rng.choice([0, 1, 2, 9], n)
        values = np.where(rng.random(n) < 0.2, NAN, rng.normal(size=n))
        result = nan_for(model(keys, values, ~np.isnan(values)))
        for key in (0, 1, 2):
            own = pd.Series(values[keys == key])
            expected = getattr(own.rolling(size, min_periods=1), how)()
            expected = expected.where(expected > 0) if how == "count" else expected
            np.testing.assert_allclose(result[keys == key], expected, rtol=1e-9, atol=1e-9)
        assert np.isnan(result[keys == 9]).all()


EXPANDING = [how for how in HOW if how != "median"]
EXPANDING_MODELS = {
    how: Compiled(
        lambda k, x, valid, how=how: (*expanding(x, how, 2, valid), *expanding(x, how, 2, valid, groups(k))),
        "int64",
        "float64",
        "bool",
    )
    for how in EXPANDING
}


@pytest.mark.parametrize("how", EXPANDING)
@settings(max_examples=40, deadline=None)
@given(values=VALUES, keys=st.lists(st.sampled_from([0, 1, 9]), min_size=40, max_size=40))
def test_expanding_is_that_of_pandas(how: str, values: list[float], keys: list[int]) -> None:
    series, key = pd.Series(values, dtype="float64"), np.array(keys[: len(values)], int)
    made = EXPANDING_MODELS[how](key, values, series.notna())

    def expected(part: pd.Series) -> Any:
        if how == "count":
            number = part.notna().cumsum().astype(float)
            return number.where(number >= 2)
        return getattr(part.expanding(2), how)()

    np.testing.assert_allclose(nan_for(made[:2]), expected(series), rtol=1e-9, atol=1e-6)
    for k in (0, 1):
        np.testing.assert_allclose(nan_for(made[2:])[key == k], expected(series[key == k]), rtol=1e-9, atol=1e-6)


def test_expanding_variance_keeps_its_digits_far_from_zero() -> None:
    values = 1e8 + np.random.default_rng(0).normal(size=2000)
    result = nan_for(Compiled(lambda x: expanding(x, "var", 2), "float64")(values))
    exact = [np.var(values[: i + 1], ddof=1) for i in range(1, 2000, 97)]
    np.testing.assert_allclose(result[1::97], exact, rtol=1e-10)


EWM = {
    (alpha, adjust, ignore): Compiled(
        lambda x, v, a=alpha, j=adjust, i=ignore: exponential_mean(x, a, 1, v, j, i), "float64", "bool"
    )
    for alpha in (0.01, 0.3, 0.9, 1.0)
    for adjust in (True, False)
    for ignore in (True, False)
}


@pytest.mark.parametrize("case", EWM)
@settings(max_examples=30, deadline=None)
@given(values=VALUES)
def test_exponential_means_are_those_of_pandas(case: tuple[float, bool, bool], values: list[float]) -> None:
    series = pd.Series(values, dtype="float64")
    expected = series.ewm(alpha=case[0], adjust=case[1], ignore_na=case[2]).mean()
    np.testing.assert_allclose(nan_for(EWM[case](values, series.notna())), expected, rtol=1e-9, atol=1e-9)


def test_exponential_means_of_many_rows() -> None:
    values = np.random.default_rng(0).normal(size=20_000)
    expected = pd.Series(values).ewm(alpha=0.01).mean()
    np.testing.assert_allclose(
        EWM[0.01, True, False](values, np.ones(20_000, bool))[0], expected, rtol=1e-9, atol=1e-12
    )


def test_long_medians_and_centred_windows_of_groups_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="median"):
        Compiled(lambda x: rolling(x, "median", 100, 1), "float64").make()
    with pytest.raises(UnsupportedError, match="median"):
        Compiled(lambda x: expanding(x, "median", 1), "float64").make()
    with pytest.raises(UnsupportedError, match="centred"):
        Compiled(lambda k, x: rolling(x, "sum", 3, 1, center=True, within=groups(k)), "int64", "float64").make()


@pytest.mark.parametrize("size", [3, 7, 20])
def test_equal_values_in_a_window_vary_by_nothing(size: int) -> None:
    result, found = Compiled(lambda x: rolling(x, "std", size, 2), "float64")(np.full(50, 0.1))
    assert (result[found] == 0).all()
    result, found = Compiled(lambda x: expanding(x, "std", 2), "float64")(np.full(50, 0.1))
    assert (result[found] == 0).all()
