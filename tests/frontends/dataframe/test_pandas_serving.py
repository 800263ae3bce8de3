"""Frames that differ from the sample are taken as what they hold, or refused: never rounded, cut off or misread."""

from typing import Any

import numpy as np
import pytest

pd = pytest.importorskip("pandas")

import onward  # noqa: E402
from onward.errors import InvalidDataError, RunFailure, UnsupportedError  # noqa: E402

TIMES = ["2020-01-01", None, "2021-05-05"]
MANY = {f"k{i}": i for i in range(200)}
SAMPLE = pd.DataFrame(
    {
        "x": [1.5, None, 3],
        "n": [1, 2, 3],
        "s": ["a", None, "b"],
        "t": pd.to_datetime(TIMES),
        "f": np.asarray([1, 2, 3], "float32"),
        "c": pd.Categorical(["p", "q", None], ["p", "q"]),
    }
)


def features(df: Any) -> Any:
    return pd.DataFrame({"x": df.x * 2, "n": df.n + 1, "s": df.s, "t": df.t, "f": df.f, "c": df.c == "z"})


@pytest.fixture(scope="module")
def model() -> Any:
    return onward.from_dataframe(features, SAMPLE)


@pytest.mark.parametrize(
    "column, values, word",
    [
        ("x", ["1.5", "2", "3"], "texts"),
        ("x", pd.array([1, None, 2**53 + 1], "Int64"), "exact"),
        ("f", [1e300, 1, 2], "hold"),
        ("n", [1.5, 2, 3], "hold"),
        ("n", [1, None, 3], "missing"),
        ("t", TIMES, "no times"),
        ("t", pd.to_datetime(TIMES).tz_localize("UTC"), "zone"),
        ("t", pd.to_datetime(["2020-01-01 00:00:00.123456789"] * 3), "hold"),
        ("s", [1, 2, 3], "text"),
    ],
)
def test_what_a_column_does_not_hold_is_refused(model: Any, column: str, values: Any, word: str) -> None:
    with pytest.raises(InvalidDataError, match=word):
        onward.run(model, SAMPLE.assign(**{column: values}))


def test_times_out_of_the_range_of_the_unit_are_refused() -> None:
    made = onward.from_dataframe(lambda df: df.t.dt.year, SAMPLE.assign(t=SAMPLE.t.dt.as_unit("ns")))
    with pytest.raises(InvalidDataError, match="hold"):
        onward.run(made, pd.DataFrame({"t": pd.Series(["9999-01-01"]).astype("datetime64[s]")}))


def test_other_dtypes_of_the_same_values_are_taken(model: Any) -> None:
    other = SAMPLE.astype({"n": "int32", "s": object, "x": "Float64", "f": "float64"}).iloc[:, ::-1]
    other = other.assign(t=other.t.dt.as_unit("s"), more=1).set_index(pd.Index([7, 3, 5]))
    pd.testing.assert_frame_equal(onward.run(model, other), onward.run(model, SAMPLE))


def test_a_label_that_is_no_category_is_missing(model: Any) -> None:
    assert onward.run(model, SAMPLE.assign(c=["z", "p", None])).c.tolist() == [False] * 3


def test_two_columns_of_one_name_are_refused(model: Any) -> None:
    with pytest.raises(InvalidDataError, match="2 columns"):
        onward.run(model, pd.concat([SAMPLE, SAMPLE[["x"]]], axis=1))


def test_names_may_be_numbers() -> None:
    rows = pd.DataFrame({0: [1.0, 2.0], 1: [3, 4], 2: ["a", "b"]})
    made = onward.from_dataframe(lambda df: df.sort_values(1, ascending=False).groupby(2)[1].sum().reset_index(), rows)
    assert onward.run(made, rows).to_dict("list") == {"2": ["a", "b"], "1": [3, 4]}


def test_a_schema_stands_for_a_sample() -> None:
    def words(df: Any) -> Any:
        return df.assign(y=df.n.apply(lambda v: "a" if v > 1 else "b"), since=df.n - df.n.min())

    made = onward.from_dataframe(words, {"n": "int64"})
    rows = pd.DataFrame({"n": [2**53 + 1, 2**53]})
    assert onward.run(made, rows).to_dict("list") == words(rows).to_dict("list")


def test_the_largest_of_some_rows_fails_where_it_would_be_rounded() -> None:
    rows = pd.DataFrame({"n": [1, 2, 3]})
    made = onward.from_dataframe(lambda df: df.assign(m=df[df.n > 1].n.max()), rows)
    assert onward.run(made, rows).m.tolist() == [3, 3, 3]
    with pytest.raises(RunFailure, match="beyond"):
        onward.run(made, pd.DataFrame({"n": [2**53 + 1]}))


REFUSED = {
    "two columns are called": lambda df: df.rename(columns={"x": "n"}),
    "other rows": lambda df: df.assign(y=df.x.sort_values().values),
    "divide the columns": lambda df: df.assign(y=df.n.values // df.n.values),
    "skipna": lambda df: df.x.cumsum(skipna=False),
    "2\\*\\*53": lambda df: df.s.map({"a": 2**53 + 1}),
    "more than 100 keys": lambda df: df.s.apply(lambda v: MANY.get(v, 0)),
    "made for each value": lambda df: df.s.apply(lambda v: {f"k{i}": i for i in range(3)}.get(v, 0)),
}


@pytest.mark.parametrize("word", REFUSED)
def test_what_would_come_out_otherwise_is_refused(word: str) -> None:
    with pytest.raises(UnsupportedError, match=word):
        onward.from_dataframe(REFUSED[word], SAMPLE)


def test_a_refusal_that_the_function_catches_still_is_one() -> None:
    def careful(df: Any) -> Any:
        try:
            return df.assign(y=df.x.autocorr())
        except Exception:
            return df.assign(y=0.0)

    with pytest.raises(UnsupportedError, match="autocorr"):
        onward.from_dataframe(careful, SAMPLE, check=False)
