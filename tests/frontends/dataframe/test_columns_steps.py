"""Choices by where a number lies are one node, and exact at every border."""

import numpy as np
import pytest

pd = pytest.importorskip("pandas")

from frame_compare import same  # noqa: E402

import onward  # noqa: E402

EDGES = [-np.inf, -1e300, -1.5, 0.0, 0.1, 1 / 3, 580.0, 670.0, 2.0**53, 1e300, np.inf]
FLOATS = np.concatenate(
    [EDGES, np.nextafter(EDGES, np.inf), np.nextafter(EDGES, -np.inf), [np.nan, -0.0, 5e-324, -5e-324]]
)
INTS = np.asarray(
    [edge + step for edge in (-(2**62), -(2**53), -1, 0, 580, 670, 2**31, 2**32, 2**53, 2**62) for step in (-1, 0, 1)]
    + [-(2**63), 2**63 - 1]
)


def frame() -> pd.DataFrame:
    return pd.DataFrame({"x": np.resize(FLOATS, 64), "n": np.resize(INTS, 64)})


def operators(model: onward.Model) -> list[str]:
    return [node.op_type for node in model.to_proto().graph.node]


def assert_same(function, *, chosen: int) -> None:
    """The same on all rows, on one and on none, with so many `Where` left."""
    model = onward.from_dataframe(function, frame())
    assert operators(model).count("Where") == chosen
    for rows in (frame(), frame().head(1), frame().head(0)):
        assert same(function(rows), onward.run(model, rows)) is None


@pytest.mark.parametrize("column", ["x", "n"])
@pytest.mark.parametrize("values", [[1, 2, 3, 4], [0.5, -0.0, np.nan, 2.0], ["a", "b", "", "d"], [2**60, 1, 2, 3]])
def test_a_choice_among_constants(column, values) -> None:
    def function(df):
        x = df[column]
        chosen = np.select([x < 0, x <= 580, x == 670], values[:3], values[3])
        return df.assign(chosen=chosen)[["chosen"]]

    assert_same(function, chosen=0)


def test_several_choices_share_the_interval() -> None:
    def function(df):
        band = np.select([df.x < 0.1, df.x < 580], [0, 1], 2)
        name = np.where(df.x >= 670, "high", np.where(df.x > 1 / 3, "mid", "low"))
        return pd.DataFrame({"band": band, "name": name})

    assert operators(onward.from_dataframe(function, frame())).count("TreeEnsemble") == 1
    assert_same(function, chosen=0)


def test_a_missing_number_is_in_an_interval_of_its_own() -> None:
    def function(df):
        chosen = np.select([df.x.isna(), df.x < 0], [7.0, 1.0], 2.0)
        return df.assign(chosen=chosen)[["chosen"]]

    assert_same(function, chosen=0)


def test_what_is_not_a_constant_is_chosen_as_before() -> None:
    def function(df):
        return df.assign(chosen=np.select([df.x < 0, df.x < 580], [df.x, 1.0], 2.0))[["chosen"]]

    assert_same(function, chosen=2)


def test_integers_beyond_floats_are_compared_as_integers() -> None:
    def function(df):
        return df.assign(chosen=np.select([df.n < 2**53 + 1, df.n < 2**62], [0, 1], 2))[["chosen"]]

    assert_same(function, chosen=2)


@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("column", ["x", "n"])
def test_bins(column, right) -> None:
    def function(df):
        edges = [-1.5, 0, 0.1, 1 / 3, 580, 670]
        bins = pd.cut(df[column], edges, labels=False, right=right)
        names = pd.cut(df[column], edges, labels=list("abcde"), right=right)
        return pd.DataFrame({"bins": bins, "names": names})

    assert_same(function, chosen=0)


def test_a_choice_beside_a_mask() -> None:
    """A null is in no interval: what it gives is chosen by the mask alone."""
    pl = pytest.importorskip("polars")
    numbers = [None, -1.0, 0.0, 24.9, 25.0, 25.1, 40.0, 41.0, float("nan"), float("inf"), None]
    rows = pl.DataFrame({"x": numbers, "n": [None, *range(-5, 5)]}, schema={"x": pl.Float64, "n": pl.Int64})

    def function(df):
        x, n = pl.col("x"), pl.col("n")
        band = pl.when((x > 0) & (x <= 25)).then(0).when((x > 25) & (x <= 40)).then(1).otherwise(None)
        name = pl.when(n < -2).then(pl.lit("low")).when(n < 3).then(pl.lit("mid")).otherwise(pl.lit("high"))
        return df.select(band=band, name=name)

    model = onward.from_dataframe(function, rows)
    assert not {"TreeEnsemble", "Greater", "Less"} & set(operators(model))
    for part in (rows, rows.head(1), rows.head(0), rows.tail(3)):
        assert function(part).equals(onward.run(model, part), null_equal=True)


@pytest.mark.parametrize("edges", [[0, 3, 580], [-5, 0, 1, 670], [-np.inf, 0, 580, np.inf], [0, 2000, 5000]])
@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("column", ["x", "n"])
def test_bins_with_whole_borders(column, right, edges) -> None:
    """The whole numbers between the borders are a table, if they are not too many."""

    def function(df):
        bins = pd.cut(df[column], edges, labels=False, right=right)
        names = pd.cut(df[column], edges, labels=list("abcde")[: len(edges) - 1], right=right)
        return pd.DataFrame({"bins": bins, "names": names})

    is_tree = 5000 in edges or np.inf in edges
    assert ("TreeEnsemble" in operators(onward.from_dataframe(function, frame(), check=False))) == is_tree
    assert_same(function, chosen=0)


@pytest.mark.parametrize("column", ["x", "n"])
@pytest.mark.parametrize("values", [[1, 2, 3, 4], [0.5, -0.0, np.nan, 2.0], ["a", "b", "", "a"], [2**60, 1, 2, 2**60]])
def test_a_choice_between_whole_numbers(column, values) -> None:
    def function(df):
        x = df[column]
        return pd.DataFrame({"chosen": np.select([x < 0, x < 580, x < 670], values[:3], values[3])})

    assert operators(onward.from_dataframe(function, frame())).count("LabelEncoder") == 1
    assert_same(function, chosen=0)
