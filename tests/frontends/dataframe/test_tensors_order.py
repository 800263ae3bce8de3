"""Sorting, ranks, duplicates and counts are those of pandas and Polars."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tensor_functions import Compiled

from onward.frontends.dataframe.tensors.rows.keys import group_rows
from onward.frontends.dataframe.tensors.rows.order import (
    all_distinct,
    distinct_rows,
    duplicated,
    mode_rows,
    rank,
    value_counts,
)
from onward.frontends.dataframe.tensors.rows.sorting import SortKey, reversed_rows, sort_order, take

NAN = float("nan")
FLOATS = st.sampled_from([NAN, float("inf"), float("-inf"), 0.0, -0.0, 1.0, -2.5, 1e-300])
TEXTS = st.sampled_from(["", "a", "Z", "é", "\uffff", "😀", "aa"])
METHODS = ("average", "min", "max", "first", "dense")


def models(make: Any, *dtypes: str, **options: tuple[Any, ...]) -> dict[tuple[Any, ...], Compiled]:
    """One model for each choice of options."""
    choices: list[tuple[Any, ...]] = [()]
    for values in options.values():
        choices = [(*choice, value) for choice in choices for value in values]
    return {choice: Compiled(make(*choice), *dtypes) for choice in choices}


SORTS = models(
    lambda down, last: lambda x: sort_order([SortKey(x, None, down, last, nan_is_null=True)]),
    "float64",
    down=(False, True),
    last=(False, True),
)


@pytest.mark.parametrize("choice", SORTS)
@settings(max_examples=60, deadline=None)
@given(values=st.lists(FLOATS, max_size=30))
def test_floats_are_sorted_as_by_pandas(choice: tuple[bool, bool], values: list[float]) -> None:
    down, last = choice
    expected = pd.Series(values, dtype="float64").sort_values(
        ascending=not down, na_position="last" if last else "first", kind="stable"
    )
    np.testing.assert_array_equal(SORTS[choice](values), expected.index)


SEVERAL = models(
    lambda down, last: lambda x, t, null: sort_order([SortKey(t, null, not down, last), SortKey(x, None, down, last)]),
    "float64",
    "str",
    "bool",
    down=(False, True),
    last=(False, True),
)


@pytest.mark.parametrize("choice", SEVERAL)
@settings(max_examples=60, deadline=None)
@given(rows=st.lists(st.tuples(FLOATS, TEXTS, st.booleans()), max_size=30))
def test_several_keys_are_sorted_as_by_polars(choice: tuple[bool, bool], rows: list[tuple[float, str, bool]]) -> None:
    down, last = choice
    frame = pl.DataFrame(
        {
            "x": [row[0] for row in rows],
            "t": [None if row[2] else row[1] for row in rows],
            "i": list(range(len(rows))),
        },
        schema={"x": pl.Float64, "t": pl.String, "i": pl.Int64},
    )
    expected = frame.sort("t", "x", descending=[not down, down], nulls_last=last, maintain_order=True)["i"]
    model = SEVERAL[choice]
    np.testing.assert_array_equal(
        model(*(list(c) for c in zip(*rows, strict=True)) if rows else ([], [], [])), expected
    )


RANKS = models(
    lambda method, down, percent, place: (
        lambda x: rank(
            SortKey(x, None, down, place == "bottom", nan_is_null=True), method, percent, rank_nulls=place != "keep"
        )
    ),
    "float64",
    method=METHODS,
    down=(False, True),
    percent=(False, True),
    place=("keep", "top", "bottom"),
)


@pytest.mark.parametrize("choice", RANKS)
@settings(max_examples=25, deadline=None)
@given(values=st.lists(FLOATS, max_size=20))
def test_ranks_are_those_of_pandas(choice: tuple[Any, ...], values: list[float]) -> None:
    method, down, percent, place = choice
    series = pd.Series(values, dtype="float64")
    expected = series.rank(method=method, ascending=not down, pct=percent, na_option=place)
    np.testing.assert_allclose(RANKS[choice](values), expected, rtol=1e-15)


GROUP_RANKS = models(
    lambda method, down, percent: (
        lambda k, x: rank(
            SortKey(x, None, down, nan_is_null=True),
            method,
            percent,
            within=group_rows([SortKey(k, k.op.Equal(k, k.op.like(9, k)))], drop_nulls=True),
        )
    ),
    "int64",
    "float64",
    method=METHODS,
    down=(False, True),
    percent=(False, True),
)


@pytest.mark.parametrize("choice", GROUP_RANKS)
@settings(max_examples=25, deadline=None)
@given(rows=st.lists(st.tuples(st.sampled_from([0, 1, 9]), FLOATS), max_size=20))
def test_ranks_within_groups_are_those_of_pandas(choice: tuple[Any, ...], rows: list[tuple[int, float]]) -> None:
    method, down, percent = choice
    keys, values = np.array([row[0] for row in rows], np.int64), np.array([row[1] for row in rows], np.float64)
    key = pd.Series(keys, dtype="float64").replace(9, NAN)
    expected = pd.Series(values).groupby(key).rank(method=method, ascending=not down, pct=percent)
    np.testing.assert_allclose(GROUP_RANKS[choice](keys, values), expected, rtol=1e-15)


DUPLICATED = models(
    lambda keep: lambda x, t: duplicated([SortKey(x, nan_is_null=True), SortKey(t)], keep),
    "float64",
    "str",
    keep=("first", "last", "none"),
)


@pytest.mark.parametrize("choice", DUPLICATED)
@settings(max_examples=50, deadline=None)
@given(rows=st.lists(st.tuples(FLOATS, TEXTS), max_size=20))
def test_duplicates_are_those_of_pandas(choice: tuple[Any], rows: list[tuple[float, str]]) -> None:
    frame = pd.DataFrame({"x": [row[0] for row in rows], "t": [row[1] for row in rows]})
    expected = frame.duplicated(keep=False if choice[0] == "none" else choice[0])
    result = DUPLICATED[choice]([row[0] for row in rows], [row[1] for row in rows])
    np.testing.assert_array_equal(result, expected.to_numpy(bool))


COUNTS = models(
    lambda drop: lambda x: value_counts([SortKey(x, nan_is_null=True)], drop_nulls=drop), "float64", drop=(True, False)
)
DISTINCT = Compiled(
    lambda x: (
        take(x, distinct_rows([SortKey(x, nan_is_null=True)])),
        all_distinct([SortKey(x, nan_is_null=True)]),
        take(x, mode_rows(SortKey(x, nan_is_null=True))),
        take(x, reversed_rows(x)),
    ),
    "float64",
)


@settings(max_examples=80, deadline=None)
@given(values=st.lists(FLOATS, max_size=20))
def test_counts_distinct_values_and_modes_are_those_of_pandas(values: list[float]) -> None:
    series = pd.Series(values, dtype="float64")
    for drop in (True, False):
        expected = series.value_counts(dropna=drop)
        rows, counts = COUNTS[(drop,)](values)
        np.testing.assert_array_equal(counts, expected)
        np.testing.assert_array_equal(series.to_numpy()[rows], expected.index)
    unique, distinct, mode, backwards = DISTINCT(values)
    np.testing.assert_array_equal(unique, series.unique())
    assert bool(distinct[0]) == series.is_unique
    np.testing.assert_array_equal(mode, series.mode())
    np.testing.assert_array_equal(backwards, series[::-1])
