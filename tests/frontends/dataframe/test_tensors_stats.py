"""Statistics of a whole column are those of pandas."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tensor_functions import Compiled

from onward.frontends.dataframe.tensors.rows import stats

NAN = float("nan")
FLOATS = st.one_of(st.integers(-1000, 1000).map(lambda i: i / 4), st.sampled_from([NAN, np.inf, -np.inf]))
MODELS = {name: Compiled(f, "float64", "bool") for name, f in stats.STATISTICS.items()}
DTYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32")


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=60, deadline=None)
@given(values=st.lists(FLOATS, max_size=25))
def test_statistics_of_floats_are_those_of_pandas(name: str, values: list[float]) -> None:
    series = pd.Series(values, dtype="float64")
    if name == "prod":
        series = series.clip(-3, 3)
    with np.errstate(all="ignore"):
        expected = float(getattr(series, name)())
    result = MODELS[name](series.to_numpy(), series.notna())
    assert result.shape == (1,)
    np.testing.assert_allclose(float(result[0]), expected, rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "name", ["sum", "prod", "mean", "min", "max", "count", "nunique", "any", "all", "var", "median"]
)
def test_statistics_of_every_dtype_are_those_of_pandas(name: str, dtype: str) -> None:
    model = Compiled(lambda x: stats.STATISTICS[name](x), dtype)
    for values in ([1, 0, 1, 1], [1], [1, 1, 1]):
        series = pd.Series(np.array(values).astype(dtype))
        expected = getattr(series, name)()
        np.testing.assert_allclose(model(series)[0], expected, rtol=1e-6)
        assert name in ("count", "nunique") or model(series).dtype == np.asarray(expected).dtype
    if dtype not in ("bool", "float32") and name in ("min", "max"):
        info = np.iinfo(dtype)
        extremes = np.array([info.max, info.min, info.max - 1], dtype)
        assert model(extremes)[0] == getattr(extremes, name)()
    empty = model(np.zeros(0))
    assert empty.shape == (1,)
    if name in ("sum", "prod", "count", "nunique", "any", "all"):
        assert empty[0] == getattr(pd.Series([], dtype=dtype), name)()


def test_extremes_of_text_and_of_none() -> None:
    for name, expected in (("min", "Z"), ("max", "é")):
        model = Compiled(stats.STATISTICS[name], "str", "bool")
        assert model(["b", "é", "Z", "😀"], [True, True, True, False])[0] == expected
        assert model([], [])[0] == ""
        assert model(["a"], [False])[0] == ""


@pytest.mark.parametrize("how", ["linear", "lower", "higher", "midpoint", "nearest"])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.25, 0.5, 0.9, 1.0])
def test_quantiles_are_those_of_pandas(how: Any, share: float) -> None:
    model = Compiled(lambda x, valid: stats.quantile(x, share, how, valid), "float64", "bool")
    for values in (
        [],
        [NAN],
        [1.0],
        [1.0, NAN],
        [3.0, 1.0, 2.0, NAN, 7.5],
        list(np.arange(11.0)),
        [-np.inf, 5.0, np.inf],
    ):
        series = pd.Series(values, dtype="float64")
        with np.errstate(all="ignore"):
            expected = series.quantile(share, interpolation=how)
        np.testing.assert_allclose(model(values, series.notna())[0], expected, rtol=1e-12)


PAIRS = Compiled(
    lambda x, y, valid: (stats.correlation(x, y, valid), stats.covariance(x, y, valid)), "float64", "float64", "bool"
)


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9), st.booleans()), max_size=20))
def test_correlation_is_that_of_pandas(rows: list[tuple[int, int, bool]]) -> None:
    x, y = (pd.Series([row[i] for row in rows], dtype="float64") for i in (0, 1))
    valid = np.array([row[2] for row in rows], bool)
    correlation, covariance = PAIRS(x, y, valid)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(covariance[0], x[valid].cov(y[valid]), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(correlation[0], x[valid].corr(y[valid]), rtol=1e-9, atol=1e-9)


def test_sums_and_variances_of_many_rows_keep_their_digits() -> None:
    values = 1e6 + np.random.default_rng(0).normal(size=300_000)
    valid = np.ones(300_000, bool)
    np.testing.assert_allclose(MODELS["sum"](values, valid), [values.sum()], rtol=1e-13)
    np.testing.assert_allclose(MODELS["var"](values, valid), [values.var(ddof=1)], rtol=1e-11)


def test_the_row_of_an_extreme_is_the_first_one() -> None:
    model = Compiled(lambda x, v: (stats.extreme_row(x, v), stats.extreme_row(x, v, largest=False)), "float64", "bool")
    values = [NAN, 1.0, 4.0, 4.0, 1.0]
    assert [r.tolist() for r in model(values, ~np.isnan(values))] == [[2], [1]]
    assert [r.tolist() for r in model([], [])] == [[0], [0]]


def test_sums_and_extremes_of_large_whole_numbers_are_exact() -> None:
    models = {
        name: Compiled(lambda x, name=name: stats.STATISTICS[name](x), "int64")
        for name in ("sum", "prod", "min", "max")
    }
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 17, 64, 100):
        values = rng.integers(-(2**63), 2**63 - 1, n) >> int(rng.integers(0, 40))
        for name, model in models.items():
            assert model(values)[0] == getattr(values, name)()


def test_equal_values_have_no_skew_and_no_correlation() -> None:
    values = np.full(7, 0.1)
    for name in ("skew", "kurt"):
        assert np.isnan(MODELS[name](values, np.ones(7, bool))[0])
    assert np.isnan(PAIRS(values, np.arange(7.0), np.ones(7, bool))[0][0])
