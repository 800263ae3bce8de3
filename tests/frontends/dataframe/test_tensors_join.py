"""Rows find their keys in another table as a merge of pandas does."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from tensor_functions import Compiled

from onward.errors import UnsupportedError
from onward.frontends.dataframe.tensors.rows.groups import sums
from onward.frontends.dataframe.tensors.rows.join import JoinKey, TableKey, find_all_rows, find_computed_rows, find_rows
from onward.frontends.dataframe.tensors.rows.keys import group_rows
from onward.frontends.dataframe.tensors.rows.sorting import SortKey, take

NAN = float("nan")
KEYS: dict[str, tuple[list[Any], list[Any]]] = {
    "str": (["b", "", "é", "😀"], ["a", "b", "", "é", "b", "x"]),
    "int64": ([5, -(2**63), 2**63 - 1], [2**63 - 1, 0, 5, -(2**63), 5]),
    "uint64": ([2**64 - 1, 0, 7], [7, 2**64 - 1, 1, 0]),
    "int8": ([5, -128], [-128, 127, 5]),
    "bool": ([True], [True, False, True]),
    "float64": ([0.0, NAN, 1.5, np.inf], [-0.0, 1.5, 2.0, NAN, np.inf]),
    "float32": ([0.1, 1.5], [0.1, 1.5, 2.0]),
}


@pytest.mark.parametrize("dtype", KEYS)
def test_one_key_is_found(dtype: str) -> None:
    table, rows = (np.array(v, object if dtype == "str" else dtype) for v in KEYS[dtype])
    model = Compiled(lambda x: find_rows([JoinKey(x)], [TableKey(table)]), dtype)
    place, found = model(rows)
    same = [[i for i, t in enumerate(table) if t == r or (t != t and r != r)] for r in rows]
    assert found.tolist() == [bool(s) for s in same]
    assert place[found].tolist() == [s[0] for s in same if s]
    assert [r.shape for r in model([])] == [(0,), (0,)]


@pytest.mark.parametrize("match", [True, False])
def test_nulls_find_nulls_or_nothing(match: bool) -> None:
    table = [TableKey(np.array(["a", "", "b"], object), np.array([False, True, False]))]
    model = Compiled(lambda x, null: find_rows([JoinKey(x, null, nulls_match=match)], table), "str", "bool")
    place, found = model(["a", "", "b", "c"], [False, False, True, False])
    assert found.tolist() == [True, False, match, False]
    assert place[0] == 0
    assert not match or place[2] == 1


def test_several_keys_are_found_together() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.integers(0, 4, 40), "b": rng.choice(list("xyz"), 40), "c": rng.integers(0, 3, 40)})
    table = table.drop_duplicates().reset_index(drop=True)
    rows = pd.DataFrame({"a": rng.integers(0, 5, 60), "b": rng.choice(list("wxyz"), 60), "c": rng.integers(0, 4, 60)})
    model = Compiled(
        lambda a, b, c: find_rows(
            [JoinKey(a), JoinKey(b), JoinKey(c)], [TableKey(table[name].to_numpy()) for name in "abc"]
        ),
        "int64",
        "str",
        "int64",
    )
    place, found = model(rows.a, rows.b, rows.c)
    expected = rows.merge(table.reset_index(), on=list("abc"), how="left")["index"].to_numpy()
    np.testing.assert_array_equal(np.where(found, place, NAN), expected)


def test_an_empty_table_has_nothing() -> None:
    model = Compiled(lambda x: find_rows([JoinKey(x)], [TableKey(np.zeros(0, object))]), "str")
    assert model(["a", "b"])[1].tolist() == [False, False]


def test_keys_that_come_twice_are_refused_or_all_found() -> None:
    table = pd.DataFrame({"k": ["b", "a", "b", "c", "b"], "v": range(5)})
    keys = [TableKey(table.k.to_numpy())]
    with pytest.raises(UnsupportedError, match="twice"):
        Compiled(lambda x: find_rows([JoinKey(x)], keys), "str").make()
    for how, rows in (("left", ["b", "x", "a", "b"]), ("inner", ["x", "b", "a"]), ("left", []), ("inner", ["x"])):
        model = Compiled(lambda x, how=how: find_all_rows([JoinKey(x)], keys, how == "left"), "str")
        own, other, found = model(rows)
        expected = pd.DataFrame({"k": rows, "i": range(len(rows))}).astype({"k": "str"}).merge(table, on="k", how=how)
        np.testing.assert_array_equal(own, expected.i)
        np.testing.assert_array_equal(np.where(found, other, NAN), expected.v.astype(float))


def test_left_joins_are_those_of_polars() -> None:
    table = pl.DataFrame({"k": ["b", None, "a"], "v": [0, 1, 2]})
    rows = pl.DataFrame({"k": ["a", None, "b", "q"]})
    expected = rows.join(table, on="k", how="left", maintain_order="left")["v"].to_list()
    keys = [TableKey(np.array(["b", "", "a"], object), np.array([False, True, False]))]
    model = Compiled(lambda x, null: find_rows([JoinKey(x, null, nulls_match=False)], keys), "str", "bool")
    place, found = model(["a", "", "b", "q"], [False, True, False, False])
    assert [int(p) if f else None for p, f in zip(place, found, strict=True)] == expected


def test_a_result_by_group_is_looked_up_by_key() -> None:
    def function(key: Any, x: Any, wanted: Any) -> Any:
        groups = group_rows([SortKey(key)])
        rows, found = find_computed_rows([SortKey(wanted)], [SortKey(take(key, groups.first))])
        padded = key.op.Concat(sums(groups, x), key.op.Reshape(key.op.like(0, x), key.op.ints([1, 1])), axis=0)
        return key.op.Gather(padded, rows, axis=0), found

    model = Compiled(function, "str", "float64", "str")
    keys, values, wanted = ["a", "b", "a"], [1.0, 2.0, 4.0], ["b", "z", "a"]
    expected = pd.Series(wanted).map(pd.Series(values).groupby(keys).sum())
    result, found = model(keys, values, wanted)
    np.testing.assert_array_equal(np.where(found, result, NAN), expected)
    assert model([], [], [])[0].shape == (0,)
