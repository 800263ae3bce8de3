"""Groups of rows with equal keys are those of pandas and Polars."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tensor_functions import Compiled

from onward.frontends.dataframe.tensors.rows.keys import group_numbers, group_rows, spread
from onward.frontends.dataframe.tensors.rows.sorting import SortKey

VALUES: dict[str, list[Any]] = {
    "bool": [True, False],
    "int8": [-128, 0, 127],
    "int16": [-32768, 3, 32767],
    "int32": [-(2**31), 0, 2**31 - 1],
    "int64": [-(2**63), -1, 0, 2**63 - 1],
    "uint8": [0, 200, 255],
    "uint16": [0, 65535],
    "uint32": [0, 2**32 - 1],
    "uint64": [0, 1, 2**63, 2**64 - 1],
    "float32": [0.0, -0.0, float("nan"), float("inf"), -1.5],
    "float64": [0.0, -0.0, float("nan"), float("inf"), float("-inf"), 1e300],
    "str": ["", "a", "Z", "é", "\uffff", "😀", "aa"],
}

PANDAS = {"str": "str", "float32": "Float32", "float64": "Float64", "bool": "boolean"}


def compiled(dtypes: tuple[str, ...], by: Any = "key", drop: bool = False, nulls: bool = True) -> Compiled:
    def function(*columns: Any) -> Any:
        keys = columns[: len(dtypes)]
        masks = columns[len(dtypes) :] or [None] * len(dtypes)
        groups = group_rows(
            [SortKey(k, m, nan_is_null=True) for k, m in zip(keys, masks, strict=True)], by, drop_nulls=drop
        )
        return (
            group_numbers(groups),
            groups.count,
            groups.first,
            groups.order,
            groups.starts,
            spread(groups, keys[0].op.unsqueeze(groups.first, [1])),
        )

    return Compiled(function, *dtypes, *(["bool"] * len(dtypes) if nulls else []))


CASES = [
    (dtypes, by, drop, nulls)
    for dtypes in [*((d,) for d in VALUES), ("str", "int64"), ("float64", "bool", "uint64")]
    for by in ("key", "appearance")
    for drop, nulls in ((False, False), (False, True), (True, True))
]


@pytest.mark.parametrize(("dtypes", "by", "drop", "nulls"), CASES)
def test_groups_are_those_of_pandas(dtypes: tuple[str, ...], by: str, drop: bool, nulls: bool) -> None:
    model = compiled(dtypes, by, drop, nulls)
    rng = np.random.default_rng(0)
    for n in (0, 1, 2, 5, 40):
        columns, masks, frame = [], [], {}
        for i, dtype in enumerate(dtypes):
            values = np.array([VALUES[dtype][j] for j in rng.integers(0, len(VALUES[dtype]), n)], object)
            mask = rng.random(n) < 0.3
            columns.append(values)
            masks.append(mask)
            absent = (mask if nulls else np.zeros(n, bool)) | np.array([v != v for v in values], bool)
            series = pd.Series([None if a else v for v, a in zip(values, absent, strict=True)], dtype=object)
            frame[str(i)] = series.astype(PANDAS.get(dtype) or dtype.replace("int", "Int").replace("u", "U"))
        table = pd.DataFrame(frame)
        grouped = table.groupby(list(table.columns), sort=by == "key", dropna=drop, observed=True)
        numbers = grouped.ngroup().to_numpy(np.float64)
        expected = np.where(np.isnan(numbers), -1, numbers).astype(np.int64)
        codes, count, first, order, starts, spread_first = model(*columns, *(masks if nulls else []))
        np.testing.assert_array_equal(codes, expected)
        assert int(count[0]) == len(set(expected[expected >= 0]))
        np.testing.assert_array_equal(first, [np.flatnonzero(expected == g)[0] for g in range(int(count[0]))])
        kept = np.flatnonzero(expected >= 0)
        assert sorted(order) == kept.tolist()
        sorted_codes = expected[order]
        assert starts.tolist() == [i == 0 or sorted_codes[i] != sorted_codes[i - 1] for i in range(len(order))]
        assert int(starts.sum()) == int(count[0])
        np.testing.assert_array_equal(spread_first[kept], first[expected[kept]])


def test_nan_and_null_are_two_keys_where_nan_is_a_number() -> None:
    def function(x: Any, null: Any) -> Any:
        return group_numbers(group_rows([SortKey(x, null)]))

    nan = float("nan")
    codes = Compiled(function, "float64", "bool")([nan, 1, nan, 0, np.inf], [False, False, False, True, False])
    np.testing.assert_array_equal(codes, [2, 0, 2, 3, 1])


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(st.tuples(st.floats(width=64), st.text(max_size=2)), max_size=20))
def test_groups_of_any_numbers_and_texts(rows: list[tuple[float, str]]) -> None:
    codes = NUMBERS_AND_TEXTS([row[0] for row in rows], [row[1].replace("\0", "") for row in rows])[0]
    pairs = [("nan" if a != a else a, b.replace("\0", "")) for a, b in rows]
    seen = list(dict.fromkeys(pairs))
    np.testing.assert_array_equal(codes, [seen.index(pair) for pair in pairs])


NUMBERS_AND_TEXTS = compiled(("float64", "str"), "appearance", nulls=False)
